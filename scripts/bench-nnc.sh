#!/usr/bin/env bash
# bench-nnc.sh MEMPLAN MOST: the time in which nnc_2018 plans 10,000 buffers: networks, drawn lists, and chains in which thousands of
# buffers have equally many interferences. Median of 3; exit 1 if one is above MOST seconds.
set -eu
memplan=$1 most=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# list NAME SPAN SIZES: 10,000 buffers that live up to SPAN steps (2: a chain) and have one of so many sizes.
list() {
    awk -v span="$2" -v sizes="$3" 'function draw(n) { seed = (seed * 16807) % 2147483647; return seed % n }
        BEGIN {
            seed = 5
            print "id,lower,upper,size"
            for (i = 0; i < 10000; i++) {
                from = span == 2 ? i : draw(20000); to = from + (span == 2 ? 2 : 1 + draw(span))
                printf "b%d,%d,%d,%d\n", i, from, to, 64 * (1 + draw(sizes))
            }
        }' >"$folder/$1.csv"
}

list drawn 120 4096
list drawn_few_sizes 3000 16
list chain 2 1
list chain_few_sizes 2 8
list chain_sizes 2 100000
worst=0
for graph in series_parallel:ops=10000 layered:ops=10000 lstm:layers=2,steps=238 "$folder"/*.csv; do
    times=$(for _ in 1 2 3; do
        "$memplan" plan "$graph" --safety parallel --planner nnc_2018 | awk '/^time/ {print $2}'
    done | sort -n | tr '\n' ' ')
    echo "$times" | awk -v name="$(basename "$graph")" -v most="$most" \
        '{printf "%-28s %8.0f ms (%.0f to %.0f)\n", name, $2, $1, $3; exit !($2 <= 1000 * most)}' || worst=1
done
exit $worst
