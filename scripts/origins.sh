#!/usr/bin/env bash
# Holds what the texts quote of others to results/published.tsv: prints each breach as FILE:LINE: what, and nothing else.
#
#   scripts/origins.sh [FILE ..]      PAPER.md and results/APPENDIX.md
#
# Each line of the table says where its value comes from: `published: ` and where, `reported by ` a repository or `computed by us: `
# of what. Each <!-- quoted:SOURCE -->VALUE of a text is a value of that source there; `quoted:asked` is a limit that we set ourselves.
# Exit status 1: a breach.
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- PAPER.md results/APPENDIX.md
awk -F '\t' '
    function breach(what) { print FILENAME ":" FNR ": " what; found = 1 }
    FILENAME ~ /published.tsv$/ {
        if ($0 ~ /^#/ || $1 == "graph") next
        if ($7 !~ /^(published: |reported by |computed by us: )./) breach("no origin: " $7)
        there[$6 SUBSEP $5]
        next
    }
    {
        line = $0
        while (match(line, /<!-- quoted:[^ ]* -->[^<]*/)) {
            mark = substr(line, RSTART + 12, RLENGTH - 12)
            line = substr(line, RSTART + RLENGTH)
            source = value = mark
            sub(/ .*/, "", source)
            sub(/^[^ ]* -->/, "", value)
            if (source != "asked" && !((source SUBSEP value) in there))
                breach("results/published.tsv has no " value " of " source)
        }
    }
    END { exit found }' results/published.tsv "$@"
