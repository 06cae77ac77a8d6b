#!/usr/bin/env bash
# How old is what was measured? A line for each file of results/ with rows that are more than COMMITS commits old.
#
#   scripts/stale.sh [COMMITS]      50; 0: every file
#
# How old its oldest row is; how many are older than COMMITS, of how many; the file; `of N machines` where they are of several. The commit
# is a row's own (raw/), a line's (reliability.csv), or that which last wrote the file (tables that other programs make). A commit that
# is not in this history, as rows have that were measured before a rebase, is `unknown` and counts as older. Exit status 0.
set -u
cd "$(dirname "$0")/.."
most=${1:-50} unknown=999999
declare -A age

# tell FILE MACHINES: reads `ROWS COMMIT` lines
tell() {
    local n commit all=0 old=0 oldest=0
    while read -r n commit; do
        if [ -z "${age[$commit]-}" ]; then
            age[$commit]=$unknown
            ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null || age[$commit]=$(git rev-list --count "$commit..HEAD")
        fi
        all=$((all + n)) old=$((old + (age[$commit] > most ? n : 0)))
        oldest=$((age[$commit] > oldest ? age[$commit] : oldest))
    done
    [ "$old" -gt 0 ] || [ "$most" -eq 0 ] || return 0
    printf '%7s  %5d of %5d rows  %s%s\n' "$oldest" "$old" "$all" "$1" "$([ "$2" -le 1 ] || echo ", of $2 machines")"
}

{
    for rows in results/raw/*.jsonl; do
        tell "$rows" "$(grep -o '"host":"[^"]*"' "$rows" | sort -u | wc -l)" \
            < <(sed 's/.*"commit":"\([0-9a-f]*\)".*/\1/' "$rows" | sort | uniq -c)
    done
    tell results/reliability.csv 1 < <(awk -F, 'NR > 1 && $(NF - 1) != "" { print 1, $(NF - 1) }' results/reliability.csv)
    for table in $(sed -n 's/^#! [a-z]* [a-z_0-9]* \([a-z_0-9]*\.tsv\).*/\1/p' results/paper/*.suite | sort -u) search.tsv claims.tsv; do
        tell "results/tables/$table" 1 < <(git log -1 --format='1 %h' -- "results/tables/$table")
    done
} | sort -k 1,1rn | sed "s/^ *$unknown/unknown/"
