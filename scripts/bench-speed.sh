#!/usr/bin/env bash
# Plan time and memory of the planners of lists against the number of buffers: results/tables/speed.tsv, which
# `memplan paper` draws. The recorded lists beside the project are measured too, where they are.
#
#   scripts/bench-speed.sh PROGRAM       the benchmark, tests/bench_speed
set -eu
cd "$(dirname "$0")/.."
table=results/tables/speed.tsv
new=$(mktemp)
trap 'rm -f "$new"' EXIT
mkdir -p results/tables
data=$(scripts/data.sh --where)
lists=$(ls "$data"/idealloc/*.csv "$data"/minimalloc/[A-Z].*.csv 2>/dev/null || true)
[ -n "$lists" ] || echo "bench-speed: no recorded lists beside the project; their lines are left out" >&2

# shellcheck disable=SC2086 # one word a list
"$1" -p none,pool,owl,mxnet,greedy_size,greedy_breadth,best_fit,first_fit $lists | tee "$new"
cp "$new" "$table"
