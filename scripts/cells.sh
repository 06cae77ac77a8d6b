#!/usr/bin/env bash
# Regret against cells: a range cut into 1 to MOST parts, each with its template, for what one template serves worst.
#
#   scripts/cells.sh MEMPLAN OUT.tsv [MOST]
#
# A line a number of cells: the worst regret found at a shape, and what is proved of all shapes.
set -u
program=${1:?usage: scripts/cells.sh MEMPLAN OUT.tsv [MOST]}
out=${2:?usage: scripts/cells.sh MEMPLAN OUT.tsv [MOST]}
most=${3:-6}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number() { grep -o "\"$1\":[0-9.]*" "$work/row.json" | head -1 | cut -d: -f2; }

printf 'network\tranges\tcells\tfound\tproved\tbytes\n' >"$out.new"
curve() {
    local name=$1 ranges=$2 last=0
    shift 2
    for ((k = 1; k <= most; k++)); do
        "$program" plan "$@" --cells "$k" --json -o "$work/t.json" >"$work/row.json" 2>"$work/err" &&
            "$program" certify "$work/t.json" -q || {
            echo "cells: $name, $k: $(tail -1 "$work/err")" >&2
            continue
        }
        [ "$(number n_cells)" != "$last" ] || break
        last=$(number n_cells)
        printf '%s\t%s\t%s\t%.4f\t%.4f\t%s\n' "$name" "$ranges" "$last" "$(number regret_least)" "$(number regret_most)" \
            "$(number template_bytes)" >>"$out.new"
        echo "cells: $name: $k" >&2
    done
}
batch='--dim batch=1..64'
curve encoder_decoder 'batch 1..64, seq, answer 1..512' encoder_decoder $batch --dim seq=1..512 --dim answer=1..512
curve gpt_both 'seq, past 1..4096, past+seq<=4096' gpt:mask=always,context=4096 --dim seq=1..4096 --dim past=1..4096 --dim 'past+seq<=4096'
mv "$out.new" "$out"
