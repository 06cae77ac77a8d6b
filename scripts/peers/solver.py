#!/usr/bin/env python3
"""A solver of lists that is a program, MiniMalloc or idealloc, beside the planner exact, by turns.

  scripts/peers/solver.py --program minimalloc=PATH [LIST.csv ..]
  scripts/peers/solver.py --program idealloc='CMD {in} {out}' [LIST.csv ..]

MiniMalloc fits each list to the capacity in its name, and minimises from that capacity down, which ours is not told. Its height is the
lower of the two: its own way to minimise counts a search that ran out of time as infeasible, and may then hold nothing at all, two
seconds before it would be stopped. idealloc only minimises. A time is the median of the rounds, of the whole
program for both (memplan bench --peer); a program that used its time up minimising has one round. Heights are verified before they
stand here. One that does not answer in SECONDS has a dash.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

import common

MINIMISE = "{program} --capacity={capacity} --minimize_capacity --timeout={seconds}s --input={{in}} --output={{out}}"
SPARE = 2  # of its seconds, in which a program that minimised until then writes what it holds


def race(args, peer, case, capacity, folder, turns):
    """{planner: row} of one list."""
    suite, rows = os.path.join(folder, "one.suite"), os.path.join(folder, "rows.jsonl")
    with open(suite, "w", encoding="utf-8") as out:
        out.write("--backends none\n" + (f"--capacity {capacity}\n" if capacity else "") + case + "\n")
    if os.path.exists(rows):
        os.remove(rows)
    done = subprocess.run([args.memplan, "bench", suite, "--planners", "exact", "--peer", peer, "--repeat", str(turns),
                           "--time-limit", str(args.seconds), "-q", "-o", rows], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise common.Failed((done.stderr.strip() or "memplan bench failed").splitlines()[-1])
    with open(rows, encoding="utf-8") as file:
        return {row["planner"]: row for row in map(json.loads, file)}


def seconds(row):
    return f"{common.median(row['plan_each_ns']) / 1e9:.3f}" if row["status"] == "ok" else "-"


def height(*rows):
    return min((row["planned_bytes"] for row in rows if row["status"] == "ok"), default="-")


def compare(args, name, case, folder):
    capacity = case.rsplit(".", 2)[1]
    line, fits = [common.case_name(case)], []
    if name == "minimalloc":
        fit = race(args, f"{name}={args.program}", case, capacity, folder, args.rounds)
        fits = [fit[f"exec:{name}"]]
        line += [seconds(*fits), seconds(fit["exact"])]
        peer = f"{name}=" + MINIMISE.format(program=args.program, capacity=capacity, seconds=args.seconds - SPARE)
    else:
        line += ["-", "-"]
        peer = f"{name}={args.program}"
    least = race(args, peer, case, None, folder, 1)
    if seconds(least[f"exec:{name}"]) != "-" and float(seconds(least[f"exec:{name}"])) < args.seconds - SPARE:
        least = race(args, peer, case, None, folder, args.rounds)
    theirs, ours = least[f"exec:{name}"], least["exact"]
    return [*line, height(theirs, *fits), height(ours), ours["claim"], seconds(theirs), seconds(ours)]


def main():
    lists = sorted(glob.glob(os.path.join(common.data_folder(), "minimalloc", "[A-Z].*.csv")))
    parser = common.options(__doc__.splitlines()[0], lists, rounds=3)
    parser.add_argument("--program", required=True, metavar="NAME=PATH", help="minimalloc or idealloc, and what to run")
    parser.add_argument("--seconds", type=int, default=60, help="for each task of a list (%(default)s)")
    args = parser.parse_args()
    name, _, args.program = args.program.partition("=")
    if name not in ("minimalloc", "idealloc") or not args.program:
        raise common.Failed("--program minimalloc=PATH or idealloc='CMD {in} {out}'")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for case in args.cases:
            common.say(f"{name}: {case}")
            lines.append(compare(args, name, case, folder))
    heads = ["list", "~its fit s", "~fit s", "theirs", "exact", "claim", "~its least s", "~least s"]
    common.write_table(common.table_path(args.output, name), heads, lines)


if __name__ == "__main__":
    try:
        main()
    except common.Failed as error:
        sys.exit(f"solver: {error}")
