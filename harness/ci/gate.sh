#!/usr/bin/env bash
# Holds plans to the optimum, a baseline or earlier plans, and writes what CI shows of it.
#
#   harness/ci/gate.sh PLAN|FOLDER..
#
# A plan in any format of `memplan list formats`; of a folder every plan in it. From the environment:
#   AGAINST       optimum (default), a baseline, another plan, or a folder with the earlier plans under the same names
#   TOLERANCE     how far above that a plan may be (0%)
#   MAX_SLOWDOWN  how much longer planning may have taken, for plan files of memplan (not looked at)
#   OUT           folder for comment.md (a table, and what failed) and NAME.xml (JUnit) of each plan (memplan-gate)
#   MEMPLAN       the program (memplan)
# Exit status: 0 all is well; 1 a plan is beyond, slower or wrong; 2 bad input; 3 undecided; the worst of them: 2, 1, 3.
set -u
[ $# -gt 0 ] || { echo "usage: harness/ci/gate.sh PLAN|FOLDER.." >&2; exit 2; }
memplan=${MEMPLAN:-memplan} out=${OUT:-memplan-gate}
mkdir -p "$out" || exit 2
options=(--against "${AGAINST:-optimum}" --tolerance "${TOLERANCE:-0%}")
[ -z "${MAX_SLOWDOWN-}" ] || options+=(--max-slowdown "$MAX_SLOWDOWN")
: >"$out/table"
: >"$out/failed"
n=0 worst=0

weight() { case $1 in 0) echo 0 ;; 3) echo 1 ;; 1) echo 2 ;; *) echo 3 ;; esac; }

# gate PLAN
gate() {
    local name status
    name=$(basename "$1")
    "$memplan" check --plan "$1" "${options[@]}" --markdown "$out/one" --junit "$out/$name.xml" >"$out/log" 2>&1
    status=$?
    cat "$out/log"
    if [ "$n" -eq 0 ]; then cat "$out/one"; else tail -n +3 "$out/one"; fi >>"$out/table"
    # indented, so that no text of a plan is markup in the comment
    [ "$status" -eq 0 ] || tail -1 "$out/log" | sed 's/^/    /' >>"$out/failed"
    [ "$(weight "$status")" -le "$(weight "$worst")" ] || worst=$status
    n=$((n + 1))
}

for path; do
    if [ -d "$path" ]; then
        for plan in "$path"/*; do
            # companions of a plan, such as an order beside its list, are no plans: 2 with the list of formats
            if [ -f "$plan" ] && ! "$memplan" check --plan "$plan" -q 2>&1 </dev/null | grep -q 'no plan that memplan knows'; then
                gate "$plan"
            fi
        done
    else
        gate "$path"
    fi
done
[ "$n" -gt 0 ] || { echo "gate: no plan in $*" >&2; exit 2; }
{
    echo "### Memory plans: $n, held to ${AGAINST:-the optimum}"
    echo
    cat "$out/table"
    [ ! -s "$out/failed" ] || { echo; cat "$out/failed"; }
} >"$out/comment.md"
rm -f "$out/one" "$out/log" "$out/table" "$out/failed"
[ -z "${GITHUB_STEP_SUMMARY-}" ] || cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"
exit "$worst"
