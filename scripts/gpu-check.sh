#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is to check and measure; from a bundle (make bundle) or the project's folder.
#
#   gpu-check.sh OUT_FOLDER
#
# Runs the conformance tests, the suite `gpu` (ResNet-50, DenseNet-121, Inception-v3, LSTM and a training step under every planner,
# with streams and as CUDA graphs in turns), the main suite, compute-sanitizer over the conformance tests, and the
# same networks in PyTorch where it is installed; each leaves its log or rows in OUT_FOLDER, tables.md compares them and summary.txt
# says what passed. cuDNN and cuBLAS may lie in Python's packages: they are looked for there. Needs a driver; installs nothing.
# For trials: MEMPLAN (the program), MEMPLAN_TESTS (the folder of its tests), GPU_SUITES, GPU_GRAPHS, PYTHON.
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
memplan=${MEMPLAN:-$memplan} tests=${MEMPLAN_TESTS:-$tests} python=${PYTHON:-python3}
suites=${GPU_SUITES-gpu main} graphs=${GPU_GRAPHS-resnet50 resnet50:batch=64 densenet121 inception_v3 lstm resnet50:batch=16,mode=train}
cd "$here" || exit 1

# Folders of NVIDIA's Python packages, of whichever python3 has them.
nvidia=$("$python" - <<'PYTHON' 2>/dev/null
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
rm -f "$out"/*.jsonl
for suite in $suites; do
    name=$(basename "$suite" .suite)
    step "bench_$name" ours timeout 3000 "$memplan" bench "$suite" --backends cuda --device graph=both -o "$out/$name.jsonl"
    step "bench_${name}_parallel" ours timeout 3000 "$memplan" bench "$suite" --backends cuda --safety parallel \
        --planners greedy_size -o "$out/${name}_parallel.jsonl"
done
# one GRAPH NAME OPTIONS..: one row more, in NAME.jsonl
one() {
    local graph=$1 name=$2
    shift 2
    ours timeout 600 "$memplan" run "$graph" --backend cuda --planner greedy_size --json "$@" >"$out/row.json" || return
    cat "$out/row.json" >>"$out/$name.jsonl"
}
for graph in $graphs; do
    name=${graph//[:=,]/_}
    step "show_$name" ours timeout 300 "$memplan" show "$graph" --backend cuda --workspaces plan
    step "checked_$name" ours timeout 900 "$memplan" run "$graph" --backend cuda --planner greedy_size --checked --repeat 1 --json
    step "least_$name" one "$graph" algorithms --workspaces plan --algorithms least --repeat 20
    step "tf32_$name" one "$graph" math --device tf32=on --repeat 20
    step "fp16_$name" one "$graph" math --device fp16=on --repeat 20
done
rm -f "$out/row.json"

# A row's outputs equal or it has a status of its own; bench tells neither by its exit status.
rows_ok() {
    local bad
    bad=$(cat "$out"/*.jsonl | grep -cvE '"status":"(ok|unavailable)"')
    echo "$bad of $(cat "$out"/*.jsonl | wc -l) rows are neither ok nor unavailable"
    cat "$out"/*.jsonl | grep -vE '"status":"(ok|unavailable)"' | grep -oE '"(graph|planner|reason)":"[^"]*"'
    [ "$bad" -eq 0 ]
}
step rows rows_ok
for table in gpu allocators; do
    for rows in "$out"/*.jsonl; do
        printf '\n## %s: ' "$(basename "$rows" .jsonl)"
        ours "$memplan" table $table -r "$rows"
    done
done >"$out/tables.md" 2>&1

# The same networks in PyTorch, where it is: peaks without weights and inputs, and times; one JSON object a line.
torch() {
    "$python" - >"$out/torch.json" <<'PYTHON'
import json, torch, torchvision
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True

def measure(name, step):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(); step(); end.record(); torch.cuda.synchronize()
        times.append(round(begin.elapsed_time(end) * 1e6))
    print(json.dumps({"graph": name, "torch": torch.__version__, "held_bytes": held,
                      "allocated_bytes": torch.cuda.max_memory_allocated() - held,
                      "reserved_bytes": torch.cuda.max_memory_reserved(), "run_ns": times}), flush=True)
    torch.cuda.empty_cache()

def network(name):
    extra = {"init_weights": False} if name == "inception_v3" else {}
    return getattr(torchvision.models, name)(weights=None, **extra).cuda()

for graph, name, batch, image in [("resnet50", "resnet50", 1, 224), ("resnet50:batch=64", "resnet50", 64, 224),
                                  ("densenet121", "densenet121", 1, 224), ("inception_v3", "inception_v3", 1, 299)]:
    net, x = network(name).eval(), torch.randn(batch, 3, image, image, device="cuda")
    with torch.inference_mode():
        measure(graph, lambda: net(x))
lstm, x = torch.nn.LSTM(256, 256, 2).cuda().eval(), torch.randn(32, 64, 256, device="cuda")
with torch.inference_mode():
    measure("lstm (its own sizes: 2 layers, 32 steps, batch 64, 256 wide)", lambda: lstm(x))
net, x = network("resnet50").train(), torch.randn(16, 3, 224, 224, device="cuda")
y, optimiser = torch.randint(1000, (16,), device="cuda"), torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
def train():
    optimiser.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimiser.step()
measure("resnet50:batch=16,mode=train", train)
PYTHON
}
# Peak and time of both, a line a graph; the goal: a peak below PyTorch's allocated bytes, a time of at most 1.05 of its own.
beside_torch() {
    "$python" - "$out" <<'PYTHON'
import glob, json, statistics, sys
ours = {}
for path in sorted(glob.glob(sys.argv[1] + "/*.jsonl")):
    for line in open(path):
        row = json.loads(line)
        if row["status"] == "ok" and row["math"] == "f32" and row["planned_bytes"] and row["run_ns"]:
            best = ours.get(row["graph"])
            if best is None or row["planned_bytes"] < best["planned_bytes"]:
                ours[row["graph"]] = row
print("| graph | planned + workspace MiB | PyTorch allocated MiB | reserved MiB | peak | run ms | replayed ms | PyTorch ms | time |")
print("|---|---|---|---|---|---|---|---|---|")
for line in open(sys.argv[1] + "/torch.json"):
    peer = json.loads(line)
    row = ours.get(peer["graph"])
    if row is None:
        continue
    peak = row["planned_bytes"] + row["workspace_bytes"]
    run = statistics.median(row["run_ns"])
    replay = statistics.median(row["replay_ns"]) if row.get("replay_ns") else None
    theirs = statistics.median(peer["run_ns"])
    print("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %s | %.3f | %.3f |" % (
        peer["graph"], peak / 2**20, peer["allocated_bytes"] / 2**20, peer["reserved_bytes"] / 2**20,
        peak / max(peer["allocated_bytes"], 1), run / 1e6, "%.3f" % (replay / 1e6) if replay else "-",
        theirs / 1e6, min(run, replay or run) / theirs))
PYTHON
}
if "$python" -c 'import torch, torchvision; assert torch.cuda.is_available()' 2>/dev/null; then
    step torch torch
    beside_torch >>"$out/tables.md"
else
    echo "skip: no PyTorch with torchvision and CUDA here" | tee -a "$out/summary.txt"
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
