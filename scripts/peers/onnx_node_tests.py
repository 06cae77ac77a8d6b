"""ONNX's own node tests of the installed release, as files: FOLDER/node/NAME/{model.onnx,test_data_set_0/*.pb}.

The package on PyPI holds the tests as programs; tests/runtime/test_runtime_conformance.c reads files:

    python3 -m venv peers && peers/bin/pip install onnx
    peers/bin/python scripts/peers/onnx_node_tests.py build/onnx
    MEMPLAN_ONNX_NODE=$PWD/build/onnx/node build/debug/tests/test_runtime_conformance
"""

import argparse
import sys
import warnings

try:
    import onnx.backend.test.case.model
    import onnx.backend.test.case.node
    from onnx.backend.test import cmd_tools
except ImportError as missing:
    sys.exit(f"onnx_node_tests: {missing}; see the line `pip install` at its head")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # the cases divide by zero on purpose
    cases = onnx.backend.test.case.node.collect_testcases(None)
    onnx.backend.test.case.model.collect_testcases = lambda: cases
    cmd_tools.generate_data(argparse.Namespace(output=args.folder))
    print(f"onnx_node_tests: {len(cases)} tests of onnx {onnx.__version__} in {args.folder}/node")


if __name__ == "__main__":
    main()
