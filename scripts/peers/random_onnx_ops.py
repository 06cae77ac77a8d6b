"""The generators of random_onnx.py: which operands and attributes each operator is drawn with."""

import numpy as np
from onnx import TensorProto

from random_onnx import ANY, FLOATS, INTS, NUMBERS, TYPES, Skip, operators

# ---- element by element


@operators("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
           "HardSwish", "Log", "Mish", "Reciprocal", "Round", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign",
           "Sqrt", "Tan", "Tanh", "Abs", "Neg", "Sign", "Relu", "Identity", "IsNaN", "Not", "BitwiseNot")
def unary(b, op):
    kinds = {"Not": "bool", "BitwiseNot": INTS, "Identity": ANY}.get(op, FLOATS)
    if op in ("Abs", "Neg", "Sign", "Relu") and b.chance(0.3):
        kinds = ("i32", "i64", "i8")
    b.add(op, [b.value(kinds)])


@operators("Celu", "Elu", "Gelu", "HardSigmoid", "IsInf", "LeakyRelu", "Selu", "Shrink", "Swish",
           "ThresholdedRelu", "Hardmax", "Softmax", "LogSoftmax", "LpNormalization", "LRN", "CumSum", "Trilu",
           "MeanVarianceNormalization", "Dropout", "Clip", "EyeLike")
def shaped(b, op):
    globals()["draw_" + op.lower()](b, op)


def alpha(b, op, *names):
    b.add(op, [b.value()], **{name: b.real(0.1, 2) for name in names if b.chance(0.7)})


def draw_celu(b, op):
    alpha(b, op, "alpha")


draw_elu = draw_leakyrelu = draw_thresholdedrelu = draw_swish = draw_celu


def draw_hardsigmoid(b, op):
    alpha(b, op, "alpha", "beta")


def draw_selu(b, op):
    alpha(b, op, "alpha", "gamma")


def draw_shrink(b, op):
    alpha(b, op, "bias", "lambd")


def draw_gelu(b, op):
    b.add(op, [b.value()], approximate=b.of(None, "none", "tanh"))


def draw_isinf(b, op):
    b.add(op, [b.value(("f32", "f64"))], detect_negative=b.of(None, 0, 1), detect_positive=b.of(None, 0, 1))


def draw_softmax(b, op):
    x = b.value(least=1)
    b.add(op, [x], axis=b.of(None, b.axis(x.rank)))


draw_hardmax = draw_logsoftmax = draw_softmax


def draw_lpnormalization(b, op):
    x = b.value(least=1)
    b.add(op, [x], axis=b.of(None, b.axis(x.rank)), p=b.of(None, 1, 2))


def draw_lrn(b, op):
    b.add(op, [b.value(least=4)], size=b.of(1, 3, 5), alpha=b.of(None, b.real(0, 0.1)),
          beta=b.of(None, b.real(0.2, 1)), bias=b.of(None, b.real(0.5, 2)))


def draw_cumsum(b, op):
    x = b.value(("f32", "f64", "i32", "i64"), least=1)
    axis = b.settled(b.axis(x.rank), b.of("i64", "i32"))
    b.add(op, [x, axis], exclusive=b.of(None, 0, 1), reverse=b.of(None, 0, 1))


def draw_trilu(b, op):
    x = b.value(("f32", "f64", "i64", "bool"), least=2)
    b.add(op, [x] + ([b.settled(b.int(-3, 3))] if b.chance(0.6) else []), upper=b.of(None, 0, 1))


def draw_meanvariancenormalization(b, op):
    x = b.value(("f32",), least=1)
    axes = b.rng.permutation(x.rank)[: b.int(1, x.rank)].tolist()
    axes = [0, 2, 3] if x.rank == 4 and b.chance(0.5) else axes
    if x.data.size:
        deviation, count = np.std(x.data, axis=tuple(axes)), np.prod([x.shape[a] for a in axes])
        if count > 1 and not np.all(deviation > 0.05 * np.max(np.abs(x.data))):
            raise Skip  # of numbers that are nearly the same rounding alone decides
    b.add(op, [x], axes=None if axes == [0, 2, 3] and b.chance(0.5) else axes)


def draw_dropout(b, op):
    x = b.value(("f32", "f64"))
    ratio = [b.settled(0.5, "f32")] if b.opset >= 12 and b.chance(0.5) else []
    both = b.chance(0.3) and b.opset >= 12
    b.add(op, [x] + ratio, 1 + both, ratio=0.3 if b.opset < 12 and b.chance(0.5) else None)


def draw_clip(b, op):
    if b.opset < 11:
        b.add(op, [b.value(("f32",))], min=b.of(None, b.real(-1, 0)), max=b.of(None, b.real(0, 1)))
        return
    x = b.value(NUMBERS + ("i8", "u8"))
    low, high = (b.enter(np.asarray(n, x.data.dtype)) if b.chance(0.7) else None
                 for n in (b.int(0, 1) if x.type == "u8" else b.int(-2, 0), b.int(0, 3)))
    b.add(op, [x, low, high] if high is not None else [x, low] if low is not None else [x])


