#!/usr/bin/env python3
"""Holds planners of planners/production/ to the producers' own code and dumps, to the byte.

    producers.py executorch|inductor [LISTS]   random lists (200), planned by the package's own functions
    producers.py network NAME ..               networks of torchvision by Inductor, with the lives that its planner had
    producers.py xla FOLDER [ALIGN]            folders of *-buffer-assignment.txt with *-live-range.txt (64; 256 for a GPU)
    producers.py ort MODEL.onnx ..             the block of ONNX Runtime's second run, by the reuse that it decides before

The packages come from PyPI (pip install executorch, torch, torchvision, onnxruntime, onnx). Prints one
line a kind; what differs is printed list by list. Exit 1: an offset of a list differs; for xla: a value is
not where XLA's heap by its rules, as they are written here, puts it, or xla_heap has another offset than
these rules; for ort: a node adds other bytes than by the reuse written here, or the block has others.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

MEMPLAN = os.environ.get("MEMPLAN", "build/memplan")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "production"))


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


def hold_networks(names):
    """Inductor compiles each network as torch_programs.py does; every pool's offsets are compared."""
    import torchvision
    import torch_programs
    from torch._inductor.codegen import memory_planning as mp

    pools, plan, n, differ = collections.defaultdict(list), mp.MemoryPlanner.allocate_groups, 0, 0

    def recorded(self):
        plan(self)
        for a in (g.allocation for g in self.buffer_groups):
            pools[name, len(codes), a.pool.name].append(((a.live_range.begin, a.live_range.end, int(a.size_hint)), int(a.offset)))
        codes.append(name)

    mp.MemoryPlanner.allocate_groups, codes = recorded, []
    for name in names:
        size = 299 if name == "inception_v3" else 224
        with tempfile.TemporaryDirectory() as folder:
            torch_programs.inductor(name, lambda name=name: torchvision.models.get_model(name, weights=None), (1, 3, size, size), folder)
    for (name, _, pool), rows in pools.items():
        got = memplan([b for b, _ in rows], "inductor_pool", 64)[0]
        wrong = sum(at != want for at, (_, want) in zip(got, rows))
        n, differ = n + len(rows), differ + wrong
        if wrong:
            print(f"{name} {pool}: {wrong} of {len(rows)} buffers are elsewhere")
    print(f"inductor: {len(pools)} pools of {len(names)} networks, {n} buffers, {differ} elsewhere")
    return differ > 0 or n == 0


VALUE = re.compile(r" value: <(\d+) ([^ {]+)(\{[\d,]*\})?( \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (\(?)")


