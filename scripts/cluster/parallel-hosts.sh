#!/usr/bin/env bash
# A suite over several hosts with GNU parallel: one shard at a time on each, tried again where it was killed, then one file.
#
#   scripts/cluster/parallel-hosts.sh SUITE SHARDS OUT.jsonl HOST[,HOST..] [BENCH_OPTION..]
#
# HOST is what ssh takes, ':' this machine; all see the same folder and program. Shards write to OUT.jsonl.shards/ and
# --resume where a killed one stopped, on whichever host. JOBS, by default 1, is the number of shards at a time on a host: with
# more, times mean little. Rows of hosts that differ are refused by memplan merge; MERGE_ARGS=--mixed takes them.
set -eu
[ $# -ge 4 ] || { echo "usage: ${0##*/} SUITE SHARDS OUT.jsonl HOST[,HOST..] [BENCH_OPTION..]" >&2; exit 2; }
suite=$1 shards=$2 out=$(realpath -m "$3") hosts=$4
program=$(realpath "${MEMPLAN:-build/memplan}")
work=$out.shards
[ ! -e "$suite" ] || suite=$(realpath "$suite")
mkdir -p "$work"

command="$(printf '%q ' "$program" bench "$suite" "${@:5}") -q --resume --shard {}/$shards -o $(printf '%q' "$work")/{}.jsonl"
# exit status 1: all rows are there, some not ok
seq "$shards" | parallel --will-cite --sshlogin "$hosts" --jobs "${JOBS:-1}" --retries "${TRIES:-3}" --workdir "$PWD" \
    --joblog "$work/joblog" --halt now,fail=1 "$command || [ \$? = 1 ]"
# shellcheck disable=SC2086 # words are meant
"$program" merge ${MERGE_ARGS-} "$work"/*.jsonl -o "$out"
