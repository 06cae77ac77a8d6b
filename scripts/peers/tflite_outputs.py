#!/usr/bin/env python3
"""TensorFlow Lite's reference kernels beside memplan's backend ref: outputs of the same models for the same inputs.

  scripts/peers/tflite_outputs.py [FILE.tflite ..]     compares; without files those of tests/data/tflite and of scripts/data.sh
  scripts/peers/tflite_outputs.py --write FOLDER       makes the models of tests/data/tflite, with what the kernels give

Each output of memplan must be within one step of the quantised output's scale, or within 1e-5 of the largest magnitude of a float
one. Inputs follow a rule (made_input) that the test repeats. Needs ai-edge-litert and numpy; with tflite-micro, its
interpreter stands in for models that LiteRT refuses.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.parse

import common
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as s

TYPES = {np.float32: 0, np.int32: 2, np.uint8: 3, np.int64: 4, np.bool_: 6, np.int16: 7, np.int8: 9}
SAME, VALID = 0, 1
RELU, RELU_N1, RELU6, TANH = 1, 2, 3, 4


def made_input(k, shape, kind):
    """Input k: odd ones are positive."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64) * 37 + 11 * k
    if kind == np.float32:
        x = ((i % 101) - 50) / np.float32(20)
        return (np.abs(x) + np.float32(0.25) if k % 2 else x).astype(kind).reshape(shape)
    if kind == np.bool_:
        return (i % 3 == 0).reshape(shape)
    low = np.iinfo(kind).min
    return ((i % 256) + (low if kind == np.int8 else 0)).astype(kind).reshape(shape)


class Net:
    """A model under construction; every result of an operator is an output."""

    def __init__(self):
        self.model = s.ModelT()
        self.model.version, self.model.operatorCodes, self.model.buffers = 3, [], [s.BufferT()]
        self.graph = s.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs, self.codes = [self.graph], {}

    def tensor(self, name, shape, kind=np.float32, q=None, data=None, variable=False):
        t = s.TensorT()
        t.name, t.shape, t.type, t.isVariable, t.buffer = name, list(shape), TYPES[kind], variable, 0
        if q is not None:
            t.quantization = s.QuantizationParametersT()
            scales = np.atleast_1d(np.float32(q[0]))
            t.quantization.scale, t.quantization.zeroPoint = list(scales), [q[1]] * len(scales)
            t.quantization.quantizedDimension = q[2] if len(q) > 2 else 0
        if data is not None:
            b = s.BufferT()
            b.data = np.frombuffer(np.ascontiguousarray(data, dtype=kind).tobytes(), np.uint8)
            self.model.buffers.append(b)
            t.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, shape, kind=np.float32, q=None):
        self.graph.inputs.append(self.tensor(f"in{len(self.graph.inputs)}", shape, kind, q))
        return self.graph.inputs[-1]

    def const(self, values, kind=np.int32, q=None):
        values = np.asarray(values, kind)
        return self.tensor(f"const{len(self.graph.tensors)}", values.shape, kind, q, values)

    def variable(self, shape, kind=np.float32, q=None):
        return self.tensor(f"state{len(self.graph.tensors)}", shape, kind, q, None, True)

    def op(self, name, ins, *outs, options=None, intermediates=None, **fields):
        """outs: (shape[, kind[, q]]) of each result; fields: those of the options table."""
        code = getattr(s.BuiltinOperator, name)
        if code not in self.codes:
            self.codes[code] = len(self.codes)
            c = s.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version = code, min(code, 127), 1 if "version" not in fields else fields["version"]
            self.model.operatorCodes.append(c)
        fields.pop("version", None)
        o = s.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.codes[code], list(ins), []
        for out in outs:
            o.outputs.append(self.tensor(f"{name.lower()}_{len(self.graph.tensors)}", *out))
        if options is not None:
            o.builtinOptionsType = getattr(s.BuiltinOptions, options)
            o.builtinOptions = getattr(s, options + "T")()
            for key, value in fields.items():
                setattr(o.builtinOptions, key, value)
        if intermediates:
            o.intermediates = intermediates
        self.graph.operators.append(o)
        self.graph.outputs += o.outputs
        return o.outputs[0]

    def place(self, offsets):
        """Adds the metadata of a plan: an offset for each tensor."""
        b, m = s.BufferT(), s.MetadataT()
        b.data = np.frombuffer(np.int32([1, 0, len(offsets), *offsets]).tobytes(), np.uint8)
        self.model.buffers.append(b)
        m.name, m.buffer = "OfflineMemoryAllocation", len(self.model.buffers) - 1
        self.model.metadata = [m]

    def bytes(self):
        b = flatbuffers.Builder(0)
        b.Finish(self.model.Pack(b), b"TFL3")
        return bytes(b.Output())


