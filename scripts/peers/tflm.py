#!/usr/bin/env python3
"""TensorFlow Lite Micro runs models with memplan's offsets: outputs, arena_used, and what was said beforehand.

  scripts/peers/tflm.py [MODEL.tflite ..]     default: those of tests/data/tflite and of MEMPLAN_DATA
  scripts/peers/tflm.py --random N            N models that are drawn (random_tflite.py), in which its planner meets ties

Each model is run by tflite-micro's interpreter (reference kernels) as it is and as `memplan export --format tflite` writes it, on
the same random inputs, three times over, as state counts. What the arena takes is the head, which its planner or our offsets lay
out, and the tail of persistent data. Said beforehand: head' = the head that export names; arena' = arena - head + head'. A model
whose arena differs from that by a byte, or is above its own planner's, or whose outputs differ, is a failure: exit 1; so is a head of
its own planner that is not the one that export says of it, but for files that bring offsets along. What the
interpreter does not run (operators that it lacks, or compiled ones) is named. Needs tflite-micro and numpy.
"""

import glob
import os
import re
import sys
import tempfile

import common
import random_tflite

ARENA = 64 << 20


def models():
    data = os.path.join(common.data_folder(), "tflite")
    return sorted(glob.glob(os.path.join(common.ROOT, "tests", "data", "tflite", "*.tflite")) + glob.glob(os.path.join(data, "*.tflite")))


def run(path):
    """Prints the outputs as JSON; the interpreter says its allocations on standard error or output."""
    import numpy
    from tflite_micro.python.tflite_micro import runtime

    net = runtime.Interpreter.from_file(path, arena_size=ARENA)
    draw = numpy.random.default_rng(7)
    outputs = []
    for _ in range(3):
        for i in range(100):
            try:
                wants = net.get_input_details(i)
            except (IndexError, RuntimeError, ValueError):
                break
            if wants["dtype"] == numpy.float32:
                data = draw.standard_normal(wants["shape"]).astype(numpy.float32)
            else:
                data = draw.integers(0 if wants["dtype"] == numpy.bool_ else -100, 2 if wants["dtype"] == numpy.bool_ else 100,
                                     wants["shape"]).astype(wants["dtype"])
            net.set_input(data, i)
        net.invoke()
        for i in range(100):
            try:
                outputs.append(net.get_output(i).tobytes().hex())
            except (IndexError, RuntimeError, ValueError):
                break
    sys.stdout.flush()
    net.print_allocations()
    sys.stdout.flush()
    print("outputs", " ".join(outputs))


def measure(path):
    """(arena, head, outputs) of a run in a process of its own; Failed: it does not run."""
    done = common.command([sys.executable, os.path.abspath(__file__), "--one", path])
    text = done.stdout + done.stderr
    found = [re.search(rf"Arena allocation {what} (\d+) bytes", text) for what in ("total", "head")]
    if None in found:
        raise common.Failed("the interpreter tells no allocations")
    return int(found[0].group(1)), int(found[1].group(1)), re.search(r"^outputs (.*)$", done.stdout, re.M).group(1)


def compare(program, path, folder):
    """(the line of the table, whether all is as it was said)."""
    name = os.path.basename(path)[: -len(".tflite")]
    placed = os.path.join(folder, "placed.tflite")
    try:
        said = common.command([program, "export", path, "--format", "tflite", "-o", placed]).stderr
        arena, head, outputs = measure(path)
        ours, our_head, our_outputs = measure(placed)
    except common.Failed as why:
        print(f"{name}: not run: {why}")
        return None, True
    expected, own = (int(n) for n in re.search(r"head of the arena: (\d+) bytes.*planner (\d+)", said).groups())
    equal = outputs == our_outputs and outputs != ""
    good = equal and our_head == expected and ours == arena - head + expected and ours <= arena and own <= head
    good &= own == head or b"OfflineMemoryAllocation" in open(path, "rb").read()
    print(f"{name}: arena_used {arena} by its own planner, {ours} with our offsets, {arena - head + expected} said; "
          f"outputs {'equal' if equal else 'differ'}{'' if good else '   FAILED'}")
    if own != head:
        print(f"{name}: its planner would take {own} by our account, and takes {head}")
    return [name, arena, head, ours, our_head, expected, "yes" if equal else "no"], good


def main():
    if sys.argv[1:2] == ["--one"]:
        return run(sys.argv[2])
    parser = common.options(__doc__, [])
    parser.add_argument("--random", type=int, default=0, metavar="N", help="draw N models (%(default)s)")
    options = parser.parse_args()
    try:
        import tflite_micro  # noqa: F401
    except ImportError:
        sys.exit("tflm: no tflite-micro here: pip install tflite-micro numpy")
    heads = ["model", "arena_used", "head", "arena_used with offsets", "head with offsets", "head said", "outputs equal"]
    lines, good = [], True
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.random):
            options.cases.append(os.path.join(folder, f"random{seed}.tflite"))
            with open(options.cases[-1], "wb") as out:
                out.write(random_tflite.model(seed))
        for path in options.cases or models():
            line, right = compare(options.memplan, path, folder)
            good &= right
            lines += [line] if line else []
    print(f"{len(lines)} models run, {sum(l[3] for l in lines)} bytes of arenas, {sum(l[1] for l in lines)} by its own planner")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as out:
            out.writelines("\t".join(map(str, line)) + "\n" for line in [heads] + lines)
    return sys.exit(not good)


main()
