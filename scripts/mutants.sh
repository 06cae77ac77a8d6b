#!/usr/bin/env bash
# Plants FAULTS faults a file (20), drawn by SEED (1), one at a time, and runs the tests of its room until one fails.
#
#   scripts/mutants.sh BUILD_FOLDER RESULTS FILE..      after `make` of the tests and the program in BUILD_FOLDER
#
# The faults are those of mutants.awk. One that does not compile, or that compiles to the same program, is drawn anew. One that
# mutants.tsv names (file, line, line with the fault, reason) is known to change nothing that matters. Tests run in the order of what they
# have caught in the file, then by their time, the room's for 20 seconds in all; each has three times the processor's time that it needs without a fault.
# What none of them catches runs once more with the file under the sanitizers, as CI has it.
# A line of RESULTS is one draw: file, its checksum, seed, line, outcome, test, what, original, with the fault. What stands there is not
# done again until the file changes; AGAIN=1 runs those that live once more. TESTS: these instead of the room's.
# Exit status 1 when more than 5 % of a file's faults live, or of all.
set -u
build=${1:?usage: scripts/mutants.sh BUILD_FOLDER RESULTS FILE..}
results=${2:?usage: scripts/mutants.sh BUILD_FOLDER RESULTS FILE..}
shift 2
files=("$@")
faults=${FAULTS:-20} seed=${SEED:-1}
known=scripts/mutants.tsv
. scripts/plant.sh
flags=${flags/-O1 -g/-O2 -fmacro-prefix-map=$work/=}
export MEMPLAN=$work/memplan OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive DNNL_VERBOSE=0
touch "$results" "$build/mutants.times"
ar rcs "$work/help.a" "$build"/tests/{random_control,random_places,tagged_run,tagged_memory,tagged_graph,tagged_rules,cuda_fake,cuda_fake_kernels,cuda_fake_run,cudnn_host}.o || exit 2

# Those that judge what a file does, whatever their room; then the tests of its room.
judges_of() {
    local judges=
    case $1 in
    graphs/problem/control/store_* | graphs/problem/control/storage.c) judges='planners_{places,loops} runtime_{control,random_control}' ;;
    graphs/problem/cuts.c) judges='runtime_{concat,concat_choices,layout}' ;;
    graphs/*) judges='planners_{judge,families}' ;;
    planners/verify/verify_[fu]*) judges='planners_{places,where,units,loops,judge_control} runtime_random_control' ;;
    planners/verify/verify_graph.c) judges='planners_judge runtime_{concat,concat_choices,parallel}' ;;
    planners/verify/verify.c | planners/verify/verify_c[lo]*.c) judges='planners_{verify,judge,families,spill}' ;;
    planners/*) judges='planners_{certify,certify_general}' ;;
    runtime/*) judges='runtime_{exec,layout}' ;;
    harness/*) judges='harness_{check,cli}' ;;
    esac
    eval "printf 'test_%s\n' $judges"
}
tests_of() {
    [ -z "${TESTS-}" ] || { printf '%s\n' $TESTS; return; }
    { judges_of "$1"; ls "$build/tests" | sed -n "s/^\(test_${1%%/*}_.*\)\.o$/\1/p"; } | sort -u
}

# run TEST SECONDS: the test with what $work/fault.o is
run() {
    link "$work/$1" "$build/tests/$1.o" "$work/help.a" || return 99
    [[ $1 != test_harness_* ]] || link "$MEMPLAN" "$build/harness/main.o" || return 99
    (ulimit -t "$2" -v "${room-16000000}" -f 1000000 && timeout $((20 * $2)) "$work/$1") >"$work/log" 2>&1
}

# The seconds that a test needs without a fault, once for each state of it; none: it fails here, or takes too long.
time_of() { # test
    local key seconds
    key="$1 $(cat "$build/tests/$1.o" "$build/libmemplan.a" | cksum)"
    seconds=$(sed -n "s/^$key //p" "$build/mutants.times" | tail -n 1) # two runs at once may have written it twice
    if [ -z "$seconds" ]; then
        TIMEFORMAT='%U %S'
        seconds=$({ time run "$1" 60 || echo none >&2; } 2>&1 | awk '/none/ {n = 1} END {print n ? "none" : $1 + $2}')
        echo "$key $seconds" >>"$build/mutants.times"
    fi
    [ "$seconds" = none ] || echo "$seconds"
}

# Tests of a file, those first that have caught most of its faults; of the many others the quick ones, for 20 seconds.
in_order() {
    awk -F '\t' -v file="$1" 'FILENAME == ARGV[1] {if ($1 == file) n[$6]++; next} {split($1, t, " "); print n[t[2]] + 0, $1}' \
        "$results" "$work/times" | sort -k1,1nr -k2,2n | awk '(sum += $2) < 20 || $4 == "judge"'
}

caught_by() { # file
    local seconds test
    while read -r _ seconds test _; do
        run "$test" "$(awk -v s="$seconds" 'BEGIN {print int(3 * s + 3)}')" && continue
        [ $? != 99 ] && echo "$test" || echo unlinked
        return
    done < <(in_order "$1")
}

# What lives is compiled as CI's sanitizers have it, and run once more: it may read or write beside an array.
caught_by_sanitizers() { # file
    local checks='-fsanitize=address,undefined -fno-sanitize-recover=all'
    flags="${flags/-O2/-O1 -g} $checks" compile "$work/$1" "$work/fault.o" || exit 2
    libs="$libs $checks" room=unlimited ASAN_OPTIONS=hard_rss_limit_mb=8000:protect_shadow_gap=0 caught_by "$1"
}

is_known() { # file, original, changed
    cut -f1-3 $known 2>/dev/null | grep -qxF "$1"$'\t'"$2"$'\t'"$3"
}

# Rows of the file as it stands, by outcome (a pattern).
count() { # file, pattern
    awk -F '\t' -v key="$1 $sum $seed" -v want="$2" '$1 " " $2 " " $3 == key && $5 ~ want {n++} END {print n + 0}' "$results"
}

draw() { # file, line, what, changed line
    local was now outcome by=
    was=$(sed -n "$2{s/^ *//;p}" "$1") now=$(sed 's/^ *//' <<<"$4")
    if grep -qF "$1"$'\t'"$sum"$'\t'"$seed"$'\t'"$2"$'\t' "$results" &&
        awk -F '\t' -v row="$1"$'\t'"$sum"$'\t'"$seed"$'\t'"$2" -v what="$3" '
            BEGIN {getline now <"/dev/stdin"} index($0, row "\t") == 1 && $7 == what && $9 == now {f = 1} END {exit !f}' \
            "$results" <<<"$now"; then
        return
    fi
    awk -v line="$2" 'BEGIN {getline text <"/dev/stdin"} FNR == line {$0 = text} {print}' "$1" <<<"$4" >"$work/$1"
    if ! compile "$work/$1" "$work/fault.o"; then
        outcome=uncompiled
    elif cmp -s "$work/fault.o" "$work/whole.o"; then
        outcome=same
    elif is_known "$1" "$was" "$now"; then
        outcome=equal
    else
        by=$(caught_by "$1")
        [ -n "$by" ] || by=$(caught_by_sanitizers "$1")
        [ "$by" != unlinked ] || { cat "$work/log"; exit 2; }
        outcome=$([ -n "$by" ] && echo caught || echo LIVES)
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$sum" "$seed" "$2" "$outcome" "${by:--}" "$3" "$was" "$now" >>"$results"
    [ $outcome != LIVES ] || echo "$1:$2: $3 LIVES: $was   ->   $now"
}

