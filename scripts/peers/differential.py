#!/usr/bin/env python3
"""Random ONNX models run by ONNX Runtime and by memplan, their outputs compared element by element.

  scripts/peers/differential.py --count 10000 --seed 1 --jobs 2     until so many were compared; goes on where it stopped
  scripts/peers/differential.py --only 123 --seed 1                 one of them again, with all that is known about it
  scripts/peers/differential.py --model FILE.onnx ..                models of yours, inputs drawn from a normal distribution

Models hold every operator that memplan reads (graphs/ir/ops.def; one without a generator is an error), loops and branches,
zero-sized values and scalars, opsets 7 to 27; memplan's options are drawn, too. ONNX Runtime runs without optimisations.
Outputs must agree in type and shape, in where they are NaN or infinite, and within a tolerance elsewhere (TOLERANCE).

Where they do not, each node is looked at alone: ONNX Runtime computes it from memplan's own operands. If all nodes agree, rounding
was amplified on the way (a sign or an index that hangs on the last bit), which is counted, as is a node whose difference is small
and where memplan is what the reference evaluator makes of the same operands in double. If another node differs, a line of
differences.tsv must fit: operator, condition, the sentence of the standard; and ONNX's reference evaluator must agree with memplan
about this very node, else the difference is unexplained. Unexplained differences, refusals, crashes, hangs, more than 20 different
explanations, and operators never drawn are failures: exit 1. What failed lies in DIR/SEED.N with its command line.
Needs onnx, onnxruntime and numpy.
"""

import argparse
import collections
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback

import common

OPERATORS = os.path.join(common.ROOT, "graphs", "ir", "ops.def")
EXPLANATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "differences.tsv")
MOST_EXPLANATIONS = 20
# of an element, relative; and of the largest element, where sums cancel. In double, attributes and constants of functions are floats
TOLERANCE = {"float64": (2e-7, 1e-7), "float32": (1e-4, 1e-5), "float16": (4e-3, 2e-3), "bfloat16": (2e-2, 1e-2)}
HANG = 120  # seconds
ABSENT = {"SwiGLU"}  # of opset 28, which ONNX Runtime 1.32 has not
ROWS_READ = "a loop ended early and operations read its rows: all that were planned, as memplan says"
OPSETS = [7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 18, 19, 20, 21, 21, 22, 23, 24, 25, 26, 27]


# ---- comparing


def difference(got, want, slack=1):
    """None where the two agree, else what differs first."""
    import numpy as np

    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if got.dtype.name not in TOLERANCE:
        wrong = got != want
    else:
        relative, of_largest = (slack * most for most in TOLERANCE[got.dtype.name])
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.isfinite(b)
            largest = np.max(np.abs(b[finite]), initial=1)
            off = np.abs(a - b) > relative * np.abs(b) + of_largest * largest
            wrong = np.where(finite, off | ~np.isfinite(a), ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{np.sum(wrong)} of {wrong.size} elements, first {list(at)}: {got[at]}, not {want[at]}"


# ---- memplan


def listed(program, what):
    lines = common.command([program, "list", what, "--json"]).stdout.splitlines()
    return [item["name"] for item in map(json.loads, lines) if item.get("absent") is None]


class Options:
    """Draws the options of `memplan run` from what this memplan lists."""

    def __init__(self, program):
        self.planners = [name for name in listed(program, "planners") if not name.endswith(":")]
        self.orders, self.passes = listed(program, "orders"), listed(program, "passes")
        self.orders = [name + ":ticks=200000" if name == "joint" else name for name in self.orders]  # which --budget is not for

    def draw(self, rng):
        def one(*choices):
            return choices[rng.integers(len(choices))]

        def some(items, p):
            return [item for item in items if rng.random() < p]

        words = ["--backend", one("ref", "cpu"), "--planner", self.planner(one), "--safety", one("serial", "parallel")]
        pairs = {"--pin": [",".join(some(["weights", "inputs", "outputs"], 0.5)) or "none"],
                 "--loop": ["view", "copy"], "--rnn": ["while", "ahead", "unroll"], "--in-place": ["on", "off"],
                 "--layout": ["plain", "auto"],
                 "--workspaces": ["pool", "plan"], "--threads": ["1", "2"], "--pools": ["weights", "none"],
                 "--optimise": ["all", ",".join(some(self.passes, 0.2)) or "none"], "--order": self.orders}
        for option, choices in pairs.items():
            if rng.random() < 0.4:
                words += [option, one(*choices)]
        words += one([], [], ["--views", "off"], *(["--concat", how] for how in ("auto", "share", "copy")))
        if rng.random() < 0.3:
            words.append("--checked")
        return words

    def planner(self, one):
        name = one(*self.planners)
        return name + ":capacities=1073741824/1073741824,cost=0/1" if name == "spill" else name


def run_memplan(program, folder, model, inputs, options):
    """({output: array}, None), or (None, what it said); writes the command line into the folder."""
    import numpy as np

    path, dump = os.path.join(folder, "model.onnx"), os.path.join(folder, "dump")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())
    words = [program, "run", path, *options, "--repeat", "1", "--budget", "200000", "--dump", dump]
    for name, data in inputs.items():
        np.save(os.path.join(folder, name + ".npy"), data)
        words += ["--input", f"{name}={os.path.join(folder, name)}.npy"]
    with open(os.path.join(folder, "command"), "w", encoding="utf-8") as out:
        out.write(shlex.join(words) + "\n")
    shutil.rmtree(dump, ignore_errors=True)
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG,
                              env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    except subprocess.TimeoutExpired:
        return None, f"no end after {HANG} s"
    if re.search("^early .*what reads", done.stdout, re.MULTILINE):
        return None, ROWS_READ
    if done.returncode != 0:
        said = (done.stderr.strip() or "no message").splitlines()[-1]
        return None, f"exit {done.returncode}: {said}"
    return {os.path.splitext(name)[0]: np.load(os.path.join(dump, name)) for name in os.listdir(dump)}, None


