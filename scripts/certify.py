#!/usr/bin/env python3
"""A second checker of certificates, written from planners/verify/CERTIFICATES.md alone: it shares nothing with memplan certify.

certify.py PLAN.json..   one line each; the worst status: 0 certified or nothing to certify, 1 refused, 2 no plan file
certify.py --agree       standard input has lines `STATUS PLAN`, as make certificates writes them; 1: some status is another
"""
import json
import math
import pathlib
import re
import sys

NO_END = 1 << 61  # an est that no top reaches

class Wrong(Exception):
    """While a file is read: it is no plan file. Later: its claim is not proved."""

def need(truth, why):
    if not truth:
        raise Wrong(why)

def ids(mask):
    """The buffers of a set, which is an integer with a bit for each."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1

def whole(value, what, most=(1 << 63) - 1):
    need(type(value) is int and 0 <= value <= most, f"{what} is no number from 0 to {most}")
    return value

def rows(value, width, what):
    need(type(value) is list and all(type(row) is list and len(row) == width for row in value), f"{what} is no table")
    return [[whole(number, what) for number in row] for row in value]

def limit(one):
    need(type(one) is dict and "capacity" in one, "a pool or memory has no capacity")
    return None if one["capacity"] is None else whole(one["capacity"], "capacity")

class Problem:
    """Section 1, and the file's part of section 7."""
    def __init__(self, file):
        need(type(file) is dict and file.get("kind") == "plan" and file.get("schema") == 1, "no plan file")
        buffers, pools, memories = file.get("buffers"), file.get("pools"), file.get("memories")
        need(type(buffers) is list and type(pools) is list and pools, "no buffers, or no pools")
        column = lambda key, most=(1 << 32) - 1: [whole(one.get(key), key, most) for one in buffers]
        self.n, self.capacity = len(buffers), [limit(pool) for pool in pools]
        need(column("id") == list(range(self.n)), "ids do not rise from 0")
        self.bytes, self.offset = column("bytes", (1 << 63) - 1), column("offset", (1 << 63) - 1)
        self.align, self.pool = column("align"), column("pool", len(pools) - 1)
        need(all(b > 0 and a > 0 and a & (a - 1) == 0 for a, b in zip(self.align, self.bytes)), "bytes, or align")
        self.members = [sum(1 << b for b in range(self.n) if self.pool[b] == k) for k in range(len(pools))]
        self.block = column("block", self.n - 1) if any(one.get("block") is not None for one in buffers) else None
        self.steps, self.parallel = whole(file.get("n_steps"), "n_steps"), file.get("before") is not None
        if self.parallel:
            self.close(rows(file["before"], 2, "before"))
        else:
            self.birth, self.death = column("birth"), column("death")
            self.live(buffers)
        self.conflict = [m & self.members[p] for m, p in zip(self.conflict, self.pool)]
        self.read_pairs(rows(file.get("in_place"), 3, "in_place"))
        self.fixed = dict(rows(file.get("fixed") or [], 2, "fixed"))
        need(all(b < self.n and offset % self.align[b] == 0 for b, offset in self.fixed.items()), "a fixed offset")
        self.read_families(rows(file.get("inside"), 3, "inside"))
        need(memories is None or (type(memories) is list and memories), "memories are no list")
        self.memories = memories or []
        self.memory_capacity = [limit(one) for one in self.memories]
        self.price = [whole(one.get("price"), "price") for one in self.memories]
        self.memory = column("memory", len(memories) - 1) if memories else [0] * self.n
    def live(self, buffers):
        events = []
        for b, one in enumerate(buffers):
            gaps = rows(one.get("gaps", []), 2, "gaps")
            times = [self.birth[b], *(time for gap in gaps for time in gap), self.death[b]]
            need(all(x < y for x, y in zip(times, times[1:])) and times[-1] <= self.steps, f"times of {b}")
            events += [(time, 1 - k % 2, b) for k, time in enumerate(times)]
        self.conflict, alive = [0] * self.n, 0
        for _, begins, b in sorted(events):
            for other in ids(alive if begins else 0):
                self.conflict[other] |= 1 << b
                self.conflict[b] |= 1 << other
            alive ^= 1 << b
    def close(self, arcs):
        self.reach, everyone = [0] * self.n, range(self.n)
        for a, b in arcs:
            need(a < self.n and b < self.n, "an arc joins what is not there")
            self.reach[a] |= 1 << b
        for k, a in ((k, a) for k in everyone for a in everyone if self.reach[a] >> k & 1):
            self.reach[a] |= self.reach[k]
        need(not any(self.reach[a] >> a & 1 for a in everyone), "the order has a cycle")
        self.conflict = [sum(1 << b for b in everyone if a != b and not self.reach[b] >> a & 1) for a in everyone]
        self.conflict = [mask & ~self.reach[a] for a, mask in enumerate(self.conflict)]
    def read_pairs(self, pairs):
        self.pairs, self.partner = pairs, [0] * self.n
        keys = [(step, out, inn) for inn, out, step in pairs]
        need(all(x < y for x, y in zip(keys, keys[1:])), "pairs are not sorted")
        for a, b, step in pairs:
            need(a < self.n and b < self.n and a != b, "a pair joins what is not there")
            need(self.pool[a] == self.pool[b] and self.bytes[b] <= self.bytes[a], "a pair does not fit")
            if self.parallel:
                after = self.reach[b] | sum(1 << c for out, c in {(x, y) for x, y, _ in pairs} if out == b)
                before = all(self.reach[c] >> b & 1 for c in range(self.n) if self.reach[c] >> a & 1)
                need(self.conflict[a] >> b & 1 and not after & ~self.reach[a] and before, "a pair against the order")
            else:
                need(self.birth[b] == step == self.death[a] - 1 and self.birth[a] < step, "a pair's times are off")
            self.partner[a] |= 1 << b
            self.partner[b] |= 1 << a
    def read_families(self, inside):
        self.root, self.distance = list(range(self.n)), [0] * self.n
        for b, a, k in inside:
            need(b < self.n and a < self.n and a != b and self.root[b] == b, "a part is not there, or twice")
            self.root[b], self.distance[b] = a, k
        for b, a, k in inside:
            need(self.root[a] == a and self.pool[a] == self.pool[b], "a family has no lowest, or two pools")
            need(k % self.align[b] == 0 and self.align[b] <= self.align[a], "a part is not aligned")
            need(not {a, b} & set(self.fixed) and k + self.bytes[b] < 1 << 63, "a part is fixed, or too high")
            for c in ids(self.conflict[b]):
                apart = self.distance[c] >= k + self.bytes[b] or k >= self.distance[c] + self.bytes[c]
                need(apart or self.root[c] != a, "parts of a family overlap")
        need(all(self.root[a] != self.root[b] for a, b, _ in self.pairs), "a pair within a family")

