#!/usr/bin/env python3
"""TensorFlow Lite beside memplan: the arena of its planner, and memplan's plans of the very same buffers.

  scripts/peers/tflite.py [NAME ..]      networks of keras.applications

Each network is converted (float32, batch 1) and allocated by TensorFlow Lite without delegates and with its reference kernels,
which want no scratch memory that a list of tensors would not show. Its arena is the span of the addresses that its tensors got;
the list that memplan plans has a buffer for each, alive from the operation that makes it to the last that reads it; inputs,
which TensorFlow Lite keeps, to the end. Tensors that share an address while both are alive (its in-place sharing) are one
buffer. Needs tensorflow.
"""

import csv
import json
import os
import sys
import tempfile

import common

NAMES = ["MobileNet", "MobileNetV2", "ResNet50", "DenseNet121", "InceptionV3", "VGG16", "EfficientNetB0", "NASNetMobile"]


def convert(name, folder):
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    net = getattr(tf.keras.applications, name)(weights=None)
    shape = [1, *net.input_shape[1:]]
    run = tf.function(lambda x: net(x, training=False))
    concrete = convert_variables_to_constants_v2(run.get_concrete_function(tf.TensorSpec(shape, tf.float32)))
    path = os.path.join(folder, f"{name}.tflite")
    with open(path, "wb") as out:
        out.write(tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert())
    return path


def lifetimes(interpreter):
    """{tensor: (first operation, last operation + 1)} of the tensors that operations make, and of inputs."""
    first, last = {}, {}
    ops = interpreter._get_ops_details()
    for tensor in interpreter.get_input_details():
        first[tensor["index"]], last[tensor["index"]] = 0, len(ops) - 1
    for at, op in enumerate(ops):
        for tensor in op["outputs"]:
            first.setdefault(int(tensor), at)
            last[int(tensor)] = at
        for tensor in op["inputs"]:
            if int(tensor) in first:
                last[int(tensor)] = max(last[int(tensor)], at)
    for tensor in interpreter.get_output_details():
        last[tensor["index"]] = len(ops) - 1
    return {t: (first[t], last[t] + 1) for t in first}


def measure(name, where):
    """Writes the list; prints {"bytes", "buffers"}."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        interpreter = tf.lite.Interpreter(
            convert(name, folder), num_threads=1,
            experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    buffers = {}
    for tensor, (born, dies) in lifetimes(interpreter).items():
        view = interpreter.tensor(tensor)()
        start, size = view.__array_interface__["data"][0], view.nbytes
        buffers[tensor] = [start, size, born, dies]
    merged = []
    for start, size, born, dies in sorted(buffers.values()):
        twin = next((b for b in merged if b[0] == start and b[2] < dies and born < b[3]), None)
        if twin:
            twin[1:] = [max(twin[1], size), min(twin[2], born), max(twin[3], dies)]
        else:
            merged.append([start, size, born, dies])
    with open(where, "w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out)
        lines.writerow(["id", "lower", "upper", "size"])
        lines.writerows([i, born, dies, size] for i, (_, size, born, dies) in enumerate(merged))
    span = max(b[0] + b[1] for b in merged) - min(b[0] for b in merged)
    print(json.dumps({"bytes": span, "buffers": len(merged)}))


def compare(program, name, folder):
    where = os.path.join(folder, f"{name}.csv")
    peer, _ = common.itself(__file__, name, where)
    greedy = common.memplan(program, "plan", where, "--planner", "greedy_size")
    ours = common.memplan(program, "plan", where, "--planner", "exact", "--time-limit", "20")
    return [name, peer["buffers"], common.mib(peer["bytes"]), common.mib(greedy["planned_bytes"]),
            common.mib(ours["planned_bytes"]), common.mib(ours["bound_bytes"]), ours["claim"],
            common.ratio(ours["planned_bytes"], peer["bytes"])]


def main():
    parser = common.options(__doc__.splitlines()[0], NAMES, rounds=1)
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.cases:
            common.say(f"tflite: {name}")
            lines.append(compare(args.memplan, name, folder))
    heads = ["graph", "buffers", "TFLite MiB", "greedy_size MiB", "exact MiB", "bound MiB", "claim", "exact over TFLite"]
    common.write_table(common.table_path(args.output, "tflite"), heads, lines)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--one"]:
            measure(sys.argv[2], sys.argv[3])
        else:
            main()
    except common.Failed as error:
        sys.exit(f"tflite: {error}")