# ---- models


def draw_model(rng):
    """(model, inputs, features): a random model, and values for what it reads."""
    from random_onnx import Builder, Skip, bare, draw, make_model

    b = Builder(rng, int(OPSETS[rng.integers(len(OPSETS))]))
    for _ in range(b.int(2, 14)):
        try:
            draw(b)
        except Skip:
            continue
    read = {name for node in b.nodes for name in free_inputs(node)}
    made = [name for node in b.nodes for name in node.output if name]
    everything = b.chance(0.2)
    outputs = [name for name in made if name not in read or everything or b.chance(0.15)]
    final = {value.name for value in b.values if value.final}
    outputs += [name for name in made if name in final and name not in outputs]
    if b.opset >= 13 and b.chance(0.1):
        outputs += [name for name in list(b.inputs)[:1]]
    inputs = {name: data for name, data in b.inputs.items() if name in read or name in outputs}
    known = b.known()
    outputs = [name for name in outputs if known[name].dtype.name != "bfloat16"]
    initializers = {name: data for name, data in b.initializers.items() if name in read}
    if initializers and b.chance(0.1):
        outputs += [name for name, data in initializers.items() if data.dtype.name != "bfloat16"][:1]
    if not outputs:
        raise Skip
    return make_model(b.nodes, inputs, [bare(name) for name in outputs], initializers, b.opset), inputs, b.features


def free_inputs(node):
    from random_onnx import free_names

    return free_names(node)


def operators_of(model):
    from random_onnx import all_nodes

    return {node.op_type for node in all_nodes(model.graph.node)}


def exposed(model):
    """The same model with each value of its main graph an output; bfloat16 through a Cast to float, NAME_wide."""
    import onnx
    from random_onnx import bare, session

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    names = [name for node in wide.graph.node for name in node.output if name]
    del wide.graph.output[:]
    wide.graph.output.extend(bare(name) for name in names)
    narrow = [o.name for o in session(wide).get_outputs() if o.type == "tensor(bfloat16)"]
    for name in narrow:
        wide.graph.node.append(onnx.helper.make_node("Cast", [name], [name + "_wide"], to=1))
    del wide.graph.output[:]
    wide.graph.output.extend(bare(name + "_wide" if name in narrow else name) for name in names)
    return wide


# ---- explaining