# Rows of other states of the file go, and with AGAIN those that live.
forget() {
    awk -F '\t' -v OFS='\t' -v file="$1" -v key="$1 $sum $seed" -v again="${AGAIN-}" \
        '$1 != file || ($1 " " $2 " " $3 == key && !(again != "" && $5 == "LIVES"))' "$results" >"$work/kept" && cp "$work/kept" "$results"
}

plant() { # file
    local sum test judges seconds line what changed
    sum=$(cksum <"$1" | tr ' ' -)
    forget "$1"
    mkdir -p "$work/$(dirname "$1")"
    cp "$1" "$work/$1"
    compile "$work/$1" "$work/whole.o" && cp "$work/whole.o" "$work/fault.o" || { cat "$work/log"; exit 2; }
    judges=$(judges_of "$1")
    for test in $(tests_of "$1"); do
        seconds=$(time_of "$test")
        [ -z "$seconds" ] || echo "$seconds $test $(grep -qx "$test" <<<"$judges" && echo judge)"
    done >"$work/times"
    while [ "$(count "$1" 'caught|LIVES|equal')" -lt "$faults" ] && IFS=$'\t' read -r _ line what changed; do
        draw "$1" "$line" "$what" "$changed"
    done < <(awk -v seed="$seed" -f scripts/mutants.awk "$1" | sort -n)
}

for file in "${files[@]}"; do
    plant "$file" </dev/null
done
awk -F '\t' -v list="${files[*]}" -v seed="$seed" '
    function tell(name, planted, caught, equal, live, same) {
        printf "%-34s %5d planted %5d caught %3d equal %3d live %4d were the same program\n", name, planted, caught, equal, live, same
        if (20 * live > planted - equal)
            bad = 1
    }
    $3 == seed {n[$1, $5]++}
    END {
        files = split(list, file, " ")
        for (i = 1; i <= files; i++) {
            f = file[i]
            caught += n[f, "caught"]; equal += n[f, "equal"]; live += n[f, "LIVES"]; same += n[f, "same"]
            tell(f, n[f, "caught"] + n[f, "equal"] + n[f, "LIVES"], n[f, "caught"], n[f, "equal"], n[f, "LIVES"], n[f, "same"])
        }
        bad = 0
        tell("all", caught + equal + live, caught, equal, live, same)
        exit bad
    }' "$results"
