#!/usr/bin/env bash
# The instance library: plans each line of harness/bench/suites/instances.suite, has each plan judged by `certify`, which knows no
# planner, and writes one line an instance: `make instances`. The same of the lines that are there: `make instances-check`.
#
#   scripts/instances.sh MEMPLAN make [PATTERN [TABLE]]      into TABLE, results/instances.tsv; lines whose name does not match stay
#   scripts/instances.sh MEMPLAN check [PATTERN [TABLE]]     lines whose name matches are made anew by the planner that they name,
#                                                            certified, and must be the same but for columns whose head begins with ~
#
# Columns: instance; kind; buffers; bytes of all of them; greatest alignment [byte]; best plan known and greatest bound proved [byte];
# status, opt or best; what proves the bound; planner and its budget of ticks; SHA-256 (16 digits) of bindings, buffers, offsets and certificate;
# milliseconds of that planner. A line of `make` is the first planner's of the ladder that proves its plan, else the best one's. Lists of
# buffers alone get the ladder's last step.
# An instance whose data is not here keeps its line, and is counted as skipped by check. Exit status 1: a line is wrong; 2: usage.
set -u
cd "$(dirname "$0")/.."
usage() { echo "usage: scripts/instances.sh MEMPLAN make|check [PATTERN [TABLE]]" >&2; exit 2; }
[ $# -ge 2 ] && memplan=$(realpath "$1") || usage
suite=harness/bench/suites/instances.suite data=$(scripts/data.sh --where) work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ladder='greedy_size 0
portfolio 100000000
exact 1000000000
exact 3000000000 list'
head='instance	kind	buffers	all_bytes	align	best_bytes	bound_bytes	status	proof	planner	budget	certificate	~ms'

field() { sed -n "1s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$1"; } # FILE FIELD: of the row that a plan file begins with

kind() { # GRAPH OPTION ..
    case "$*" in
    *mode=train*) echo training ;;
    *--safety\ parallel* | *--safety\ streams*) echo parallel ;;
    '{data}/'*.csv | '{data}/'*.csv:twin=* | guillotine:* | synthetic:*) echo list ;;
    *--in-place\ off*) echo sequence ;;
    *) echo in-place ;;
    esac
}

# line NAME PLANNER BUDGET: plans, certifies, prints its line; status 1 where there is no plan or the certifier refuses it, 77 where its
# data is not here
line() {
    local words graph plan=$work/plan.json proof=$work/proof.json budget=() status=best
    read -ra words <<<"$1"
    graph=${words[0]/'{data}'/$data}
    [[ ${words[0]} != '{data}'* ]] || [ -r "${graph%%:twin=*}" ] || return 77
    [ "$3" = 0 ] || budget=(--budget "$3")
    "$memplan" plan "$graph" "${words[@]:1}" --planner "$2" "${budget[@]}" --threads 1 -q -o "$plan" || return 1
    "$memplan" certify "$plan" --json >"$proof" || return 1
    [ "$(field "$proof" claim)" != optimal ] || status=opt
    if [ "$(field "$plan" bound_bytes)" != "$(field "$proof" bound_bytes)" ]; then
        echo "instances: $1: bound $(field "$plan" bound_bytes), of which $(field "$proof" bound_bytes) are certified" >&2
        return 1
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$(kind "$1")" \
        "$(grep -o '"birth":\|"offset":' "$plan" | grep -c offset)" "$(field "$plan" naive_bytes)" \
        "$(grep -o '"align":[0-9]*' "$plan" | sort -t : -k 2 -n | tail -1 | cut -d : -f 2)" \
        "$(field "$plan" planned_bytes)" "$(field "$proof" bound_bytes)" "$status" "$(field "$plan" bound_kind)" "$2" "$3" \
        "$(sed '1s/.*"verdict":null,//' "$plan" | sha256sum | cut -c 1-16)" \
        "$(field "$plan" plan_ns | awk '{ printf "%.1f", $1 / 1e6 }')"
}

names() { grep -v '^ *#\|^--\|^ *$' "$suite"; }

better() { # OLD NEW: the new line's plan is smaller, or as small under a greater bound, or proved
    [ -z "$1" ] || awk -F '\t' 'NR == 1 { best = $6; bound = $7 } NR == 2 { exit !($6 < best || ($6 == best && $7 > bound)) }' \
        <<<"$1"$'\n'"$2"
}

old_line() { awk -F '\t' -v name="$1" '$1 == name' "$2" 2>/dev/null; } # NAME TABLE

best_line() { # NAME: of all planners of the ladder up to the first that proves its plan; status as line
    local best= row planner budget only status=1
    while read -r planner budget only; do
        [ -z "$only" ] || [ "$(kind "$1")" = "$only" ] || continue
        row=$(line "$1" "$planner" "$budget") || { status=$?; [ $status = 77 ] && return 77; continue; }
        better "$best" "$row" && best=$row
        [ "$(cut -f 8 <<<"$row")" != opt ] || { best=$row; break; }
    done <<<"$ladder"
    printf '%s\n' "$best"
    [ -n "$best" ] || return $status
}

make_table() { # PATTERN TABLE
    local name row status wrong=0
    while read -r name; do
        status=77
        [[ $name =~ $1 ]] && { row=$(best_line "$name"); status=$?; }
        [ $status != 77 ] || { row=$(old_line "$name" "$2"); status=$?; }
        [ $status = 0 ] && [ -n "$row" ] && printf '%s\n' "$row" || wrong=1
    done < <(names) >"$work/table"
    { printf '%s\n' "$head"; cat "$work/table"; } >"$work/whole" && cp "$work/whole" "$2"
    cut -f 8 "$work/table" | sort | uniq -c | sed 's/^ */instances: /'
    return $wrong
}

known() { sed 's/\t[^\t]*$//'; } # a line without its time
check_table() { # PATTERN TABLE
    local row name planner budget again good=0 skipped=0 wrong=0 status
    diff <(names) <(tail -n +2 "$2" | cut -f 1) >&2 || { echo "instances: $2 does not have the lines of $suite" >&2; wrong=1; }
    while IFS= read -r row; do
        IFS=$'\t' read -r name _ _ _ _ _ _ _ _ planner budget _ <<<"$row"
        [[ $name =~ $1 ]] || continue
        again=$(line "$name" "$planner" "$budget") status=$?
        if [ $status = 77 ]; then
            skipped=$((skipped + 1))
        elif [ "$(known <<<"$again")" = "$(known <<<"$row")" ]; then
            good=$((good + 1))
        else
            printf 'instances: %s: not what was made anew\n  %s\n  %s\n' "$name" "$row" "$again" >&2
            wrong=$((wrong + 1))
        fi
    done < <(tail -n +2 "$2")
    echo "instances: $good certified as they stand, $wrong wrong, $skipped skipped"
    [ $wrong = 0 ]
}

case $2 in
make) make_table "${3:-}" "${4:-results/instances.tsv}" ;;
check) check_table "${3:-}" "${4:-results/instances.tsv}" ;;
*) usage ;;
esac