def explanations():
    with open(EXPLANATIONS, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]
    heads, rows = rows[0], rows[1:]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def fits(line, node, known, opset):
    """Whether a line of the table speaks of this node. Its condition sees the attributes as a(NAME, default)."""
    import numpy as np
    from onnx import helper

    table = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    table = {name: value.decode() if isinstance(value, bytes) else value for name, value in table.items()}
    operands = [known.get(name) for name in node.input]
    return node.op_type in line["operator"].split() and bool(eval(  # the table is ours
        line["condition"], {"a": lambda name, default=None: table.get(name, default), "x": operands,
                            "opset": opset, "np": np}))


def with_pads(node, known):
    """A node of auto_pad SAME_* with the pads that the standard's sentence says, which the evaluator computes without dilations."""
    from onnx import helper

    a = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    same = a.pop("auto_pad", b"").decode()
    if not same.startswith("SAME"):
        return node
    dims, kernel = known[node.input[0]].shape[2:], a.get("kernel_shape") or known[node.input[1]].shape[2:]
    strides, dilations = a.get("strides", [1] * len(dims)), a.get("dilations", [1] * len(dims))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if node.op_type == "ConvTranspose":
        extra = a.get("output_padding", [0] * len(dims))
        totals = [s * (i - 1) + x + e - i * s for i, s, e, x in zip(dims, strides, extents, extra)]
    else:
        totals = [max(0, (-(-i // s) - 1) * s + e - i) for i, s, e in zip(dims, strides, extents)]
    less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
    a["pads"] = less + more if same == "SAME_UPPER" else more + less
    return helper.make_node(node.op_type, node.input, node.output, **a)


def by_reference(node, known, opset):
    """What ONNX's reference evaluator makes of one node."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator
    from random_onnx import free_names, make_model

    shown = [name for name in node.output if name]
    feeds = {name: known[name] for name in free_names(node)}
    node, feeds, opset, back = as_evaluated(node, feeds, opset)
    model = make_model([with_pads(node, known)], {}, shown, feeds, opset)
    with np.errstate(all="ignore"):
        evaluator = ReferenceEvaluator(model, new_ops=[clipping_lstm()])
        return {name: back(np.asarray(data)) for name, data in zip(shown, evaluator.run(None, {}))}


def as_evaluated(node, feeds, opset):
    """(node, operands, opset, what brings a result back): the same, put such that the evaluator computes what the standard says."""
    import numpy as np
    from onnx import helper

    def one(data):
        return {node.input[0]: data}

    x = feeds.get(node.input[0]) if node.input else None
    if node.op_type == "BatchNormalization":  # before opset 14 momentum is taken for training
        opset = max(opset, 15)
    elif node.op_type == "GlobalMaxPool":  # of two dims
        plane = one(x.reshape(*x.shape[:2], 1, int(np.prod(x.shape[2:]))))
        return node, plane, opset, lambda y: y.reshape(x.shape[:2] + (1,) * (x.ndim - 2))
    elif node.op_type == "LRN":  # as many channels as images
        turned = np.moveaxis(x, 1, 0)
        square = one(np.stack([turned.reshape(x.shape[1], -1, 1)] * x.shape[1]))
        return node, square, opset, lambda y: np.moveaxis(y[0].reshape(turned.shape), 0, 1)
    elif node.op_type == "Hardmax" and opset < 13:  # "coerced into a 2-dimensional tensor"
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % x.ndim
        rows = one(x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))
        return helper.make_node("Hardmax", node.input, node.output, axis=1), rows, 13, lambda y: y.reshape(x.shape)
    return node, feeds, opset, lambda y: y


@functools.cache
def clipping_lstm():
    """The reference evaluator's LSTM, which passes over `clip`, with the inputs of its activations clipped as the standard says."""
    import numpy as np
    from onnx.reference.ops.op_lstm import LSTM as Plain

    class LSTM(Plain):
        op_domain = ""

        def _run(self, *args, clip=None, **more):
            self.limit = np.inf if clip is None else clip
            return Plain._run(self, *args, **more)

        def f(self, x):
            return Plain.f(self, np.clip(x, -self.limit, self.limit))

        def g(self, x):
            return Plain.g(self, np.clip(x, -self.limit, self.limit))

        h = g

    return LSTM


def only_rounded(node, theirs, known, opset):
    """Whether ONNX Runtime is a little off, and memplan is what the reference evaluator makes of the same operands in double."""
    import numpy as np
    import onnx

    if any(difference(known[name], data, 100) for name, data in theirs.items()):
        return False
    wide = {name: data.astype(np.float64) if data.dtype == np.float32 else data for name, data in known.items()}
    if node.op_type == "LayerNormalization" or (node.op_type == "GroupNormalization" and opset >= 21):
        node = onnx.helper.make_node(node.op_type, node.input, node.output, stash_type=onnx.TensorProto.DOUBLE, **{
            a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if a.name != "stash_type"})
    try:
        exact = by_reference(node, wide, opset)
    except Exception:  # of whatever kind: then there is no agreement
        return False
    return not any(difference(known[name], data.astype(known[name].dtype)) for name, data in exact.items())


def explain(node, known, opset, table):
    """The name of the line that explains this node, or None and why not."""
    from random_onnx import all_nodes

    lines = [line for line in table for inner in all_nodes([node]) if fits(line, inner, known, opset)]
    if not lines:
        return None, "no line of differences.tsv fits"
    try:
        theirs = by_reference(node, known, opset)
    except Exception as error:  # of whatever kind: then there is no agreement
        return None, f"{lines[0]['name']}: the reference evaluator fails: {error}"
    for name, data in theirs.items():
        off = difference(known[name], data)
        if off:
            return None, f"{lines[0]['name']}: the reference evaluator differs from memplan, too: {off}"
    return lines[0]["name"], None


def look_closer(program, folder, model, inputs, options, first):
    """Node by node, from memplan's own operands: (outcome, the lines that explain, notes)."""
    import ml_dtypes
    import numpy as np
    from onnx import numpy_helper
    from random_onnx import compute

    opset = model.opset_import[0].version
    inner = os.path.join(folder, "exposed")
    os.makedirs(inner, exist_ok=True)
    dumped, said = run_memplan(program, inner, exposed(model), inputs, options)
    if dumped is None:
        return "unexplained", [], [f"with each value an output: {said}"]
    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | inputs
    known |= {name.removesuffix("_wide"): data.astype(ml_dtypes.bfloat16) if name.endswith("_wide") else data
              for name, data in dumped.items()}
    notes = [f"output {name} differs where each value is one: {off}" for name, data in first.items()
             if (off := difference(data, known[name]))]
    used, table = [], explanations()
    for node in model.graph.node:
        theirs = compute(node, known, opset)
        wrong = {name: off for name, data in theirs.items() if (off := difference(np.asarray(known[name]), data))}
        if not wrong or only_rounded(node, theirs, known, opset):
            continue
        line, why = explain(node, known, opset, table)
        used.append(line)
        if line is None:
            notes += [f"{node.op_type} makes {name}: {off}; {why}" for name, off in wrong.items()]
    if notes:
        return "unexplained", [], notes
    return ("explained", sorted(set(used)), []) if used else ("rounding", [], [])


# ---- one model


def available(program, folder, model, inputs, options):
    """run_memplan; where a planner, a pool or a layout is not there for this graph (exit 4), or the budget ends first (3), without them."""
    ours, said = run_memplan(program, folder, model, inputs, options)
    if ours is None and re.match("exit [34]:", said):
        options[options.index("--planner") + 1] = "greedy_size"
        if "--pools" in options:
            options[options.index("--pools") + 1] = "none"
        if "--layout" in options:
            options[options.index("--layout") + 1] = "plain"
        ours, said = run_memplan(program, folder, model, inputs, options)
    return ours, said


def judge(program, folder, model, inputs, options):
    """{outcome, ..} of one model."""
    from random_onnx import session

    names = [output.name for output in model.graph.output]
    try:
        theirs = dict(zip(names, session(model).run(None, inputs)))
    except Exception as error:
        return {"outcome": "not run", "notes": [f"ONNX Runtime: {error}"]}
    ours, said = available(program, folder, model, inputs, options)
    if ours is None:
        return {"outcome": "not run" if said == ROWS_READ else "unexplained", "notes": [said]}
    missing = [name for name in names if name not in ours]
    if missing:
        return {"outcome": "unexplained", "notes": [f"no output {missing}"]}
    wrong = [f"output {name}: {off}" for name in names if (off := difference(ours[name], theirs[name]))]
    if not wrong:
        return {"outcome": "equal"}
    try:
        outcome, lines, notes = look_closer(program, folder, model, inputs, options, ours)
    except Exception as error:  # ONNX Runtime may refuse alone what it runs in the model
        return {"outcome": "unexplained", "notes": wrong + [f"no node could be singled out: {error}"]}
    return {"outcome": outcome, "explanations": lines, "notes": (wrong + notes) if notes else []}


def one_graph(program, options, seed, number, keep):
    """Draws and judges model `number`; what fails stays in `keep`."""
    import numpy as np
    from random_onnx import Skip

    rng = np.random.default_rng([seed, number])
    while True:
        try:
            model, inputs, features = draw_model(rng)
            break
        except Skip:
            continue
    drawn = options.draw(rng)
    with tempfile.TemporaryDirectory() as folder:
        row = judge(program, folder, model, inputs, drawn)
        if row["outcome"] == "unexplained":
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(folder, keep)
            with open(os.path.join(keep, "command"), encoding="utf-8") as old:
                text = old.read().replace(folder, keep)
            with open(os.path.join(keep, "command"), "w", encoding="utf-8") as new:
                new.write(text)
    return {"number": number, "opset": model.opset_import[0].version, "operators": sorted(operators_of(model)),
            "features": sorted(features), "options": shlex.join(drawn), **row}


def work(args):
    """A worker: a number a line comes in, a row a line goes out. ONNX Runtime may die of a model; then the next one starts."""
    import random_onnx_control  # noqa: F401  (generators enter themselves)
    import random_onnx_ops  # noqa: F401
    import random_onnx_quant  # noqa: F401
    import random_onnx_rest  # noqa: F401

    options = Options(args.memplan)
    for line in sys.stdin:
        number = int(line)
        try:
            row = one_graph(args.memplan, options, args.seed, number, os.path.join(args.output, f"{args.seed}.{number}"))
        except Exception:  # of whatever kind: this model alone is lost, and told
            row = no_row(number, "unexplained", traceback.format_exc(limit=-1).replace("\n", " "))
        print(json.dumps(row), flush=True)


def no_row(number, outcome, note):
    """The row of a model that nothing is known about."""
    return {"number": number, "outcome": outcome, "operators": [], "features": [], "notes": [note]}


# ---- all of them


class Campaign:
    """The rows so far, and who draws the next number."""

    def __init__(self, args):
        self.args, self.lock, self.rows = args, threading.Lock(), {}
        os.makedirs(args.output, exist_ok=True)
        self.path = os.path.join(args.output, f"{args.seed}.jsonl")
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines if line.endswith("\n")]
            self.rows = {row["number"]: row for row in rows if row["outcome"] != "unexplained"}  # the others: once more
        self.next = 0
        self.compared = sum(is_compared(row) for row in self.rows.values())
        self.file = open(self.path, "a", encoding="utf-8")

    def take(self):
        with self.lock:
            if self.compared >= self.args.count:
                return None
            while self.next in self.rows:
                self.next += 1
            self.next += 1
            return self.next - 1

    def put(self, row):
        with self.lock:
            self.rows[row["number"]] = row
            self.compared += is_compared(row)
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()
            for note in row.get("notes", []) if row["outcome"] != "not run" else []:
                common.say(f"{self.args.seed}.{row['number']}: {row['outcome']}: {note}")
            if len(self.rows) % 100 == 0:
                common.say(f"{self.compared} of {self.args.count} compared")

    def worker(self):
        words = [sys.executable, os.path.abspath(__file__), "--work", "--seed", str(self.args.seed),
                 "--memplan", self.args.memplan, "--output", self.args.output]
        process = None
        while (number := self.take()) is not None:
            if process is None:
                process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if line:
                self.put(json.loads(line))
                continue
            status, process = process.wait(), None
            if status < 0:
                self.put(no_row(number, "not run", f"ONNX Runtime died of signal {-status}"))
            else:
                self.put(no_row(number, "unexplained", f"its worker ended with status {status}"))
        if process is not None:
            process.stdin.close()
            process.wait()


def is_compared(row):
    return row["outcome"] in ("equal", "rounding", "explained", "unexplained")


def check_generators():
    """Every operator that memplan reads has a generator, and none has one for nothing."""
    import random_onnx
    import random_onnx_control  # noqa: F401
    import random_onnx_ops  # noqa: F401
    import random_onnx_quant  # noqa: F401
    import random_onnx_rest  # noqa: F401

    with open(OPERATORS, encoding="utf-8") as text:
        read = set(re.findall(r"^ONNX\((\w+),", text.read(), re.MULTILINE)) - ABSENT
    drawn = {name for names, _ in random_onnx.GENERATORS for name in names if not name.startswith("ms.")}
    if read != drawn:
        raise common.Failed(f"without a generator: {sorted(read - drawn)}; not read by memplan: {sorted(drawn - read)}")
    return read


def summary(rows, read):
    """Prints what the rows say; 0 where nothing is left open."""
    outcomes = collections.Counter(row["outcome"] for row in rows)
    compared = [row for row in rows if is_compared(row)]
    lines = collections.Counter(line for row in rows for line in row.get("explanations", []))
    features = collections.Counter(f for row in compared for f in row["features"])
    drawn = collections.Counter(op for row in compared for op in row["operators"])
    print(f"compared {len(compared)}: " + ", ".join(f"{n} {name}" for name, n in outcomes.most_common()))
    print("with     " + ", ".join(f"{n} {name}" for name, n in features.most_common()))
    print(f"explanations {len(lines)} of at most {MOST_EXPLANATIONS}: "
          + ", ".join(f"{n} {name}" for name, n in lines.most_common()))
    missing = sorted(read - set(drawn))
    print(f"operators {len(read & set(drawn))} of {len(read)}; never drawn: {' '.join(missing) or 'none'}; least often: "
          + ", ".join(f"{n} {name}" for name, n in drawn.most_common()[-5:]))
    bad = outcomes["unexplained"] or len(lines) > MOST_EXPLANATIONS or missing
    return 1 if bad else 0


def normal_inputs(model):
    """Inputs for a model of the user's: numbers from a normal distribution; a dim without a size is 1."""
    import numpy as np
    from onnx import helper

    rng, made = np.random.default_rng(1), {t.name for t in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        data = rng.standard_normal([d.dim_value if d.HasField("dim_value") else 1 for d in kind.shape.dim])
        if value.name not in made:
            inputs[value.name] = data > 0 if dtype == np.bool_ else np.asarray(data).astype(dtype)
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memplan", default=os.path.join(common.ROOT, "build", "release", "memplan"), help="the program")
    parser.add_argument("--count", type=int, default=1000, help="models to compare (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of models and options (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="workers (%(default)s)")
    parser.add_argument("--only", type=int, help="this model of the seed alone")
    parser.add_argument("--model", nargs="+", default=[], help="models from files, options drawn")
    parser.add_argument("-o", "--output", default=os.path.join(common.ROOT, "build", "differential"),
                        help="rows, and what failed (%(default)s)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    read = check_generators()
    if args.work:
        return work(args)
    if args.only is not None:
        keep = os.path.join(args.output, f"{args.seed}.{args.only}")
        print(json.dumps(one_graph(args.memplan, Options(args.memplan), args.seed, args.only, keep), indent=1))
        return 0
    if args.model:
        return models(args)
    campaign = Campaign(args)
    workers = [threading.Thread(target=campaign.worker) for _ in range(args.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return summary(list(campaign.rows.values()), read)


def models(args):
    import numpy as np
    import onnx

    options, bad = Options(args.memplan), 0
    for i, path in enumerate(args.model):
        model = onnx.load(path)
        with tempfile.TemporaryDirectory() as folder:
            row = judge(args.memplan, folder, model, normal_inputs(model),
                        options.draw(np.random.default_rng([args.seed, i])))
        print(f"{path}: {row['outcome']} {' '.join(row.get('explanations', []))}")
        for note in row.get("notes", []):
            print(f"    {note}")
        bad |= row["outcome"] == "unexplained"
    return int(bad)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (common.Failed, ImportError) as error:
        sys.exit(f"differential: {error}")
