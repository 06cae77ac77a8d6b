#!/usr/bin/env python3
"""Plans of ONNX models by tinygrad, TVM Relax or IREE, as each of them writes or prints them.

  onnx_programs.py tinygrad|relax|iree FOLDER MODEL.onnx ..

tinygrad: a CSV a lane of its planner, the calls of its suballocator in order. relax: the module after StaticPlanBlockMemory. iree:
the functions before and after LayoutSlices. Each needs its producer and onnx; the compilers run without making code.
"""

import os
import subprocess
import sys

import onnx


def name_of(path):
    folder, base = os.path.split(path)
    return (os.path.basename(folder) if base == "model.onnx" else base.removesuffix(".onnx")).replace(".", "_")


def shapes_of(model):
    """{input: (dims, numpy type)} without weights; a symbolic dim is 1."""
    weights = {w.name for w in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name not in weights:
            kind = value.type.tensor_type
            dims = [d.dim_value or 1 for d in kind.shape.dim]
            found[value.name] = dims, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return found


def tinygrad(path, folder):
    from tinygrad import Tensor, dtypes
    from tinygrad.nn.onnx import OnnxRunner
    from tinygrad.schedule import memory

    lanes, original = [], memory.TLSFAllocator

    class Recorder(original):
        def __init__(self, *words, **more):
            super().__init__(*words, **more)
            self.rows, self.open, self.now = [], {}, 0
            lanes.append(self)

        def alloc(self, size, *words, **more):
            offset = super().alloc(size, *words, **more)
            self.now += 1
            self.open[offset] = len(self.rows)
            self.rows.append([self.now, None, size, offset])
            return offset

        def free(self, offset):
            self.now += 1
            self.rows[self.open.pop(offset)][1] = self.now
            super().free(offset)

    memory.TLSFAllocator = Recorder
    kinds = {"float32": dtypes.float32, "int64": dtypes.int64, "int32": dtypes.int32, "bool": dtypes.bool, "float16": dtypes.float16,
             "uint8": dtypes.uint8, "int8": dtypes.int8}
    feeds = {name: Tensor.zeros(*dims, dtype=kinds[kind.name]).contiguous().realize() for name, (dims, kind) in shapes_of(onnx.load(path)).items()}
    lanes.clear()
    results = [r for r in OnnxRunner(path)(feeds).values() if isinstance(r, Tensor)]
    results[0].schedule_linear(*results[1:]) if hasattr(results[0], "schedule_linear") else results[0].schedule(*results[1:])
    memory.TLSFAllocator = original
    lane = max((one for one in lanes if one.rows), key=lambda one: sum(r[2] for r in one.rows))
    with open(os.path.join(folder, name_of(path) + ".csv"), "w", encoding="utf-8") as out:
        out.write("id,lower,upper,size,alignment,offset\n")
        for i, (born, died, size, offset) in enumerate(lane.rows):
            out.write(f"{i},{born},{died or lane.now + 1},{size},256,{offset}\n")


def relax(path, folder):
    import tvm
    from tvm import relax as rx
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(path)
    module = from_onnx(model, shape_dict={n: d for n, (d, _) in shapes_of(model).items()}, keep_params_in_input=True)
    t = rx.transform
    passes = [t.DecomposeOpsForInference(), t.LegalizeOps(), t.AnnotateTIROpPattern(), t.FoldConstant(), t.FuseOps(), t.FuseTIR(),
              t.ToNonDataflow(), t.RemovePurityChecking(), t.CallTIRRewrite(), t.StaticPlanBlockMemory()]
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm"):
        module = tvm.transform.Sequential(passes)(module)
    text = module.script(show_meta=False)
    with open(os.path.join(folder, name_of(path) + ".txt"), "w", encoding="utf-8") as out:
        out.write("@R.function\n" + text.split("@R.function\n", 1)[1])


def iree(path, folder):
    where = os.path.dirname(sys.executable)
    model = onnx.version_converter.convert_version(onnx.load(path), 17) if onnx.load(path).opset_import[0].version < 17 else onnx.load(path)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = dim.dim_value or 1
    whole, mlir = (os.path.join(folder, name_of(path) + end) for end in (".tmp.onnx", ".tmp.mlir"))
    onnx.save(model, whole)
    subprocess.run([os.path.join(where, "iree-import-onnx"), whole, "-o", mlir], check=True, capture_output=True)
    done = subprocess.run([os.path.join(where, "iree-compile"), mlir, "--iree-input-type=onnx", "--iree-hal-target-device=local",
                           "--iree-hal-local-target-device-backends=llvm-cpu", "--compile-to=stream", "-o", os.devnull,
                           "--mlir-print-ir-before=iree-stream-layout-slices", "--mlir-print-ir-after=iree-stream-layout-slices",
                           "--mlir-elide-elementsattrs-if-larger=8", "--mlir-disable-threading"], check=True, capture_output=True, text=True)
    os.remove(whole), os.remove(mlir)
    with open(os.path.join(folder, name_of(path) + ".mlir"), "w", encoding="utf-8") as out:
        out.write("\n".join(line[:4000] for line in done.stderr.splitlines()) + "\n")


def main():
    what, folder, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    if len(paths) > 1:  # a process each: what one model leaves behind, or breaks, is not the next one's
        for path in paths:
            done = subprocess.run([sys.executable, __file__, what, folder, path], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"{what}: {name_of(path)}: {(done.stderr.strip() or 'killed').splitlines()[-1][:300]}", file=sys.stderr, flush=True)
        return
    try:
        globals()[what](paths[0], folder)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{os.path.basename(error.cmd[0])}: {str(error.stderr).strip().splitlines()[0][:300]}")


if __name__ == "__main__":
    main()
