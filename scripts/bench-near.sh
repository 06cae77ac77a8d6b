#!/usr/bin/env bash
# bench-near.sh MEMPLAN MOST: the time in which a list of 1,000 drawn buffers, one of which has doubled, is planned near the plan of
# the list as it was. Median of 15; exit 1 above MOST milliseconds.
set -eu
memplan=$1 most=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for twice in 0 500; do
    awk -v twice=$twice 'function draw(n) { seed = (seed * 16807) % 2147483647; return seed % n }
        BEGIN {
            seed = 5
            print "id,lower,upper,size"
            for (i = 1; i <= 1000; i++) {
                from = draw(2000); to = from + 1 + draw(120); bytes = 64 * (1 + draw(4096))
                printf "b%d,%d,%d,%d\n", i, from, to, i == twice ? 2 * bytes : bytes
            }
        }' >"$folder/$twice.csv"
done
"$memplan" plan "$folder/0.csv" --planner greedy_size -o "$folder/old.json" >"$folder/out"
for _ in $(seq 15); do
    "$memplan" plan "$folder/500.csv" --near "$folder/old.json" -o "$folder/new.json" | awk '/^time/ {print $4}'
done | sort -n >"$folder/times"
"$memplan" diff "$folder/old.json" "$folder/new.json" 2>/dev/null | sed -n '1s/.*: //p' || true
awk -v most="$most" '{t[NR] = $1} END {printf "%s ms for 1,000 buffers, median of %d\n", t[8], NR; exit !(t[8] <= most)}' "$folder/times"
