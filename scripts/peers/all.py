#!/usr/bin/env python3
"""All peers in one run: each that is there is measured beside memplan, one table each, and one line of results/tables/peers.tsv.

  scripts/peers/all.py [--peer NAME=PATH ..] [PEER ..]      make peers PYTHON=.. PEERS='--peer minimalloc=PATH'

A peer is there if its package is installed for this Python, or lies in the folder PATH; minimalloc and idealloc are programs: PATH is the
program, for idealloc a command with {in} and {out}. Of one that is in neither, the lists that we have from it are planned anew (what its
compiler planned, results/production.jsonl), or it is not run; the line says which. One that fails is said, and the others go on.

A line: how and which version it was run; the programs; on how many it needs no more than memplan; what it holds over what memplan
holds of the same (workspaces counted on both sides, where it counts them), median and most. Exit 1: one failed.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import common

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(common.ROOT, "results", "production.jsonl")

# name: its package (None: a program), what it is, how it is measured
PEERS = {
    "minimalloc": (None, "MiniMalloc, fit and minimise", "solver"),
    "idealloc": (None, "idealloc", "solver"),
    "cpsat": ("ortools", "OR-tools CP-SAT", "script"),
    "ort": ("onnxruntime", "ONNX Runtime, arena", "script"),
    "pytorch": ("torch", "PyTorch, eager", "script"),
    "tensorssa": ("torch", "PyTorch, programs of views", "script"),
    "inductor": ("torch", "PyTorch Inductor", "torch_programs.py"),
    "tflite": ("tensorflow", "TensorFlow Lite", "script"),
    "xla_cpu": ("jax", "XLA on a CPU (JAX)", "jax_programs.py"),
    "executorch": ("executorch", "ExecuTorch", "torch_programs.py"),
}
# of a script's table: the column of theirs and that of ours
COLUMNS = {"cpsat": ("CP-SAT", "exact"), "ort": ("arena MiB", "with workspaces MiB"), "pytorch": ("PyTorch MiB", "with workspaces MiB"),
           "tensorssa": ("eager MiB", "full MiB"),
           "tflite": ("TFLite MiB", "exact MiB"), "minimalloc": ("theirs", "exact"), "idealloc": ("theirs", "exact")}
OTHER_NAMES = {"tensorflow": ["tensorflow", "tensorflow-cpu"]}


def version(package, env):
    """The installed version, "" if there is none."""
    names = OTHER_NAMES.get(package, [package])
    code = f"import importlib.metadata as m\nfor n in {names!r}:\n try: print(m.version(n)); break\n except m.PackageNotFoundError: pass"
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False).stdout.strip()


def run(words, env):
    common.say("peers: " + " ".join(os.path.relpath(w) if w.startswith(common.ROOT) else w for w in words[1:]))
    return subprocess.run(words, env=env, check=False).returncode == 0


def measure(args, name, how, env):
    """Whether it was measured."""
    if how == "script":
        rounds = ["--rounds", str(args.rounds)] if args.rounds else []
        return run([sys.executable, os.path.join(HERE, f"{name}.py"), "--memplan", args.memplan, *rounds], env)
    with tempfile.TemporaryDirectory() as folder:
        programs = os.path.join(HERE, "production", how)
        where = os.path.join(folder, name)
        words = [where, "cpu"] if how == "jax_programs.py" else [name, where]
        return run([sys.executable, programs, *words], env) and run(
            [sys.executable, os.path.join(HERE, "production", "measure.py"), folder, name, "--memplan", args.memplan], env)


def pairs(name):
    """[(program, bytes that it holds, bytes of memplan)] of what was measured last."""
    if name in COLUMNS:
        path, (theirs, ours) = common.table_path(None, name), COLUMNS[name]
        if not os.path.exists(path):
            return []
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file, delimiter="\t")
            return [(next(iter(l.values())), float(l[theirs]), float(l[ours])) for l in lines if l[theirs] != "-"]
    with open(ROWS, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [(r["program"], r["planned_bytes"], r["optimum_bytes"] or r["bound_bytes"]) for r in rows
            if r["producer"] == name and "refused" not in r and r["planned_bytes"] > 0]


def line_of(name, state):
    _, what, _ = PEERS[name]
    held = pairs(name)
    if not held:
        return [what, state, 0, "-", "-", "-", "-"]
    worst = max(held, key=lambda p: p[1] / p[2])
    return [what, state, len(held), sum(t <= o for _, t, o in held), f"{statistics.median(t / o for _, t, o in held):.3f}",
            f"{worst[1] / worst[2]:.3f}", worst[0]]


def one(args, name, places):
    """(its line's state, whether it failed)."""
    package, _, how = PEERS[name]
    path = places.get(name) or places.get(package)
    env = dict(os.environ)
    if how == "solver":
        if path is None:
            return "not run: no program given, on no registry", False
        good = run([sys.executable, os.path.join(HERE, "solver.py"), "--program", f"{name}={path}", "--memplan", args.memplan], env)
        return f"run: {os.path.basename(path.split()[0])}" if good else "failed", not good
    if path is not None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.abspath(path), env.get("PYTHONPATH")]))
    found = version(package, env)
    if found:
        good = measure(args, name, how, env)
        return f"run: {package} {found}" if good else f"failed: {package} {found}", not good
    if how == "script":
        return f"not run: no {package} here; the table is that of its last run", False
    good = run([sys.executable, os.path.join(HERE, "production", "measure.py"), "--again", name, "--memplan", args.memplan], env)
    return "its lists planned anew" if good else "failed: its lists planned anew differ", not good


def main():
    parser = common.options(__doc__.splitlines()[0], list(PEERS), rounds=None)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a peer, or a package, in a folder")
    args = parser.parse_args()
    args.memplan = os.path.abspath(args.memplan)
    places = dict(p.split("=", 1) for p in args.peer if "=" in p)
    packages = {p for p, _, _ in PEERS.values()}
    unknown = [n for n in [*args.cases, *places] if n not in PEERS and n not in packages]
    if unknown or len(places) < len(args.peer):
        sys.exit(f"peers: no peer '{(unknown or args.peer)[0]}'; NAME=PATH, where NAME is one of {' '.join(PEERS)}")
    for name, path in places.items():
        if shutil.which(path.split()[0]) is None and not os.path.isdir(path):
            sys.exit(f"peers: {name}: '{path}' is neither a program nor a folder")
    states, failed = old_states(), False
    heads = ["peer", "how", "programs", "no more than ours", "theirs over ours, median", "most", "on"]
    for name in args.cases:
        states[name], bad = one(args, name, places)
        failed |= bad
        common.write_table(common.table_path(None, "all"), heads, [line_of(n, states[n]) for n in PEERS if n in states])
    sys.exit(failed)


def old_states():
    """How the peers of earlier runs were run: a run of some leaves the lines of the others."""
    path, by_what = common.table_path(None, "all"), {what: name for name, (_, what, _) in PEERS.items()}
    if not os.path.exists(path):
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {by_what[l["peer"]]: l["how"] for l in csv.DictReader(file, delimiter="\t") if l["peer"] in by_what}


if __name__ == "__main__":
    main()