def numbers(count, kind, seed):
    r = np.random.default_rng(seed)
    return r.integers(-90, 90, count).astype(kind) if kind != np.float32 else (r.integers(-20, 21, count) / 16).astype(kind)


def filters(net, shape, kind, seed, q=None):
    return net.const(numbers(int(np.prod(shape)), kind, seed).reshape(shape), kind, q)


# ---- the models: kind is float32 or int8 ----

UNARY = [("ABS", None), ("CEIL", None), ("COS", "CosOptions"), ("ELU", None), ("EXP", "ExpOptions"), ("FLOOR", None),
         ("HARD_SWISH", "HardSwishOptions"), ("LOGISTIC", None), ("NEG", "NegOptions"), ("RELU", None), ("RELU6", None),
         ("RELU_N1_TO_1", None), ("ROUND", None), ("SIN", None), ("SQUARE", "SquareOptions"), ("TANH", None),
         ("SIGN", "SignOptions")]


def elements_float():
    n = Net()
    dims = (1, 3, 4, 5)
    x, p, z, row = n.input(dims), n.input(dims), n.input(dims), n.input((5,))
    for name, options in UNARY:
        n.op(name, [x], (dims,), options=options)
    for name in ("LOG", "SQRT", "RSQRT"):
        n.op(name, [p], (dims,))
    n.op("LEAKY_RELU", [x], (dims,), options="LeakyReluOptions", alpha=0.3)
    n.op("GELU", [x], (dims,), options="GeluOptions", approximate=True)
    n.op("GELU", [x], (dims,), options="GeluOptions", approximate=False)
    n.op("PRELU", [x, n.const(numbers(5, np.float32, 1).reshape(1, 1, 5), np.float32)], (dims,))
    for name, act in (("Add", 0), ("Sub", RELU), ("Mul", RELU_N1), ("Div", RELU6), ("Add", RELU6)):
        n.op(name.upper(), [x, p], (dims,), options=name + "Options", fusedActivationFunction=act)
    n.op("ADD", [x, row], (dims,), options="AddOptions")
    for name in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
        n.op(name, [x, z], (dims,), options={"SQUARED_DIFFERENCE": "SquaredDifferenceOptions"}.get(name, "MaximumMinimumOptions"))
    n.op("POW", [p, row], (dims,), options="PowOptions")
    made = {}
    for name in ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL"):
        made[name] = n.op(name, [x, z], (dims, np.bool_))
    n.op("LOGICAL_AND", [made["LESS"], made["EQUAL"]], (dims, np.bool_))
    n.op("LOGICAL_OR", [made["LESS"], made["EQUAL"]], (dims, np.bool_))
    n.op("LOGICAL_NOT", [made["LESS"]], (dims, np.bool_))
    n.op("SELECT_V2", [made["LESS"], x, row], (dims,))
    n.op("CAST", [x], (dims, np.int32), options="CastOptions", inDataType=0, outDataType=2)
    n.op("ADD_N", [x, p, z], (dims,))
    return n


