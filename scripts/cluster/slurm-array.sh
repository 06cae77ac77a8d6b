#!/usr/bin/env bash
# A suite as an array job of Slurm: one shard a task, tried again where it was killed, then one file of rows.
#
#   scripts/cluster/slurm-array.sh SUITE SHARDS OUT.jsonl [BENCH_OPTION..]
#
# Prints the id of the array job. Shards write to OUT.jsonl.shards/, which all nodes must see, and --resume where a killed one
# stopped; a job that follows the array sends what is missing once more, TRIES times in all, and merges. OUT.jsonl appears when no
# row is missing. Running the same line again goes on from what is there.
#   MEMPLAN   the program (build/memplan)          TRIES   how often a shard is tried (3)
#   SBATCH_ARGS   more options of sbatch, such as '-p batch --exclusive': times count where a node is a task's own
set -eu
role=submit
case "${1-}" in --role-*) role=${1#--role-}; shift ;; esac
[ $# -ge 3 ] || { echo "usage: ${0##*/} SUITE SHARDS OUT.jsonl [BENCH_OPTION..]" >&2; exit 2; }
suite=$1 shards=$2 out=$(realpath -m "$3")
here=$(realpath "${MEMPLAN_CLUSTER_SCRIPT:-$0}")
program=$(realpath "${MEMPLAN:-build/memplan}")
work=$out.shards
[ ! -e "$suite" ] || suite=$(realpath "$suite")
options=("${@:4}")
export MEMPLAN=$program TRIES=${TRIES:-3} MEMPLAN_CLUSTER_SCRIPT=$here

# again ROLE SBATCH_OPTION..: this script in another role, as a job; prints the job's id
again() {
    local role=$1
    shift
    # shellcheck disable=SC2086 # words are meant
    sbatch --parsable --job-name="memplan-$role" --open-mode=append --no-requeue ${SBATCH_ARGS-} "$@" \
        --wrap "$(printf '%q ' bash "$here" "--role-$role" "$suite" "$shards" "$out" "${options[@]}")"
}

# The shards that are not done, as Slurm lists them: 3,7,12
missing() {
    local i
    for i in $(seq "$shards"); do [ -e "$work/$i.done" ] || echo "$i"; done | paste -sd,
}

# send LIST: an array of these shards, and the job that follows it
send() {
    local array
    array=$(again shard --array="$1" --output="$work/%a.log")
    again merge --dependency="afterany:$array" --output="$work/merge.log" >/dev/null
    echo "$array"
}

case $role in
submit)
    mkdir -p "$work"
    echo 1 >"$work/try"
    left=$(missing)
    if [ -n "$left" ]; then send "$left"; else again merge --output="$work/merge.log"; fi
    ;;
shard)
    i=$SLURM_ARRAY_TASK_ID status=0
    "$program" bench "$suite" "${options[@]}" --shard "$i/$shards" -o "$work/$i.jsonl" --resume -q || status=$?
    # 1: all rows are there, some not ok
    [ $status -gt 1 ] || touch "$work/$i.done"
    exit $status
    ;;
merge)
    left=$(missing) try=$(cat "$work/try")
    if [ -n "$left" ] && [ "$try" -lt "$TRIES" ]; then
        echo "try $try: shards $left are missing, sent again"
        echo $((try + 1)) >"$work/try"
        send "$left"
    elif [ -n "$left" ]; then
        echo "given up after $try tries: shards $left are missing; their logs stand in $work" | tee "$out.failed"
        exit 1
    else
        rm -f "$out.failed"
        "$program" merge "$work"/*.jsonl -o "$out"
    fi
    ;;
esac
