#!/usr/bin/env python3
"""ONNX Runtime beside memplan: arena bytes, and latency with one thread and with two.

  scripts/peers/ort.py [GRAPH ..]      .onnx files or zoo graphs, which memplan exports

ONNX Runtime's arena is what its BFC arena took from the system in three runs (from its log), without what it reserved for
weights: as it comes, and with arena_extend_strategy=kSameAsRequested, the frugal one. Its pattern is the one block that it asks
for from the second run on, once it has seen what the first allocated. Its convolutions take their workspaces from that arena;
memplan's arena is of values alone, so a column adds its workspaces. Weights that memplan packs once have a column; ONNX Runtime
packs its own, too, into what it reserved. Resident sets are of
whole processes, peak, with their libraries, Python and the weights; memplan's ran the network with nothing shared as well, to
compare outputs. Threads of both spin before they sleep, as ONNX Runtime's do unasked. The programs run in turns, a process each; a time is the
median of the rounds' medians. Needs onnxruntime and numpy.
"""

import glob
import json
import os
import re
import sys
import tempfile
import time

import common

RUNS = 7
WARM_UPS = 3
EXACT = ("session.x64quantprecision", "1")  # products of bytes do not saturate
ZOO = ["resnet50", "mobilenet_v2", "squeezenet", "inception_v3"]


def feeds_of(session):
    """Each input's name and contents of one seed: numbers below 1, or identifiers below 100."""
    import numpy as np

    draw = np.random.default_rng(1)
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in value.shape]
        yield value.name, (draw.integers(0, 100, shape).astype(np.int64) if "int64" in value.type
                           else draw.random(shape, dtype=np.float32))


def measure(path, threads, strategy, runs=RUNS, exact=False):
    """One session; prints {"resident", "ns": [..]}, the log goes to standard error, a line "run N" before each of the first runs."""
    import onnxruntime as ort

    ort.set_default_logger_severity(1)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if exact:
        options.add_session_config_entry(*EXACT)
    if strategy == "frugal":
        memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        same_as_requested, choose = 1, -1
        ort.create_and_register_allocator(
            memory,
            ort.OrtArenaCfg({"arena_extend_strategy": same_as_requested, "max_mem": 0, "initial_chunk_size_bytes": choose,
                             "max_dead_bytes_per_chunk": choose, "initial_growth_chunk_size_bytes": choose}))
        options.add_session_config_entry("session.use_env_allocators", "1")
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = dict(feeds_of(session))
    for run in range(WARM_UPS):
        print(f"run {run}", file=sys.stderr, flush=True)
        session.run(None, feeds)
    ort.set_default_logger_severity(3)
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        session.run(None, feeds)
        times.append(time.perf_counter_ns() - start)
    print(json.dumps({"resident": common.resident(), "ns": times}))


def arena_bytes(log):
    """(what the arena took without what was reserved for weights, the block of the second run)."""
    if "Creating BFCArena" not in log:
        raise common.Failed("onnxruntime: no arena in its log: another version's words?")
    took = [int(n) for n in re.findall(r"Extended allocation by (\d+) bytes", log)]
    asked = [int(n) for n in re.findall(r"\(requested\) num_bytes: (\d+)", log.split("run 1", 1)[1])]
    return sum(took), max(asked, default=0)


def peer(path, threads, strategy="default"):
    result, log = common.itself(__file__, path, str(threads), strategy)
    return result["ns"], (*arena_bytes(log), result["resident"])


def compare(program, graph, rounds, folder, extra):
    path = graph
    if not graph.endswith(".onnx"):
        path = os.path.join(folder, re.sub(r"\W", "_", graph) + ".onnx")
        common.command([program, "export", graph, "--format", "onnx", "-o", path])
    ours, theirs = {1: [], 2: []}, {1: [], 2: []}
    for _ in range(rounds):
        for threads in (1, 2):
            row = common.memplan(program, "run", graph, "--backend", "cpu", "--threads", str(threads), "--repeat",
                                 str(RUNS + WARM_UPS - 1), *extra)  # one more warms up
            ours[threads].append(common.median(row["run_ns"][-RUNS:]))
            times, (arena, _, held) = peer(path, threads)
            theirs[threads].append(common.median(times))
    _, (frugal, pattern, _) = peer(path, 1, "frugal")
    planned, whole = row["planned_bytes"], common.with_workspaces(row)
    line = [common.case_name(graph), common.mib(planned), common.mib(whole), common.ratio(whole, arena),
            common.mib(common.packed(row)), common.mib(row["rss_bytes"]), common.mib(held)]
    for theirs_bytes in (arena, frugal, pattern):
        line += [common.mib(theirs_bytes), common.ratio(planned, theirs_bytes)]
    for threads in (1, 2):
        a, b = common.median(ours[threads]), common.median(theirs[threads])
        line += [f"{a / 1e6:.1f}", f"{b / 1e6:.1f}", common.ratio(a, b)]
    return line


def main():
    light = sorted(glob.glob(os.path.join(common.data_folder(), "onnx-light", "*.onnx")))
    parser = common.options(__doc__.splitlines()[0], light + ZOO)
    parser.add_argument("--run", default="--optimise all --layout auto",
                        help="further options of memplan run, one text (%(default)s)")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for graph in args.cases:
            common.say(f"ort: {graph}")
            lines.append(compare(args.memplan, graph, args.rounds, folder, args.run.split()))
    heads = ["graph", "planned MiB", "with workspaces MiB", "with workspaces over arena",
             "packed weights MiB", "resident MiB", "ORT resident MiB", "arena MiB", "planned over arena", "frugal arena MiB", "planned over frugal",
             "pattern MiB", "planned over pattern", "~run ms", "~ORT ms", "~run over ORT", "~run ms 2 threads", "~ORT ms 2 threads", "~run over ORT 2 threads"]
    common.write_table(common.table_path(args.output, "ort"), heads, lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        try:
            main()
        except common.Failed as error:
            sys.exit(f"ort: {error}")
