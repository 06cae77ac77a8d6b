#!/usr/bin/env python3
"""PyTorch on a CPU beside memplan on programs that write through views: eager and TorchScript, one thread.

  scripts/peers/tensorssa.py [NAME ..]      the six programs of memplan's zoo (graphs/zoo/programs.c)

The programs are the zoo's, statement by statement, on the same inputs; memplan's outputs are held to eager PyTorch's. PyTorch
runs in one process and memplan in one a run, by turns. Bytes are the most that PyTorch's CPU allocator holds at once above what it held before the call
(its profiler), and memplan's arena with its outputs. Needs torch and numpy; --compile, which adds torch.compile, a C++ compiler, and minutes.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import common
from pytorch import most_alive

RUNS = 25
WAYS = {"eager": "eager", "script": "TorchScript", "compile": "compiled"}
LEVELS = ("copy", "views", "full", "boxes")

# ---- the programs, as graphs/zoo/programs.c has them ----

SOURCE = '''
import torch
from torch import Tensor
from typing import Tuple

def views(data: Tensor):
    a = torch.relu(data)
    b = a[1]
    c = a[2]
    d = b + c
    c += 2
    return (a + d,)

def offset2bbox(anchors: Tensor, head: Tensor, bias: Tensor):
    a_min = anchors[:, 0:2]
    a_max = anchors[:, 2:4]
    size = a_max - a_min
    a_half = size * 0.5
    center = a_min + a_half
    boxes = head + bias
    xy = boxes[..., 0:2]
    wh = boxes[..., 2:4]
    xy.mul_(0.1)
    xy.mul_(size)
    xy.add_(center)
    wh.mul_(0.2)
    wh.exp_()
    wh.mul_(a_half)
    low = xy - wh
    high = xy + wh
    xy.copy_(low)
    wh.copy_(high)
    return (boxes,)

def ssd_boxes(priors: Tensor, head: Tensor, conf: Tensor, bias: Tensor):
    p_xy = priors[:, :2]
    p_wh = priors[:, 2:]
    boxes = head + bias
    xy = boxes[..., :2]
    wh = boxes[..., 2:]
    xy.mul_(0.1)
    xy.mul_(p_wh)
    xy.add_(p_xy)
    wh.mul_(0.2)
    wh.exp_()
    wh.mul_(p_wh)
    w_half = wh * 0.5
    xy.sub_(w_half)
    wh.add_(xy)
    boxes.clamp_min_(0.0)
    boxes.clamp_max_(1.0)
    scores = torch.softmax(conf, -1)
    scores[..., 0].zero_()
    best = torch.amax(scores, -1)
    return boxes, scores, best

def yolo_boxes(head: Tensor, bias: Tensor, grid: Tensor, anchors: Tensor):
    planes = head + bias
    n, channels, cells, _ = planes.shape
    out = planes.reshape(n, 3, channels // 3, cells, cells).permute(0, 1, 3, 4, 2).contiguous()
    xy = out[..., 0:2]
    wh = out[..., 2:4]
    object = out[..., 4:5]
    kinds = out[..., 5:]
    xy.sigmoid_()
    xy.add_(grid)
    xy.mul_(8.0)
    wh.exp_()
    wh.mul_(anchors)
    w_half = wh * 0.5
    xy.sub_(w_half)
    wh.add_(xy)
    object.sigmoid_()
    kinds.sigmoid_()
    kinds.mul_(object)
    return (out.reshape(n, 3 * cells * cells, channels // 3),)

def stencil(data: Tensor):
    u = torch.relu(data)
    inner = u[1:-1, 1:-1]
    up = u[:-2, 1:-1]
    down = u[2:, 1:-1]
    left = u[1:-1, :-2]
    right = u[1:-1, 2:]
    for _ in range(4):
        change = ((up + down) + (left + right) - inner * 4.0) * 0.1
        inner += change
        u[0].copy_(u[1])
        u[-1].copy_(u[-2])
    return (u,)

def cart_pole(start: Tensor, force: Tensor):
    s = start * 1.0
    x = s[:, 0]
    speed = s[:, 1]
    angle = s[:, 2]
    turn = s[:, 3]
    sin = torch.sin(angle)
    cos = torch.cos(angle)
    t = (force + turn * turn * sin * 0.05) * (1 / 1.1)
    under = (4.0 / 3 - cos * cos * (0.1 / 1.1)) * 0.5
    turning = (sin * 9.8 - cos * t) / under
    pushing = t - turning * cos * (0.05 / 1.1)
    x += speed * 0.02
    speed += pushing * 0.02
    angle += turn * 0.02
    turn += turning * 0.02
    return (s,)
'''
NAMES = ("views", "offset2bbox", "ssd_boxes", "yolo_boxes", "stencil", "cart_pole")


def program_text(program, name):
    """The zoo's program with its random weights as inputs, the inputs with their dims, the outputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.graph")
        common.command([program, "export", f"{name}:ssa=program", "--format", "graph", "-o", path])
        with open(path, encoding="utf-8") as file:
            text = file.read()
    text = re.sub(r"(?m)^weight (\S+ f32 \[[\d,]*\])$", r"input \1", text)
    inputs = [(n, [int(d) for d in dims.split(",")]) for n, dims in re.findall(r"(?m)^input (\S+) f32 \[([\d,]+)\]$", text)]
    return text, inputs, re.findall(r"(?m)^output (\S+)$", text)


