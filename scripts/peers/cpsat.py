#!/usr/bin/env python3
"""OR-tools' CP-SAT beside the planner exact: the least height of lists of buffers.

  scripts/peers/cpsat.py [LIST.csv | GRAPH ..]      a graph's buffers are exported by memplan

CP-SAT gets the usual model: a rectangle a buffer, fixed in time, NoOverlap2D, the height minimised, between the most that is
alive at once and what greedy_size needs; sizes, and both ends of the height, divided by the sizes' greatest common divisor. Both get the same seconds and threads; `claim` says what each could prove. Needs
ortools.
"""

import csv
import glob
import json
import math
import os
import sys
import tempfile
import time

import common


def read_list(path):
    """[(lower, upper, size)] of a CSV with heads id, lower, upper, size (half-open lifetimes)."""
    with open(path, newline="", encoding="utf-8") as file:
        return [(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file)]


def peak_live(buffers):
    """The most bytes alive at once."""
    change = {}
    for lower, upper, size in buffers:
        change[lower] = change.get(lower, 0) + size
        change[upper] = change.get(upper, 0) - size
    peak = live = 0
    for moment in sorted(change):
        live += change[moment]
        peak = max(peak, live)
    return peak


def measure(path, upper_bound, seconds, threads):
    """Prints {"bytes", "bound", "claim", "seconds", "first": when the best was found}."""
    from ortools.sat.python import cp_model

    class Watch(cp_model.CpSolverSolutionCallback):
        def __init__(self):
            super().__init__()
            self.at = None

        def on_solution_callback(self):
            self.at = time.perf_counter() - start

    buffers = read_list(path)
    unit = math.gcd(*(size for _, _, size in buffers))
    buffers = [(lower, upper, size // unit) for lower, upper, size in buffers]
    upper_bound //= unit  # a plan of greedy_size is a sum of sizes, too
    model = cp_model.CpModel()
    height = model.new_int_var(peak_live(buffers), upper_bound, "height")
    times, places = [], []
    for i, (lower, upper, size) in enumerate(buffers):
        at = model.new_int_var(0, upper_bound - size, f"at{i}")
        times.append(model.new_fixed_size_interval_var(lower, upper - lower, f"t{i}"))
        places.append(model.new_fixed_size_interval_var(at, size, f"p{i}"))
        model.add(at + size <= height)
    model.add_no_overlap_2d(times, places)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = threads
    watch = Watch()
    start = time.perf_counter()
    status = solver.solve(model, watch)
    took = time.perf_counter() - start
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    print(json.dumps({
        "bytes": round(solver.objective_value) * unit if found else None,
        "bound": round(solver.best_objective_bound) * unit,
        "claim": {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible"}.get(status, "unknown"),
        "seconds": took,
        "first": watch.at,
    }))


def compare(program, case, seconds, threads, folder):
    path = case
    if not case.endswith(".csv"):
        path = os.path.join(folder, "list.csv")
        common.command([program, "export", case, "--format", "csv", "-o", path])
    start = common.memplan(program, "plan", path, "--planner", "greedy_size")["planned_bytes"]
    ours = common.memplan(program, "plan", path, "--planner", "exact", "--time-limit", str(seconds), "--threads",
                          str(threads))
    theirs, _ = common.itself(__file__, path, str(start), str(seconds), str(threads))
    best = theirs["bytes"]
    verdict = "memplan" if best is None or ours["planned_bytes"] < best else "CP-SAT" if best < ours["planned_bytes"] else "same"
    return [common.case_name(case), len(read_list(path)), ours["bound_bytes"], ours["planned_bytes"], ours["claim"],
            best if best is not None else "-", theirs["claim"], verdict, f"{ours['plan_ns'] / 1e9:.3f}",
            f"{theirs['seconds']:.3f}"]


def main():
    data = common.data_folder()
    lists = sorted(glob.glob(os.path.join(data, "minimalloc", "[A-Z].*.csv")))
    lists += sorted(glob.glob(os.path.join(data, "planted", "*.csv")))
    parser = common.options(__doc__.splitlines()[0], lists + ["resnet50", "densenet121", "inception_v3"], rounds=1)
    parser.add_argument("--seconds", type=int, default=60, help="for each solver and list (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of each solver (%(default)s)")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for case in args.cases:
            common.say(f"cpsat: {case}")
            lines.append(compare(args.memplan, case, args.seconds, args.threads, folder))
    heads = ["list", "n", "bound", "exact", "claim", "CP-SAT", "its claim", "less", "~exact s", "~CP-SAT s"]
    common.write_table(common.table_path(args.output, "cpsat"), heads, lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    else:
        try:
            main()
        except common.Failed as error:
            sys.exit(f"cpsat: {error}")
