#!/usr/bin/env bash
# The tests that CI runs in short forms, in full, once: make reliability [PARTS="fuzz_csv kills"].
#
#   scripts/reliability.sh BUILD_FOLDER FUZZ_FOLDER [PART..]      no part: all of them
#
# A part is done in pieces; what each came to stands in BUILD_FOLDER/../reliability/PART, a line `count failures seconds commit` a
# piece, and a part that was interrupted goes on behind its last piece. After every piece results/reliability.csv tells
# what has been reached. Remove a part's file to run it anew. Exit status 1 when anything failed.
set -u
cd "$(dirname "$0")/.."
build=${1:?usage: scripts/reliability.sh BUILD_FOLDER FUZZ_FOLDER [PART..]}
fuzz=${2:?usage: scripts/reliability.sh BUILD_FOLDER FUZZ_FOLDER [PART..]}
shift 2
state=$build/../reliability
table=results/reliability.csv
mkdir -p "$state"
export MEMPLAN=$build/memplan OMP_WAIT_POLICY=passive MAX_LEN=${MAX_LEN-1024}
commit=$(git rev-parse --short=12 HEAD 2>/dev/null)

# One line a part: name | how many | how many a piece | how to count what a piece's output says | what | command, where N is
# the number of the piece. The count is the sum of what the pattern finds; none: all of the piece where it succeeds.
parts=$(sed 's/^ *//' <<'END'
    mutants|10000000|10000000|s/^\([0-9]*\) changed plans.*/\1/p|mutated plans judged by the verifier and by comparing all pairs|MPL_MUTANTS=N BUILD/tests/test_planners_verify
    judged|1000000|1000000||mutated plans judged as brute force over all pairs of bytes judges them: problems and graphs|MPL_JUDGED=N BUILD/tests/test_planners_judge
    memory|5000|5000|s/^\([0-9]*\) allocations refused.*/\1/p|allocation failures: every k-th of 22 commands (plan and run and bench and certify among them)|BUILD/tests/test_harness_memory all
    kills|1000|100|s/^\([0-9]*\) kills,.*/\1/p|bench killed at random moments and resumed: no row lost or torn|BUILD/tests/test_harness_kills N
    views|100000|100000||views and in-place writes: random programs against an interpreter|BUILD/tests/test_graphs_views N
    views_run|20000|20000||views and in-place writes: random programs executed|BUILD/tests/test_runtime_views N
    ilp|1000|1000||ilp against exact: problems (and 3000 refutations)|BUILD/tests/test_planners_ilp N 3000
    exact|100000|100000||exact against brute force: problems with their certificates|BUILD/tests/test_planners_exact N
    certify_general|1000000|1000000||certificates mutated: general problems|MPL_MUTANTS=N BUILD/tests/test_planners_certify_general
    certify|1000000|1000000||certificates mutated: lists of intervals|MPL_MUTANTS=N BUILD/tests/test_planners_certify
    control|10000|10000||random loops and branches against an interpreter|CONTROL_ORACLE=N BUILD/tests/test_runtime_random_control
    valgrind|1|1|s/^\([0-9]*\) rows under valgrind.*/\1/p|rows of suite smoke made under valgrind (oneDNN held to SSE 4.1): no wrong access and no memory lost|scripts/valgrind.sh BUILD/memplan
    determinism|1|1|s/^determinism: \([0-9]*\) plans.*/\1/p|plans of 1000 runs of every planner and of three compilers: the same bytes|scripts/determinism.sh BUILD/../determinism 1000
    forgeries|1000000|1000000||certificates true and changed and forged: two checkers that share no code agree|MPL_FORGERIES=N BUILD/tests/test_planners_forgeries
    audit|1|1|s/.* rows, \([0-9]*\) comparisons.*/\1/p|dominance audit: rows of results compared with those that they must not be worse than|BUILD/memplan audit --compared 100000 results/raw/*.jsonl
    walk|1000|1000||dominance audit: graphs planned under random options and their neighbours|AUDIT_WALK=N BUILD/tests/test_harness_audit_walk
    workers|10000|10000||random graphs by several workers: outputs equal|WORKERS_ORACLE=N BUILD/tests/test_runtime_workers
    workers_tsan|1000|1000||random graphs by several workers under the thread sanitizer|make -s MODE=tsan workers-oracle WORKERS_ORACLE=N
    differential|10000|10000|s/^compared \([0-9]*\):.*/\1/p|random ONNX models: outputs beside ONNX Runtime's|${PYTHON:-python3} scripts/peers/differential.py --memplan BUILD/memplan --count N
END
    for f in tests/fuzz/fuzz_*.c; do
        f=$(basename "$f" .c)
        n=10000000
        [ "$f" != fuzz_pairs ] || n=1000000 # each plans a problem and verifies the plans: 2 ms
        echo "$f|$n|$((n / 10))|FUZZ|executions of $f|scripts/fuzz.sh FUZZ -runs=N FUZZ/$f"
    done
)