def arguments(name, folder):
    """The function's inputs, from the files that both sides read; constants of the program by their values."""
    import numpy
    import torch

    words = re.search(rf"def {name}\((.*?)\)", SOURCE).group(1)
    out = []
    for word in words.split(","):
        path = os.path.join(folder, word.split(":")[0].strip() + ".npy")
        out.append(torch.from_numpy(numpy.load(path)))
    return out


def measure(name, way, folder):
    """Returns {"ns": [..], "bytes"}; writes outputs as folder/out.K.npy if eager."""
    import numpy
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    sys.path.insert(0, folder)
    with open(os.path.join(folder, f"of_{name}.py"), "w", encoding="utf-8") as file:
        file.write(SOURCE)  # TorchScript reads the source of a function
    run = getattr(importlib.import_module(f"of_{name}"), name)
    given = arguments(name, folder)
    want = [o.clone() for o in run(*given)]
    if way == "eager":
        for k, o in enumerate(want):
            numpy.save(os.path.join(folder, f"out.{k}.npy"), o.numpy())
    elif way == "script":
        run = torch.jit.script(run)
    else:
        run = torch.compile(run)
    with torch.inference_mode():
        for _ in range(5):
            made = run(*given)
        if not all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(made, want)):
            raise common.Failed(f"{name}: {way} differs from eager")
        del made
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            made = run(*given)
        times = []
        for _ in range(RUNS):
            start = time.perf_counter_ns()
            run(*given)
            times.append(time.perf_counter_ns() - start)
    return {"ns": times, "bytes": most_alive(seen)}


def serve():
    """A line NAME WAY FOLDER is answered by a line of JSON: what was measured, or {"failed": why}."""
    for line in sys.stdin:
        try:
            print(json.dumps(measure(*line.split())), flush=True)
        except (common.Failed, RuntimeError) as error:
            print(json.dumps({"failed": str(error).splitlines()[0]}), flush=True)


def ask(peer, *words):
    peer.stdin.write(" ".join(words) + "\n")
    peer.stdin.flush()
    answer = peer.stdout.readline()
    made = json.loads(answer) if answer else {"failed": "PyTorch's process has ended"}
    if "failed" in made:
        raise common.Failed(made["failed"])
    return made


def prepare(program, name, folder):
    """Writes the program and inputs in (0, 1) into the folder; returns memplan's words."""
    import numpy

    text, inputs, outputs = program_text(program, name)
    path = os.path.join(folder, "program.graph")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    words = [path]
    draw = numpy.random.default_rng(1)
    for n, dims in inputs:
        at = os.path.join(folder, f"{n}.npy")
        numpy.save(at, draw.random(dims, dtype=numpy.float32))
        words += ["--input", f"{n}={at}"]
    for n, dims, data in re.findall(r"(?m)^weight (\S+) f32 \[([\d,]+)\] = data (.*)$", text):
        numpy.save(os.path.join(folder, f"{n}.npy"), numpy.array(data.split(), numpy.float32).reshape([int(d) for d in dims.split(",")]))
    for k, n in enumerate(outputs):
        words += ["--expect", f"{n}={os.path.join(folder, f'out.{k}.npy')}:1e-4,1e-5"]
    return words


def compare(peer, program, name, rounds, ways):
    theirs, ours, rows, peaks = {w: [] for w in ways}, {l: [] for l in LEVELS}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        words = prepare(program, name, folder)
        for _ in range(rounds):
            for way in ways:
                made = ask(peer, name, way, folder)
                theirs[way].append(common.median(made["ns"]))
                peaks[way] = made["bytes"]
            for level in LEVELS:
                rows[level] = common.memplan(program, "run", *words, "--ssa", level, "--pin", "weights,inputs", "--backend", "cpu",
                                             "--threads", "1", "--repeat", str(RUNS))
                ours[level].append(common.median(rows[level]["run_ns"]))
    here = {k: common.median(v) for k, v in ours.items()}
    there = {k: common.median(v) for k, v in theirs.items()}
    return [name, *(common.mib(rows[l]["planned_bytes"]) for l in LEVELS), *(common.mib(peaks[w]) for w in ways),
            *(f"{here[l] / 1e6:.3f}" for l in LEVELS), *(f"{there[w] / 1e6:.3f}" for w in ways),
            *(f"{there[w] / here['full']:.2f}" for w in ways), f"{there['eager'] / there['script']:.2f}", f"{here['copy'] / here['full']:.2f}"]


def main():
    parser = common.options(__doc__.splitlines()[0], list(NAMES), rounds=3)
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    args = parser.parse_args()
    ways = [w for w in WAYS if w != "compile" or args.compile]
    lines = []
    env = dict(os.environ, KINETO_LOG_LEVEL="9", PYTHONWARNINGS="ignore")
    with subprocess.Popen([sys.executable, __file__, "--serve"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        for name in args.cases:
            if name not in NAMES:
                raise common.Failed(f"no program '{name}': {', '.join(NAMES)}")
            common.say(f"tensorssa: {name}")
            lines.append(compare(peer, args.memplan, name, args.rounds, ways))
        peer.stdin.close()
    heads = ["program", *(f"{l} MiB" for l in LEVELS), *(f"{WAYS[w]} MiB" for w in ways), *(f"~{l} ms" for l in LEVELS),
             *(f"~{WAYS[w]} ms" for w in ways), *(f"~{WAYS[w]} over full" for w in ways), "~eager over TorchScript", "~copy over full"]
    common.write_table(common.table_path(args.output, "tensorssa"), heads, lines)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--serve"]:
            serve()
        else:
            main()
    except common.Failed as error:
        sys.exit(f"tensorssa: {error}")
