#!/usr/bin/env python3
"""TensorFlow Lite Micro's plans: what its interpreter takes for the arena's head, beside the least for the same buffers.

  tflm_programs.py FOLDER MODEL.tflite ..     needs tflite-micro and numpy; writes NAME.arena, and NAME.csv, which is empty

The least is what `memplan export --format tflite` proves of the model; with those offsets the interpreter must take to the byte what
was said of them. A model that it does not take, or of which that is not so, is named and left out.
"""

import collections
import hashlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

MEMPLAN = os.environ.get("MEMPLAN", os.path.join(common.ROOT, "build", "memplan"))


Run = collections.namedtuple("Run", "head total outputs")


def allocate(path, call=False):
    """The interpreter says its allocations on standard error. Called, it gets random inputs, always the same; prints a digest of the outputs."""
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(path, arena_size=256 << 20)
    interpreter.print_allocations()
    if call:
        feed(interpreter)
        interpreter.invoke()
        outputs = [out.tobytes() for out in every(interpreter.get_output)]
        if not outputs:
            sys.exit("the interpreter has no outputs")
        print("outputs", len(outputs), hashlib.sha256(b"".join(outputs)).hexdigest())


def every(get):
    """What get(0), get(1) .. give until there is none."""
    found = []
    while True:
        try:
            found.append(get(len(found)))
        except (IndexError, RuntimeError, ValueError):
            return found


def feed(interpreter):
    import numpy

    rng = numpy.random.default_rng(1)
    for i, details in enumerate(every(interpreter.get_input_details)):
        kind, shape = numpy.dtype(details["dtype"]), tuple(details["shape"])
        if kind.kind == "f":
            value = rng.standard_normal(shape).astype(kind)
        else:
            value = rng.integers(numpy.iinfo(kind).min, numpy.iinfo(kind).max, shape, kind, endpoint=True)
        interpreter.set_input(value, i)


def run(path, *how):
    done = common.command([sys.executable, os.path.abspath(__file__), *(how or ("--run",)), path])
    text = done.stdout + done.stderr
    head, total = (re.search(rf"Arena allocation {what} (\d+) bytes", text) for what in ("head", "total"))
    if head is None or total is None:
        raise common.Failed("the interpreter tells no allocations")
    return Run(int(head.group(1)), int(total.group(1)), re.findall(r"outputs .*", text))


def head(path):
    return run(path, "--one").head


def one(path, folder):
    name = os.path.basename(path).removesuffix(".tflite")
    with tempfile.TemporaryDirectory() as scratch:
        placed = os.path.join(scratch, "placed.tflite")
        said = common.command([MEMPLAN, "export", path, "--format", "tflite", "-o", placed]).stderr
        expected = re.search(r"head of the arena: (\d+) bytes, the least", said)
        if expected is None:
            raise common.Failed("its least head is not proved")
        least = int(expected.group(1))
        taken, ours = head(path), head(placed)
        if ours != least:
            raise common.Failed(f"the head with our offsets is {ours} bytes, and {least} by our account")
    with open(os.path.join(folder, name + ".csv"), "w", encoding="utf-8") as out:
        out.write("id,lower,upper,size\n")
    with open(os.path.join(folder, name + ".arena"), "w", encoding="utf-8") as out:
        out.write(f"{taken} {least}\n")


def main():
    if sys.argv[1:2] in (["--one"], ["--run"]):
        return allocate(sys.argv[2], sys.argv[1] == "--run")
    folder, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for path in paths:
        try:
            one(path, folder)
        except (common.Failed, AttributeError, subprocess.SubprocessError) as why:
            print(f"tflm: {os.path.basename(path)}: {why}", file=sys.stderr, flush=True)
    return None


if __name__ == "__main__":
    main()
