"""Generators of random_onnx.py for images at places that data name, transforms, losses, results whose length depends on data."""

import numpy as np

from random_onnx import ANY, NUMBERS, TYPES, operators
from random_onnx_ops import finite, more_than_nothing


def image(b, channels=None, least=2):
    return finite(b, b.int(1, 2), channels or b.int(1, 3), b.int(least, 6), b.int(least, 6))


def scalar(b, value, kind="i64"):
    return b.settled(value, kind)


@operators("GridSample", "AffineGrid", "RoiAlign", "MaxRoiPool", "DeformConv", "Col2Im", "MaxUnpool", "Det")
def images(b, op):
    if op == "GridSample":
        x = image(b)
        grid = b.enter(b.rng.uniform(-1.3, 1.3, (x.shape[0], b.int(1, 4), b.int(1, 4), 2)).astype(np.float32))
        modes = ("linear", "nearest", "cubic") if b.opset >= 20 else ("bilinear", "nearest", "bicubic")
        mode, paddings = b.of(None, *modes), (None, "zeros", "border", "reflection")
        if mode == "bicubic":  # which the reference evaluator does not know by this name, and ONNX Runtime's border is not the standard's
            paddings = (None, "zeros", "reflection")
        b.add(op, [x, grid], mode=mode, padding_mode=b.of(*paddings), align_corners=b.of(None, 0, 1))
    elif op == "AffineGrid":
        n = b.int(1, 2)
        b.add(op, [finite(b, n, 2, 3), scalar(b, [n, 2, b.int(1, 5), b.int(2, 5)])], align_corners=b.of(None, 0, 1))
    elif op in ("RoiAlign", "MaxRoiPool"):
        x, n = image(b, least=4), b.int(1, 3)
        low = b.rng.uniform(0, 2, (n, 2))
        boxes = np.concatenate([low, low + b.rng.uniform(1, 4, (n, 2))], 1).astype(np.float32)
        of = b.rng.integers(0, x.shape[0], n)
        if op == "MaxRoiPool":
            boxes = b.enter(np.concatenate([of[:, None], np.round(boxes)], 1).astype(np.float32))
            b.add(op, [x, boxes], pooled_shape=[b.int(1, 3), b.int(1, 3)], spatial_scale=b.of(None, 0.5))
            return
        b.add(op, [x, b.enter(boxes), b.enter(of)], output_height=b.of(None, 2), output_width=b.of(None, 3),
              sampling_ratio=b.of(None, 0, 2), spatial_scale=b.of(None, 0.5), mode=b.of(None, "avg"),
              coordinate_transformation_mode=b.of(None, "half_pixel", "output_half_pixel") if b.opset >= 16 else None)
    elif op == "DeformConv":
        x, k = image(b, 2, 4), b.int(1, 3)
        size = [d - k + 1 for d in x.shape[2:]]
        offsets = finite(b, x.shape[0], 2 * k * k, *size)
        mask = [None, finite(b, x.shape[0], k * k, *size)] if b.chance(0.5) else []
        b.add(op, [x, finite(b, 2, 2, k, k), offsets] + mask)
    elif op == "Col2Im":
        h, w, k = b.int(2, 5), b.int(2, 5), b.int(1, 2)
        x = finite(b, 1, 2 * k * k, (h - k + 1) * (w - k + 1))
        b.add(op, [x, scalar(b, [h, w]), scalar(b, [k, k])])
    elif op == "MaxUnpool":
        x = image(b)
        y = b.add("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
        b.add(op, y, kernel_shape=[2, 2], strides=[2, 2])
    else:
        n = b.int(1, 5)
        b.add(op, [finite(b, *more_than_nothing(b, b.int(0, 2)), n, n)])


@operators("DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def signals(b, op):
    if op == "MelWeightMatrix":
        b.add(op, [scalar(b, b.int(3, 8)), scalar(b, b.of(16, 32)), scalar(b, 8000), scalar(b, np.float32(20), "f32"),
                   scalar(b, np.float32(3000), "f32")])
    elif op == "STFT":
        frame, step = b.of(4, 8), b.int(1, 4)
        window = b.of(None, finite(b, frame))
        b.add(op, [finite(b, b.int(1, 2), b.int(12, 20), 1), scalar(b, step), window, scalar(b, frame)], onesided=b.of(None, 0, 1))
    elif op == "DFT":
        n, inverse = b.int(1, 6), b.of(0, 0, 1)
        x = finite(b, b.int(1, 2), n, b.int(1, 2) if inverse == 0 else 2)
        if b.opset < 20:
            b.add(op, [x], axis=1, inverse=inverse)
        else:
            b.add(op, [x, None, scalar(b, 1)], inverse=inverse)
    else:
        b.add(op, [scalar(b, b.int(2, 12))], periodic=b.of(None, 0, 1))


@operators("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(b, op):
    n, classes, rest = b.int(1, 4), b.int(2, 5), tuple(more_than_nothing(b, b.int(0, 2)))
    x, t = finite(b, n, classes, *rest), b.enter(b.rng.integers(0, classes, (n, *rest)))
    b.add(op, [x, t] + b.of([], [finite(b, classes)]), reduction=b.of(None, "mean", "sum", "none"),
          ignore_index=b.of(None, 0, -1))


@operators("NonZero", "Compress", "Unique", "NonMaxSuppression")
def lengths(b, op):
    """Results whose length is data: nothing may read them here, as ONNX Runtime has shorter ones."""
    if op == "NonMaxSuppression":
        n, boxes = b.int(1, 2), b.int(1, 6)
        low = b.rng.uniform(0, 4, (n, boxes, 2))
        corners = np.concatenate([low, low + b.rng.uniform(1, 4, (n, boxes, 2))], 2).astype(np.float32)
        scores = b.enter(b.rng.uniform(0, 1, (n, b.int(1, 2), boxes)).astype(np.float32))
        b.add(op, [b.enter(corners), scores, scalar(b, b.int(1, 4)), scalar(b, np.float32(0.4), "f32"),
                   scalar(b, np.float32(0.2), "f32")], final=True)
        return
    x = b.value(NUMBERS + ("bool",) if op == "NonZero" else ("f32", "i64"), least=1, test=lambda v: 0 not in v.shape
                and (v.data.dtype.kind != "f" or np.all(np.isfinite(v.data))))
    axis = b.of(None, b.int(0, x.rank - 1))
    if op == "NonZero":
        b.add(op, [x], final=True)
    elif op == "Compress":
        n = x.data.size if axis is None else x.shape[axis]
        b.add(op, [x, b.enter(b.rng.integers(0, 2, n).astype(bool))], axis=axis, final=True)
    else:
        b.add(op, [x], 4, axis=axis, sorted=b.of(None, 0, 1), final=True)


@operators("CenterCropPad", "CumProd", "BitCast", "CausalConvWithState", "LinearAttention")
def newer(b, op):
    if op == "CenterCropPad":
        x = b.value(ANY, least=1, test=lambda v: 0 not in v.shape)
        b.add(op, [x, scalar(b, [b.int(1, 6) for _ in x.shape])])
    elif op == "CumProd":
        x = b.value(("f32", "f64"), least=1)
        b.add(op, [x, scalar(b, b.axis(x.rank))], exclusive=b.of(None, 1), reverse=b.of(None, 1))
    elif op == "BitCast":
        x = b.value(("f32", "i32", "u8", "i8"))
        b.add(op, [x], to={"f32": 6, "i32": 1, "u8": 3, "i8": 2}[x.type])
    elif op == "CausalConvWithState":
        n, c, steps, k = more_than_nothing(b, 4)
        past = [None, finite(b, n, c, k - 1)] if k > 1 and b.chance(0.5) else []
        b.add(op, [finite(b, n, c, steps), finite(b, c, 1, k)] + past, 2, activation=b.of(None, "silu"))
    else:
        n, groups, width = more_than_nothing(b, 3)
        steps = b.int(1, 4)
        heads = groups * b.int(1, 2)
        rule = b.of("linear", "gated", "delta", "gated_delta")
        x = [finite(b, n, steps, h * width) for h in (heads, groups, groups)]
        decay = finite(b, n, steps, groups) if "gated" in rule else None
        beta = finite(b, n, steps, groups) if "delta" in rule else None
        b.add(op, x + [None, decay, beta], 2, q_num_heads=heads, kv_num_heads=groups, update_rule=rule)


@operators("TfIdfVectorizer")
def grams(b, op):
    """N-grams over few numbers, so that they occur; none stands twice in the pool, each has a column of its own."""
    most = b.int(1, 3)
    pool = [sorted({tuple(b.rng.integers(0, 4, n).tolist()) for _ in range(b.int(1, 5))}) for n in range(1, most + 1)]
    counts = [sum(n * len(of_n) for n, of_n in enumerate(pool[:k], 1)) for k in range(most)]
    total = sum(map(len, pool))
    x = b.enter(b.rng.integers(0, 4, b.of((b.int(1, 9),), (b.int(1, 3), b.int(1, 9)))).astype(TYPES[b.of("i64", "i32")][1]))
    mode = b.of("TF", "IDF", "TFIDF")
    b.add(op, [x], mode=mode, min_gram_length=b.int(1, most), max_gram_length=most, max_skip_count=b.int(0, 3), ngram_counts=counts,
          ngram_indexes=b.rng.permutation(total).tolist(), pool_int64s=[i for of_n in pool for gram in of_n for i in gram],
          weights=b.of(None, b.rng.uniform(0.5, 2, total).tolist()))
