#!/usr/bin/env bash
# shellcheck disable=SC2317 # steps are called by their names
# What a machine with an NVIDIA GPU is to check and measure; from a bundle (make bundle) or the project's folder.
#
#   gpu-check.sh [--only STEP,..] [--limit SECONDS] OUT_FOLDER
#   gpu-check.sh --list | --help
#
# Steps, in this order: what the machine is and has; small networks in every way of running them; the conformance tests;
# the suites `gpu` (ResNet-50, DenseNet-121, Inception-v3, LSTM and a training step under every planner, with streams and as CUDA
# graphs in turns) and `main`; each network's workspaces, checked run, algorithms and math; the same networks in PyTorch
# where it is installed; rows and tables; compute-sanitizer over the conformance tests. No step stops the others. Each
# leaves its log in OUT_FOLDER/NAME.log and its line in OUT_FOLDER/summary.txt; rows lie in *.jsonl, tables in tables.md.
#
#   --only STEP,..   these steps alone (patterns as 'test_*'), beside what OUT_FOLDER has: for machines that end a
#                    command after some minutes. A suite goes on where it was when its time was up.
#   --limit SECONDS  of one step (540); one that takes longer ends with 124
#   --list           the names of the steps
#
# cuDNN and cuBLAS may lie in Python's packages: they are looked for there. Needs a driver; installs nothing.
# For trials: MEMPLAN (the program), MEMPLAN_TESTS (the folder of its tests), GPU_FIRST, GPU_SUITES,
# GPU_GRAPHS, GPU_PARTS, PYTHON.
# Exit status: 0 all steps that ran passed; 1 something failed; 2 wrong usage; 4 no device here.
set -u
usage() { sed -n '3,/^set -u/{/^set -u/!s/^# \{0,1\}//p}' "$0"; }
only='*' limit=540 list=0 out=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --list) list=1 ;;
    --only) only=${2-} && shift ;;
    --limit) limit=${2-} && shift ;;
    -*) echo "gpu-check: no option $1; --help tells" >&2 && exit 2 ;;
    *) out=$1 ;;
    esac
    [ $# -eq 0 ] || shift
done
case $limit in '' | *[!0-9]*) echo "gpu-check: --limit takes a number of seconds" >&2 && exit 2 ;; esac
if [ $list -eq 0 ] && [ -z "$out" ]; then
    echo "usage: gpu-check.sh [--only STEP,..] [--limit SECONDS] OUT_FOLDER; --help tells more" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
if [ -x "$here/memplan" ]; then
    memplan=$here/memplan tests=$here/bin path=$here/lib
else
    here=$(cd "$here/.." && pwd)
    memplan=$here/build/memplan tests=$here/build/release/tests path=
fi
memplan=${MEMPLAN:-$memplan} tests=${MEMPLAN_TESTS:-$tests} python=${PYTHON:-python3} parts=${GPU_PARTS:-4}
suites=${GPU_SUITES-gpu main} graphs=${GPU_GRAPHS-resnet50 resnet50:batch=64 densenet121 inception_v3 lstm resnet50:batch=16,mode=train}

small=${GPU_FIRST-mnist_conv:batch=2 mnist_conv:batch=3,image=8,mode=train,update=momentum lstm:layers=2,steps=3,hidden=8,batch=2}

name_of() { basename "$1" .suite | tr ':=,' '___'; }
steps() {
    local suite graph tool kind part
    echo machine first test_ops test_conformance test_exec
    for suite in $suites; do
        echo "bench_$(name_of "$suite")" "bench_$(name_of "$suite")_parallel"
    done
    for graph in $graphs; do
        for kind in show checked least tf32 fp16; do
            echo "${kind}_$(name_of "$graph")"
        done
    done
    echo torch rows tables
    for tool in memcheck racecheck initcheck; do
        for ((part = 1; part <= parts; part++)); do
            echo "sanitizer_${tool}_$part"
        done
    done
}
if [ $list -eq 1 ]; then
    steps | tr ' ' '\n'
    exit 0