def elements_int8():
    n = Net()
    dims = (1, 3, 4, 5)
    q, r = (0.05, -3), (0.04, 7)
    x, z = n.input(dims, np.int8, q), n.input(dims, np.int8, r)
    for name, out in (("RELU", (0.03, -128)), ("RELU6", (6 / 255, -128)), ("LOGISTIC", (1 / 256, -128)), ("TANH", (1 / 128, 0)),
                      ("HARD_SWISH", (0.03, -114)), ("ELU", (0.04, -10)), ("ABS", (0.05, -3))):
        n.op(name, [x], (dims, np.int8, out), options="HardSwishOptions" if name == "HARD_SWISH" else None)
    n.op("LEAKY_RELU", [x], (dims, np.int8, q), options="LeakyReluOptions", alpha=0.3)
    n.op("ADD", [x, z], (dims, np.int8, (0.09, 4)), options="AddOptions")
    n.op("SUB", [x, z], (dims, np.int8, (0.09, 4)), options="SubOptions", fusedActivationFunction=RELU)
    n.op("MUL", [x, z], (dims, np.int8, (0.2, -9)), options="MulOptions")
    n.op("MAXIMUM", [x, x], (dims, np.int8, q), options="MaximumMinimumOptions")
    n.op("LESS", [x, z], (dims, np.bool_))
    n.op("QUANTIZE", [x], (dims, np.int8, (0.1, 5)), options="QuantizeOptions")
    f = n.op("DEQUANTIZE", [x], (dims,), options="DequantizeOptions")
    n.op("QUANTIZE", [f], (dims, np.int8, (0.03, 1)), options="QuantizeOptions")
    n.op("SOFTMAX", [x], (dims, np.int8, (1 / 256, -128)), options="SoftmaxOptions", beta=1.0)
    n.op("PRELU", [x, n.const(numbers(5, np.int8, 1).reshape(1, 1, 5), np.int8, (0.01, 0))], (dims, np.int8, q))
    return n


