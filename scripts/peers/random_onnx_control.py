"""Generators of random_onnx.py for what owns graphs, or becomes a loop: If, Loop, Scan, RNN, GRU, LSTM."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from random_onnx import ANY, FLOATS, NUMBERS, TYPES, Builder, Skip, Value, draw, info, operators

MOST_DEPTH = 2


def open_body(b):
    if b.depth >= MOST_DEPTH:
        raise Skip
    return Builder(b.rng, b.opset, b)


def param(b, kind, data):
    """A parameter of a body, with the value that it has in the first round."""
    value = Value(b.fresh(), np.asarray(data))
    b.values.append(value)
    b.params.append(helper.make_tensor_value_info(value.name, TYPES[kind][0],
                                                  value.shape if value.rank == 0 or b.chance(0.5) else None))
    return value


def fill(b, least=0, most=4):
    for _ in range(b.int(least, most)):
        for _ in range(5):
            try:
                draw(b)
                break
            except Skip:
                continue


def made_here(b):
    """Values that nodes of this body make."""
    names = {name for node in b.nodes for name in node.output}
    return [v for v in b.values if v.name in names and not v.final]


def result(b, value):
    """The value as a result of the body: a graph's output must be made in it."""
    if value in made_here(b) and b.chance(0.9):
        return value
    return b.add("Identity", [value])[0]


def alike(b, kind, shape):
    """Something of this type and shape."""
    fitting = [v for v in made_here(b) if v.type == kind and v.shape == tuple(shape)]
    if fitting and b.chance(0.7):
        return fitting[b.int(0, len(fitting) - 1)]
    x = b.value((kind,), shape=shape, new=0.3)
    if kind in FLOATS and b.chance(0.6):
        return b.add(b.of("Tanh", "Sigmoid", "Sin", "Neg"), [x])[0]
    if kind in NUMBERS and b.chance(0.6):
        return b.add(b.of("Add", "Sub"), [x, b.value((kind,), shape=b.broadcastable(shape))])[0]
    return result(b, x)


def body_graph(b, outputs, name="body"):
    taken = set()
    for i, value in enumerate(outputs):  # each output has a name of its own
        if value.name in taken:
            outputs[i] = b.add("Identity", [value])[0]
        taken.add(outputs[i].name)
    return helper.make_graph(
        b.nodes, name, b.params, [info(v.name, v.data) for v in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in b.initializers.items()])


@operators("If")
def branch(b, op):
    condition = b.value("bool", shape=b.of((), (1,)), new=0.7)
    one, other = open_body(b), open_body(b)
    fill(one, 1)
    outputs = [result(one, one.value(ANY)) for _ in range(b.int(1, 3))]
    fill(other)
    others = [alike(other, v.type, v.shape) for v in outputs]
    graphs = [body_graph(one, outputs, "one"), body_graph(other, others, "other")]
    if b.chance(0.5):
        graphs.reverse()
    b.add(op, [condition], len(outputs), then_branch=graphs[0], else_branch=graphs[1])
    b.features.add("branch")


def exit_test(b, condition, index, floats):
    """A body's condition: always, by the round, or by what is computed; and whether it can end the loop early."""
    kind = b.int(0, 3)
    if kind == 0:
        return b.add("Identity", [condition])[0], False
    if kind == 1:
        return b.add("Identity", [b.enter(np.asarray(b.chance(0.8)), "initializer")])[0], True
    if kind == 2 or not floats:
        return b.add("Less", [index, b.enter(np.asarray(b.int(0, 4), np.int64), "initializer")])[0], True
    total = b.add("ReduceSum", [floats[0]], keepdims=0)[0]
    return b.add("Less", [total, b.enter(np.asarray(b.real(-1, 2), total.data.dtype), "initializer")])[0], True


@operators("Loop")
def loop(b, op):
    inner = open_body(b)
    carried = [b.value(ANY[:-1], most=3) for _ in range(b.int(0, 3))]
    n_rows = b.int(0 if carried else 1, 2)
    trips = b.of(0, 1, 2, 3, 4, 5, 7)
    limit = b.enter(np.asarray(b.of(trips, [trips]), np.int64)) if not n_rows else b.settled(b.of(trips, [trips]))
    begins = b.of(None, b.enter(np.asarray(b.chance(0.9))))
    index = param(inner, "i64", np.int64(0))
    condition = param(inner, "bool", np.bool_(True))
    state = [param(inner, v.type, v.data) for v in carried]
    fill(inner, 1)
    go, early = exit_test(inner, condition, index, [v for v in state if v.type in ("f32", "f64")])
    following = [alike(inner, v.type, v.shape) for v in carried]
    rows = [result(inner, inner.value(ANY[:-1], most=3)) for _ in range(n_rows)]
    graph = body_graph(inner, [go] + following + rows)
    made = b.add(op, [limit, begins] + carried, len(carried) + n_rows, body=graph)
    b.features.add("loop")
    for value in made[len(carried):]:
        value.final = early and (b.depth > 0 or value.shape[0] != trips)
        if value.final:
            b.features.add("ends early, with rows")
    if trips == 0:
        b.features.add("no round")


