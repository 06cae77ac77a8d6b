"""Generators of random_onnx.py for quantised operators, ONNX's and ONNX Runtime's (com.microsoft)."""

import numpy as np

from random_onnx import TYPES, operators
from random_onnx_ops import finite, more_than_nothing


def whole(b, kind, shape, where=None):
    """Numbers over the whole range of 8 bits."""
    low = 0 if kind == "u8" else -128
    return b.enter(b.rng.integers(low, low + 256, shape).astype(TYPES[kind][1]), where)


def weights(b, kind, shape):
    """Of 7 bits: on some processors ONNX Runtime adds pairs of products in 16."""
    low = 64 if kind == "u8" else -64
    return b.enter(b.rng.integers(low, low + 128, shape).astype(TYPES[kind][1]), "initializer")


def scale(b, shape=()):
    return b.enter(np.exp(b.rng.uniform(-4, -1, shape)).astype(np.float32), "initializer")


def zero(b, kind, shape=()):
    low = 0 if kind == "u8" else -128
    return b.enter(b.rng.integers(low + 100, low + 156, shape).astype(TYPES[kind][1]), "initializer")


def coarse(b, kind):
    """Scale and zero of a result: coarse enough that few results saturate."""
    return [b.enter(np.float32(b.real(0.2, 1)), "initializer"), zero(b, kind)]


@operators("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ms.QuantizeLinear", "ms.DequantizeLinear")
def conversion(b, op):
    kind = b.of("u8", "i8")
    if op == "DynamicQuantizeLinear":
        b.add(op, [finite(b, *more_than_nothing(b, b.int(1, 3)))], 3)
        return
    shape = more_than_nothing(b, b.int(1, 4))
    axis = b.int(0, len(shape) - 1) if b.opset >= 13 and b.chance(0.5) else None
    each = () if axis is None else (shape[axis],)
    x = whole(b, kind, shape) if "Dequantize" in op else finite(b, *shape)
    b.add(op, [x, scale(b, each), zero(b, kind, each)], axis=axis)


@operators("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "ms.QLinearConv", "ms.QGemm",
           "ms.MatMulIntegerToFloat", "ms.DynamicQuantizeMatMul")
def products(b, op):
    kind, other = b.of("u8", "u8", "i8"), b.of("u8", "i8")
    m, k, n = more_than_nothing(b, 3)
    if "Conv" in op:
        return convolution(b, op, kind, other)
    per_column = b.chance(0.5)
    each = (n,) if per_column else ()
    stack = tuple(more_than_nothing(b, b.int(0, 2))) if op in ("MatMulInteger", "QLinearMatMul") else ()
    x = [whole(b, kind, stack + (m, k)), weights(b, other, (k, n))]
    if op == "MatMulInteger":
        b.add(op, x + b.of([], [zero(b, kind)], [zero(b, kind), zero(b, other, each)]))
    elif op == "QLinearMatMul":
        b.add(op, [x[0], scale(b), zero(b, kind), x[1], scale(b, each), zero(b, other, each)] + coarse(b, kind))
    elif op == "ms.QGemm":
        bias = b.enter(b.rng.integers(-500, 500, (n,)).astype(np.int32), "initializer") if b.chance(0.6) else None
        b.add(op, [x[0], scale(b), zero(b, kind), x[1], scale(b, each), zero(b, other, each), bias] + b.of([], coarse(b, kind)),
              alpha=b.of(None, b.real(0.5, 2)))
    elif op == "ms.MatMulIntegerToFloat":
        b.add(op, x + [scale(b), scale(b, each), zero(b, kind), zero(b, other, each), b.of(None, finite(b, n))])
    else:
        b.add(op, [finite(b, m, k), x[1], scale(b, each), b.of(None, zero(b, other, each)), b.of(None, finite(b, n))])


