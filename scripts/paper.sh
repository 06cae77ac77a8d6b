#!/usr/bin/env bash
# Measures what results/paper asks for, then makes all tables, figures and the numbers of PAPER.md from it: `make paper`.
#
#   scripts/paper.sh MEMPLAN BENCH_SPEED BENCH_EXACT
#
# A suite's rows are rewritten whole, results/raw/NAME.jsonl. A suite whose first line says `# needs FOLDER ..: ..` keeps its
# committed rows where a folder lacks. Timings differ from run to run; they stand in rows' *_ns and in columns that begin
# with ~. Everything else stays as it is.
set -eu
cd "$(dirname "$0")/.."
memplan=$1 bench_speed=$2 bench_exact=$3

# lacks SUITE: the folders that it needs and that are not there
lacks() {
    sed -n '1s/^# needs \([^:]*\):.*/\1/p' "$1" | tr ' ' '\n' | while read -r folder; do
        [ -z "$folder" ] || [ -d "$folder" ] || printf ' %s' "$folder"
    done
}

mkdir -p results/raw results/tables results/figures
for suite in results/paper/*.suite; do
    rows=results/raw/$(basename "$suite" .suite).jsonl
    grep -qvE '^(#|--|$)' "$suite" || continue # measured by another program
    lack=$(lacks "$suite")
    if [ -n "$lack" ]; then
        echo "paper: no$lack here; $rows stays as it is" >&2
        continue
    fi
    start=$(date +%s) status=0
    rm -f "$rows.new"
    "$memplan" bench "$suite" -q -o "$rows.new" || status=$?
    [ "$status" -le 1 ] || exit "$status" # 1: rows that are not ok, which say why
    mv "$rows.new" "$rows"
    echo "paper: $rows, $(wc -l <"$rows") rows, $(($(date +%s) - start)) s"
done
scripts/bench-speed.sh "$bench_speed" >/dev/null
if [ -d ../shared/data/minimalloc ]; then
    # ticks, so that how far a search comes does not depend on the machine; the clock only ends what hangs
    "$bench_exact" -k 4000000000 -l 300 -o results/tables/exact.tsv >/dev/null
    "$bench_exact" -k 4000000000 -l 300 -m -b -s 5 -o results/tables/exact_seeds.tsv \
        ../shared/data/minimalloc/[A-K].*.csv >/dev/null
else
    echo "paper: no ../shared/data/minimalloc here; results/tables/exact.tsv and exact_seeds.tsv stay as they are" >&2
fi
"$memplan" plot densenet121 --planner nnc_arena -o results/figures/plan_densenet121.svg
"$memplan" paper