def layers(kind):
    n, is_float = Net(), kind == np.float32
    bias_kind = np.float32 if is_float else np.int32

    def q(*args):
        return None if is_float else args

    def out(shape, scale=0.05, zero=-4):
        return (shape, kind, q(scale, zero))

    def channels(count, axis):
        return q(np.linspace(0.002, 0.004, count), 0, axis)

    def bias(count, seed, scale):
        return n.const(numbers(count, bias_kind, seed), bias_kind, q(scale, 0))

    x, flat = n.input((1, 7, 6, 4), kind, q(0.03, 5)), n.input((3, 8), kind, q(0.03, 5))
    w = filters(n, (5, 3, 3, 4), kind, 1, channels(5, 0))
    b = bias(5, 2, 0.03 * np.linspace(0.002, 0.004, 5))
    conv = {"options": "Conv2DOptions", "dilationWFactor": 1, "dilationHFactor": 1}
    n.op("CONV_2D", [x, w, b], out((1, 7, 6, 5)), padding=SAME, strideW=1, strideH=1, **conv)
    n.op("CONV_2D", [x, w, b], out((1, 4, 3, 5)), padding=SAME, strideW=2, strideH=2, fusedActivationFunction=RELU6, **conv)
    n.op("CONV_2D", [x, w, b], out((1, 3, 2, 5)), padding=VALID, strideW=2, strideH=2, fusedActivationFunction=RELU, **conv)
    conv.update(dilationWFactor=2, dilationHFactor=3)
    n.op("CONV_2D", [x, w, b], out((1, 7, 6, 5)), padding=SAME, strideW=1, strideH=1, **conv)
    w = filters(n, (1, 3, 2, 8), kind, 3, channels(8, 3))
    b = bias(8, 4, 0.03 * np.linspace(0.002, 0.004, 8))
    deep = {"options": "DepthwiseConv2DOptions", "depthMultiplier": 2, "dilationWFactor": 1, "dilationHFactor": 1}
    n.op("DEPTHWISE_CONV_2D", [x, w, b], out((1, 7, 6, 8)), padding=SAME, strideW=1, strideH=1, **deep)
    n.op("DEPTHWISE_CONV_2D", [x, w, b], out((1, 3, 3, 8)), padding=VALID, strideW=2, strideH=2, fusedActivationFunction=RELU, **deep)
    w = filters(n, (3, 3, 2, 4), kind, 5, channels(3, 0))
    up = {"options": "TransposeConvOptions", "strideW": 2, "strideH": 2}
    n.op("TRANSPOSE_CONV", [n.const([1, 14, 12, 3]), w, x], out((1, 14, 12, 3)), padding=SAME, **up)
    n.op("TRANSPOSE_CONV", [n.const([1, 15, 12, 3]), w, x], out((1, 15, 12, 3)), padding=VALID, **up)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        for padding, dims in ((SAME, (1, 4, 3, 4)), (VALID, (1, 3, 3, 4))):
            n.op(name, [x], (dims, kind, q(0.03, 5)), options="Pool2DOptions", padding=padding, strideW=2, strideH=2,
                 filterWidth=2, filterHeight=3, fusedActivationFunction=RELU if padding else 0)
    w = filters(n, (6, 8), kind, 6, q(0.003, 0))
    b = bias(6, 7, 0.03 * 0.003)
    n.op("FULLY_CONNECTED", [flat, w, b], out((3, 6)), options="FullyConnectedOptions")
    n.op("FULLY_CONNECTED", [flat, w, b], out((3, 6)), options="FullyConnectedOptions", fusedActivationFunction=RELU)
    n.op("FULLY_CONNECTED", [x, w, -1], out((21, 6)), options="FullyConnectedOptions")
    n.op("BATCH_MATMUL", [flat, flat], out((3, 3), 0.2), options="BatchMatMulOptions", adjY=True)
    for corners, half in ((False, False), (True, False), (False, True)):
        size = n.const([11, 9])
        same = ((1, 11, 9, 4), kind, q(0.03, 5))
        n.op("RESIZE_BILINEAR", [x, size], same, options="ResizeBilinearOptions", alignCorners=corners, halfPixelCenters=half)
        n.op("RESIZE_NEAREST_NEIGHBOR", [x, size], same, options="ResizeNearestNeighborOptions", alignCorners=corners,
             halfPixelCenters=half)
    for name, axes in (("MEAN", [1, 2]), ("SUM", [3]), ("REDUCE_MAX", [1])):
        if name == "SUM" and not is_float:
            continue  # the kernels add in 8 bits
        keep = name != "REDUCE_MAX"
        dims = [1 if i in axes else d for i, d in enumerate((1, 7, 6, 4)) if keep or i not in axes]
        n.op(name, [x, n.const(axes)], (dims, kind, q(0.03, 5)), options="ReducerOptions", keepDims=keep)
    n.op("L2_NORMALIZATION", [flat], out((3, 8), 1 / 128, 0), options="L2NormOptions")
    n.op("SPACE_TO_DEPTH", [n.op("SLICE", [x, n.const([0, 1, 0, 0]), n.const([1, 6, -1, -1])], ((1, 6, 6, 4), kind, q(0.03, 5)))],
         ((1, 3, 3, 16), kind, q(0.03, 5)), options="SpaceToDepthOptions", blockSize=2)
    n.op("DEPTH_TO_SPACE", [x], ((1, 14, 12, 1), kind, q(0.03, 5)), options="DepthToSpaceOptions", blockSize=2)
    if is_float:
        n.op("SOFTMAX", [flat], out((3, 8)), options="SoftmaxOptions", beta=1.0)
        n.op("LOG_SOFTMAX", [flat], out((3, 8)))
    return n


