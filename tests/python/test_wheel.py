"""The wheel as it stands installed, held to an oracle: the least of every order of placing each buffer at its lowest free offset."""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import memplan
from test_gitlab import Gitlab  # noqa: F401  its tests run with these

try:
    import numpy
except ImportError:
    numpy = None
try:  # WHEEL_PIP="numpy onnx onnxruntime" make wheel-test
    import onnx
    import onnxruntime
except ImportError:
    onnx = onnxruntime = None

LIVES, SIZES = [(0, 3), (1, 2), (2, 5), (3, 6)], [16, 8, 24, 8]


def meet(a, b):
    return a[0] < b[1] and b[0] < a[1]


def overlaps(lives, sizes, offsets):
    return [(a, b) for a in range(len(sizes)) for b in range(a) if meet(lives[a], lives[b])
            and offsets[a] < offsets[b] + sizes[b] and offsets[b] < offsets[a] + sizes[a]]


def least(lives, sizes, align):
    """Some order of placing each at its lowest free offset is optimal."""
    best = None
    for order in itertools.permutations(range(len(sizes))):
        offset = {}
        for b in order:
            below = sorted((offset[a], offset[a] + sizes[a]) for a in offset if meet(lives[a], lives[b]))
            at = 0
            for start, end in below:
                if at + sizes[b] <= start:
                    break
                at = max(at, -(-end // align) * align)
            offset[b] = at
        height = max(offset[b] + sizes[b] for b in offset)
        best = height if best is None else min(best, height)
    return best


class Plans(unittest.TestCase):
    def test_random_lists_reach_the_optimum(self):
        """Fault: lives are closed, an alignment is lost, offsets are those of other buffers."""
        draw = random.Random(7)
        for _ in range(60):
            n, align = draw.randint(1, 6), draw.choice([1, 4, 16])
            births = [draw.randint(0, 5) for _ in range(n)]
            lives = [(b, b + draw.randint(1, 4)) for b in births]
            sizes = [draw.randint(1, 40) for _ in range(n)]
            plan = memplan.plan(lives, sizes, align=align)
            self.assertEqual(plan.bytes, least(lives, sizes, align), (lives, sizes, align))
            self.assertTrue(plan.optimal and plan.bound == plan.bytes)
            self.assertEqual(overlaps(lives, sizes, plan.offsets), [])
            self.assertTrue(all(at % align == 0 for at in plan.offsets))
            self.assertEqual(plan.bytes, max(at + size for at, size in zip(plan.offsets, sizes)))

    def test_times_of_any_kind(self):
        """Fault: large times cost memory, or their order is lost."""
        for scale, shift in ((1, 0), (10**15, 0), (1, -50), (0.125, 0.5)):
            lives = [(a * scale + shift, b * scale + shift) for a, b in LIVES]
            self.assertEqual(memplan.plan(lives, SIZES).bytes, 40)

    def test_certificates(self):
        plan = memplan.plan(LIVES, SIZES)
        self.assertEqual(plan.certificate, {"kind": "clique", "buffers": [0, 2]})
        self.assertIn("certified: optimal", plan.certify())
        # three that meet pairwise at two steps each, so that no clique proves what alignment costs
        hard = memplan.plan([(0, 3), (2, 5), (4, 7), (1, 6), (0, 2), (5, 8)], [5, 3, 4, 6, 2, 7], align=4, planner="exact")
        self.assertIn("certified: optimal", hard.certify())

    def test_pairs_orders_and_places(self):
        self.assertEqual(memplan.plan([(0, 3), (2, 4)], [8, 8], in_place=[(0, 1)]).bytes, 8)
        self.assertEqual(memplan.plan([(0, 3), (2, 4)], [8, 8]).bytes, 16)
        self.assertEqual(memplan.plan(None, [8, 8, 8], before=[(0, 1), (1, 2)]).bytes, 8)
        self.assertEqual(memplan.plan(None, [8, 8]).bytes, 16)
        self.assertEqual(memplan.plan([(0, 2), (0, 2)], [8, 8], fixed={0: 32}).offsets, [32, 0])
        self.assertEqual(memplan.plan([(0, 2), (0, 2)], [1, 8], align=[1, 64], names=["a", "b"]).places, {"a": (8, 1), "b": (0, 8)})

    def test_verify(self):
        self.assertEqual(memplan.verify(LIVES, SIZES, [100, 0, 0, 32]).bytes, 116)
        self.assertEqual(memplan.verify(LIVES, SIZES, [100, 0, 0, 32]).bound, 40)
        with self.assertRaisesRegex(memplan.InvalidPlan, "'#0' and '#2' overlap"):
            memplan.verify(LIVES, SIZES, [0, 16, 8, 32])

    @unittest.skipIf(numpy is None, "no numpy here")
    def test_numpy(self):
        plan = memplan.plan(numpy.array(LIVES), numpy.array(SIZES, dtype=numpy.int32), align=8)
        self.assertEqual((plan.offsets.dtype, plan.offsets.tolist()), (numpy.uint64, [24, 0, 0, 24]))
        self.assertEqual(memplan.verify(numpy.array(LIVES), SIZES, plan.offsets, align=8).bytes, 40)
        for lives in ("int64", "int32", "uint8", "float32"):
            for sizes in ("uint64", "int16"):
                backwards = memplan.plan(numpy.array(LIVES, lives)[::-1], numpy.array(SIZES, sizes)[::-1], align=numpy.full(4, 8))
                self.assertEqual(sorted(backwards.offsets.tolist()), [0, 0, 24, 24])
        for lives, sizes, says in ((numpy.array(LIVES).T, SIZES, r"lives\[0\] is \[0, 1, 2, 3\]"),
                                   (LIVES, numpy.array(SIZES) + 0.5, r"sizes\[0\] is 16.5")):
            with self.assertRaisesRegex(memplan.InputError, says):
                memplan.plan(lives, sizes)

    def test_models(self):
        plan = memplan.plan_onnx("mnist_conv")
        self.assertEqual((plan.bytes, plan.optimal, len(plan.names)), (12544000, True, 6))
        program = os.environ.get("MEMPLAN") or os.path.join(os.path.dirname(memplan.__file__), "native", "memplan")
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "m.onnx")
            subprocess.run([program, "export", "mlp", "--format", "onnx", "-o", model], check=True)
            for options in ({}, {"in_place": False}, {"safety": "parallel"}):
                words = [w for k, v in options.items() for w in ("--" + k.replace("_", "-"), "off" if v is False else v)]
                said = json.loads(subprocess.run([program, "plan", model, "--json"] + words, capture_output=True, check=True).stdout)
                self.assertEqual(memplan.plan_onnx(model, **options).bytes, said["planned_bytes"])

    def test_metadata(self):
        """Fault: anything but the notes differs in the annotated model, or the notes are not those of the plan."""
        program = os.environ.get("MEMPLAN") or os.path.join(os.path.dirname(memplan.__file__), "native", "memplan")
        with tempfile.TemporaryDirectory() as folder:
            model, noted = (os.path.join(folder, name) for name in ("m.onnx", "noted.onnx"))
            subprocess.run([program, "export", "mlp", "--format", "onnx", "--in-place", "off", "-o", model], check=True)
            if onnx is not None:  # one that other hands have touched
                foreign = onnx.load(model)
                del foreign.metadata_props[:]
                onnx.helper.set_model_props(foreign, {"author": "somebody"})
                onnx.save(foreign, model)
            subprocess.run([program, "export", model, "--format", "onnx-metadata", "-o", noted], check=True)
            with open(model, "rb") as before, open(noted, "rb") as after:
                old, new = before.read(), after.read()
            plan = memplan.plan_onnx(model)
            self.assertEqual(memplan.check(noted).bytes, plan.bytes)
            if onnx is None:
                return
            self.assertEqual(old, new[:len(old)])
            notes = {p.key: p.value for p in onnx.load(noted).metadata_props}
            self.assertEqual((notes["author"], int(notes["memplan.arena_bytes"])), ("somebody", plan.bytes))
            self.assertEqual(json.loads(notes["memplan.offsets"]), {name: list(place) for name, place in plan.places.items()})
            runs = [onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in (model, noted)]
            feeds = {i.name: numpy.full(i.shape, 0.5, numpy.float32) for i in runs[0].get_inputs()}
            self.assertTrue(all((a == b).all() for a, b in zip(*(run.run(None, feeds) for run in runs))))

    def test_wrong_arguments(self):
        """Fault: a wrong call is no exception with memplan's message, or ends the process."""
        for call, kind, says in (
                (lambda: memplan.plan(LIVES, SIZES, capacity=39), memplan.Infeasible, "no plan fits in 39 bytes"),
                (lambda: memplan.plan(LIVES, SIZES, align=3), memplan.InputError, "a power of two"),
                (lambda: memplan.plan(LIVES, SIZES[1:]), memplan.InputError, "3 sizes and 4 lives"),
                (lambda: memplan.plan([(3, 3)], [1]), memplan.InputError, "birth 3 is not before death 3"),
                (lambda: memplan.plan([(float("nan"), 3)], [1]), memplan.InputError, "not before"),
                (lambda: memplan.plan([(0, 1), 7], [1, 1]), memplan.InputError, r"lives\[1\] is 7"),
                (lambda: memplan.plan([(0, 1)], [-1]), memplan.InputError, r"sizes\[0\] is -1"),
                (lambda: memplan.plan([(0, 1)], [0]), memplan.InputError, "0 bytes"),
                (lambda: memplan.plan([], []), memplan.InputError, "no buffer"),
                (lambda: memplan.plan(LIVES, SIZES, in_place=[(0, 9)]), memplan.InputError, "no buffer 9"),
                (lambda: memplan.plan(LIVES, SIZES, planner="nobody"), memplan.InputError, "no planner 'nobody'"),
                (lambda: memplan.plan(LIVES, SIZES, threads=0), memplan.InputError, "threads"),
                (lambda: memplan.plan_onnx("no.onnx"), memplan.InputError, "neither a file"),
                (lambda: memplan.check(__file__), memplan.InputError, "no plan that memplan knows"),
                (lambda: memplan.explain(__file__), memplan.InputError, "no column")):
            with self.assertRaisesRegex(kind, says):
                call()
        self.assertTrue(issubclass(memplan.InputError, ValueError))


class Program(unittest.TestCase):
    def test_check(self):
        for offsets, options, verdict, ok in (([24, 0, 0, 24], {}, "ok", True), ([100, 0, 0, 32], {}, "beyond", False),
                                              ([100, 0, 0, 32], {"tolerance": "200%"}, "ok", True)):
            found = memplan.verify(LIVES, SIZES, offsets).check(**options)
            self.assertEqual((found.verdict, found.ok, found.optimum), (verdict, ok, 40))
            self.assertEqual(found.message == "", ok)
        found = memplan.verify(LIVES, SIZES, [24, 0, 0, 24])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            found.save(path)
            with open(path) as f:
                text = f.read().replace('"offset":24', '"offset":23', 1)
            with open(path, "w") as f:
                f.write(text)
            refused = memplan.check(path)
        self.assertEqual((refused.ok, refused.verdict, refused.bytes), (False, "refused", None))
        self.assertIn("overlap", refused.message)

    def test_explain(self):
        why = memplan.plan(LIVES, SIZES).explain()
        self.assertEqual((why.bytes, why.step, [part["bytes"] for part in why.parts], why.height["buffers"]), (40, 2, [24, 16], ["#0", "#2"]))
        self.assertTrue(memplan.explain("mlp", time_limit=1).bytes > 0)

    def test_typed(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(memplan.__file__), "py.typed")))
        for name in memplan.__all__:
            self.assertTrue(getattr(memplan, name).__doc__, name)

    def test_nothing_of_this_machine_is_needed(self):
        """Fault: a library is found where it was built, not beside."""
        native = os.path.join(os.path.dirname(memplan.__file__), "native")
        for name in ("memplan", "libmemplan.so"):
            found = subprocess.run(["ldd", os.path.join(native, name)], capture_output=True, text=True).stdout
            foreign = [line.split()[0] for line in found.splitlines() if "=>" in line and native not in line.split("=>")[1]]
            allowed = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libgcc_s.so", "libstdc++.so")
            self.assertEqual([f for f in foreign if not f.startswith(allowed)], [], found)


if __name__ == "__main__":
    result = unittest.main(exit=False, argv=sys.argv[:1] + ["-q"]).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    sys.exit(bad > 0)
