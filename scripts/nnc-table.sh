#!/usr/bin/env bash
# Plans what libnnc's allocator was recorded on, by its planners under both safeties, and writes
# results/tables/nnc.md (every planner on the networks) and results/tables/nnc_published.md (ours beside the recorded values).
#
#   scripts/nnc-table.sh [PROGRAM]       default build/memplan
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/memplan}
rows=results/raw/nnc.jsonl
suite=$(mktemp)
trap 'rm -f "$suite"' EXIT
mkdir -p results/raw results/tables
rm -f "$rows"

networks="resnet50 vgg16 densenet121 inception_v3 lstm:layers=1"
for safety in serial parallel; do
    {
        echo "--backends none"
        echo "--safety $safety"
        printf '%s\n' $networks
    } >"$suite"
    "$program" bench "$suite" -q -o "$rows"
done
"$program" table planned --rows "$rows" -o results/tables/nnc.md
{
    echo "--backends none"
    echo "--planners nnc_2018,nnc_2019,nnc_arena,greedy_size"
    ls ../shared/data/libnnc/*.tensors.csv ../shared/data/minimalloc/[A-Z].*.csv 2>/dev/null ||
        echo "nnc-table: no recorded problems beside the project; their lines are left out" >&2
} >"$suite"
if grep -q '\.csv$' "$suite"; then
    "$program" bench "$suite" -q -o "$rows"
fi
"$program" table published --rows "$rows" -o results/tables/nnc_published.md
