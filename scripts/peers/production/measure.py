#!/usr/bin/env python3
"""How far production's plans stand above the optimum of their own lifetimes, sizes and alignment.

  measure.py FOLDER [PRODUCER ..]   FOLDER/PRODUCER/ holds dumps; replaces those producers' rows in results/production.jsonl
  measure.py --again [PRODUCER ..]  plans the lists of the rows anew and compares: no dump is needed
  measure.py --table                results/tables/producers.tsv from the rows
  measure.py --same                 plans of planners/production/ beside the producers' own, of the same lists: producers_same.tsv

A dump is what `memplan check` reads, or NAME.csv, a list of buffers, with NAME.arena beside it: the bytes that the producer took.
For the two online allocators, caching and bfc, it is a trace or a graph, whose requests memplan replays to its form of the allocator;
programs whose optimum is smaller than the allocator's first segment are left out.
A row has the producer's bytes, the optimum (or the best bound, where the search of SECONDS did not prove one), the gate's verdict
and the list: "buffers", each [first step, step after the last, bytes, offset, alignment]. Of XLA's, gaps in the lives of loops' buffers
and places that a buffer takes over are not in the list ("hull": true): such rows are made anew from dumps only.
"""

import argparse
import csv
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

ROWS = os.path.join(common.ROOT, "results", "production.jsonl")
TABLE = os.path.join(common.ROOT, "results", "tables", "producers.tsv")
SAME = os.path.join(common.ROOT, "results", "tables", "producers_same.tsv")

# Why a plan of it may stand above the optimum: what its planner does, by its source.
PRODUCERS = {
    "xla_cpu": ("XLA, JAX on a CPU", "multiples of 64 bytes; tuples get places of their own"),
    "xla_gpu": ("XLA, ahead of time for an H100", "multiples of 256 bytes; tuples get places of their own"),
    "executorch": ("ExecuTorch", "largest first into shared objects: its loss"),
    "inductor": ("PyTorch Inductor", "a pool a kind of tensor; a tree of lives within a pool"),
    "relax": ("TVM Relax", "storages are shared as a whole, one tensor at a time"),
    "iree": ("IREE", "greedy, one pass over the slices: its loss"),
    "tinygrad": ("tinygrad", "TLSF: size classes, offsets as requests come"),
    "tflite": ("TensorFlow Lite", "largest first into the smallest gap: its loss"),
    "tflm": ("TensorFlow Lite Micro", "largest first at the lowest offset, multiples of 16 bytes: its loss"),
    "ort_pattern": ("ONNX Runtime's memory pattern", "best fit in the order of execution, multiples of 256 bytes: its loss"),
    "caching": ("PyTorch's caching allocator, replayed", "online; requests rounded to 512 bytes, segments of 2 and 20 MiB"),
    "bfc": ("ONNX Runtime's BFC arena, replayed", "online; regions from 1 MiB that double"),
}
# The planner here that does as its producer does. XLA's lists are taken where they show all (no "hull").
PLANNERS = {"xla_cpu": "xla_heap", "xla_gpu": "xla_heap", "executorch": "executorch", "inductor": "inductor_pool", "tflite": "greedy_size",
            "ort_pattern": "ort_pattern"}
ONLINE = {"caching": 20 << 20, "bfc": 1 << 20}  # least optimum that says more than the size of a first segment


def list_of(text):
    """(list, whether lives in it are whole) of a CSV."""
    out = []
    for line in csv.DictReader(io.StringIO(text)):
        out.append([int(line["lower"]), int(line["upper"]), int(line["size"]), int(line.get("offset") or -1),
                    int(line.get("alignment") or 1)])
    return out


def text_of(buffers):
    lines = ["id,lower,upper,size,alignment"] + [f"{i},{b[0]},{b[1]},{b[2]},{b[4]}" for i, b in enumerate(buffers)]
    return "\n".join(lines) + "\n"


def overlap(buffers):
    """Whether buffers that live together share bytes: then the list does not show all."""
    order = sorted(b for b in buffers if b[3] >= 0)
    for i, a in enumerate(order):
        for b in order[i + 1:]:
            if b[0] >= a[1]:
                break
            if a[3] < b[3] + b[2] and b[3] < a[3] + a[2]:
                return True
    return False


def least(args, text):
    """(bytes of the best plan, the bound) of a list of buffers."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.csv")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        row = common.memplan(args.memplan, "plan", path, "--planner", "exact", "--time-limit", str(args.seconds))
        return row["planned_bytes"], row["bound_bytes"]


def padded(best, buffers):
    """The end of the last buffer, rounded up as its offset is."""
    granule = max((b[4] for b in buffers), default=1)
    return -(-best // granule) * granule


def of_list(args, path):
    """A list of buffers beside the bytes that a producer took for it, and, if it does not show all buffers, the least of them."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path.removesuffix(".csv") + ".arena", encoding="utf-8") as f:
        planned, *known = map(int, f.read().split())
    best, bound = 2 * known if known else least(args, text)
    buffers = [] if known else list_of(text)
    verdict = "ok" if planned <= padded(best, buffers) else "beyond"
    return {"planned_bytes": planned, "optimum_bytes": best if best == bound else None, "bound_bytes": bound, "verdict": verdict,
            "buffers": buffers}