sum() { # sum PART FIELD: over the pieces of a part
    awk -v f="$2" '{n += $f} END {print n + 0}' "$state/$1" 2>/dev/null || echo 0
}

# The line of a part that was not run here stays as it is; the commit is that of its last piece.
write_table() {
    local name what
    {
        echo what,count,failures,seconds,commit,command
        while IFS='|' read -r name _ _ _ what _; do
            if [ -s "$state/$name" ]; then
                printf '%s,%s,%s,%s,%s,make reliability PARTS=%s\n' "$what" "$(sum "$name" 1)" "$(sum "$name" 2)" \
                    "$(sum "$name" 3)" "$(tail -1 "$state/$name" | cut -d ' ' -f 4)" "$name"
            else
                grep ",make reliability PARTS=$name\$" "$table" || printf '%s,,,,,make reliability PARTS=%s\n' "$what" "$name"
            fi
        done <<<"$parts"
    } >"$table.$$" && mv "$table.$$" "$table"
}

# piece NAME SIZE PATTERN COMMAND: runs it, adds its line to the part's file
piece() {
    local name=$1 size=$2 pattern=$3 command=$4 start count failed=0
    [ "$pattern" != FUZZ ] || pattern='s/^fuzz_[a-z]* *\([0-9]*\) executions.*/\1/p'
    command=${command//BUILD/$build}
    command=${command//FUZZ/$fuzz}
    command=$(sed -E "s/(^|[ =])N( |\$)/\\1$size\\2/g" <<<"$command")
    start=$(date +%s)
    bash -c "$command" >"$state/$name.log" 2>&1 </dev/null || failed=1
    count=$size
    [ -z "$pattern" ] || count=$(sed -n "$pattern" "$state/$name.log" | awk '{n += $1} END {print n + 0}')
    [ $failed -eq 0 ] || { [ -n "$pattern" ] || count=0; cp "$state/$name.log" "$state/$name.failed"; }
    echo "$count $failed $(($(date +%s) - start)) $commit" >>"$state/$name"
}

while IFS='|' read -r name wanted size pattern _ command; do
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    while [ "$(sum "$name" 1)" -lt "$wanted" ] && [ "$(sum "$name" 2)" -eq 0 ]; do
        left=$((wanted - $(sum "$name" 1)))
        piece "$name" $((left < size ? left : size)) "$pattern" "$command"
        write_table
        [ "$(sum "$name" 2)" -gt 0 ] || [ "$size" -lt "$wanted" ] || break
    done
    printf 'reliability: %-16s %9s of %s, %s failed, %s s\n' "$name" "$(sum "$name" 1)" "$wanted" "$(sum "$name" 2)" \
        "$(sum "$name" 3)"
done <<<"$parts"
write_table
! awk -F, 'NR > 1 {bad += $(NF - 3)} END {exit bad == 0}' "$table"
