#!/usr/bin/env python3
"""Producers that take plans back: the peak that they report of their own plan, and of memplan's.

  handed_back.py executorch [NETWORK ..]      needs executorch, torchvision and memplan (pip install the wheel of `make wheel`)
  handed_back.py tflm MODEL.tflite ..         needs tflite-micro and numpy

ExecuTorch: the same exported program is planned by its greedy and by memplan.executorch.algorithm within its MemoryPlanningPass; the
bytes are non_const_buffer_sizes of the program that it emits, for which its runtime asks. TensorFlow Lite Micro: the head of the arena
that its interpreter reports, of the model as it is and as `memplan export --format tflite` writes it. Replaces the producer's lines
in results/tables/producers_back.tsv.
"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

TABLE = os.path.join(common.ROOT, "results", "tables", "producers_back.tsv")
HEADS = ["producer", "program", "its own plan [B]", "with memplan's [B]", "less %"]
NETWORKS = "mobilenet_v3_small shufflenet_v2_x0_5 mnasnet1_0 resnet50 densenet121 googlenet transformer_128x2_64 transformer_256x4_128".split()


def emitted(make, shape, algorithm):
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    torch.manual_seed(1)
    exported = torch.export.export(make().eval(), (torch.randn(shape),))
    planning = MemoryPlanningPass(memory_planning_algo=algorithm) if algorithm else MemoryPlanningPass()
    program = to_edge(exported).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    return sum(program.executorch_program.execution_plan[0].non_const_buffer_sizes)


def executorch(names):
    import memplan.executorch
    import torch_programs

    for name, make, shape in torch_programs.networks():
        if name in (names or NETWORKS):
            yield "ExecuTorch", name, emitted(make, shape, None), emitted(make, shape, memplan.executorch.algorithm)


def tflm(paths):
    import tflm_programs

    with tempfile.TemporaryDirectory() as scratch:
        placed = os.path.join(scratch, "placed.tflite")
        for path in paths:
            common.command([tflm_programs.MEMPLAN, "export", path, "--format", "tflite", "-o", placed])
            yield "TensorFlow Lite Micro", os.path.basename(path).removesuffix(".tflite"), tflm_programs.head(path), tflm_programs.head(placed)


def main():
    what, *words = sys.argv[1:]
    if what not in ("executorch", "tflm"):
        sys.exit(f"handed_back: executorch or tflm, not '{what}'")
    made = []
    for producer, name, own, ours in globals()[what](words):
        made.append([producer, name, str(own), str(ours), f"{100 * (1 - ours / own):.2f}"])
        common.say("\t".join(made[-1]))
    kept = []
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as f:
            kept = [line.rstrip("\n").split("\t") for line in f][1:]
    common.write_table(TABLE, HEADS, sorted([line for line in kept if line[0] != made[0][0]] + made, key=lambda line: line[0]))


if __name__ == "__main__":
    main()
