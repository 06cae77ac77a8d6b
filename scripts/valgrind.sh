#!/usr/bin/env bash
# The smoke suite under valgrind: scripts/valgrind.sh PROGRAM. Exit status 1 where it reads or writes what it must not, or loses memory.
set -u
cd "$(dirname "$0")/.."
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
valgrind -q --error-exitcode=9 --trace-children=no --leak-check=full --show-leak-kinds=definite \
    --errors-for-leak-kinds=definite "${1:?usage: scripts/valgrind.sh PROGRAM}" bench smoke -q -o "$rows" || exit 1
echo "$(wc -l <"$rows") rows under valgrind, no error"
