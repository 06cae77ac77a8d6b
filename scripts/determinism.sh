#!/usr/bin/env bash
# Whether the bytes of plans depend on anything but the problem and the seed: every planner plans networks and lists by
# programs from gcc -O0, gcc -O3 and clang, with address space randomised as it is, and 100 times by one of them.
#
#   scripts/determinism.sh FOLDER [RUNS [O0 O3]]     builds into FOLDER; RUNS default 100; O0, O3, say build/debug, build/release,
#                                                    have programs already, which then stand in the place of gcc -O0's, -O3's;
#                                                    of clang's, what makes no plan is then compiled without optimising
set -u
cd "$(dirname "$0")/.."
folder=$1
runs=${2:-100}
jobs=$(nproc)
differ=0
plans=0

build() { # build NAME COMPILER FLAGS [THERE [REST]]: without CUDA, which plans need not, so that such a build is tried too
    if [ -n "${4:-}" ]; then
        rm -rf "${folder:?}/$1" && ln -s "$(realpath "$4")" "$folder/$1"
        return
    fi
    [ ! -L "$folder/$1" ] || rm "$folder/$1"
    CUDA_HOME=/nonexistent make -s -j"$jobs" "$folder/$1/memplan" MODE=release CC="$2" FLAGS_release="$3 -DMPL_CHECK=0" \
        PLACING= REST="${5:-}" B="$folder/$1" || exit 2
}
mkdir -p "$folder"
build gcc-O0 gcc -O0 "${3:-}"
build gcc-O3 gcc -O3 "${4:-}"
build clang clang -O2 "" ${3:+-O0}

plan() { # plan PROGRAM-FOLDER OUTPUT ARGUMENTS..: exit status of the program; the plan where there is one
    local program=$folder/$1/memplan out=$2
    shift 2
    rm -f "$out"
    "$program" plan "$@" --reproducible --quiet --budget 2000000 -o "$out" >/dev/null 2>&1
    status=$?
    [ -e "$out" ] || echo "exit $status" >"$out"
}

cases=()
for graph in resnet18 densenet121 inception_v1 lstm:layers=2,steps=8 mlp; do
    cases+=("$graph --safety serial" "$graph --safety parallel")
done
for file in tests/data/*.csv "$(scripts/data.sh --where)"/minimalloc/[AK].*.csv; do
    case $file in *.before.csv | *.tensors.csv) continue ;; esac
    [ -e "$file" ] && cases+=("$file --safety serial")
done

planners=$("$folder/gcc-O3/memplan" list planners --json | sed -nE 's/.*"name": *"([^"]*)".*/\1/p')
for planner in $planners; do
    for case in "${cases[@]}"; do
        # shellcheck disable=SC2086 # a case is words
        for build in gcc-O0 gcc-O3 clang; do
            plan "$build" "$folder/$build.json" $case --planner "$planner"
        done
        plans=$((plans + 3))
        if ! cmp -s "$folder/gcc-O0.json" "$folder/gcc-O3.json" || ! cmp -s "$folder/gcc-O0.json" "$folder/clang.json"; then
            echo "determinism: $planner on $case: compilers differ"
            differ=$((differ + 1))
        fi
    done
    for run in $(seq "$runs"); do
        plan gcc-O3 "$folder/again.json" densenet121 --planner "$planner"
        [ "$run" -gt 1 ] || cp "$folder/again.json" "$folder/first.json"
        if ! cmp -s "$folder/again.json" "$folder/first.json"; then
            echo "determinism: $planner: run $run differs from the first"
            differ=$((differ + 1))
            break
        fi
    done
    plans=$((plans + runs))
done
echo "determinism: $plans plans, $(wc -w <<<"$planners") planners, ${#cases[@]} problems, $differ differ"
[ "$differ" -eq 0 ]