def moves(kind):
    n = Net()
    q = None if kind == np.float32 else (0.03, 5)
    dims = (2, 3, 4)
    x, z = n.input(dims, kind, q), n.input(dims, kind, q)

    def out(*shape):
        return (shape, kind, q)

    n.op("RESHAPE", [x, n.const([6, 4])], out(6, 4), options="ReshapeOptions", newShape=[6, 4])
    n.op("EXPAND_DIMS", [x, n.const(1)], out(2, 1, 3, 4))
    n.op("TRANSPOSE", [x, n.const([2, 0, 1])], out(4, 2, 3))
    n.op("CONCATENATION", [x, z, x], out(2, 9, 4), options="ConcatenationOptions", axis=1)
    n.op("SPLIT", [n.const(2), x], out(2, 3, 2), out(2, 3, 2), options="SplitOptions", numSplits=2)
    n.op("SPLIT_V", [x, n.const([1, 3]), n.const(2)], out(2, 3, 1), out(2, 3, 3), options="SplitVOptions", numSplits=2)
    n.op("PACK", [x, z], out(2, 2, 3, 4), options="PackOptions", valuesCount=2, axis=1)
    n.op("UNPACK", [x], out(2, 4), out(2, 4), out(2, 4), options="UnpackOptions", num=3, axis=1)
    n.op("SLICE", [x, n.const([0, 1, 2]), n.const([2, -1, 1])], out(2, 2, 1))
    n.op("STRIDED_SLICE", [x, n.const([0, 2, 3]), n.const([2, 0, 0]), n.const([1, -1, -2])], out(2, 2, 2),
         options="StridedSliceOptions", endMask=0)
    n.op("STRIDED_SLICE", [x, n.const([1, 0, 0]), n.const([2, 9, 9]), n.const([1, 2, 1])], out(2, 4), options="StridedSliceOptions",
         beginMask=4, endMask=6, shrinkAxisMask=1)
    n.op("PAD", [x, n.const([[1, 0], [0, 2], [0, 0]])], out(3, 5, 4))
    n.op("PADV2", [x, n.const([[1, 0], [0, 2], [0, 0]]), n.const(2 if kind == np.float32 else 9, kind, q)], out(3, 5, 4))
    n.op("MIRROR_PAD", [x, n.const([[0, 1], [2, 0], [1, 1]])], out(3, 5, 6), options="MirrorPadOptions", mode=0)
    n.op("GATHER", [x, n.const([2, 0])], out(2, 2, 4), options="GatherOptions", axis=1)
    n.op("TILE", [x, n.const([1, 2, 1])], out(2, 6, 4))
    n.op("ARG_MAX", [x, n.const(2)], ((2, 3), np.int32), options="ArgMaxOptions", outputType=2)
    n.op("ARG_MIN", [x, n.const(1)], ((2, 4), np.int64), options="ArgMinOptions", outputType=4)
    n.op("BROADCAST_TO", [n.op("SQUEEZE", [n.op("SLICE", [x, n.const([0, 1, 0]), n.const([2, 1, 4])], out(2, 1, 4))], out(2, 4),
                               options="SqueezeOptions", squeezeDims=[1]), n.const([3, 2, 4])], out(3, 2, 4), version=2)
    if kind == np.float32:
        n.op("FILL", [n.const([2, 3]), n.const(1.5, np.float32)], out(2, 3))
        n.op("CUMSUM", [x, n.const(1)], out(2, 3, 4), options="CumsumOptions", exclusive=True, reverse=True)
    return n


def states():
    n = Net()
    x, rows = n.input((2, 3, 4)), n.input((2, 4))
    units = 5
    ins = [x]
    for gate in range(8):
        ins.append(filters(n, (units, 4 if gate < 4 else units), np.float32, gate))
    ins += [-1, -1, -1]
    for gate in range(4):
        ins.append(filters(n, (units,), np.float32, 20 + gate))
    ins += [-1, -1, n.variable((2, units)), n.variable((2, units)), -1, -1, -1, -1]
    n.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, ((2, 3, units),), options="UnidirectionalSequenceLSTMOptions",
         fusedActivationFunction=TANH, cellClip=10.0, version=1)
    n.op("SVDF", [rows, filters(n, (6, 4), np.float32, 30), filters(n, (6, 3), np.float32, 31), filters(n, (3,), np.float32, 32),
                  n.variable((2, 18))], ((2, 3),), options="SVDFOptions", rank=2, fusedActivationFunction=RELU)
    return n


def placed():
    """Three tensors in a row, the first two placed apart, the third over the first; a fourth is left to the run."""
    n = Net()
    x = n.input((1, 16))
    a = n.op("EXP", [x], ((1, 16),), options="ExpOptions")
    b = n.op("NEG", [a], ((1, 16),), options="NegOptions")
    n.op("ABS", [b], ((1, 16),))
    n.graph.outputs = n.graph.outputs[-1:]
    n.place([0, 64, 192, -1])
    return n


MODELS = {"elements_float": elements_float, "elements_int8": elements_int8, "layers_float": lambda: layers(np.float32),
          "layers_int8": lambda: layers(np.int8), "moves_float": lambda: moves(np.float32), "moves_int8": lambda: moves(np.int8),
          "states": states, "placed": placed}


# ---- running ----