def read_xla(path, align):
    """Heaps of a dump, without tuples, which get allocations of their own that the heap does not see:
    each a list of values (first step, last step, id, offset, size, index in a tuple, joins others, name)."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path.replace("-buffer-assignment", "-live-range"), encoding="utf-8") as f:
        lives = {n: (int(a), int(b)) for n, a, b in re.findall(r"^\s+(\S+):(\d+)-(\d+)$", f.read(), re.M)}
    for part in re.split(r"(?=^allocation )", text, flags=re.M):
        if re.match(r"allocation \d+: size \d+, .*preallocated-temp", part):
            found = [(int(i), n, index or "{}", phi != "", int(s), int(at), t)
                     for i, n, index, phi, s, at, t in VALUE.findall(part)]
            tuples = {(at, -(-s // align) * align) for *_, s, at, t in found if t}
            values = [(*lives[n + index], i, at - sum(s for t, s in tuples if t < at), size, index, phi, n)
                      for i, n, index, phi, size, at, t in found if size and not t]
            if values:
                yield values


def colocated(values):
    """Values that are one buffer: of one place and size, and meeting in time or the same part of loops."""
    made = []
    for v in sorted(values):
        meet = [g for g in made if any(w[3:5] == v[3:5] and (v[0] <= w[1] or v[6] and w[6] and v[5] == w[5]) for w in g)]
        made = [g for g in made if g not in meet] + [[w for g in meet for w in g] + [v]]
    return made


def in_events(buffers):
    """{id: [allocated, freed]} in XLA's count of time: allocations, then frees, of each step in the order
    of values. An operand that its user takes over is freed right before the user is allocated."""
    values, of, at, now = sorted(v for g in buffers for v in g), {v[2]: g for g in buffers for v in g}, {}, 0
    for step in range(1 + max(v[1] for v in values)):
        for v in [v for v in values if v[0] == step]:
            aliased = any(w[5] != "{}" or w[6] or re.search("dynamic-update-slice|scatter", w[7]) for w in of[v[2]])
            for w in [] if aliased else [w for w in of[v[2]] if w[2] in at and w[1] == step and len(at[w[2]]) == 1]:
                at[w[2]].append(now)
                now += 1
            at[v[2]] = [now]
            now += 1
        for v in [v for v in values if v[1] == step and len(at[v[2]]) == 1]:
            at[v[2]].append(now)
            now += 1
    return at


def by_heap(buffers, align, temporal, whole):
    """GlobalDecreasingSizeBestFitHeap. A buffer: (id, size, lives). spatial counts the life of a buffer's
    first value alone; `whole`, all of it, as temporal does and a list of buffers has it."""
    def key(b):
        life = (b[2][0] if not temporal and not whole else [b[2][0][0], max(e for _, e in b[2])])
        return (life[0] - life[1], -b[1], b[0]) if temporal else (-b[1], life[0] - life[1], b[0])

    placed = {}
    for i, size, lives in sorted(buffers, key=key):
        at, best, low = 0, None, 0
        for lo, hi in sorted(p[:2] for p in placed.values() if any(a <= d and c <= b for a, b in lives for c, d in p[2])):
            if lo - at >= size and (best is None or lo - at < best[0]):
                best = lo - at, at
            at = max(at, -(-hi // align) * align)
        low = at if best is None else best[1]
        placed[i] = low, low + size, lives
    return max(p[1] for p in placed.values()), {i: p[0] for i, p in placed.items()}


def hold_xla(folder, align):
    heaps = placed = same = differ = 0
    told = []
    for name in sorted(n for n in os.listdir(folder) if n.endswith("-buffer-assignment.txt")):
        for values in read_xla(os.path.join(folder, name), align):
            groups = colocated(values)
            at, places = in_events(groups), {g[0][2]: g[0][3] for g in groups}
            buffers = sorted((g[0][2], g[0][4], sorted(at[v[2]] for v in g)) for g in groups)
            whole = [(i, s, [[l[0][0], max(e for _, e in l)]]) for i, s, l in buffers]
            rules, ours = (min((by_heap(b, align, t, w) for t in (False, True)), key=lambda r: r[0])
                           for b, w in ((buffers, False), (whole, True)))
            got = memplan([(l[0][0], l[0][1] + 1, s) for _, s, l in whole], "xla_heap", align)
            want = max(g[0][3] + g[0][4] for g in groups)
            heaps, placed, same = heaps + 1, placed + (rules[1] == places), same + (got[1] == want)
            alike = got[0] == [ours[1][i] for i, *_ in buffers]
            if rules[1] != places or not alike or got[1] != want:
                told.append(f"{name[:-22]}: XLA {want}; by its rules {rules[0]}, {sum(rules[1][i] == places[i] for i in places)} of "
                            f"{len(places)} buffers at its places; xla_heap {got[1]} on whole lives" + ("" if alike else ", not by the rules"))
                differ |= rules[1] != places or not alike
    print("\n".join([*told, f"xla: {heaps} heaps; by its rules every buffer at XLA's place in {placed}; xla_heap, on whole lives without "
                            f"gaps, of XLA's bytes in {same}"]))
    return differ or heaps == 0


# Kernels of ONNX Runtime whose output is their first input, or may take an input's place, by MayInplace.
ALIASES = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}
IN_PLACE = {"Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Softmax", "Sqrt", "Erf", "Neg", "Exp", "Cast"}
WIDTH = {"float": 4, "double": 8, "float16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}


def may_overwrite(node):
    if node.op_type == "Conv" and node.domain.endswith("nchwc") and len(node.input) > 3:
        return node.input[3:4]  # the sum that is added
    return node.input[:1] if node.op_type in IN_PLACE else []


def ort_lists(nodes, events, outputs):
    """({tensor with storage of its own: [birth, death, bytes]}, nodes that add other bytes): a tensor takes the
    storage of an input, or of the tensor that died last among those of its width and dims. Where the profile shows
    that a node adds a tensor's bytes, it does not: its dims were not known when ONNX Runtime planned."""
    kind = {}
    for n, e in zip(nodes, events):
        for o, shape in zip(n.output, e["args"]["output_type_shape"]):
            kind[o], = ((WIDTH[k], tuple(d)) for k, d in shape.items())
    uses = collections.Counter(x for n in nodes for x in n.input if x in kind)
    left, root, dead, made, wrong = collections.Counter(), {}, [], {}, []
    for step, (n, e) in enumerate(zip(nodes, events)):
        added, delta = 0, int(e["args"]["mem_requested_in_use_delta"])
        for o in filter(None, n.output):
            size, taken = kind[o][0], None
            for d in kind[o][1]:
                size *= d
            if n.op_type in ALIASES and o not in outputs:
                if n.input[0] not in root:
                    continue  # lies in an input or a weight
                taken = root[n.input[0]]
            elif o not in outputs and delta < added + size:
                over = [root[x] for x in may_overwrite(n) if x in root and left[root[x]] == 1 and kind[x] == kind[o]]
                fit = [r for r in dead if kind[r] == kind[o]]
                taken = (over or fit or [None])[0]
                dead = dead if over or not fit else [r for r in dead if r != taken]
            if taken is None:
                made[o], added, taken = [step, None, size], added + size, o
            root[o] = taken
            left[taken] += uses[o]
        if added != delta and (added or delta > 0):
            wrong.append(n.name)
        for r in (root[x] for x in n.input if x in root):
            left[r] -= 1
            if left[r] == 0:
                dead.insert(0, r)
                made[r][1] = step + 1
    return {o: b for o, b in made.items() if o not in outputs}, wrong