fi
wanted() {
    local pattern
    local IFS=,
    set -f
    for pattern in $only; do
        # shellcheck disable=SC2254 # it is a pattern
        case $1 in $pattern) set +f && return 0 ;; esac
    done
    set +f
    return 1
}
any=0
for name in $(steps); do
    ! wanted "$name" || any=1
done
if [ $any -eq 0 ]; then
    echo "gpu-check: no step '$only'; --list names them" >&2
    exit 2
fi
mkdir -p "$out/one" "$out/ends" || exit 1
out=$(cd "$out" && pwd)
cd "$here" || exit 1
[ "$only" != '*' ] || rm -f "$out"/*.jsonl "$out"/one/* "$out"/ends/*

# Folders of NVIDIA's Python packages, of whichever python3 has them.
nvidia=$("$python" - <<'PYTHON' 2>/dev/null
import glob, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + [p for p in sys.path if p.endswith("-packages")]
for root in dict.fromkeys(roots):
    print("\n".join(glob.glob(root + "/nvidia/*/lib")))
PYTHON
)
for folder in $nvidia; do
    [ ! -e "$folder/libcudnn.so.9" ] || export MEMPLAN_CUDNN=${MEMPLAN_CUDNN:-$folder}
    path=${path:+$path:}$folder
done
[ -z "${LD_LIBRARY_PATH-}" ] || path=${path:+$path:}$LD_LIBRARY_PATH
# ours COMMAND..: with our libraries and NVIDIA's; PyTorch is left with its own
ours() { LD_LIBRARY_PATH=$path timeout -k 10 "$limit" "$@"; }

ours "$memplan" list backends >"$out/backends.txt" 2>&1
cat "$out/backends.txt"
if ! grep -q '^cuda' "$out/backends.txt" || grep -q '^cuda.*(absent' "$out/backends.txt"; then
    echo "gpu-check: no device to check" | tee "$out/summary.txt"
    exit 4
fi

# ---- the steps ----

machine() {
    nvidia-smi || echo "no nvidia-smi here"
    nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,COMPUTE,MEMORY
    echo "LD_LIBRARY_PATH=$path"
    echo "MEMPLAN_CUDNN=${MEMPLAN_CUDNN-}"
    uname -a
    ours "$memplan" list backends
}

# Networks of a second, each way once, so that what is wrong everywhere is seen at once.
first() {
    local limit=60
    local graph options bad=0
    for graph in $small; do
        for options in "" "--device graph=on" "--device graph=both" "--safety parallel" \
            "--safety parallel --device graph=both" "--checked" "--device tf32=on" "--device fp16=on" \
            "--workspaces plan --algorithms least" "--device workspace=0"; do
            echo "== $graph $options"
            # shellcheck disable=SC2086 # options are words
            ours "$memplan" run "$graph" --backend cuda --planner greedy_size --repeat 2 $options || bad=1
        done
    done
    return $bad
}

bench() { # SUITE
    ours "$memplan" bench "$1" --backends cuda --device graph=both --resume -o "$out/$(name_of "$1").jsonl"
}
bench_parallel() { # SUITE
    ours "$memplan" bench "$1" --backends cuda --safety parallel --planners greedy_size --resume \
        -o "$out/$(name_of "$1")_parallel.jsonl"
}
# one KIND GRAPH OPTIONS..: one row more
one() {
    local kind=$1 graph=$2
    shift 2
    ours "$memplan" run "$graph" --backend cuda --planner greedy_size --json "$@" >"$out/one/${kind}_$(name_of "$graph").json"
}
network() { # KIND GRAPH
    case $1 in
    show) ours "$memplan" show "$2" --backend cuda --workspaces plan ;;
    checked) ours "$memplan" run "$2" --backend cuda --planner greedy_size --checked --repeat 1 --json ;;
    least) one least "$2" --workspaces plan --algorithms least --repeat 20 ;;
    *) one "$1" "$2" --device "$1=on" --repeat 20 ;;
    esac
}