def draw_eyelike(b, op):
    b.add(op, [b.value(("f32", "f64", "i32", "i64"), least=2, most=2)], k=b.of(None, b.int(-3, 3)),
          dtype=b.of(None, TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE))


@operators("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "And", "Or", "Xor", "Equal", "Less", "Greater",
           "LessOrEqual", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
def binary(b, op):
    kinds = NUMBERS
    if op in ("And", "Or", "Xor"):
        kinds = ("bool",)
    elif op.startswith("Bitwise"):
        kinds = INTS
    elif op == "BitShift":
        kinds = ("u8",)
    elif op == "PRelu":
        kinds = FLOATS
    elif op == "Equal":
        kinds = NUMBERS + ("bool",)
    # a power that an integer does not hold is nobody's word
    x = b.value(kinds, test=lambda v: op != "Pow" or v.type not in INTS or np.all(np.abs(v.data.astype(float)) ** 3 < 2.0 ** (8 * v.data.itemsize - 1)))
    shape = b.broadcastable(x.shape)
    if op == "Pow":
        y = b.enter(np.asarray(b.rng.integers(0, 4, shape)).astype(
            b.of(x.data.dtype, np.float32, np.int64) if x.type in ("f32", "f64") else x.data.dtype))
    elif op in ("Div", "Mod") and x.type in INTS:
        y = b.enter(np.asarray(b.rng.choice([-3, -2, 1, 2, 3, 5], shape)).astype(x.data.dtype))
    elif op == "BitShift":
        y = b.enter(np.asarray(b.rng.integers(0, 8, shape)).astype(x.data.dtype))
    else:
        y = b.value((x.type,), shape=shape)
    swap = op not in ("PRelu", "Pow", "Div", "Mod", "BitShift") and b.chance(0.5)
    more = {}
    if op == "Mod":
        more = {"fmod": 1} if x.type in FLOATS else {"fmod": b.of(None, 0, 1)}
    if op == "BitShift":
        more = {"direction": b.of("LEFT", "RIGHT")}
    b.add(op, [y, x] if swap else [x, y], **more)


@operators("Sum", "Mean", "Max", "Min", "Where")
def variadic(b, op):
    if op == "Where":
        x = b.value(NUMBERS + ("u8", "bool"))
        b.add(op, [b.value("bool", shape=b.broadcastable(x.shape)), x,
                   b.value((x.type,), shape=b.broadcastable(x.shape))])
        return
    x = b.value(NUMBERS if op in ("Max", "Min") else FLOATS)
    others = [b.value((x.type,), shape=b.broadcastable(x.shape)) for _ in range(b.int(0, 3))]
    b.add(op, [x] + others)


@operators("Cast", "CastLike")
def cast(b, op):
    x = b.value(ANY)
    to = b.of(*TYPES)
    if x.type in FLOATS + ("bf16",) and to in INTS:  # what the type cannot hold is undefined
        wide = x.data.astype(np.float64)
        if not np.all(np.isfinite(wide)) or np.any(np.abs(wide) > 100) or (to == "u8" and np.any(wide < 0)):
            raise Skip
    if op == "Cast":
        b.add(op, [x], to=TYPES[to][0])
    else:
        b.add(op, [x, b.value((to,), most=2)])


# ---- reductions, sorting


@operators("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
           "ReduceProd", "ReduceSum", "ReduceSumSquare")
def reduce(b, op):
    x = b.value(FLOATS if op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2") else NUMBERS)
    if op == "ReduceProd" and x.type in INTS:  # what the type cannot hold is undefined
        x = b.value((x.type,), test=lambda v: v.data.size < 9 and np.all(np.abs(v.data.astype(float)) < 10))
    if op == "ReduceLogSum":  # of a sum that cancels the sign is chance
        x = b.add("Abs", [x])[0]
    axes = None
    if b.chance(0.7):
        axes = [int(a) - (x.rank if b.chance(0.4) else 0)
                for a in b.rng.permutation(x.rank)[: b.int(min(1, x.rank), x.rank)]]
    keep = b.of(None, 0, 1)
    if b.opset >= (13 if op == "ReduceSum" else 18):
        b.add(op, [x] + ([b.settled(axes)] if axes else []), keepdims=keep,
              noop_with_empty_axes=b.of(None, None, 0) if not axes else b.of(None, 0, 1))
    else:
        b.add(op, [x], axes=axes or None, keepdims=keep)


@operators("ArgMax", "ArgMin", "TopK")
def select(b, op):
    x = b.value(NUMBERS, least=1)
    axis = b.axis(x.rank)
    if op != "TopK":
        if 0 in x.shape:  # nothing to choose from
            raise Skip
        b.add(op, [x], axis=b.of(None, axis), keepdims=b.of(None, 0, 1),
              select_last_index=b.of(None, 0, 1) if b.opset >= 12 else None)
        return
    k = b.int(0, x.shape[axis]) if b.opset >= 11 else b.int(1, max(1, x.shape[axis]))
    outputs = b.of([True, True], [True, False], [False, True])
    if b.opset < 10:
        b.add(op, [x], 2, outputs, axis=axis, k=k)
    else:
        b.add(op, [x, b.settled([k])], 2, outputs, axis=axis,
              largest=b.of(None, 0, 1) if b.opset >= 11 else None)


@operators("OneHot", "ReverseSequence")
def by_index(b, op):
    if op == "OneHot":
        depth = b.int(1, 5)
        kind = b.of("i64", "i32", "f32")
        indices = b.enter(b.rng.integers(-depth, depth + 1, b.dims(0, 3)).astype(TYPES[kind][1]))
        values = b.value(b.of("f32", "i64", "i32"), shape=(2,))
        b.add(op, [indices, b.settled(b.of(depth, [depth]), b.of("i64", "i64", "i32")), values],
              axis=b.of(None, b.axis(indices.rank + 1)))
        return
    x = b.value(("f32", "i64", "f64", "f16", "bool"), least=2)
    time = b.of(0, 1)
    lens = b.rng.integers(min(1, x.shape[time]), x.shape[time] + 1, x.shape[1 - time])
    b.add(op, [x, b.enter(lens.astype(np.int64))], time_axis=time, batch_axis=1 - time)


# ---- elements moved


@operators("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Shape", "Size")
def reshape(b, op):
    x = b.value(ANY, most=5)
    if op == "Reshape":
        b.add(op, [x, b.settled(new_shape(b, x))])
    elif op == "Flatten":
        b.add(op, [x], axis=b.of(None, b.int(-x.rank if b.opset >= 11 else 0, x.rank)))
    elif op == "Squeeze":
        ones = [a - (x.rank if b.chance(0.4) and b.opset >= 11 else 0) for a, d in enumerate(x.shape)
                if d == 1 and b.chance(0.7)]
        with_axes(b, op, x, ones)
    elif op == "Unsqueeze":
        n = b.int(1, 2)
        axes = [int(a) - (x.rank + n if b.chance(0.4) and b.opset >= 11 else 0)
                for a in b.rng.permutation(x.rank + n)[:n]]
        with_axes(b, op, x, axes)
    elif op == "Transpose":
        b.add(op, [x], perm=b.of(None, b.rng.permutation(x.rank).tolist()) if x.rank else None)
    elif op == "Expand":
        shape = [b.int(0, 3) if d == 1 and b.chance(0.7) else b.of(d, 1) for d in x.shape]
        shape = [b.int(1, 3) for _ in range(b.int(0, 1))] + shape
        b.add(op, [x, b.settled(shape[b.int(0, 1) if shape and shape[0] == 1 else 0:])])
    elif op == "Tile":
        b.add(op, [x, b.settled([b.of(0, 1, 1, 2, 2, 3) for _ in x.shape])])
    elif op == "Shape":
        more = {}
        if b.opset >= 15:
            more = {"start": b.of(None, b.int(-5, 5)), "end": b.of(None, b.int(-5, 5))}
        b.add(op, [x], **more)
    else:
        b.add(op, [x])


def new_shape(b, x):
    if x.data.size == 0:
        return list(x.shape)
    shape, rest = [], x.data.size
    while rest > 1 and len(shape) < 4:
        factor = b.of(*[d for d in range(1, rest + 1) if rest % d == 0][:8])
        shape.append(factor)
        rest //= factor
    shape.append(rest)
    b.rng.shuffle(shape)
    if b.chance(0.3):
        shape[b.int(0, len(shape) - 1)] = -1
    elif b.chance(0.2) and x.rank and shape[0] == x.shape[0]:
        shape[0] = 0
    return shape


def with_axes(b, op, x, axes):
    """Axes are an attribute before opset 13, an operand from then on."""
    if not axes and op == "Unsqueeze":
        raise Skip
    if not axes:
        b.add(op, [x])
    elif b.opset >= 13:
        b.add(op, [x, b.settled(axes)])
    else:
        b.add(op, [x], axes=axes)


@operators("Concat", "Split", "Slice", "Pad")
def pieces(b, op):
    x = b.value(ANY, least=1)
    axis = b.axis(x.rank)
    if op == "Concat":
        parts = [x]
        for _ in range(b.int(0, 3)):
            shape = list(x.shape)
            shape[axis] = b.of(shape[axis], b.dim())
            parts.append(b.value((x.type,), shape=shape))
        order = b.rng.permutation(len(parts))
        b.add(op, [parts[i] for i in order], axis=axis)
    elif op == "Split":
        split(b, x, axis)
    elif op == "Slice":
        cut(b, x)
    else:
        pad(b)


def split(b, x, axis):
    n, length = b.int(1, 4), x.shape[axis]
    marks = sorted(b.int(0, length) for _ in range(n - 1))
    sizes = [int(s) for s in np.diff([0] + marks + [length])]
    if b.chance(0.4):
        b.add("Split", [x], n, axis=axis, num_outputs=n if b.opset >= 18 else None)
    elif b.opset >= 13:
        b.add("Split", [x, b.settled(sizes)], n, axis=axis)
    else:
        b.add("Split", [x], n, axis=axis, split=sizes)


def settle_shape(made, shape):
    """No operation reads a value whose dims ONNX Runtime has otherwise than the standard: the model would not be valid."""
    made.final = made.final or made.shape != tuple(shape)


def cut(b, x):
    axes = b.rng.permutation(x.rank)[: b.int(1, x.rank)].tolist()
    starts = [b.of(b.int(-8, 8), 0, 1) for _ in axes]
    ends = [b.of(b.int(-8, 8), 2**31 - 1, -1, -(2**31)) for _ in axes]
    if b.opset < 10:
        b.add("Slice", [x], starts=starts, ends=ends, axes=axes)
        return
    kind = b.of("i64", "i32")
    steps = [b.of(1, 1, 2, 3, -1, -2) for _ in axes]
    # Backward from before the first element is the first by the standard, and nothing in Python and the reference evaluator.
    starts = [max(start, -x.shape[axis]) if step < 0 else start for start, axis, step in zip(starts, axes, steps)]
    named = [a - x.rank if b.chance(0.4) else a for a in axes]
    operands = [starts, ends, named, steps][: b.of(3, 4, 4)]
    if axes == list(range(x.rank)) and b.chance(0.3):
        operands = operands[:2]
    made = b.add("Slice", [x] + [b.settled(list_, kind) for list_ in operands])[0]
    kept = [slice(None)] * x.rank  # else Python clamps as the standard does
    for axis, start, end, step in zip(axes, starts, ends, steps if len(operands) == 4 else [1] * x.rank):
        kept[axis] = slice(start, end, step)
    settle_shape(made, x.data[tuple(kept)].shape)


def pad(b):
    x = b.value(("f32", "f64", "i64", "i32", "bool"), least=1)
    mode = b.of("constant", "constant", "edge", "reflect") if b.opset < 19 else b.of(
        "constant", "constant", "edge", "reflect", "wrap")
    most = [max(0, d - 1) if mode == "reflect" else 3 for d in x.shape]
    pads = [b.int(-1 if mode == "constant" and d > 2 else 0, min(3, m)) for _ in range(2)
            for d, m in zip(x.shape, most)]
    if b.opset < 11:
        b.add("Pad", [x], pads=pads, mode=mode, value=b.of(None, b.real(-1, 1)))
        return
    operands = [x, b.settled(pads)]
    if mode == "constant" and b.chance(0.6):
        operands.append(b.enter(b.array(x.type, ())))
    if b.opset >= 18 and b.chance(0.3):
        axes = b.rng.permutation(x.rank)[: b.int(1, x.rank)].tolist()
        operands[1] = b.settled([pads[a] for a in axes] + [pads[x.rank + a] for a in axes])
        operands = (operands + [None])[:3] + [b.settled([a - b.of(0, x.rank) for a in axes])]
    b.add("Pad", operands, mode=mode)


@operators("Gather", "GatherElements", "GatherND")
def gather(b, op):
    x = b.value(ANY, least=1)
    axis = b.axis(x.rank)
    if 0 in x.shape:
        raise Skip
    kind = TYPES[b.of("i64", "i64", "i32")][1]
    low = -1 if b.opset >= 11 else 0
    if op == "Gather":
        d = x.shape[axis]
        indices = b.enter(b.rng.integers(low * d, d, b.dims(0, 2)).astype(kind))
        b.add(op, [x, indices], axis=b.of(None, axis) if x.shape[0] == d else axis)
    elif op == "GatherElements":
        shape = [b.int(1, d) for d in x.shape]
        shape[axis] = b.int(0, 4)
        indices = b.rng.integers(-x.shape[axis], x.shape[axis], shape).astype(kind)
        b.add(op, [x, b.enter(indices)], axis=axis)
    else:
        batch = b.int(0, x.rank - 1) if b.opset >= 12 else 0
        k = b.int(1, x.rank - batch)
        shape = x.shape[:batch] + b.dims(0, 2) + (k,)
        parts = [b.rng.integers(-d, d, shape[:-1]) for d in x.shape[batch:batch + k]]
        b.add(op, [x, b.enter(np.stack(parts, -1).astype(np.int64))], batch_dims=batch or None)


@operators("Scatter", "ScatterElements", "ScatterND")
def scatter(b, op):
    x = b.value(("f32", "f64", "i64", "i32"), least=1)
    if 0 in x.shape:
        raise Skip
    reduction = "none"
    if op != "Scatter" and b.opset >= 16:
        reduction = b.of("none", "add", "mul", *(("max", "min") if b.opset >= 18 else ()))
    named = reduction if reduction != "none" or (b.opset >= 16 and op != "Scatter" and b.chance(0.3)) else None
    if op == "ScatterND":
        k = b.int(1, x.rank)
        n = b.int(0, min(3, int(np.prod(x.shape[:k]))))
        rows = b.rng.choice(int(np.prod(x.shape[:k])), n, replace=reduction != "none")  # no row twice
        indices = np.stack(np.unravel_index(rows, x.shape[:k]), -1).reshape(n, k)
        if b.chance(0.3):
            indices = indices - np.asarray(x.shape[:k])
        updates = b.value((x.type,), shape=(n,) + x.shape[k:])
        b.add(op, [x, b.enter(indices.astype(np.int64)), updates], reduction=named)
        return
    axis = b.axis(x.rank)
    shape = [b.int(1, d) for d in x.shape]
    indices = np.argsort(b.rng.random(shape[:axis % x.rank] + [x.shape[axis]] + shape[axis % x.rank + 1:]),
                         axis=axis).take(range(shape[axis]), axis=axis)  # no element twice
    if reduction != "none":
        indices = b.rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = b.value((x.type,), shape=shape)
    more = {} if op == "Scatter" else {"reduction": named}
    b.add(op, [x, b.enter(indices.astype(b.of(np.int64, np.int32))), updates], axis=b.of(axis), **more)


@operators("Constant", "ConstantOfShape", "Range")
def constants(b, op):
    if op == "ConstantOfShape":
        value = b.of(None, b.array(b.of("f32", "i64", "bool", "i32", "f16"), (1,)))
        from onnx import numpy_helper
        b.add(op, [b.settled(b.dims())], value=None if value is None else numpy_helper.from_array(value))
    elif op == "Range":
        kind = b.of("i64", "i32", "f32", "f64")
        start, delta = b.int(-5, 5), b.of(-2, -1, 1, 2, 3)
        limit = start + delta * b.int(-1, 6) + b.of(0, 1)
        b.add(op, [b.settled(n, kind) for n in (start, limit, delta)])
    elif b.opset < 12:
        raise Skip
    else:
        key, value = b.of(("value_float", b.real(-1, 1)), ("value_int", b.int(-5, 5)), ("value_ints", [1, 2, 3]),
                          ("value_floats", [b.real(-1, 1), 2.0]))
        b.add(op, [], **{key: value})


# ---- products


@operators("MatMul", "Gemm", "Einsum")
def products(b, op):
    if op == "MatMul":
        x = b.value(("f32", "f32", "f64", "i32"), least=1)
        inner = (x.shape[-1],)
        batch = b.broadcastable(x.shape[:-2]) if x.rank > 2 else b.dims(0, 1)
        y = b.value((x.type,), shape=b.of(inner, inner + (b.dim(),), batch + inner + (b.dim(),)))
        b.add(op, [x, y])
    elif op == "Gemm":
        x = b.value(("f32", "f32", "f64", "f16"), least=2, most=2)
        a, t = b.of(0, 1), b.of(0, 1)
        m, k = x.shape[::-1] if a else x.shape
        n = b.dim()
        y = b.value((x.type,), shape=(n, k) if t else (k, n))
        third = [b.value((x.type,), shape=b.of((), (1,), (n,), (m, 1), (1, n), (m, n)))]
        b.add(op, [x, y] + (third if b.chance(0.7) or b.opset < 11 else []), transA=b.of(None, 0, 1) if not a else 1,
              transB=t, alpha=b.of(None, b.real(-2, 2)), beta=b.of(None, b.real(-2, 2)))
    else:
        text = b.of("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "i,j->ij", "ij,ij->", "bij,jk", "i,i",
                    "...ij,...jk->...ik", "ijk->kj", "ij,kj->ik", "...i->...", "ij,j", "abc,cd->abd")
        size = {c: b.of(1, 2, 3, 4) for c in "abcdijk"}
        dots = b.dims(0, 1)
        kind = b.of("f32", "f32", "f64")
        terms = [b.value(kind, shape=(dots if "..." in t else ()) + tuple(size[c] for c in t.strip(".")))
                 for t in text.split("->")[0].split(",")]
        b.add(op, terms, equation=text)


def spatial(b, window_types=("f32",), least=3):
    x = b.value(window_types, least=least, most=5, test=lambda v: v.rank >= 3)
    return x, x.rank - 2


def window(b, n, dims, pads=True):
    """kernel, and strides, dilations, pads, auto_pad as attributes."""
    kernel = [b.int(1, min(3, max(1, d))) for d in dims]
    more = {"strides": b.of(None, [b.int(1, 3) for _ in range(n)])}
    if b.chance(0.3):
        more["dilations"] = [b.int(1, 2) for _ in range(n)]
    auto = b.of(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto:
        more["auto_pad"] = auto
    if auto in (None, "NOTSET") and pads and b.chance(0.6):
        more["pads"] = [b.int(0, max(0, k - 1)) for k in kernel * 2]
    return kernel, more


def not_too_wide(x, kernel, more):
    """A window wider than what it slides over makes nothing: memplan takes it for a mistake, and refuses it."""
    n = len(kernel)
    pads, dilations = more.get("pads", [0] * 2 * n), more.get("dilations", [1] * n)
    for i, k in enumerate(kernel):
        same = more.get("auto_pad", "")[:4] == "SAME"
        if not same and (k - 1) * dilations[i] + 1 > x.shape[2 + i] + pads[i] + pads[n + i]:
            raise Skip


def settle_same(made, x, more, transposed=False):
    """auto_pad SAME_*: dims divided by the strides, or times them."""
    if more.get("auto_pad", "")[:4] == "SAME":
        strides = more.get("strides") or [1] * (x.rank - 2)
        dims = [d * s if transposed else -(-d // s) for d, s in zip(x.shape[2:], strides)]
        settle_shape(made, made.shape[:2] + tuple(more.get("output_shape") or dims))


@operators("Conv", "ConvTranspose")
def convolution(b, op):
    x, n = spatial(b)
    group = b.of(1, 1, *[g for g in (2, 3) if x.shape[1] % g == 0 and x.shape[1] > 0])
    kernel, more = window(b, n, x.shape[2:])
    if op == "ConvTranspose" and more.get("auto_pad", "")[:4] == "SAME":
        group = 1  # of groups the reference evaluator knows nothing; where a stride leaves gaps pads would be negative
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, more.get("dilations", [1] * n))]
        more["strides"] = b.of(None, [b.int(1, min(3, e)) for e in extents])
    out = b.int(1, 3) * group
    if op == "Conv":
        shape = (out, x.shape[1] // group, *kernel)
    else:
        shape = (x.shape[1], out // group, *kernel)
        strides = more.get("strides") or [1] * n
        if b.chance(0.3):
            more["output_padding"] = [b.int(0, s - 1) for s in strides]
        if b.chance(0.15):
            more["output_shape"] = [max(1, d * s + b.int(-1, 1)) for d, s in zip(x.shape[2:], strides)]
            more.pop("pads", None)
    operands = [x, b.value((x.type,), shape=shape)]
    if b.chance(0.5):
        operands.append(b.value((x.type,), shape=(out,)))
    if op == "Conv":
        not_too_wide(x, kernel, more)
    made = b.add(op, operands, group=b.of(None, 1) if group == 1 else group, kernel_shape=b.of(None, kernel), **more)[0]
    settle_same(made, x, more, op == "ConvTranspose")


@operators("MaxPool", "AveragePool", "LpPool")
def pool(b, op):
    x, n = spatial(b, ("f32", "f32", "f32", "f64", "i8", "u8") if op == "MaxPool" else ("f32",))
    if op == "MaxPool" and not np.all(np.isfinite(x.data)):  # which neither ONNX Runtime nor the evaluator keeps
        raise Skip
    kernel, more = window(b, n, x.shape[2:])
    dilated = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    ceils = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]
    if b.opset < dilated:
        more.pop("dilations", None)
    if b.opset >= ceils and b.chance(0.4) and more.get("auto_pad", "NOTSET") == "NOTSET":
        more["ceil_mode"] = b.of(0, 1, 1)
    if op == "AveragePool":
        more["count_include_pad"] = b.of(None, 0, 1)
    if op == "LpPool":
        more["p"] = b.of(None, 1, 2, 3)
    n_out = 1
    if op == "MaxPool" and b.opset >= 8 and b.chance(0.3):
        n_out, more["storage_order"] = 2, b.of(None, 0, 1)
    not_too_wide(x, kernel, more)
    for made in b.add(op, [x], n_out, kernel_shape=kernel, **more):
        settle_same(made, x, more)


@operators("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(b, op):
    x, _ = spatial(b)
    b.add(op, [x], p=b.of(None, 1, 2, 3) if op == "GlobalLpPool" else None)


# ---- normalisation


@operators("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization",
           "RMSNormalization")
def normalise(b, op):
    epsilon = b.of(None, 1e-3, 1e-2)
    if op == "BatchNormalization":
        x = b.value(("f32", "f32", "f64"), least=2)
        c = (x.shape[1],)
        kinds = [b.value((x.type,), shape=c) for _ in range(3)]
        variance = b.enter(np.abs(b.rng.standard_normal(c)).astype(x.data.dtype) + x.data.dtype.type(0.1))
        b.add(op, [x] + kinds + [variance], epsilon=epsilon, momentum=b.of(None, 0.5))
    elif op in ("InstanceNormalization", "GroupNormalization"):
        x, _ = spatial(b)
        c = x.shape[1]
        if 0 in x.shape:  # ONNX Runtime dies of it
            raise Skip
        if op == "InstanceNormalization":
            b.add(op, [x] + [b.value("f32", shape=(c,)) for _ in range(2)], epsilon=epsilon)
            return
        groups = b.of(*[g for g in range(1, c + 1) if c % g == 0] or [1])
        scale = (groups,) if b.opset < 21 else (c,)
        b.add(op, [x] + [b.value("f32", shape=scale) for _ in range(2)], epsilon=epsilon, num_groups=groups)
    else:
        x = b.value(("f32", "f32", "f64"), least=1)
        axis = b.axis(x.rank)
        shape = x.shape[axis:] if axis < 0 else x.shape[axis:]
        operands = [x, b.value((x.type,), shape=shape)]
        if op == "LayerNormalization" and b.chance(0.6):
            operands.append(b.value((x.type,), shape=shape))
        n_out = b.of(1, 1, 3) if op == "LayerNormalization" else 1
        b.add(op, operands, n_out, axis=b.of(axis, None) if len(shape) == 1 else axis, epsilon=epsilon)


# ---- transformers


def finite(b, *shape):
    return b.value("f32", shape=shape, test=lambda v: np.all(np.isfinite(v.data)))


def small(b, *shape):
    """Operands of scores whose exponentials do not amplify rounding beyond what is tolerated."""
    return b.value("f32", shape=shape, test=lambda v: np.all(np.abs(v.data) < 10))


def more_than_nothing(b, n):
    return [max(1, b.dim()) for _ in range(n)]


@operators("Attention", "ms.MultiHeadAttention", "ms.Attention")
def attention(b, op):
    batch, steps, total, width = more_than_nothing(b, 4)
    groups = b.int(1, 2)
    heads = groups * (b.int(1, 3) if op == "Attention" else 1)
    mask = b.of(None, None, "bias", "bool" if op == "Attention" else "keys")
    if op == "ms.Attention":
        total = steps
        x = [small(b, batch, steps, 3), small(b, 3, 3 * heads * width), small(b, 3 * heads * width)]
    elif op == "Attention" and b.chance(0.5):
        x = [small(b, batch, h, s, width) for h, s in ((heads, steps), (groups, total), (groups, total))]
    else:
        x = [small(b, batch, s, h * width) for h, s in ((heads, steps), (groups, total), (groups, total))]
    cached = b.int(0, 3) if b.chance(0.4) else 0
    draw_attention(b, op, x, batch, heads, groups, width, cached, steps, total + cached, mask)


def draw_attention(b, op, x, batch, heads, groups, width, cached, steps, total, mask):
    bias = finite(b, b.of(1, batch), b.of(1, heads), steps, total) if mask == "bias" else None
    keys = b.enter(b.rng.integers(0, 2, (batch, total)).astype(np.int32)) if mask == "keys" else None
    scale = b.of(None, b.real(0.2, 1))
    if op == "Attention":
        mask = b.value("bool", shape=(steps, total)) if mask == "bool" else bias
        past = [finite(b, batch, groups, cached, width) for _ in range(2)] if cached else []
        three = {} if x[0].rank == 4 else {"q_num_heads": heads, "kv_num_heads": groups}
        b.add(op, x + ([mask] if mask or past else []) + past, 3 if past else 1, scale=scale,
              softcap=b.of(None, None, b.real(0.5, 3)), is_causal=b.of(None, 0, 1), **three)
    elif op == "ms.Attention":
        past = finite(b, 2, batch, heads, cached, width) if cached else None
        b.add(op, x + [keys, past, bias], 2 if past else 1, num_heads=heads, scale=scale,
              unidirectional=b.of(None, 0, 1))
    else:
        past = [finite(b, batch, heads, cached, width) for _ in range(2)] if cached else []
        projected = finite(b, 3 * heads * width) if b.chance(0.4) else None
        b.add(op, x + [projected, keys, bias] + past, 3 if past else 1, num_heads=heads, scale=scale,
              unidirectional=b.of(None, 0, 1) if steps == total - cached else None)


@operators("RotaryEmbedding", "TensorScatter", "ms.RotaryEmbedding", "ms.GroupQueryAttention")
def by_positions(b, op):
    batch, steps = more_than_nothing(b, 2)
    if op == "TensorScatter":
        x = b.value(NUMBERS, least=2, test=lambda v: 0 not in v.shape)
        axis = b.int(1, x.rank - 1)
        n = b.int(1, x.shape[axis])
        at = b.rng.integers(0, x.shape[axis] - n + 1, x.shape[:1])
        b.add(op, [x, b.value((x.type,), shape=x.shape[:axis] + (n,) + x.shape[axis + 1:]), b.enter(at)], axis=axis,
              mode=b.of(None, "linear", "circular"))
    elif op == "ms.GroupQueryAttention":
        groups, group, width, cached = b.int(1, 2), b.int(1, 2), 16, b.int(1, 4)
        x = [finite(b, batch, 1, h * width) for h in (groups * group, groups, groups)]
        past = [finite(b, batch, groups, cached, width) for _ in range(2)]
        angles = [finite(b, 9, width // 2) for _ in range(2)] if b.chance(0.5) else []
        b.add(op, x + past + [b.enter(np.full(batch, cached, np.int32)), b.settled(cached + 1, "i32")] + angles, 3,
              num_heads=groups * group, kv_num_heads=groups, do_rotary=int(bool(angles)),
              local_window_size=b.of(None, b.int(1, 4)), softcap=b.of(None, b.real(0.5, 3)))
    else:
        heads, width, four, looked = b.int(1, 3), b.of(2, 4, 8), b.chance(0.5), b.chance(0.5) or op[:2] == "ms"
        x = finite(b, batch, heads, steps, width) if four else finite(b, batch, steps, heads * width)
        part = b.of(None, 2) if op[:2] != "ms" else None
        half = (part or width) // 2
        angles = [finite(b, *((6, half) if looked else (batch, steps, half))) for _ in range(2)]
        at = [b.enter(b.rng.integers(0, 6, (batch, steps)))] if looked else []
        b.add(op, [x] + (at + angles if op[:2] == "ms" else angles + at), interleaved=b.of(None, 0, 1),
              num_heads=None if four or op[:2] == "ms" else heads, rotary_embedding_dim=part)


@operators("ms.Gelu", "ms.BiasGelu", "ms.FastGelu", "ms.QuickGelu", "ms.FusedMatMul", "ms.FusedGemm", "ms.FusedConv",
           "ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization")
def fused(b, op):
    if op.endswith("Gelu"):
        x = b.value("f32", least=1)
        bias = [finite(b, x.shape[-1])] if op == "ms.BiasGelu" or (op == "ms.FastGelu" and b.chance(0.5)) else []
        b.add(op, [x] + bias, alpha=b.real(0.5, 2) if op == "ms.QuickGelu" and b.chance(0.5) else None)
    elif op.startswith("ms.Skip"):
        x = finite(b, *more_than_nothing(b, 3))
        rms = "Simplified" in op
        rows = [finite(b, x.shape[-1]) for _ in range(b.int(1, 2 if rms else 3))]
        b.add(op, [x, finite(b, *x.shape)] + rows, 4, b.of([True, False, False, False], [True, False, False, True]),
              epsilon=b.of(None, 1e-3))
    elif op == "ms.FusedConv":
        x = finite(b, *more_than_nothing(b, 2), b.int(3, 6), b.int(3, 6))
        b.add(op, [x, finite(b, 2, x.shape[1], 3, 3), finite(b, 2)], activation=b.of("Relu", "Tanh", "Sigmoid"),
              pads=b.of(None, [1, 1, 1, 1]))
    else:
        stack = tuple(more_than_nothing(b, b.int(0, 2))) if op == "ms.FusedMatMul" else ()
        m, k, n = more_than_nothing(b, 3)
        ta, tb = b.of(0, 1), b.of(0, 1)
        x = [finite(b, *stack, *((k, m) if ta else (m, k))), finite(b, *stack, *((n, k) if tb else (k, n)))]
        third = [finite(b, n)] if op == "ms.FusedGemm" else []
        b.add(op, x + third, transA=ta, transB=tb, alpha=b.of(None, b.real(0.5, 2)),
              activation=b.of("Relu", "Tanh", "LeakyRelu") if third else None)


# ---- images


@operators("DepthToSpace", "SpaceToDepth", "Resize", "Upsample")
def images(b, op):
    if op == "DepthToSpace":
        block, c = b.of(1, 2, 3), b.int(1, 3)
        x = b.value(("f32", "f64"), shape=(b.dim(), c * block * block, b.dim(), b.dim()))
        b.add(op, [x], blocksize=block, mode=b.of(None, "DCR", "CRD") if b.opset >= 11 else None)
    elif op == "SpaceToDepth":
        block = b.of(1, 2, 3)
        x = b.value(("f32", "f64"), shape=(b.dim(), b.dim(), b.int(1, 3) * block, b.int(1, 3) * block))
        b.add(op, [x], blocksize=block)
    elif op == "Upsample" and b.opset < 10 or op == "Resize" and b.opset == 10:
        x = b.value("f32", least=4, most=4)
        scales = [1.0, 1.0, b.of(1.0, 2.0, 3.0, 1.5), b.of(1.0, 2.0, 2.5)]
        mode = b.of(None, "nearest", "linear" if np.all(np.isfinite(x.data)) else "nearest")
        if b.opset < 9:
            b.add(op, [x], mode=mode, scales=scales)
        else:
            b.add(op, [x, b.settled(scales, "f32")], mode=mode)
    elif op == "Resize" and b.opset > 10:
        resize(b)
    else:
        raise Skip


def resize(b):
    mode = b.of("nearest", "nearest", "linear", "cubic")
    x = b.value(b.of("f32", "f32", "i32", "u8") if mode == "nearest" else "f32", least=4 if mode == "cubic" else 3,
                most=4 if mode == "cubic" else 5)
    if 0 in x.shape or (mode != "nearest" and not np.all(np.isfinite(x.data))):  # what is beside the weights is not said
        raise Skip
    coordinate = b.of(None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                      *(("half_pixel_symmetric",) if b.opset >= 19 else ()))
    more = {"mode": mode, "coordinate_transformation_mode": coordinate}
    if mode == "nearest":
        more["nearest_mode"] = b.of(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        more["cubic_coeff_a"] = b.of(None, -0.5, -0.75)
        more["exclude_outside"] = b.of(None, 0, 1)
    first = 2 if mode != "nearest" or b.chance(0.7) else 0
    scales = [1.0] * first + [b.of(0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 1.3) for _ in x.shape[first:]]
    sizes = [int(max(1, np.floor(d * s))) for d, s in zip(x.shape, scales)]
    if b.opset >= 18 and b.chance(0.3):
        axes = list(range(first, x.rank))
        more["axes"] = axes
        scales, sizes = scales[first:], sizes[first:]
    empty = b.enter(np.zeros(0, np.float32), "initializer") if b.opset < 13 else None
    if b.chance(0.6):
        b.add("Resize", [x, empty, b.settled(scales, "f32")], **more)
    else:
        b.add("Resize", [x, empty, empty, b.settled(sizes)], **more)