@operators("Scan")
def scan(b, op):
    if b.opset < 9:
        raise Skip
    inner = open_body(b)
    carried = [b.value(ANY[:-1], most=3) for _ in range(b.int(0, 2))]
    first = b.value(ANY[:-1], least=1)
    axes = [b.axis(first.rank, None if b.opset >= 11 else 0)]
    scans, length = [first], first.shape[axes[0]]
    if length == 0:
        raise Skip
    for _ in range(b.int(0, 1)):
        axis = b.int(0, 1)
        shape = list(b.dims(1, 3))
        axis %= len(shape)
        shape[axis] = length
        scans.append(b.value(NUMBERS, shape=shape))
        axes.append(axis)
    state = [param(inner, v.type, v.data) for v in carried]
    slices = [param(inner, v.type, v.data.take(0, axis)) for v, axis in zip(scans, axes)]
    fill(inner, 1)
    following = [alike(inner, v.type, v.shape) for v in state]
    rows = [result(inner, inner.value(ANY[:-1], most=3)) for _ in range(b.int(0 if carried else 1, 2))]
    del slices
    flags = lambda count: [b.int(0, 1) for _ in range(count)]
    b.add(op, carried + scans, len(carried) + len(rows), body=body_graph(inner, following + rows),
          num_scan_inputs=len(scans), scan_input_axes=axes if any(axes) or b.chance(0.5) else None,
          scan_input_directions=b.of(None, flags(len(scans))), scan_output_directions=b.of(None, flags(len(rows))),
          scan_output_axes=b.of(None, [b.axis(v.rank + 1, None if b.opset >= 11 else 0) for v in rows]))
    b.features.add("scan")


# ---- recurrent networks

ACTIVATIONS = ["Tanh", "Sigmoid", "Relu", "Softsign", "LeakyRelu", "HardSigmoid", "Elu"]


def is_real(value):
    """ONNX Runtime's cells lose what is no number, and overflow early."""
    return bool(np.all(np.abs(value.data) < 20))


@operators("RNN", "GRU", "LSTM")
def recurrent(b, op):
    gates, functions = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[op]
    direction = b.of(None, "forward", "reverse", "bidirectional")
    n_dirs = 2 if direction == "bidirectional" else 1
    x = b.value("f32", test=lambda v: v.rank == 3 and 0 not in v.shape and is_real(v))  # of a 0 ONNX Runtime dies
    steps, batch, width = x.shape
    hidden = b.int(1, 4)
    real = lambda *shape: b.value("f32", shape=shape, test=is_real)
    operands = [x, real(n_dirs, gates * hidden, width), real(n_dirs, gates * hidden, hidden)]
    operands.append(real(n_dirs, 2 * gates * hidden) if b.chance(0.6) else None)
    lens = b.rng.integers(min(1, steps), steps + 1, batch).astype(np.int32)
    operands.append(b.enter(lens) if b.chance(0.3) else None)
    for _ in range(2 if op == "LSTM" else 1):
        operands.append(real(n_dirs, batch, hidden) if b.chance(0.4) else None)
    if op == "LSTM":
        operands.append(real(n_dirs, 3 * hidden) if b.chance(0.3) else None)
    more = {"hidden_size": hidden, "direction": direction, "clip": b.of(None, None, None, b.real(0.3, 2))}
    plain = op == "LSTM" and more["clip"] and operands[4] is None  # all that the reference evaluator has beside clip
    if op == "LSTM" and not plain:
        more["clip"] = None
    if b.chance(0.3) and not plain:
        more["activations"] = [ACTIVATIONS[b.int(0, len(ACTIVATIONS) - 1)] for _ in range(functions * n_dirs)]
    if op == "GRU":
        more["linear_before_reset"] = b.of(None, 0, 1)
    if op == "LSTM":
        more["input_forget"] = b.of(None, None, 0)
    outputs = b.of([True, True, True], [True, False, False], [False, True, False], [False, True, True])
    n_out = 3 if op == "LSTM" else 2
    if not any(outputs[:n_out]):
        raise Skip
    made = b.add(op, operands, n_out, outputs[:n_out], **more)
    if not all(np.all(np.isfinite(v.data)) for v in made if v is not None):
        raise Skip
    b.features.add("recurrent")
