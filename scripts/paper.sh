#!/usr/bin/env bash
# Measures what results/paper asks for, then makes all tables, figures and the numbers of PAPER.md and results/APPENDIX.md from it: `make paper`.
#
#   scripts/paper.sh MEMPLAN BENCH_SPEED BENCH_EXACT
#
# A suite's rows are rewritten whole, results/raw/NAME.jsonl. A suite whose first line says `# needs FOLDER ..: ..`, of
# what scripts/data.sh brings, keeps its committed rows where a folder lacks. A line `# again with NAME=VALUE ..` has the suite measured once more in that environment,
# its rows behind the others; a line `# and COMMAND OPTION ..` gives each of its graphs to memplan COMMAND, too, which
# prints rows with --json; `# only COMMAND OPTION ..`: to that alone, with the options behind the graph. A library to be preloaded that is not there is said, and its rows lack. Timings differ from run to run; they stand in rows' *_ns and in columns that begin
# with ~. Everything else stays as it is. ONLY='NAME ..', names or patterns: those suites alone are measured, no table beside them.
set -eu
cd "$(dirname "$0")/.."
export MEMPLAN_DATA; MEMPLAN_DATA=$(scripts/data.sh --where)
memplan=$1 bench_speed=$2 bench_exact=$3

# lacks SUITE: the folders that it needs and that are not there
lacks() {
    sed -n '1s/^# needs \([^:]*\):.*/\1/p' "$1" | tr ' ' '\n' | while read -r folder; do
        [ -z "$folder" ] || [ -d "$MEMPLAN_DATA/$folder" ] || printf ' %s' "$MEMPLAN_DATA/$folder"
    done
}

# measure SUITE ROWS [NAME=VALUE ..]: appends the suite's rows; 1 is of rows that are not ok, which say why
measure() {
    local suite=$1 rows=$2 status=0
    shift 2
    env "$@" "$memplan" bench "$suite" -q -o "$rows" || status=$?
    [ "$status" -le 1 ] || exit "$status"
}

# measure_again SUITE ROWS: in each environment that the suite names
measure_again() {
    sed -n 's/^# again with //p' "$1" | while read -r -a settings; do
        library=$(printf '%s\n' "${settings[@]}" | sed -n 's/^LD_PRELOAD=//p')
        if [ -n "$library" ] && ! env LD_PRELOAD="$library" true 2>&1 | (! grep -q .); then
            echo "paper: no $library here; rows of $1 with it are left out" >&2
            continue
        fi
        measure "$1" "$2" "${settings[@]}"
    done
}

# measure_by WORD SUITE ROWS: appends the rows of `# WORD COMMAND OPTION ..` for each graph of a suite that has such a line
measure_by() {
    local -a command graph
    grep -q "^# $1 " "$2" || return 0
    read -r -a command <<<"$(sed -n "s/^# $1 *//p" "$2")"
    grep -vE '^(#|--|$)' "$2" | awk -v word="$1" 'word == "only" || !seen[$1]++ { print word == "only" ? $0 : $1 }' | while read -r -a graph; do
        row=$("$memplan" "${command[0]}" "${graph[@]//\{data\}/$MEMPLAN_DATA}" --json "${command[@]:1}" </dev/null) || {
            echo "paper: memplan ${command[0]} ${graph[*]} failed" >&2
            continue
        }
        printf '%s\n' "${row//"$MEMPLAN_DATA"/"{data}"}" >>"$3"
    done
}

# wanted NAME: whether ONLY names it, or nothing
wanted() {
    local - pattern
    set -f
    [ -n "${ONLY-}" ] || return 0
    for pattern in $ONLY; do
        # shellcheck disable=SC2053
        [[ $1 != $pattern ]] || return 0
    done
    return 1
}

mkdir -p results/raw results/tables results/figures
for suite in results/paper/*.suite; do
    name=$(basename "$suite" .suite) rows=results/raw/$(basename "$suite" .suite).jsonl
    wanted "$name" || continue
    grep -qvE '^(#|--|$)' "$suite" || continue # measured by another program
    lack=$(lacks "$suite")
    if [ -n "$lack" ]; then
        echo "paper: no$lack here, make data brings it; $rows stays as it is" >&2
        continue
    fi
    start=$(date +%s)
    rm -f "$rows.new"
    if ! grep -q '^# only ' "$suite"; then
        measure "$suite" "$rows.new"
        measure_again "$suite" "$rows.new"
    fi
    measure_by and "$suite" "$rows.new"
    measure_by only "$suite" "$rows.new"
    mv "$rows.new" "$rows"
    echo "paper: $rows, $(wc -l <"$rows") rows, $(($(date +%s) - start)) s"
done
if [ -n "${ONLY-}" ]; then
    "$memplan" paper
    exit
fi
scripts/bench-speed.sh "$bench_speed" >/dev/null
if [ -d "$MEMPLAN_DATA/minimalloc" ]; then
    # ticks, so that how far a search comes does not depend on the machine; the clock only ends what hangs
    "$bench_exact" -k 4000000000 -l 300 -o results/tables/exact.tsv >/dev/null
    "$bench_exact" -k 4000000000 -l 300 -m -b -s 5 -o results/tables/exact_seeds.tsv \
        "$MEMPLAN_DATA"/minimalloc/[A-K].*.csv >/dev/null
else
    echo "paper: no $MEMPLAN_DATA/minimalloc here, make data brings it; results/tables/exact.tsv and exact_seeds.tsv stay as they are" >&2
fi
"$memplan" plot densenet121 --planner nnc_arena -o results/figures/plan_densenet121.svg
"$memplan" paper
