#!/usr/bin/env bash
# Layouts by measured times beside --layout plain and auto: planned bytes and time, on one thread, by turns.
#
#   scripts/tuned.sh MEMPLAN OUT.tsv [TURNS [RUNS]]
#
# Each network is timed (`memplan tune`), then run under the three layouts in turn, TURNS (15) times RUNS (3); a time is the median
# over the turns of a turn's median. A ratio is the median over the turns of that turn's ratio. `~sum_ms` is the sum of
# operations' and reorders' times as chosen; `~bound_ms` that of each operation's least time in any layout, without reorders, which
# no choice goes below.
set -u
program=${1:?usage: scripts/tuned.sh MEMPLAN OUT.tsv [TURNS [RUNS]]}
out=${2:?usage: scripts/tuned.sh MEMPLAN OUT.tsv [TURNS [RUNS]]}
turns=${3:-15} runs=${4:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number() { grep -o "\"$1\":[0-9.]*" "$2" | head -1 | cut -d: -f2; }
median() { sort -g "$1" | awk '{x[NR] = $1} END {if (NR > 0) print x[int((NR + 1) / 2)]; else print "-"}'; }

# one LAYOUT: the median of its runs, in milliseconds
one() {
    local layout=(--layout "$1")
    [ "$1" != tuned ] || layout+=(--op-times "$work/times.tsv")
    "$program" run "$network" --planner greedy_size -b cpu --threads 1 "${layout[@]}" \
        --repeat "$runs" --json >"$work/row.json" 2>"$work/err" || { tail -1 "$work/err" >&2; return 1; }
    number planned_bytes "$work/row.json" >"$work/$1.bytes"
    grep -o '"run_ns":\[[0-9,]*' "$work/row.json" | cut -d'[' -f2 | tr ',' '\n' >"$work/runs"
    median "$work/runs" | awk '{printf "%.4f\n", $1 / 1e6}'
}

printf 'network\tplain_MiB\tauto_MiB\ttuned_MiB\t~plain_ms\t~auto_ms\t~tuned_ms\t~tuned_over_auto\t~sum_ms\t~bound_ms\n' >"$out.new"
for network in resnet18 resnet50 densenet121 inception_v3 vgg16 squeezenet mobilenet_v2 shufflenet_v2 mcunet unet; do
    "$program" tune "$network" --op-times "$work/times.tsv" --threads 1 >"$work/tune" 2>"$work/err" ||
        { echo "tuned: $network: $(tail -1 "$work/err")" >&2; continue; }
    rm -f "$work"/*.ms "$work/ratio"
    for ((i = 0; i < turns; i++)); do
        for layout in plain auto tuned; do one $layout >>"$work/$layout.ms" || continue 3; done
        paste "$work/tuned.ms" "$work/auto.ms" | tail -1 | awk '{print $1 / $2}' >>"$work/ratio"
    done
    {
        printf '%s' "$network"
        for layout in plain auto tuned; do awk '{printf "\t%.3f", $1 / 1048576}' "$work/$layout.bytes"; done
        for layout in plain auto tuned; do printf '\t%.2f' "$(median "$work/$layout.ms")"; done
        printf '\t%.3f' "$(median "$work/ratio")"
        sed -nE 's/.*: tuned, ([0-9.]+) ms.* than ([0-9.]+) ms.*/\t\1\t\2/p' "$work/tune"
    } >>"$out.new"
    echo "tuned: $network: done" >&2
done
awk -F '\t' 'NR > 1 {s += log($8); n++} END {if (n > 0) printf "geometric mean\t\t\t\t\t\t\t%.3f\t\t\n", exp(s / n)}' "$out.new" >>"$out.new"
mv "$out.new" "$out"
