#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is to check and measure; from a bundle (make bundle) or the project's folder.
#
#   gpu-check.sh OUT_FOLDER
#
# Runs the conformance tests, the main suite on `cuda` (with streams and as CUDA graphs) and compute-sanitizer over the
# conformance tests; each leaves its log or rows in OUT_FOLDER, and summary.txt says what passed. cuDNN and cuBLAS may lie in
# Python's packages: they are looked for there. Needs a driver; installs nothing.
# Exit status: 0 all passed; 1 something failed; 4 no device here.
set -u
out=${1:?usage: gpu-check.sh OUT_FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
if [ -x "$here/memplan" ]; then
    memplan=$here/memplan tests=$here/bin
    export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # for the tests, which have no path of their own
else
    here=$(cd "$here/.." && pwd)
    memplan=$here/build/memplan tests=$here/build/release/tests
fi
cd "$here"

# Folders of NVIDIA's Python packages, of whichever python3 has them.
nvidia=$(python3 - <<'PYTHON' 2>/dev/null
import glob, site, sys
for root in site.getsitepackages() + [p for p in sys.path if p.endswith("-packages")]:
    print("\n".join(glob.glob(root + "/nvidia/*/lib")))
PYTHON
)
for folder in $nvidia; do
    [ ! -e "$folder/libcudnn.so.9" ] || export MEMPLAN_CUDNN=${MEMPLAN_CUDNN:-$folder}
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done

"$memplan" list backends | tee "$out/backends.txt"
if grep -q '^cuda.*(absent' "$out/backends.txt"; then
    echo "gpu-check: no device to check" | tee "$out/summary.txt"
    exit 4
fi
nvidia-smi -q -d CLOCK,POWER,PERFORMANCE >"$out/nvidia-smi.txt" 2>&1

failed=0
: >"$out/summary.txt"
# step NAME COMMAND..: its output in OUT/NAME.log, its end in the summary
step() {
    local name=$1 start status
    shift
    start=$(date +%s)
    "$@" >"$out/$name.log" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=1
    echo "$name: exit $status, $(($(date +%s) - start)) s" | tee -a "$out/summary.txt"
}

for test in ops conformance exec; do
    step "test_$test" timeout 900 "$tests/test_runtime_$test"
done
rm -f "$out/main.jsonl" "$out/main-graph.jsonl" "$out/main-tf32.jsonl"
step main timeout 1800 "$memplan" bench main --backends cuda -o "$out/main.jsonl"
step main_graph timeout 1800 "$memplan" bench main --backends cuda --device graph=on -o "$out/main-graph.jsonl"
for graph in resnet50 resnet50:batch=64 densenet121 inception_v3 lstm; do
    name=${graph//[:=]/_}
    step "show_$name" timeout 300 "$memplan" show "$graph" --backend cuda
    step "serial_$name" timeout 300 "$memplan" run "$graph" --backend cuda --repeat 20 --json
    step "graph_$name" timeout 300 "$memplan" run "$graph" --backend cuda --device graph=on --repeat 20 --json
    step "parallel_$name" timeout 300 "$memplan" run "$graph" --backend cuda --safety parallel --repeat 20 --json
done
step checked timeout 900 "$memplan" run resnet50 --backend cuda --checked --repeat 1 --json

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck initcheck; do
        step "sanitizer_$tool" timeout 1800 "$sanitizer" --tool $tool --error-exitcode 9 "$tests/test_runtime_ops"
    done
else
    echo "skip: compute-sanitizer is not here" | tee -a "$out/summary.txt"
fi
exit $failed
