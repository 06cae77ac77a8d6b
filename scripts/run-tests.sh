#!/usr/bin/env bash
# Runs test programs from the project's root, JOBS of them at a time (the cores), and adds their results up.
#
#   scripts/run-tests.sh BUILD_FOLDER TEST_PROGRAM..
#
# Prints, in the order given, each program's own output where it fails, its skips always, one line a program, what was skipped for
# want of data (scripts/data.sh) once more, and last
# `N passed, N failed, N skipped` over all. Exit status 1 when anything failed.
set -u
build=${1:?usage: scripts/run-tests.sh BUILD_FOLDER TEST_PROGRAM..}
shift
jobs=${JOBS:-$(nproc)}
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'pkill -P $$; exit 1' INT TERM
export MEMPLAN=${MEMPLAN:-$build/memplan}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} DNNL_VERBOSE=0
# A sanitizer's report names where memory was allocated and freed by fewer calls, and freed memory is kept from use for fewer
# bytes: tests that allocate much take half the time. What is undefined and stops (UNDEFINED in the Makefile) is reported with its place.
export ASAN_OPTIONS=${ASAN_OPTIONS-malloc_context_size=4:quarantine_size_mb=16:handle_sigill=1}
# threads that wait must not burn the cores of the other tests
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

# run PROGRAM NUMBER: its output, and when it has ended its exit status and its tenths of a second
run() {
    local start=${EPOCHREALTIME/[.,]/} status=0
    "$1" >"$work/$2.log" 2>&1 || status=$?
    echo "$status $(((${EPOCHREALTIME/[.,]/} - start + 50000) / 100000))" >"$work/$2.new"
    mv "$work/$2.new" "$work/$2.end"
}

report() { # PROGRAM NUMBER
    local log=$work/$2.log status tenths ok bad left ended
    read -r status tenths <"$work/$2.end"
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [^0-9]' "$log")
    # cmocka lists each failure twice (where it happens, and at the end) when it closes in order
    ended=$(grep -c '^\[==========\] .*test(s) run' "$log")
    [ "$ended" = 0 ] || bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test(s), listed below:.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    left=$(grep -c '^\[  SKIPPED \] [^0-9]' "$log")
    [ "$ended" = 0 ] || left=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test(s), listed below:.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
    grep '^skip: ' "$log"
    sed -n 's/^skip: \([a-z_0-9]*\): no build\/data.*/\1/p' "$log" >>"$work/without_data"
    if [ "$status" -ne 0 ]; then
        cat "$log"
        echo "$1: exit status $status"
    fi
    printf '%-44s %4d passed %3d failed %3d skipped  %3d.%d s\n' "${1##*/}" "$ok" "$bad" "$left" \
        $((tenths / 10)) $((tenths % 10))
}

programs=("$@")
next=0 # the first that is not reported yet
report_ended() {
    while [ $next -lt ${#programs[@]} ] && [ -e "$work/$next.end" ]; do
        report "${programs[next]}" $next
        next=$((next + 1))
    done
}
for i in "${!programs[@]}"; do
    [ "$i" -lt "$jobs" ] || wait -n
    run "${programs[i]}" "$i" &
    report_ended
done
wait
report_ended
if [ -s "$work/without_data" ]; then
    echo "skipped for want of data, which \`make data\` brings (README.md): $(sort -u "$work/without_data" | paste -sd " ")"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
