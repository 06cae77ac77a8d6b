"""Plans of TVM's Unified Static Memory Planner, as JSON that memplan reads.

  import usmp_dump
  usmp_dump.register("plan.json", "greedy_by_size")     or greedy_by_conflicts, hill_climb
  with tvm.transform.PassContext(config={"tir.disable_vectorize": True, "tir.usmp.enable": True,
                                         "tir.usmp.custom_algorithm": "memplan_dump"}):
      tvm.relay.build(..)                               executor aot, runtime crt

Needs a TVM that has USMP; the wheels that PyPI has for Python 3.11 do not. Written from TVM's published source, and not run with it.
"""

import json

import tvm


def as_row(buffer, placed, index):
    return {
        "name_hint": str(buffer.name_hint),
        "size_bytes": int(buffer.size_bytes),
        "alignment": int(buffer.alignment),
        "conflicts": sorted({index[hash(other)] for other in buffer.conflicts}),
        "pool_name": str(placed.pool_info.pool_name),
        "byte_offset": int(placed.byte_offset),
    }


def register(path, algorithm):
    plan = tvm.get_global_func("tir.usmp.algo." + algorithm)

    def dump(buffers, memory_pressure):
        placed = plan(buffers, memory_pressure)
        index = {hash(buffer): i for i, buffer in enumerate(buffers)}  # an object's hash is its address
        rows = [as_row(buffer, placed[buffer], index) for buffer in buffers]
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"usmp": 1, "algorithm": algorithm, "buffers": rows}, out)
        return placed

    tvm.register_func("tir.usmp.algo.memplan_dump", dump, override=True)
