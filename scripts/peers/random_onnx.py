"""Random ONNX models for differential.py: a function for each group of operators, every value known while the model grows.

Each node is computed by ONNX Runtime as it is added, alone, from the values of its operands: so shapes are known, what ONNX
Runtime does not implement is not drawn, and operands that the standard leaves undefined (a cast of what the type cannot hold,
a division of integers by zero) are seen and avoided.
"""

import functools
import itertools

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {  # memplan's types
    "f32": (TensorProto.FLOAT, np.float32), "f64": (TensorProto.DOUBLE, np.float64),
    "f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "i64": (TensorProto.INT64, np.int64), "i32": (TensorProto.INT32, np.int32),
    "i8": (TensorProto.INT8, np.int8), "u8": (TensorProto.UINT8, np.uint8),
    "bool": (TensorProto.BOOL, np.bool_),
}
BY_DTYPE = {np.dtype(dtype): name for name, (_, dtype) in TYPES.items()}
FLOATS, INTS = ("f32", "f32", "f32", "f64", "f16"), ("i64", "i32", "i8", "u8")
NUMBERS = FLOATS + ("i64", "i32")
ANY = NUMBERS + ("i8", "u8", "bool", "bf16")
MOST_ELEMENTS = 4000
GENERATORS = []  # (operators that it draws from, function)


class Skip(Exception):
    """This draw makes no node: another one is tried."""


def operators(*names):
    """Says which operators a generator draws from; differential.py holds the union against ops.def."""
    def enter(function):
        GENERATORS.append((names, function))
        return function
    return enter


class Value:
    def __init__(self, name, data, final=False):
        self.name, self.data, self.final = name, data, final

    type = property(lambda self: BY_DTYPE[self.data.dtype])
    shape = property(lambda self: self.data.shape)
    rank = property(lambda self: self.data.ndim)


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # else products of bytes saturate at 16 bits on AVX2
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def info(name, data):
    return helper.make_tensor_value_info(name, TYPES[BY_DTYPE[data.dtype]][0], data.shape)


def bare(name):
    """An output whose type is left to inference."""
    return onnx.ValueInfoProto(name=name)


def make_model(nodes, inputs, outputs, initializers, opset):
    """inputs, initializers: {name: array}; outputs: names or value infos."""
    graph = helper.make_graph(
        nodes, "g", [info(name, data) for name, data in inputs.items()],
        [bare(name) if isinstance(name, str) else name for name in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in initializers.items()])
    return helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def free_names(node):
    """Names that a node reads from around it: its inputs, and what its graphs do not make themselves."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            made = {value.name for value in attribute.g.input} | {t.name for t in attribute.g.initializer}
            for inner in attribute.g.node:
                names += [name for name in free_names(inner) if name not in made]
                made.update(inner.output)
            names += [value.name for value in attribute.g.output if value.name not in made]
    return list(dict.fromkeys(names))


def all_nodes(nodes):
    """The nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g.node)


def compute(node, known, opset):
    """ONNX Runtime's results for one node; known: {name: array}. bfloat16 comes through a Cast, which is exact."""
    feeds = {name: known[name] for name in free_names(node)}
    shown = [name for name in node.output if name]
    model = make_model([node], {}, shown, feeds, opset)
    runner = session(model)
    types = [output.type for output in runner.get_outputs()]
    if any(kind == "tensor(bfloat16)" for kind in types):
        wide = [name + "_wide" if kind == "tensor(bfloat16)" else name for name, kind in zip(shown, types)]
        casts = [helper.make_node("Cast", [a], [b], to=TensorProto.FLOAT) for a, b in zip(shown, wide) if a != b]
        runner = session(make_model([node] + casts, {}, wide, feeds, opset))
    results = runner.run(None, {})
    return {name: np.asarray(data, ml_dtypes.bfloat16) if kind == "tensor(bfloat16)" else np.asarray(data)
            for name, data, kind in zip(shown, results, types)}


@functools.cache
def since(op):
    """The opset in which an operator came."""
    return min(s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op))


