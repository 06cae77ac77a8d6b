"""From a list of buffers to an arena: plan, look, compare with a planner of your own, hand the offsets on.

    pip install dist/memplan-*.whl && python3 harness/python/example/arena.py"""

import memplan

lives = [(0, 3), (1, 2), (2, 5), (3, 6), (4, 9), (5, 7), (7, 9)]  # steps at which each buffer is needed: [birth, death)
sizes = [96, 32, 64, 80, 48, 24, 100]

plan = memplan.plan(lives, sizes, align=16)
print(f"{plan.bytes} bytes, proved smallest: {plan.optimal}; {plan.certify()}")
for name, (offset, size) in plan.places.items():
    print(f"  {name} at {offset}, {size} bytes")

why = plan.explain()
print(f"highest at step {why.step}:", ", ".join(f"{part['kind']} {part['name'] or ''} {part['bytes']}" for part in why.parts))

# Your own planner: each buffer behind the one before it, without a thought of when it dies.
offsets, end = [], 0
for size in sizes:
    offsets.append(end)
    end += (size + 15) // 16 * 16
mine = memplan.verify(lives, sizes, offsets, align=16)  # an invalid one raises InvalidPlan
print(f"mine: {mine.bytes} bytes; the gate says: {mine.check(tolerance='5%').message}")

try:
    memplan.plan(lives, sizes, align=16, capacity=plan.bytes - 1)
except memplan.Infeasible as error:
    print(f"one byte less: {error}")
