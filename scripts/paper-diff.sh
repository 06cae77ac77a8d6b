#!/usr/bin/env bash
# After `make paper`: what differs from the commit beyond times. Times are columns that begin with ~ or end in _ms or _mb
# (benchmarks' own tables), fields of rows that memplan diff takes for times, and the figures of time. Exit status 1: something.
#
#   scripts/paper-diff.sh [MEMPLAN]
set -u
cd "$(dirname "$0")/.."
memplan=${1:-build/memplan}
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
found=0

# without_times FILE: its lines, with the cells of timed columns and what only aligns columns taken out
without_times() {
    awk -v tsv="${1##*.}" '
    BEGIN { FS = tsv == "tsv" ? "\t" : "|" }
    function head(   i) { for (i in timed) delete timed[i]
                          for (i = 1; i <= NF; i++) timed[i] = $i ~ /^ *~/ || $i ~ /_m[sb]$/ }
    { table = tsv == "tsv" || /^\|/
      if (!table) { print; was = 0; next }
      if (!was) head()
      was = 1
      line = ""
      for (i = 1; i <= NF; i++) { cell = timed[i] ? "" : $i; gsub(/^[ :-]+| +$|^-+:?$/, "", cell); line = line "|" cell }
      print line }' "$1"
}

for file in $(git ls-files 'results/tables/*' PAPER.md results/APPENDIX.md); do
    git show "HEAD:$file" >"$old/a.${file##*.}" 2>/dev/null || continue
    diff <(without_times "$old/a.${file##*.}") <(without_times "$file") >"$old/said" || {
        echo "$file"
        head -5 "$old/said"
        found=1
    }
done
for file in $(git ls-files 'results/raw/*.jsonl'); do
    git show "HEAD:$file" >"$old/rows.jsonl" 2>/dev/null || continue
    "$memplan" diff "$old/rows.jsonl" "$file" >"$old/said" 2>&1 || {
        echo "$file"
        head -5 "$old/said"
        found=1
    }
done
[ $found -eq 0 ] && echo "paper-diff: nothing but times"
exit $found
