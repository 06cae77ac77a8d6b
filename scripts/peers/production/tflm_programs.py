#!/usr/bin/env python3
"""TensorFlow Lite Micro's plans: what its interpreter takes for the arena's head, beside the least for the same buffers.

  tflm_programs.py FOLDER MODEL.tflite ..     needs tflite-micro and numpy; writes NAME.arena, and NAME.csv, which is empty

The least is what `memplan export --format tflite` proves of the model; with those offsets the interpreter must take to the byte what
was said of them. A model that it does not take, or of which that is not so, is named and left out.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

MEMPLAN = os.environ.get("MEMPLAN", os.path.join(common.ROOT, "build", "memplan"))


def allocate(path):
    """The interpreter says its allocations on standard error; nothing is invoked."""
    from tflite_micro.python.tflite_micro import runtime

    runtime.Interpreter.from_file(path, arena_size=256 << 20).print_allocations()


def head(path):
    done = common.command([sys.executable, os.path.abspath(__file__), "--one", path])
    found = re.search(r"Arena allocation head (\d+) bytes", done.stdout + done.stderr)
    if found is None:
        raise common.Failed("the interpreter tells no allocations")
    return int(found.group(1))


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
    if sys.argv[1:2] == ["--one"]:
        return allocate(sys.argv[2])
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
