"""Random .tflite models of additions and concatenations, for the planner of TensorFlow Lite Micro: few sizes, so that it meets ties,
and tensors numbered otherwise than they are made. Needs tflite-micro, which brings the schema along."""

import random


def tensor_of(schema, name, n):
    made = schema.TensorT()
    made.name, made.shape, made.type, made.buffer = name, [1, n], schema.TensorType.FLOAT32, 0
    return made


def grown(schema, draw):
    """(tensors, operators, inputs) of a net that mostly goes on from what it made last."""
    sizes = draw.sample([16, 32, 48, 100, 260], 2)
    tensors, operators = [tensor_of(schema, f"t{i}", draw.choice(sizes)) for i in range(2)], []
    for _ in range(draw.randint(4, 24)):
        made = schema.OperatorT()
        width = [t.shape[1] for t in tensors]
        first = draw.choice(range(len(tensors))[-6:])
        joined = draw.random() < 0.3 and width[first] < 1000
        second = draw.choice([i for i in range(len(tensors))[-8:] if joined or width[i] == width[first]])
        kind = "Concatenation" if joined else "Add"
        made.opcodeIndex, made.inputs, made.outputs = int(joined), [first, second], [len(tensors)]
        made.builtinOptionsType = getattr(schema.BuiltinOptions, kind + "Options")
        made.builtinOptions = getattr(schema, kind + "OptionsT")()
        if joined:
            made.builtinOptions.axis = 1
        tensors.append(tensor_of(schema, f"t{len(tensors)}", width[first] + width[second] * joined))
        operators.append(made)
    return tensors, operators, [0, 1]


def model(seed):
    """The bytes of the model of this seed."""
    import flatbuffers
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    draw = random.Random(seed)
    tensors, operators, inputs = grown(schema, draw)
    number = list(range(len(tensors)))
    draw.shuffle(number)
    read = {i for op in operators for i in op.inputs}
    graph, net, code = schema.SubGraphT(), schema.ModelT(), []
    graph.tensors = [tensors[number.index(i)] for i in range(len(tensors))]
    graph.inputs = [number[i] for i in inputs]
    graph.outputs = [number[i] for i in range(len(inputs), len(tensors)) if i not in read]
    for op in operators:
        op.inputs, op.outputs = [number[i] for i in op.inputs], [number[i] for i in op.outputs]
    graph.operators = operators
    for which in (schema.BuiltinOperator.ADD, schema.BuiltinOperator.CONCATENATION):
        code.append(schema.OperatorCodeT())
        code[-1].builtinCode = code[-1].deprecatedBuiltinCode = which
        code[-1].version = 1
    net.version, net.subgraphs, net.buffers, net.operatorCodes = 3, [graph], [schema.BufferT()], code
    builder = flatbuffers.Builder(1024)
    builder.Finish(net.Pack(builder), b"TFL3")
    return bytes(builder.Output())
