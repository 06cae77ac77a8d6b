#!/usr/bin/env bash
# The smoke suite under valgrind: scripts/valgrind.sh PROGRAM. Exit status 1 where it reads or writes what it must not, or loses memory.
set -u
cd "$(dirname "$0")/.."
# oneDNN's matrix products for AVX2 read one vector behind the block of its own that they packed (2.6.3, a memalign of its
# own); those for SSE 4.1 do not. Everything of ours runs the same.
export ONEDNN_MAX_CPU_ISA=SSE41
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
valgrind -q --error-exitcode=9 --trace-children=no --leak-check=full --show-leak-kinds=definite \
    --errors-for-leak-kinds=definite "${1:?usage: scripts/valgrind.sh PROGRAM}" bench smoke -q -o "$rows" || exit 1
echo "$(wc -l <"$rows") rows under valgrind, no error"
