#!/usr/bin/env python3
"""Holds planners of planners/production/ to the producers' own code and dumps, to the byte.

    producers.py executorch|inductor [LISTS]   random lists (200), planned by the package's own functions
    producers.py xla FOLDER                    folders of *-buffer-assignment.txt with *-live-range.txt

ExecuTorch and PyTorch come from PyPI (pip install executorch, torch). Prints one line a kind; what
differs is printed list by list. Exit 1: an offset of a list differs. XLA's dumps do not list which
values share a buffer on purpose, so there the bytes of the heap are compared, and differences told.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

MEMPLAN = os.environ.get("MEMPLAN", "build/memplan")


def memplan(buffers, planner, align):
    """buffers: (birth, death, size), half-open. Returns offsets in the same order and the arena."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"{i},{b},{d},{s},{align}" for i, (b, d, s) in enumerate(buffers)]
        text = "id,lower,upper,size,alignment\n" + "\n".join(rows) + "\n"
        with open(f"{folder}/l.csv", "w", encoding="ascii") as f:
            f.write(text)
        subprocess.run([MEMPLAN, "plan", f"{folder}/l.csv", "-p", planner, "-q", "-o",
                        f"{folder}/p.json"], check=True)
        with open(f"{folder}/p.json", encoding="utf-8") as f:
            plan = json.load(f)
    at = {b["name"]: b["offset"] for b in plan["buffers"]}
    offsets = [at[str(i)] for i in range(len(buffers))]
    return offsets, max(o + b[2] for o, b in zip(offsets, buffers))


def random_list(rng, unit):
    n, steps = rng.randint(2, 40), rng.randint(2, 30)
    out = []
    for _ in range(n):
        b = rng.randrange(steps)
        out.append((b, min(steps, b + 1 + rng.randrange(8)), unit * rng.randint(1, 12)))
    return out


def by_executorch(buffers, overlap):
    """pick_shared_obj for each spec as greedy() sorts them; its lifetimes are closed."""
    from executorch.exir import memory_planning as mp

    class Spec:
        def __init__(self, i, b, d, s):
            self.id, self.lifetime, self.allocated_memory = i, [b, d - 1], s

    import bisect
    order = []
    for i, b in enumerate(buffers):
        bisect.insort(order, Spec(i, *b), key=lambda x: x.allocated_memory)
    objects = []
    for spec in reversed(order):
        mp.pick_shared_obj(objects, spec, overlap)
    offsets, base = [0] * len(buffers), 0
    for o in objects:
        for a in o.allocations:
            offsets[a.spec.id] = base + a.offset
        base += o.size
    return offsets


def by_inductor(buffers):
    """One AllocationPool, filled as MemoryPlanner.allocate_groups does."""
    from torch._inductor.codegen import memory_planning as mp

    class Node:
        def get_layout(self):
            return type("Layout", (), {"size": ()})()

        def get_name(self):
            return "buffer"

    import sympy
    blocks = [mp.Allocation(Node(), mp.LiveRange(b, d), s, sympy.Integer(s)) for b, d, s in buffers]
    pool = None
    for x in sorted(blocks, key=lambda x: (-x.size_hint, x.live_range.begin - x.live_range.end)):
        if pool is None:
            pool = mp.AllocationPool("cpu", mp.TemporalSplit([x]))
            x.mark_allocated()
        else:
            assert pool.allocate(x, is_last=True)
    pool.finalize("pool0")
    return [int(x.offset) for x in blocks]


def hold_random(kind, n):
    rng, differ = random.Random(1), 0
    for k in range(n):
        if kind == "executorch":
            buffers, overlap = random_list(rng, 16), k % 2
            want = by_executorch(buffers, bool(overlap))
            got = memplan(buffers, f"executorch:overlap={overlap}", 16)[0]
        else:
            buffers = random_list(rng, 20)
            want = by_inductor(buffers)
            got = memplan(buffers, "inductor_pool", 64)[0]
        if want != got:
            differ += 1
            print(f"list {k}: {buffers}\n  producer {want}\n  memplan  {got}")
    print(f"{kind}: {n} lists, {differ} differ")
    return differ > 0


VALUE = re.compile(r" value: <(\d+) (\S+)(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (\(?)")
XLA_ALIGN = 64


def padded(size):
    return -(-size // XLA_ALIGN) * XLA_ALIGN


def in_events(values):
    """Lives as XLA's heap counts them: a time of its own for every allocation, then every free, of a step."""
    values = sorted(values, key=lambda v: (v[2], v[3], v[4]))
    rows = [(v[2], 0, i) for i, v in enumerate(values)] + [(v[3], 1, i) for i, v in enumerate(values)]
    time = {row[1:]: t for t, row in enumerate(sorted(rows))}
    return [(v[0], v[1], time[0, i], time[1, i], v[4]) for i, v in enumerate(values)]


def read_xla(path):
    """Heaps of a dump: (bytes, buffers by id). Values of one place whose lives meet are one buffer; tuples
    get allocations of their own, which the heap does not see: their bytes and padding are taken off."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path.replace("-buffer-assignment", "-live-range"), encoding="utf-8") as f:
        lives = dict((n, (int(a), int(b))) for n, a, b in
                     re.findall(r"^\s+(\S+):(\d+)-(\d+)$", f.read(), re.M))
    heaps = []
    for part in re.split(r"(?=^allocation )", text, flags=re.M):
        if re.match(r"allocation \d+: size (\d+), preallocated-temp", part) is None:
            continue
        found = VALUE.findall(part)
        tuples = {(int(at), int(size)) for _, _, size, at, shape in found if shape}
        values = in_events([(int(at), int(size), *lives[n if n in lives else n + "{}"], int(i))
                            for i, n, size, at, shape in found if not shape])
        if not values:
            continue
        end = max(at - sum(padded(s) for t, s in tuples if t < at) + size
                  for at, size, *_ in values)
        merged = []
        for at, size, first, last, i in sorted(values):
            of = [m for m in merged if m[:2] == [at, size] and m[2] <= last and first <= m[3]]
            merged = [m for m in merged if m not in of]
            merged.append([at, size, min([first] + [m[2] for m in of]),
                           max([last] + [m[3] for m in of]), min([(first, i)] + [m[4] for m in of])])
        merged.sort(key=lambda m: m[4][1])
        heaps.append((end, [(f, l + 1, s) for _, s, f, l, _ in merged]))
    return heaps


def hold_xla(folder):
    equal, other, above = 0, 0, []
    for name in sorted(os.listdir(folder)):
        if not name.endswith("-buffer-assignment.txt"):
            continue
        for size, buffers in read_xla(os.path.join(folder, name)):
            got = memplan(buffers, "xla_heap", XLA_ALIGN)[1]
            equal += got == size
            other += got != size
            if got != size:
                above.append(f"{name[:-22]}: XLA {size}, xla_heap {got}, {len(buffers)} buffers")
    print("\n".join(above))
    print(f"xla: {equal + other} heaps, {equal} of equal bytes, {other} differ")
    return False


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("executorch", "inductor", "xla"):
        sys.exit(__doc__)
    if sys.argv[1] == "xla":
        sys.exit(hold_xla(sys.argv[2]))
    sys.exit(hold_random(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200))