def of_dump(args, path):
    done = subprocess.run([args.memplan, "check", "--plan", path, "--json", "--time-limit", str(args.seconds)], capture_output=True,
                          text=True, check=False)
    row = json.loads(done.stdout.splitlines()[0]) if done.stdout else {}
    if row.get("status") != "ok":
        why = row.get("reason") or done.stderr.strip()
        return {"refused": why.replace(os.path.dirname(path) + "/", "")[:300]}
    made = {key: row.get(key) for key in ("planned_bytes", "optimum_bytes", "bound_bytes", "verdict")}
    shown = subprocess.run([args.memplan, "export", "--plan", path, "--format", "csv"], capture_output=True, text=True, check=False)
    made["buffers"] = list_of(shown.stdout) if shown.returncode == 0 else []
    if path.endswith(".csv") and made["optimum_bytes"] is not None and made["planned_bytes"] <= padded(made["optimum_bytes"], made["buffers"]):
        made["verdict"] = "ok"
    if path.endswith("-buffer-assignment.txt"):
        made["tuples"] = tuples(path)
        made["tuple_bytes"] = tuple_bytes(made)
    if overlap(made["buffers"]):
        made["hull"] = True
    return made


def of_requests(args, path, allocator):
    row = common.memplan(args.memplan, "replay", path, "--allocator", allocator, "--time-limit", str(args.seconds))
    listed = common.command([args.memplan, "export", path, "--format", "csv", *([] if path.endswith(".csv") else ["--in-place", "off"])])
    planned, best = row["reserved_bytes"], row["optimum_bytes"]
    return {"planned_bytes": planned, "optimum_bytes": best, "bound_bytes": row["bound_bytes"], "verdict": "ok" if planned == best else "beyond",
            "buffers": list_of(listed.stdout)}


def tuples(path):
    """Places [offset, bytes] of tuples in XLA's temporary memory, which get allocations of their own."""
    places, planned = set(), False
    with open(path, encoding="utf-8") as f:
        for line in f:
            planned = "preallocated-temp" in line if line.startswith("allocation") else planned
            found = re.match(r" value: <.*> \(size=(\d+),offset=(\d+)\): \(", line)
            if planned and found:
                places.add((int(found[2]), int(found[1])))
    return sorted(map(list, places))


def tuple_bytes(row, below=None):
    """Bytes of the tuples of a row, padded; of those below an offset."""
    return sum(padded(size, row["buffers"]) for at, size in row["tuples"] if below is None or at < below)


def whole_bytes(args, buffers):
    """The best of planners that share blocks as wholes: what the rule alone costs, at most."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.csv")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text_of(buffers))
        planners = ("pool", "owl", "mxnet", "mxnet:range=16", "nnc_2018", "nnc_2018:ties=reversed")
        return min(common.memplan(args.memplan, "plan", path, "--planner", p, "--in-place", "off")["planned_bytes"] for p in planners)


def name_of(path):
    base = os.path.basename(path)
    return base.removesuffix("-buffer-assignment.txt") if "-buffer" in base else base.split(".")[0]


def dumps(folder):
    for base in sorted(os.listdir(folder)):
        path = os.path.join(folder, base)
        if base.endswith(("-live-range.txt", ".arena")) or ".tmp." in base or not os.path.isfile(path):
            continue
        yield path


def one(args, producer, path):
    if producer in ONLINE:
        return of_requests(args, path, producer)
    if os.path.exists(path.removesuffix(".csv") + ".arena"):
        return of_list(args, path)
    return of_dump(args, path)


def measure(args, producer):
    for path in dumps(os.path.join(args.folder, producer)):
        try:
            made = one(args, producer, path)
        except common.Failed as why:
            made = {"refused": str(why)[:300]}
        if made.get("optimum_bytes") is not None and made["optimum_bytes"] < ONLINE.get(producer, 0):
            continue
        if producer == "relax" and "refused" not in made:
            made["whole_bytes"] = whole_bytes(args, made["buffers"])
        row = {"producer": producer, "program": name_of(path), **made}
        common.say(f"{producer}: {row['program']}: {row.get('refused') or row['verdict']}") if args.loud else None
        yield row


def read_rows():
    if not os.path.exists(ROWS):
        return []
    with open(ROWS, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def write_rows(rows):
    with open(ROWS, "w", encoding="utf-8") as out:
        for row in sorted(rows, key=lambda r: (list(PRODUCERS).index(r["producer"]), r["program"])):
            out.write(json.dumps(row, separators=(",", ":")) + "\n")


def again(args):
    """Exit 1 where a list's least is another than its row says."""
    wrong = 0
    for row in read_rows():
        if (args.producers and row["producer"] not in args.producers) or "refused" in row or row.get("hull") or not row["buffers"]:
            continue
        best, bound = least(args, text_of(row["buffers"]))
        if row["producer"].startswith("xla_"):
            bound = 0  # a list without the gaps of the dump may need more
        if row["optimum_bytes"] is not None and not bound <= row["optimum_bytes"] <= best:
            wrong += 1
            print(f"{row['producer']}: {row['program']}: {row['optimum_bytes']} is not in [{bound}, {best}]")
    sys.exit(wrong > 0)