gather() {
    cat "$out"/one/least_*.json >"$out/algorithms.jsonl" 2>/dev/null
    cat "$out"/one/tf32_*.json "$out"/one/fp16_*.json >"$out/math.jsonl" 2>/dev/null
    return 0
}
# A row's outputs equal or it has a status of its own; bench tells neither by its exit status.
rows() {
    local all bad
    gather
    all=$(cat "$out"/*.jsonl | wc -l)
    bad=$(cat "$out"/*.jsonl | grep -cvE '"status":"(ok|unavailable)"')
    echo "$bad of $all rows are neither ok nor unavailable"
    cat "$out"/*.jsonl | grep -vE '"status":"(ok|unavailable)"' | grep -oE '"(graph|planner|reason)":"[^"]*"'
    [ "$all" -gt 0 ] && [ "$bad" -eq 0 ]
}
tables() {
    local table rows bad=0
    gather
    for table in gpu allocators; do
        for rows in "$out"/*.jsonl; do
            [ -s "$rows" ] || continue
            [ $table = gpu ] || grep -q '"allocators":{' "$rows" || continue
            printf '\n## %s: ' "$(basename "$rows" .jsonl)"
            ours "$memplan" table $table -r "$rows" || bad=1
        done
    done >"$out/tables.md" 2>&1
    [ ! -s "$out/torch.json" ] || beside_torch >>"$out/tables.md" || bad=1
    cat "$out/tables.md"
    return $bad
}

# The same networks in PyTorch, where it is: peaks without weights and inputs, and times; one JSON object a line.
torch() {
    if ! "$python" -c 'import torch, torchvision; assert torch.cuda.is_available()' 2>/dev/null; then
        echo "skip: no PyTorch with torchvision and CUDA here"
        return 77
    fi
    timeout -k 10 "$limit" "$python" - >"$out/torch.json" <<'PYTHON'
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

sanitized() { # TOOL PART
    local sanitizer
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || {
        echo "skip: compute-sanitizer is not here"
        return 77
    }
    MEMPLAN_TEST_BACKEND=cuda MEMPLAN_TEST_PART=$2/$parts \
        ours "$sanitizer" --tool "$1" --error-exitcode 9 "$tests/test_runtime_ops"
}

do_step() {
    local name=$1 kind suite graph
    for suite in $suites; do
        [ "$name" != "bench_$(name_of "$suite")" ] || { bench "$suite"; return; }
        [ "$name" != "bench_$(name_of "$suite")_parallel" ] || { bench_parallel "$suite"; return; }
    done
    for graph in $graphs; do
        for kind in show checked least tf32 fp16; do
            [ "$name" != "${kind}_$(name_of "$graph")" ] || { network $kind "$graph"; return; }
        done
    done
    case $name in
    test_*) ours "$tests/test_runtime_${name#test_}" ;;
    sanitizer_*) kind=${name#sanitizer_} && sanitized "${kind%_*}" "${kind##*_}" ;;
    *) "$name" ;;
    esac
}

# Its output in OUT/NAME.log, its end in the summary: one line for each step that ever ran there.
failed=0
for name in $(steps); do
    wanted "$name" || continue
    start=$(date +%s)
    do_step "$name" >"$out/$name.log" 2>&1
    status=$?
    case $status in
    0) note=$(grep -ciE '^(\[ *SKIPPED *\]|skip:)' "$out/$name.log") && note=", $note lines of it say that something was skipped" || note= ;;
    77) note=": $(tail -1 "$out/$name.log")" ;;
    124 | 137) note=": its $limit s were up" ;;
    *) note=": $(tail -1 "$out/$name.log" | cut -c1-160)" ;;
    esac
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed=1
    echo "$name: exit $status, $(($(date +%s) - start)) s$note" | tee "$out/ends/$name"
    for known in $(steps); do
        [ ! -e "$out/ends/$known" ] || cat "$out/ends/$known"
    done >"$out/summary.txt"
done
exit $failed