def check_placed(p, file, clique):
    """Section 2: the offsets are a plan, and agree with what is said of bytes or cost."""
    end = [offset + size for offset, size in zip(p.offset, p.bytes)]
    home = list(zip(p.pool, p.memory))
    for b in range(p.n):
        at, root, limits = p.offset[b], p.root[b], [(1 << 63) - 1, p.capacity[p.pool[b]]]
        need(p.pool[b] == 0 or p.memory[b] == 0, f"buffer {b} is in no memory")
        limits += [p.memory_capacity[p.memory[b]]] if p.memories and p.pool[b] == 0 else []
        need(all(limit is None or end[b] <= limit for limit in limits), f"buffer {b} ends too high")
        need(at % p.align[b] == 0 and p.fixed.get(b, at) == at, f"buffer {b} is not where it must be")
        need(at == p.offset[root] + p.distance[b] and home[b] == home[root], f"family of {b} is torn")
        for a in ids(p.conflict[b] & ((1 << b) - 1)):
            if home[a] == home[b] and p.offset[a] < end[b] and at < end[a]:
                need(p.offset[a] == at and p.partner[a] >> b & 1, f"{a} and {b} overlap")
    if p.block is not None:
        check_blocks(p, end)
    height, low = max((end[b] for b in ids(p.members[0])), default=0), file["bound_bytes"]
    if p.memories:
        need(low == 0 and clique is None and p.block is None, "several memories, and a bound or blocks")
        height, low = sum(p.bytes[b] * p.price[p.memory[b]] for b in ids(p.members[0])), file["cost_bound"]
        need(height == file["cost"], "the cost is another")
    need(height == low or (height > low and file["claim"] == "feasible"), "the plan does not meet its bound")
    if clique is not None:
        check_clique(p, clique, low)

def check_blocks(p, end):
    extent = {}
    for b in range(p.n):
        pool, low, high = extent.get(p.block[b], (p.pool[b], p.offset[b], 0))
        need(pool == p.pool[b], "a block of two pools")
        extent[p.block[b]] = pool, min(low, p.offset[b]), max(high, end[b])
    blocks = sorted(extent.values())
    need(all(x[0] != y[0] or x[2] <= y[1] for x, y in zip(blocks, blocks[1:])), "blocks overlap")