def details(path):
    """Name, shape and type of the inputs; name, step of the outputs."""
    model = s.ModelT.InitFromPackedBuf(open(path, "rb").read(), 0)
    kinds = {number: kind for kind, number in TYPES.items()}
    graph = model.subgraphs[0]
    tensor = [graph.tensors[i] for i in list(graph.inputs) + list(graph.outputs)]
    rows = []
    for t in tensor:
        name = t.name.decode() if isinstance(t.name, bytes) else t.name
        shape = [] if t.shape is None else list(t.shape)
        step = float(t.quantization.scale[0]) if t.quantization is not None and t.quantization.scale is not None else 0.0
        rows.append((name, shape, kinds[t.type], step))
    return rows[:len(graph.inputs)], rows[len(graph.inputs):]


def reference(path):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    inputs, outputs = details(path)
    made = [made_input(k, shape, kind) for k, (_, shape, kind, _) in enumerate(inputs)]
    for kernels in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            it = Interpreter(model_path=path, num_threads=1, experimental_op_resolver_type=kernels)
            it.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            why = str(error).strip().splitlines()[0]
            continue
        for detail, x in zip(it.get_input_details(), made):
            it.set_tensor(detail["index"], x)
        it.invoke()
        return made, [it.get_tensor(d["index"]) for d in it.get_output_details()]
    try:
        from tflite_micro import runtime
        it = runtime.Interpreter.from_file(path)
    except (ImportError, RuntimeError):
        raise common.Failed(f"{os.path.basename(path)}: {why}") from None
    for k, x in enumerate(made):
        it.set_input(x, k)
    it.invoke()
    return made, [it.get_output(k) for k in range(len(outputs))]


def compare(program, path):
    """The largest difference: in steps of quantised outputs, in 1e-5 of the largest magnitude of float ones."""
    made, want = reference(path)
    worst, at = 0.0, "-"
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "run", path, "--planner", "greedy_size", "--backend", "ref", "--dump", folder]
        for k, x in enumerate(made):
            np.save(os.path.join(folder, f"in{k}.npy"), x)
            words += ["--input", f"{k}={folder}/in{k}.npy"]
        common.command(words)
        for (name, shape, _, _), y in zip(details(path)[1], want):
            got = np.load(os.path.join(folder, urllib.parse.quote(name, safe="_-.") + ".npy"))
            exact = np.abs(got.astype(np.float64) - y.astype(np.float64)).max(initial=0)
            off = exact / (1e-5 * max(1.0, np.abs(y).max(initial=0))) if y.dtype == np.float32 else exact
            if off > worst:
                worst, at = off, name
    return worst, at


def write(folder):
    for name, make in MODELS.items():
        path = os.path.join(folder, name + ".tflite")
        with open(path, "wb") as out:
            out.write(make().bytes())
        _, results = reference(path)
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as out:
            out.write("# What TensorFlow Lite's reference kernels give; made by scripts/peers/tflite_outputs.py.\n")
            for (label, _, _, _), y in zip(details(path)[1], results):
                out.write(f"{label} " + " ".join(f"{v:.6g}" for v in y.astype(np.float64).ravel()) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--memplan", default=os.path.join(common.ROOT, "build", "release", "memplan"))
    parser.add_argument("--write", metavar="FOLDER")
    args = parser.parse_args()
    if args.write:
        return write(args.write)
    folders = [os.path.join(common.ROOT, "tests", "data", "tflite"), os.path.join(common.data_folder(), "tflite")]
    files = args.files or [os.path.join(f, n) for f in folders if os.path.isdir(f) for n in sorted(os.listdir(f)) if n.endswith(".tflite")]
    for path in files:
        # a process for each: the interpreters do not survive every model
        if len(files) > 1:
            done = subprocess.run([sys.executable, __file__, path, "--memplan", args.memplan], capture_output=True, text=True, check=False)
            print(done.stdout.strip() or f"{os.path.basename(path)}: {(done.stderr.strip() or 'no output').splitlines()[-1]}", flush=True)
        else:
            worst, at = compare(args.memplan, path)
            print(f"{os.path.basename(path)}: {worst:.3g} at {at}")
    return None


if __name__ == "__main__":
    try:
        main()
    except common.Failed as error:
        sys.exit(f"tflite_outputs: {error}")
