#!/usr/bin/env python3
"""Producers that take plans back: the peak of their own plan and of memplan's, and that both give the same outputs.

  handed_back.py executorch [PROGRAM ..]      needs executorch, torchvision and memplan (pip install the wheel of `make wheel`)
  handed_back.py tflm MODEL.tflite ..         needs tflite-micro and numpy

ExecuTorch: the same exported program is planned by its greedy and by memplan.executorch.algorithm within its MemoryPlanningPass. Its
plan's bytes are the non_const_buffer_sizes that it emits: of several methods the largest of each memory, as its runtime has them.
Then its runtime loads and calls each, in a process of its own; what that holds are the bytes that glibc's malloc gave it since.
TensorFlow Lite Micro: the head of the arena that its interpreter reports, of the model as it is and as `memplan export --format tflite`
writes it; what it holds is the whole arena that it reports, head and tail. Outputs are compared bit for bit, of the same random inputs.
Replaces the producer's lines in results/tables/producers_back.tsv; exit status 1: an output differs.
"""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

TABLE = os.path.join(common.ROOT, "results", "tables", "producers_back.tsv")
HEADS = ["producer", "program", "its own plan [B]", "with memplan's [B]", "less %", "its runtime holds [B]", "with memplan's plan [B]",
         "calls", "outputs"]
PROGRAMS = """mobilenet_v3_small shufflenet_v2_x0_5 mnasnet1_0 resnet50 densenet121 googlenet transformer_128x2_64 transformer_256x4_128
  cache prefill_and_decode two_memories branches""".split()
SEED = 1


def planning(algorithm, second_memory_from=None, **options):
    """ExecuTorch's pass; tensors of second_memory_from bytes and more go into a second memory."""
    from executorch.exir.memory_planning import get_node_tensor_specs
    from executorch.exir.passes import MemoryPlanningPass

    class Split(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            for node in graph_module.graph.nodes:
                for spec in get_node_tensor_specs(node):
                    spec.mem_id = 2 if spec.allocated_memory >= second_memory_from else 1
            return super().run(graph_module, graph_signature)

    if algorithm is not None:
        options["memory_planning_algo"] = algorithm
    return (Split if second_memory_from else MemoryPlanningPass)(**options)


def emit(methods, options, algorithm, path):
    """Writes the program; returns the bytes that it says its runtime has to hold."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge

    torch.manual_seed(SEED)
    exported = {method: torch.export.export(make().eval(), inputs) for method, (make, inputs) in methods.items()}
    program = to_edge(exported).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning(algorithm, **options)))
    with open(path, "wb") as out:
        out.write(bytes(program.buffer))
    sizes = [plan.non_const_buffer_sizes for plan in program.executorch_program.execution_plan]
    return sum(max(of[memory] for of in sizes if memory < len(of)) for memory in range(max(map(len, sizes))))


def malloced():
    """Bytes that glibc's malloc has given and not got back."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Info
    info = library.mallinfo2()
    return info.uordblks + info.hblkhd


def execute(program, calls, outputs):
    """In a process of its own: loads, calls in turn, saves the outputs, and prints what loading took."""
    import gc

    import torch
    from executorch.runtime import Runtime

    runtime, calls = Runtime.get(), torch.load(calls)
    gc.collect()
    before = malloced()
    loaded = runtime.load_program(program)
    methods = {name: loaded.load_method(name) for name in sorted(loaded.method_names)}
    held = malloced() - before
    torch.save([[out.clone() for out in methods[name].execute(list(inputs))] for name, inputs in calls], outputs)
    print(f"held {held}")


def executorch(names):
    import memplan.executorch
    import torch
    import torch_runs

    torch.set_grad_enabled(False)
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as scratch:
        made, calls_at, outs = (os.path.join(scratch, name) for name in ("made.pte", "calls.pt", "outs.pt"))
        for name, methods, calls, options in torch_runs.programs():
            if name not in (names or PROGRAMS):
                continue
            torch.save(calls, calls_at)
            planned, held, outputs = [], [], []
            for algorithm in (None, memplan.executorch.algorithm):
                planned.append(emit(methods, options, algorithm, made))
                said = common.command([sys.executable, os.path.abspath(__file__), "--execute", made, calls_at, outs]).stdout
                held.append(int(re.search(r"^held (\d+)$", said, re.M).group(1)))
                outputs.append([tensor.numpy().tobytes() for call in torch.load(outs) for tensor in call])
            yield "ExecuTorch", name, planned, held, len(calls), outputs[0] == outputs[1]


def tflm(paths):
    import tflm_programs

    with tempfile.TemporaryDirectory() as scratch:
        placed = os.path.join(scratch, "placed.tflite")
        for path in paths:
            try:
                common.command([tflm_programs.MEMPLAN, "export", path, "--format", "tflite", "-o", placed])
                own, ours = tflm_programs.run(path), tflm_programs.run(placed)
            except common.Failed as why:
                common.say(f"left out: {why}")
                continue
            yield ("TensorFlow Lite Micro", os.path.basename(path).removesuffix(".tflite"), [own.head, ours.head],
                   [own.total, ours.total], 1, own.outputs == ours.outputs)


def main():
    what, *words = sys.argv[1:] or [""]
    if what == "--execute":
        return execute(*words)
    if what not in ("executorch", "tflm"):
        sys.exit(f"handed_back: executorch or tflm, not '{what}'")
    made, wrong = [], 0
    for producer, name, (own, ours), held, calls, equal in globals()[what](words):
        made.append([producer, name, str(own), str(ours), f"{100 * (1 - ours / own):.2f}", *map(str, held), str(calls),
                     "equal" if equal else "DIFFERENT"])
        wrong += not equal
        common.say("\t".join(made[-1]))
    if not made:
        sys.exit("handed_back: nothing was measured")
    kept = []
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as f:
            kept = [line.rstrip("\n").split("\t") for line in f][1:]
    common.write_table(TABLE, HEADS, sorted([line for line in kept if line[0] != made[0][0]] + made, key=lambda line: line[0]))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
