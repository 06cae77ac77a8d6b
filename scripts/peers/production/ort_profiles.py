#!/usr/bin/env python3
"""ONNX Runtime's memory patterns: session profiles of ONNX models, as `memplan check` reads them.

  ort_profiles.py FOLDER MODEL.onnx ..     needs onnxruntime 1.32 or later and numpy; writes NAME.json, of two runs on zeros

The first run allocates tensor by tensor, the second has one block, the pattern. Models that do not run so (their second run allocates
anew, as shapes are not known beforehand) give a profile without a pattern, which is named and left out.
"""

import os
import sys


def profile(path, folder, optimised=None):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.intra_op_num_threads, options.log_severity_level = True, 1, 4
    name = os.path.basename(os.path.dirname(path)) if os.path.basename(path) == "model.onnx" else os.path.basename(path).removesuffix(".onnx")
    options.profile_file_prefix = os.path.join(folder, "run")
    if optimised is not None:
        options.optimized_model_filepath = optimised
    net = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    kinds = {"float": "float32", "double": "float64"}
    feeds = {}
    for value in net.get_inputs():
        kind = value.type.removeprefix("tensor(").removesuffix(")")
        feeds[value.name] = numpy.zeros([d if isinstance(d, int) else 1 for d in value.shape], kinds.get(kind, kind))
    try:
        for _ in range(2):
            net.run(None, feeds)
    finally:
        os.replace(net.end_profiling(), os.path.join(folder, name.replace(".", "_") + ".json"))


def main():
    folder, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for path in paths:
        try:
            profile(path, folder)
        except Exception as why:  # whatever the runtime refuses, the others are measured
            print(f"ort: {path}: {str(why).splitlines()[0][:200]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