def check_clique(p, clique, bound):
    need(all(x < y for x, y in zip(clique, clique[1:])) and clique[-1] < p.n, "the clique does not ascend")
    everyone = sum(1 << b for b in clique)
    need(everyone & ~p.members[0] == 0, "the clique leaves pool 0")
    for b in clique:
        need(everyone & ~(p.conflict[b] & ~p.partner[b]) == 1 << b, f"{b} may share memory")
    grain = min(p.align[b] for b in ids(p.members[0]))
    rest = [-p.bytes[b] % grain for b in clique]
    low = sum(p.bytes[b] for b in clique) + sum(rest) - max(rest)
    ends = (p.bytes[b] - min(0, p.bytes[b] - low) // p.align[b] * p.align[b] for b in ids(p.members[0]))
    need(low <= bound <= min(ends), "the clique proves another bound")

class State:
    """Section 3. body[i] is the set of all that ever shared i's offset."""
    __slots__ = ("active", "moved", "est", "top", "size", "align", "body")
    def copy(self):
        new = State()
        new.active, new.moved = self.active, self.moved
        for name in State.__slots__[2:]:
            setattr(new, name, getattr(self, name)[:])
        return new
    def lift(self, i, to):
        to = min(NO_END, -(-to // self.align[i]) * self.align[i])
        for j in ids(self.body[i]):
            self.est[j] = max(self.est[j], to)

class Refutation:
    """Sections 4 and 5: the text as a tree, read by descent."""
    def __init__(self, p, pool, within, steps):
        need(p.n > 0 and within + ample(p) < 1 << 60, "numbers are too large")
        self.p, self.text, self.at = p, steps.split(" "), 0
        self.rival = [c & ~q for c, q in zip(p.conflict, p.partner)]
        self.sets, self.states, self.done = [], [], []
        first = State()
        first.active, first.moved = p.members[pool], False
        first.est = [p.fixed.get(b, 0) for b in range(p.n)]
        first.top = [min(within - size, p.fixed.get(b, within)) for b, size in enumerate(p.bytes)]
        first.size, first.align, first.body = p.bytes[:], p.align[:], [1 << b for b in range(p.n)]
        self.refute(first)
        need(self.at == len(self.text), "the text goes on")
    def record(self, wanted):
        record, self.at = "".join(self.text[self.at : self.at + 1]), self.at + 1
        need(RECORD.fullmatch(record) and record[0] in wanted, f"record {self.at}, '{record}', does not stand here")
        numbers = [int(number) for number in record[1:].split(",") if number]
        right = len(numbers) == wanted[record[0]] and all(number // 10 < 1 << 56 for number in numbers)
        need(right, f"record {self.at}, '{record}', has other numbers")
        return record[0], numbers
    def there(self, s, buffers):
        need(all(i < self.p.n and s.active >> i & 1 for i in buffers), f"record {self.at}: a buffer is not there")
    def refute(self, s):
        mine, letter = [], ""
        while letter not in ENDS:
            letter, numbers = self.record(IN_STATE)
            self.there(s, numbers[: NAMED.get(letter, 0)])
            mine += [len(self.states)] if letter == "k" else []
            getattr(self, "rule_" + letter)(s, *numbers)
        for number in mine:
            self.done[number] = True
    def rule_k(self, s):
        self.states.append(s.copy())
        self.done.append(False)
    def of(self, s, t):
        return self.sets[t] & s.active if t < len(self.sets) else 0
    def kept(self, s, i, j):
        """D(i, j)."""
        above = s.body[j] & s.active
        return max((s.size[k] for k in ids(s.body[i] & s.active) if self.rival[k] & above), default=0)
    def rule_d(self, s, i):
        s.active ^= 1 << i
    def rule_o(self, s, i):
        found, last = 1 << i, 0
        while found != last:
            fresh, last = found & ~last, found
            for j in ids(fresh):
                found |= (self.rival[j] | s.body[j]) & s.active
        s.active, grain = found, min(self.p.align[j] for j in ids(found))
        for j in ids(found if not s.moved else 0):
            s.size[j] = -(-s.size[j] // grain) * grain
    def rule_c(self, s, i, t):
        need(t <= len(self.sets), f"record {self.at}: no such set")
        if t == len(self.sets):
            self.sets.append(0)
        need(self.sets[t] & ~self.rival[i] == 0, f"record {self.at}: {i} is no rival of all")
        self.sets[t] |= 1 << i
    def rule_s(self, s, a, b):
        need(not s.moved, f"record {self.at}: too late for pairs")
        sets, n_states, rival, one = self.sets, len(self.states), self.rival, s.copy()
        for i in ids(s.body[a] | s.body[b]):
            one.body[i] = s.body[a] | s.body[b]
            one.top[i], one.align[i] = min(s.top[a], s.top[b]), max(s.align[a], s.align[b])
        one.lift(a, max(s.est[a], s.est[b]))
        for child in one, s.copy():
            self.sets = sets + [0] * (len(self.sets) - len(sets))
            self.rival = rival[:]
            if child is not one and self.p.conflict[a] >> b & 1:
                self.rival[a] |= 1 << b
                self.rival[b] |= 1 << a
            self.refute(child)
            self.done[n_states:] = [False] * (len(self.done) - n_states)
        self.sets, self.rival = sets + [0] * (len(self.sets) - len(sets)), rival
    def rule_b(self, s, t, n):
        s.moved = True
        least = min((s.est[i] for i in ids(self.of(s, t))), default=0)
        chosen = [i for i in ids(self.of(s, t)) if s.est[i] == least]
        placed, nobody = [], False
        for _ in range(max(n, 1)):
            letter, numbers = self.record(CHILDREN)
            self.there(s, numbers)
            placed, nobody, child = placed + numbers, nobody or letter == "n", s.copy()
            if letter == "n":
                self.nobody(child, self.of(s, t), chosen)
            else:
                self.place(child, numbers[0])
            self.refute(child)
        found = all(any(s.body[i] >> j & 1 or self.twins(s, i, j) for j in placed) for i in chosen)
        need(found and nobody, f"record {self.at}: a child is missing")
    def twins(self, s, i, j):
        both = 1 << i | 1 << j
        alike = all(of[i] == of[j] for of in (s.size, s.align, s.est, s.top)) and s.body[i] | s.body[j] == both
        return alike and (self.rival[i] ^ self.rival[j]) & s.active & ~both == 0
    def place(self, s, i):
        for j in ids(s.active & ~s.body[i]):
            below = self.kept(s, j, i)
            if below > 0 and s.est[j] + below > s.est[i]:
                s.lift(j, s.est[i] + self.kept(s, i, j))
        s.active &= ~s.body[i]
    def nobody(self, s, inside, chosen):
        rest = lambda among, i, est: min((est[j] + d for j in ids(among) if (d := self.kept(s, j, i))), default=NO_END)
        out = {i: rest(s.active & ~inside, i, s.est) for i in chosen}
        known = [out.get(j, est) for j, est in enumerate(s.est)]
        for i in chosen:
            s.lift(i, min(out[i], rest(inside & ~(1 << i), i, known)))
    def rule_r(self, s, x, t, to):
        everyone = list(ids(self.of(s, t)))
        need(x in everyone, f"record {self.at}: {x} is not in the set")
        floor, total = min(s.est[i] for i in everyone), sum(s.size[i] for i in everyone)
        high = max(0, max(s.top[i] + s.size[i] for i in everyone))
        ends = sorted((s.est[i] + s.size[i], s.size[i]) for i in everyone if i != x)
        unit = math.gcd(*[size for end, size in ends if end < to]) or 1 << 60
        need(to <= floor or (to - 1 - floor) // unit < 1 << 18, f"record {self.at}: too many sums")
        parts = [s.est[x]] + sorted({end for end, _ in ends if s.est[x] < end < to}) + [to]
        for low, up in zip(parts, parts[1:]):
            sums, least, most = 1, max(0, low + total - high), up - 1 - floor
            if low >= up or least > most:
                continue
            for size in (size for end, size in ends if end <= low):
                sums |= sums << size // unit & (2 << most // unit) - 1
            need(sums >> -(-least // unit) == 0, f"record {self.at}: there is room lower for {x}")
        s.lift(x, to)
    def rule_u(self, s, i):
        s.moved = True
        s.active &= self.rival[i]
        for j in ids(s.active):
            need(s.est[j] <= s.est[i] and s.size[i] % s.align[j] == 0, f"record {self.at}: no top for {i}")
            s.top[j] = max(s.top[j] - s.size[i], s.top[i] - s.size[j])
    def rule_x(self, s, i, t):
        high = [j for j in ids(self.of(s, t)) if s.est[j] >= s.est[i]]
        end = s.est[i] + sum(s.size[j] for j in high)
        need(high and all(end - s.size[j] > s.top[j] for j in high), f"record {self.at}: there is room in set {t}")
    def rule_z(self, s, i):
        clash = s.body[i] & s.active & self.rival[i]
        need(clash or s.est[i] > s.top[i], f"record {self.at}: there is room for {i}")
    def rule_m(self, s, number):
        need(number < len(self.done) and self.done[number], f"record {self.at}: no state refuted")
        then, both = self.states[number], self.states[number].active & s.active
        less = all(s.est[i] >= then.est[i] and s.top[i] <= then.top[i] for i in ids(both))
        need(both == then.active and less, f"record {self.at}: less room was refuted")

RECORD = re.compile(r"[a-z]((?:[0-9]+(?:,[0-9]+)*)?)")
IN_STATE = {"d": 1, "o": 1, "c": 2, "s": 2, "b": 2, "r": 3, "u": 1, "k": 0, "x": 2, "z": 1, "m": 1}
ENDS = ("s", "b", "x", "z", "m")
CHILDREN = {"p": 1, "n": 0}
NAMED = {"d": 1, "o": 1, "c": 1, "s": 2, "r": 1, "u": 1, "x": 1, "z": 1}  # how many numbers are buffers

def ample(p):
    return sum(p.bytes) + sum(p.align) + sum(p.fixed.get(b, 0) for b in range(p.n))

def check_claim(p, file, proof):
    claim, bound, pool = file["claim"], file["bound_bytes"], None
    if proof is not None:
        pool, within = proof["pool"], proof["within"]
        need(not (p.memories and pool == 0), "a refutation knows one memory")
        Refutation(p, pool, within, proof["steps"])
    if claim == "infeasible":
        need(proof is not None, "nothing is refuted")
        need(within >= min(ample(p), NO_END if p.capacity[pool] is None else p.capacity[pool]), "too little is refuted")
    elif claim == "optimal" and p.memories:
        price = lambda b: min(q for q, c in zip(p.price, p.memory_capacity) if c is None or c >= p.bytes[b])
        need(file["cost_bound"] <= sum(p.bytes[b] * price(b) for b in ids(p.members[0])), "no price is proved")
    elif bound > 0 and (proof is not None or (claim == "optimal" and file.get("certificate") is None)):
        need(claim == "unknown" or (pool == 0 and within + 1 >= bound), "the bound is not proved")

def read(text):
    file = json.loads(text)
    p = Problem(file)
    need(file.get("claim") in ("unknown", "feasible", "optimal", "infeasible"), "no such claim")
    for key in ["bound_bytes"] + (["cost", "cost_bound"] if p.memories else []):
        whole(file.get(key), key)
    certificate = file.get("certificate") or {"kind": None}
    need(type(certificate) is dict and certificate.get("kind") in (None, "clique", "refutation"), "no certificate")
    if certificate["kind"] == "refutation":
        need(type(certificate.get("steps")) is str, "steps are no text")
        whole(certificate.get("pool"), "pool", len(p.capacity) - 1)
        whole(certificate.get("within"), "within")
    elif certificate["kind"] == "clique":
        rows([certificate.get("buffers")], len(certificate.get("buffers", [])), "clique")
        need(0 < len(certificate["buffers"]) <= p.n, "no clique")
    return p, file, certificate

def status(text):
    code = 2
    try:
        (p, file, certificate), code = read(text), 1
        if file["claim"] in ("feasible", "optimal"):
            check_placed(p, file, certificate.get("buffers"))
        check_claim(p, file, certificate if certificate["kind"] == "refutation" else None)
    except (Wrong, ValueError) as why:
        return code, str(why)
    return 0, "certified, or nothing to certify"

def agree():
    count, wrong = {0: 0, 1: 0, 2: 0}, 0
    for line in sys.stdin:
        said, plan = line.split(" ", 1)
        here, why = status(plan)
        count[here] += 1
        if here != int(said):
            wrong += 1
            print(f"here {here} ({why}), there {said}: {plan}", end="", flush=True)
    print(f"{count[0]} certificates accepted, {count[1]} refused, {count[2]} no plan; {wrong} disagreements")
    return 1 if wrong or not any(count.values()) else 0

def main():
    sys.setrecursionlimit(1 << 20)
    if sys.argv[1:] == ["--agree"]:
        return agree()
    codes = [0] if sys.argv[1:] else [2]
    for path in sys.argv[1:]:
        code, why = status(pathlib.Path(path).read_bytes())
        print(f"{path}: {why}")
        codes.append(code)
    return max(codes)

if __name__ == "__main__":
    sys.exit(main())
