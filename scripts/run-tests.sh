#!/usr/bin/env bash
# Runs test programs from the project's root and adds their results up.
#
#   scripts/run-tests.sh BUILD_FOLDER TEST_PROGRAM..
#
# Prints each program's own output where it fails, its skips always, one line a program, and last
# `N passed, N failed, N skipped` over all. Exit status 1 when anything failed.
set -u
build=${1:?usage: scripts/run-tests.sh BUILD_FOLDER TEST_PROGRAM..}
shift
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export MEMPLAN=${MEMPLAN:-$build/memplan}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} DNNL_VERBOSE=0
# threads that wait must not burn the cores of the other tests
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
for program in "$@"; do
    start=${EPOCHREALTIME/[.,]/}
    "$program" >"$log" 2>&1
    status=$?
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [^0-9]' "$log")
    # cmocka lists each failure twice (where it happens, and at the end) when it closes in order
    ended=$(grep -c '^\[==========\] .*test(s) run' "$log")
    [ "$ended" = 0 ] || bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test(s), listed below:.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    left=$(grep -c '^\[  SKIPPED \] [^0-9]' "$log")
    [ "$ended" = 0 ] || left=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test(s), listed below:.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
    grep '^skip: ' "$log"
    if [ $status -ne 0 ]; then
        cat "$log"
        echo "$program: exit status $status"
    fi
    tenths=$(((${EPOCHREALTIME/[.,]/} - start + 50000) / 100000))
    printf '%-44s %4d passed %3d failed %3d skipped  %3d.%d s\n' "${program##*/}" "$ok" "$bad" "$left" \
        $((tenths / 10)) $((tenths % 10))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