class Builder:
    """A graph that grows; a body has an outer one, whose values it may read."""

    def __init__(self, rng, opset, outer=None):
        self.rng, self.opset, self.outer = rng, opset, outer
        self.nodes, self.inputs, self.initializers, self.values = [], {}, {}, []
        self.params = []  # of a body
        self.names = outer.names if outer else itertools.count(1)
        self.features = outer.features if outer else set()
        self.depth = outer.depth + 1 if outer else 0

    # ---- chance
    def chance(self, p):
        return self.rng.random() < p

    def of(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def int(self, low, high):
        """low <= n <= high."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))

    def dim(self):
        if self.chance(0.03):
            return 0
        return self.of(1, 1, 2, 2, 3, 3, 4, 5, 7)

    def dims(self, least=0, most=4):
        rank = self.of(*[r for r in (0, 1, 2, 2, 3, 3, 4, 5) if least <= r <= most])
        shape = [self.dim() for _ in range(rank)]
        while np.prod(shape) > MOST_ELEMENTS // 4:
            shape[self.int(0, rank - 1)] = 1
        return tuple(shape)

    # ---- values
    def fresh(self):
        return f"v{next(self.names)}"

    def array(self, kind, shape):
        """Normal numbers, seldom with what is special among them."""
        dtype = TYPES[kind][1]
        if kind == "bool":
            return self.rng.integers(0, 2, shape).astype(dtype)
        if kind in INTS:
            low = 0 if kind == "u8" else -9
            return self.rng.integers(low, 10, shape).astype(dtype)
        data = np.asarray(self.rng.standard_normal(shape)).astype(dtype)
        if self.chance(0.03) and data.size > 0:
            flat = data.reshape(-1)
            flat[self.int(0, data.size - 1)] = self.of(np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e4, 0.0)
            self.features.add("special")
            data = flat.reshape(data.shape)
        return data

    def note(self, data):
        if data.size == 0:
            self.features.add("zero-sized")
        if data.ndim == 0:
            self.features.add("scalar")

    def root(self):
        return self if self.outer is None else self.outer.root()

    def enter(self, data, where=None):
        """A new value that no node makes: an input, an initializer or a Constant."""
        data = np.ascontiguousarray(data).reshape(np.shape(data))
        name = self.fresh()
        where = where or self.of("input", "input", "initializer", "constant")
        value = Value(name, data)
        self.note(data)
        if where == "constant":
            self.nodes.append(helper.make_node("Constant", [], [name],
                                               value=numpy_helper.from_array(data)))
        elif where == "input" and value.type != "bf16":
            self.root().inputs[name] = data
        else:
            self.initializers[name] = data
        self.values.append(value)
        return value

    def settled(self, data, kind="i64"):
        """An operand that decides a shape: constant, or an input that is bound."""
        where = "input" if self.outer is None and self.chance(0.05) else None
        if where:
            self.features.add("bound")
        return self.enter(np.asarray(data, TYPES[kind][1]), where or self.of("initializer", "constant"))

    def visible(self):
        return self.values + (self.outer.visible() if self.outer and self.chance(0.5) else [])

    def value(self, kinds=FLOATS, least=0, most=4, shape=None, test=None, new=0.35):
        """A value of these types and ranks (or of this shape), one that is there if there is one."""
        if isinstance(kinds, str):
            kinds = (kinds,)
        if not self.chance(new):
            fitting = [v for v in self.visible() if not v.final and v.type in kinds and least <= v.rank <= most
                       and (shape is None or v.shape == tuple(shape)) and (test is None or test(v))]
            if fitting:
                recent = fitting[-6:]
                return recent[self.rng.integers(len(recent))]
        for _ in range(20):
            value = Value("", self.array(self.of(*kinds), self.dims(least, most) if shape is None else shape))
            if test is None or test(value):
                return self.enter(value.data)
        raise Skip

    def broadcastable(self, shape):
        """A shape that broadcasts with this one."""
        keep = self.int(0, len(shape))
        return tuple(1 if self.chance(0.3) else d for d in shape[len(shape) - keep:])

    def axis(self, rank, low=None):
        """An axis, negative half of the time."""
        return self.int(-rank if low is None else low, rank - 1)

    # ---- nodes
    def add(self, op, inputs, n_out=1, outputs=None, final=False, **attributes):
        """Adds a node and computes it; the values of its outputs, None for one that was not asked for.

        "ms.NAME" is ONNX Runtime's NAME."""
        if op.startswith("ms."):
            op, attributes["domain"] = op[3:], "com.microsoft"
        elif since(op) > self.opset:
            raise Skip
        attributes = {key: value for key, value in attributes.items() if value is not None and value != []}
        names = [self.fresh() for _ in range(n_out)]
        if outputs is not None:
            names = [name if wanted else "" for name, wanted in zip(names, outputs)]
        node = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, **attributes)
        try:
            made = compute(node, self.known(), self.opset)
        except Exception as error:  # whatever ONNX Runtime raises: it does not implement, or refuses, this
            raise Skip(str(error)) from error
        if any(data.size > MOST_ELEMENTS or data.ndim > 8 or data.dtype not in BY_DTYPE for data in made.values()):
            raise Skip
        for data in made.values():
            if data.dtype.kind == "f" and data.size and self.chance(0.9):
                largest = np.max(np.abs(data.astype(np.float64)))
                if largest > 1e4 and np.isfinite(largest):
                    raise Skip
        self.nodes.append(node)
        values = [Value(name, made[name], final) if name else None for name in names]
        for value in values:
            if value is not None:
                self.note(value.data)
                self.values.append(value)
        return values

    def known(self):
        table = self.outer.known() if self.outer else dict(self.inputs)
        table.update((v.name, v.data) for v in self.values)
        return table


def draw(b, only=None):
    """One node, or a few; Skip where the draw came to nothing."""
    weights = np.array([len(names) ** 0.7 for names, _ in GENERATORS])
    names, function = GENERATORS[b.rng.choice(len(GENERATORS), p=weights / weights.sum())]
    ops = [name for name in names if only is None or name in only]
    if not ops:
        raise Skip
    before = len(b.nodes), len(b.values), dict(b.initializers), dict(b.root().inputs)
    try:
        function(b, ops[b.rng.integers(len(ops))])
    except Skip:
        del b.nodes[before[0]:], b.values[before[1]:]
        b.initializers = before[2]
        b.root().inputs = before[3]
        raise
