"""memplan as a memory-planning algorithm of ExecuTorch:

    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass
    import memplan.executorch

    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(memory_planning_algo=memplan.executorch.algorithm))
    program = to_edge(exported).to_executorch(config)

Each memory (mem_id) is an arena of its own. Tensors inside others (storage_base) keep their place in them. State that methods
share (share_mutable_buffers) is placed by the pass, in a memory that no algorithm plans."""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterable, List, Tuple

from ._native import InputError
from ._plan import plan

DEFAULT_MEMORY = 1


def _lifetime(spec: Any, first: int, last: int) -> Tuple[int, int]:
    """Half-open. A tensor whose lifetime is not known lives as long as all of them."""
    start, end = spec.lifetime
    return (first if start is None else start, (last if end is None else end) + 1)


def _base(spec: Any) -> Tuple[Any, int]:
    """The tensor that holds this one, itself or another, and where it lies in that."""
    offset, seen = 0, [spec]
    while getattr(spec, "storage_base", None) is not None:
        offset += getattr(spec, "storage_base_offset", 0) or 0
        spec = spec.storage_base
        if any(spec is s for s in seen):
            raise InputError("tensors hold each other in a circle")
        seen.append(spec)
    return spec, offset


def algorithm(alignment: int, specs: Iterable[Any], graph_module: Any, graph_signature: Any = None, extra_padding: int = 0, *,
              planner: str = "portfolio", **options: Any) -> List[int]:
    """What `MemoryPlanningPass(memory_planning_algo=..)` takes: writes mem_id, mem_obj_id and mem_offset of each tensor (TensorSpec),
    and returns the bytes of each memory. Every plan is verified; those of graphs of some hundred tensors are mostly proved smallest.

    alignment      of every tensor [byte]
    graph_module   its `input_mem_buffer_sizes` are left free at the beginning of each memory, for submodules
    extra_padding  bytes behind each memory

    planner and options are those of `memplan.plan`; functools.partial, or `with_options`, sets them."""
    reserved = list(getattr(graph_module, "input_mem_buffer_sizes", None) or [])
    memories: Dict[int, List[Any]] = {}
    inside: List[Any] = []
    everything = list(specs)
    for spec in everything:
        spec.realign(alignment)
        spec.mem_id = DEFAULT_MEMORY if spec.mem_id is None else spec.mem_id
        if _base(spec)[0] is not spec:
            inside.append(spec)
        else:
            memories.setdefault(spec.mem_id, []).append(spec)
    times = [t for spec in everything for t in spec.lifetime if t is not None] or [0]
    sizes = [0] * (max(list(memories) + [DEFAULT_MEMORY]) + 1)
    for memory, held in memories.items():
        start = reserved[memory] if memory < len(reserved) else 0
        start += -start % alignment
        placed = [spec for spec in held if spec.allocated_memory > 0]
        end = 0
        if placed:
            found = plan([_lifetime(spec, min(times), max(times)) for spec in placed], [spec.allocated_memory for spec in placed],
                         align=alignment, planner=planner, **options)
            end = found.bytes
            for spec, offset in zip(placed, found.offsets):
                spec.mem_offset = start + int(offset)
        for number, spec in enumerate(held):
            spec.mem_obj_id = number
            if spec.allocated_memory == 0:
                spec.mem_offset = start
        sizes[memory] = start + end + extra_padding
    for spec in inside:
        base, offset = _base(spec)
        if base.mem_offset is None:
            raise InputError("a tensor lies inside another that is not planned with it")
        spec.mem_id, spec.mem_obj_id, spec.mem_offset = base.mem_id, base.mem_obj_id, base.mem_offset + offset
    return sizes


def with_options(**options: Any) -> Any:
    """`algorithm` with options of `memplan.plan`, such as planner="exact", budget=10**9."""
    return functools.partial(algorithm, **options)