def planned_here(args, buffers, planner):
    """Bytes of the planner here, as the producer would count them: to the end of the alignment's last unit."""
    if not buffers:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.csv")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text_of(buffers))
        row = common.memplan(args.memplan, "plan", path, "--planner", planner, "--in-place", "off")
        return row["planned_bytes"]


def parted(buffers):
    """The list, and its parts below and above each place that no buffer lies across: pools lie one behind another."""
    yield [buffers]
    for cut in sorted({b[3] for b in buffers if not any(a[3] < b[3] < a[3] + a[2] for a in buffers)} - {0}):
        yield [[b for b in buffers if b[3] < cut], [b for b in buffers if b[3] >= cut]]


def without_tuples(row):
    """(buffers that XLA's heap sees, bytes of its plan of them)."""
    places = row.get("tuples", [])
    seen = [b for b in row["buffers"] if [b[3], b[2]] not in places]
    return seen, max((b[3] - tuple_bytes(row, b[3]) + b[2] for b in seen), default=0) if places else row["planned_bytes"]


def difference(args, row, planner):
    """Bytes that the producer's own plan needs more than the planner's here; 0 also where they differ by the padding at the end."""
    (buffers, planned), least_apart = without_tuples(row), None
    for parts in parted(buffers) if row["producer"] == "inductor" else [[buffers]]:
        ends = [planned_here(args, part, planner) for part in parts]
        apart = planned - sum(map(padded, ends[:-1], parts)) - ends[-1]
        apart = 0 if planned == padded(planned - apart, buffers) else apart
        least_apart = apart if least_apart is None or abs(apart) < abs(least_apart) else least_apart
        if apart == 0:
            break
    return least_apart


def same(args):
    lines = []
    for key, planner in PLANNERS.items():
        rows = [r for r in read_rows() if r["producer"] == key and "refused" not in r and not r.get("hull") and r["buffers"]]
        apart = {r["program"]: difference(args, r, planner) for r in rows}
        others = [f"{r['program']} {100 * apart[r['program']] / r['planned_bytes']:+.2f} %" for r in rows if apart[r["program"]]]
        lines.append([PRODUCERS[key][0], planner, len(rows), sum(a == 0 for a in apart.values()), ", ".join(others) or "-"])
        common.say("\t".join(map(str, lines[-1])))
    common.write_table(SAME, ["producer", "planner here", "programs", "equal bytes", "others, of its own plan"], lines)


def gap(row):
    least_bytes = row["optimum_bytes"] if row["optimum_bytes"] is not None else row["bound_bytes"]
    return 100 * (row["planned_bytes"] / least_bytes - 1) if least_bytes else 0.0


def table():
    rows, heads = read_rows(), ["producer", "programs", "at the optimum", "at the least of its alignment", "above", "median %", "most %",
                                "most at", "its planner"]
    lines = []
    for key, (name, rule) in PRODUCERS.items():
        mine = [r for r in rows if r["producer"] == key and "refused" not in r]
        if not mine:
            continue
        worst = max(mine, key=gap)
        even = sum(r["planned_bytes"] == r["optimum_bytes"] for r in mine)
        fine = sum(r["verdict"] == "ok" and r["planned_bytes"] != r["optimum_bytes"] for r in mine)
        if "tuple_bytes" in worst:
            above = [r for r in mine if r["verdict"] != "ok"]
            told = sum(r["planned_bytes"] - r["optimum_bytes"] <= r["tuple_bytes"] for r in above)
            rule += f": that alone may make {told} of those above"
        if "whole_bytes" in worst:
            whole = statistics.median(100 * (r["whole_bytes"] / r["optimum_bytes"] - 1) for r in mine)
            rule += f": {whole:.2f} % (median) where planners here share them so"
        lines.append([name, len(mine), even, fine, len(mine) - even - fine, f"{statistics.median(map(gap, mine)):.2f}",
                      f"{gap(worst):.2f}", worst["program"], rule])
    measured = [r for r in rows if "refused" not in r]
    lines.append(["all", len(measured), sum(l[2] for l in lines), sum(l[3] for l in lines), sum(l[4] for l in lines),
                  f"{statistics.median(map(gap, measured)):.2f}", f"{max(map(gap, measured)):.2f}", "", ""])
    common.write_table(TABLE, heads, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("producers", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--loud", action="store_true")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--memplan", default=os.path.join(common.ROOT, "build", "memplan"))
    args = parser.parse_args()
    if args.again:
        args.producers = [args.folder, *args.producers] if args.folder else []
        again(args)
    if args.table:
        return table()
    if args.same:
        return same(args)
    if args.folder is None:
        parser.error("FOLDER, --again, --table or --same")
    for producer in args.producers or [p for p in PRODUCERS if os.path.isdir(os.path.join(args.folder, p))]:
        made = list(measure(args, producer))
        write_rows([r for r in read_rows() if r["producer"] != producer] + made)
    table()


if __name__ == "__main__":
    main()
