#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is to check and measure; from a bundle (make bundle) or the project's folder.
#
#   gpu-check.sh OUT_FOLDER
#
# Runs the conformance tests, the main suite on `cuda` (with streams and as CUDA graphs) and compute-sanitizer over the
# conformance tests, and the same networks in PyTorch where it is installed; each leaves its log or rows in OUT_FOLDER, and
# summary.txt says what passed. cuDNN and cuBLAS may lie in
# Python's packages: they are looked for there. Needs a driver; installs nothing.
# Exit status: 0 all passed; 1 something failed; 4 no device here.
set -u
out=${1:?usage: gpu-check.sh OUT_FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
if [ -x "$here/memplan" ]; then
    memplan=$here/memplan tests=$here/bin path=$here/lib
else
    here=$(cd "$here/.." && pwd)
    memplan=$here/build/memplan tests=$here/build/release/tests path=
fi
cd "$here" || exit 1

# Folders of NVIDIA's Python packages, of whichever python3 has them.
nvidia=$(python3 - <<'PYTHON' 2>/dev/null
import glob, site, sys
for root in site.getsitepackages() + [p for p in sys.path if p.endswith("-packages")]:
    print("\n".join(glob.glob(root + "/nvidia/*/lib")))
PYTHON
)
for folder in $nvidia; do
    [ ! -e "$folder/libcudnn.so.9" ] || export MEMPLAN_CUDNN=${MEMPLAN_CUDNN:-$folder}
    path=${path:+$path:}$folder
done
path=${path:+$path:}${LD_LIBRARY_PATH-}
# ours COMMAND..: with our libraries and NVIDIA's; PyTorch is left with its own
ours() { LD_LIBRARY_PATH=$path "$@"; }

ours "$memplan" list backends | tee "$out/backends.txt"
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
    step "test_$test" ours timeout 900 "$tests/test_runtime_$test"
done
rm -f "$out/main.jsonl" "$out/main-graph.jsonl"
step main ours timeout 1800 "$memplan" bench main --backends cuda -o "$out/main.jsonl"
step main_graph ours timeout 1800 "$memplan" bench main --backends cuda --device graph=on -o "$out/main-graph.jsonl"
for graph in resnet50 resnet50:batch=64 densenet121 inception_v3 lstm; do
    name=${graph//[:=]/_}
    step "show_$name" ours timeout 300 "$memplan" show "$graph" --backend cuda
    step "serial_$name" ours timeout 300 "$memplan" run "$graph" --backend cuda --repeat 20 --json
    step "graph_$name" ours timeout 300 "$memplan" run "$graph" --backend cuda --device graph=on --repeat 20 --json
    step "parallel_$name" ours timeout 300 "$memplan" run "$graph" --backend cuda --safety parallel --repeat 20 --json
done
step checked ours timeout 900 "$memplan" run resnet50 --backend cuda --checked --repeat 1 --json

# The same networks in PyTorch, where it is: peaks without weights and inputs, and times; one JSON object a line.
torch() {
    python3 - <<'PYTHON'
import json, time, torch, torchvision
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
for name, batch, image in [("resnet50", 1, 224), ("resnet50", 64, 224), ("densenet121", 1, 224), ("inception_v3", 1, 299)]:
    extra = {"init_weights": False} if name == "inception_v3" else {}
    net = getattr(torchvision.models, name)(weights=None, **extra).cuda().eval()
    x = torch.randn(batch, 3, image, image, device="cuda")
    with torch.inference_mode():
        for _ in range(5):
            net(x)
        torch.cuda.synchronize()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        times = []
        for _ in range(20):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(); net(x); end.record(); torch.cuda.synchronize()
            times.append(round(begin.elapsed_time(end) * 1e6))
    print(json.dumps({"graph": name, "batch": batch, "torch": torch.__version__, "weights_and_inputs": held,
                      "allocated_bytes": torch.cuda.max_memory_allocated() - held,
                      "reserved_bytes": torch.cuda.max_memory_reserved(), "run_ns": times}), flush=True)
    del net, x
    torch.cuda.empty_cache()
PYTHON
}
if python3 -c 'import torch, torchvision' 2>/dev/null; then
    step torch torch
else
    echo "skip: no PyTorch with torchvision here" | tee -a "$out/summary.txt"
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck initcheck; do
        step "sanitizer_$tool" ours timeout 1800 "$sanitizer" --tool $tool --error-exitcode 9 "$tests/test_runtime_ops"
    done
else
    echo "skip: compute-sanitizer is not here" | tee -a "$out/summary.txt"
fi
exit $failed