def convolution(b, op, kind, other):
    group = b.of(1, 1, 2)
    channels, out = group * b.int(1, 3), group * b.int(1, 3)
    shape = (b.int(1, 2), channels, b.int(3, 7), b.int(3, 7))
    more = {"pads": b.of(None, [1, 0, 2, 1]), "strides": b.of(None, [2, 1]), "dilations": b.of(None, [1, 2]), "group": group}
    x, w = whole(b, kind, shape), weights(b, other, (out, channels // group, b.int(1, 3), b.of(1, 2)))
    if op == "ConvInteger":
        b.add(op, [x, w] + b.of([], [zero(b, kind)], [zero(b, kind), zero(b, other)]), **more)
        return
    bias = [b.enter(b.rng.integers(-500, 500, (out,)).astype(np.int32), "initializer")] if b.chance(0.5) else []
    each = (out,) if b.chance(0.5) and other == "i8" else ()
    middle = b.enter(np.zeros(each, np.int8), "initializer") if each else zero(b, other)
    b.add(op, [x, scale(b), zero(b, kind), w, scale(b, each), middle] + coarse(b, kind) + bias, **more)


@operators("ms.QLinearAdd", "ms.QLinearMul", "ms.QLinearLeakyRelu", "ms.QLinearSigmoid", "ms.QLinearConcat",
           "ms.QLinearAveragePool", "ms.QLinearGlobalAveragePool")
def elements(b, op):
    kind = b.of("u8", "i8")
    shape = tuple(more_than_nothing(b, b.int(1, 4)))
    if op in ("ms.QLinearAdd", "ms.QLinearMul"):
        x = [whole(b, kind, shape), scale(b), zero(b, kind), whole(b, kind, b.broadcastable(shape)), scale(b), zero(b, kind)]
        b.add(op, x + coarse(b, kind))
    elif op == "ms.QLinearConcat":
        axis = b.int(0, len(shape) - 1)
        parts = [[whole(b, kind, shape[:axis] + (b.int(1, 3),) + shape[axis + 1:]), scale(b), zero(b, kind)]
                 for _ in range(b.int(1, 3))]
        b.add(op, coarse(b, kind) + [v for part in parts for v in part], axis=axis)
    elif "Pool" in op:
        last = b.of(0, 0, 1) if "Global" in op else 0
        x = [whole(b, kind, (b.int(1, 2), b.int(1, 4), b.int(3, 6), b.int(3, 6))), scale(b), zero(b, kind)] + coarse(b, kind)
        if "Global" in op:
            b.add(op, x, channels_last=last)
        else:
            b.add(op, x, kernel_shape=[2, b.int(1, 3)], strides=b.of(None, [2, 1]), pads=b.of(None, [1, 0, 0, 0]),
                  count_include_pad=b.of(None, 0, 1))
    else:
        y = coarse(b, kind) if "Leaky" in op else [b.enter(np.float32(1 / 256), "initializer"), zero(b, kind)]
        b.add(op, [whole(b, kind, shape), scale(b), zero(b, kind)] + y, alpha=b.real(0.1, 0.5) if "Leaky" in op else None)


@operators("ms.MatMulNBits", "ms.DynamicQuantizeLSTM", "ms.EmbedLayerNormalization")
def others(b, op):
    m, k, n = more_than_nothing(b, 3)
    if op == "ms.MatMulNBits":
        block, k = b.of(16, 32), b.int(1, 70)
        blocks = -(-k // block)
        packed = b.rng.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8)
        zeros = [whole(b, "u8", (n, -(-blocks // 2)), "initializer")] if b.chance(0.5) else []
        b.add(op, [finite(b, m, k), b.enter(packed, "initializer"), scale(b, (n, blocks))] + zeros,
              K=k, N=n, bits=4, block_size=block)
    elif op == "ms.DynamicQuantizeLSTM":
        steps, batch, size, hidden, dirs = b.int(1, 4), b.int(1, 3), b.int(1, 5), b.int(1, 4), b.of(1, 2)
        w, r = weights(b, "i8", (dirs, size, 4 * hidden)), weights(b, "i8", (dirs, hidden, 4 * hidden))
        bias = finite(b, dirs, 8 * hidden) if b.chance(0.5) else None
        each = [b.enter(np.zeros(dirs, np.int8), "initializer") for _ in range(2)]
        b.add(op, [finite(b, steps, batch, size), w, r, bias, None, None, None, None, scale(b, (dirs,)), each[0],
                   scale(b, (dirs,)), each[1]], 3, hidden_size=hidden, direction="bidirectional" if dirs == 2 else None)
    else:
        batch, steps, wide, words = b.int(1, 2), b.int(1, 4), b.int(1, 6), b.int(2, 9)
        segments = b.chance(0.5)
        ids = [b.enter(b.rng.integers(0, most, (batch, steps)).astype(np.int32)) for most in (words, 2)]
        mask = [b.enter(b.rng.integers(0, 2, (batch, steps)).astype(np.int32))] if b.chance(0.5) else []
        b.add(op, [ids[0], ids[1] if segments else None, finite(b, words, wide), finite(b, steps + 1, wide),
                   finite(b, 2, wide) if segments else None, finite(b, wide), finite(b, wide)] + mask, 2,
              [True, bool(mask)], epsilon=b.of(None, 1e-3))
