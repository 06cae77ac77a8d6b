#!/usr/bin/env python3
"""Plans of TensorFlow Lite's arena: keras.applications and .tflite models, as lists of buffers with their addresses.

  tflite_programs.py FOLDER [MODEL.tflite ..]     needs tensorflow (NAME.csv: id,lower,upper,size,alignment,offset)

As scripts/peers/tflite.py measures them: no delegates, reference kernels. A tensor's place is its address behind the arena's first;
addresses are multiples of 64, as kDefaultTensorAlignment has them. Tensors at one address that live together (in-place sharing)
are one buffer; a model with tensors that are not in the arena, or not shown, is left out; what is outside the arena (weights, variables) is not planned. Models that are converted stay in FOLDER-models.
"""

import csv
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tflite  # noqa: E402

NAMES = [name for name in tflite.NAMES if name != "VGG16"] + """Xception ResNet50V2 ResNet101 DenseNet169 EfficientNetB3 EfficientNetV2B0
  InceptionResNetV2 ConvNeXtTiny""".split()


def merged(interpreter):
    """[offset, bytes, first step, step after the last] of each buffer in the arena."""
    found = []
    for tensor, (born, dies) in tflite.lifetimes(interpreter).items():
        try:
            view = interpreter.tensor(tensor)()
        except ValueError:
            sys.exit("it has tensors without a place: their shapes are known as it runs")
        found.append([view.__array_interface__["data"][0], view.nbytes, born, dies])
    out = []
    for start, size, born, dies in sorted(found):
        twin = next((b for b in out if b[0] == start and b[2] < dies and born < b[3]), None)
        if twin:
            twin[1:] = [max(twin[1], size), min(twin[2], born), max(twin[3], dies)]
        elif size > 0:
            out.append([start, size, born, dies])
    return out


def write(path, where):
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(path, num_threads=1, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    buffers = merged(interpreter)
    end = base = min(b[0] for b in buffers)
    for start, size, _, _ in sorted(buffers):
        if start - end >= 64:
            sys.exit(f"{start - end} bytes of the arena are no tensor's: it has temporary ones, which the interpreter does not show")
        end = max(end, start + size)
    with open(where, "w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(["id", "lower", "upper", "size", "alignment", "offset"])
        lines.writerows([i, born, dies, size, 64, start - base] for i, (start, size, born, dies) in enumerate(buffers))


def one(case, folder):
    if case.endswith(".tflite"):
        return write(case, os.path.join(folder, os.path.basename(case).removesuffix(".tflite") + ".csv"))
    return write(tflite.convert(case, folder + "-models"), os.path.join(folder, case + ".csv"))


def main():
    folder, *cases = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.makedirs(folder + "-models", exist_ok=True)
    if len(cases) == 1:
        return one(cases[0], folder)
    for case in NAMES + cases:  # a process each: what one leaves behind is not the next one's
        done = subprocess.run([sys.executable, __file__, folder, case], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"tflite: {case}: {(done.stderr.strip() or 'killed').splitlines()[-1][:200]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