def hold_ort(paths):
    import onnx
    import ort_profiles

    held = differ = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            optimised = os.path.join(folder, "optimised.onnx")
            ort_profiles.profile(path, folder, optimised)
            graph = onnx.load(optimised, load_external_data=False).graph
            profile, = (n for n in os.listdir(folder) if n.endswith(".json"))
            with open(os.path.join(folder, profile), encoding="utf-8") as f:
                events = [e for e in json.load(f) if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
        before = [int(e["args"]["mem_bytes_requested_in_use"]) - int(e["args"]["mem_requested_in_use_delta"]) for e in events]
        nodes = list(graph.node)
        block = before[len(nodes)] - before[0] if len(events) == 2 * len(nodes) else 0
        if block <= 0 or [n.op_type for n in nodes] != [e["args"]["op_name"] for e in events[:len(nodes)]]:
            print(f"{path}: left out: no pattern, or nodes that run graphs of their own")
            continue
        buffers, wrong = ort_lists(nodes, events, {o.name for o in graph.output})
        got = memplan([(b, d or len(nodes), s) for b, d, s in buffers.values()], "ort_pattern", 256)[1]
        held += 1
        if wrong or -(-got // 256) * 256 != block:
            differ += 1
            print(f"{path}: block {block}, ort_pattern {got}; nodes that add other bytes: {wrong[:3]}")
    print(f"ort: {held} models, {differ} differ")
    return differ > 0 or held == 0


HOLD = {"executorch": lambda w: hold_random("executorch", int(w[0]) if w else 200),
        "inductor": lambda w: hold_random("inductor", int(w[0]) if w else 200),
        "network": hold_networks, "ort": hold_ort,
        "xla": lambda w: hold_xla(w[0], int(w[1]) if len(w) > 1 else 64)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in HOLD or (len(sys.argv) < 3 and sys.argv[1] in ("network", "ort", "xla")):
        sys.exit(__doc__)
    sys.exit(HOLD[sys.argv[1]](sys.argv[2:]))
