#!/usr/bin/env bash
# Checks the rules of the house that a machine can check; prints each breach as FILE:LINE: what.
#
#   rooms     graphs < planners < runtime < harness: an include never points to the right
#   foreign   each foreign library is included by the files named here and no others
#   tests     nothing outside tests/ includes from it
#   temporary no folder for temporary files is named: mpl_temporary_folder() knows it
#   format    clang-format would change nothing (where clang-format is installed)
#   docs      folders' READMEs have at most 30 lines
#   length    a function of the four rooms has at most 80 lines
# Exit status 1 when anything is found.
set -u
cd "$(dirname "$0")/.."
found=0
say() {
    if [ -n "$1" ]; then
        printf '%s\n' "$1"
        found=1
    fi
}
sources() { git ls-files --cached --others --exclude-standard "$@"; }

rank() {
    case "$1" in graphs) echo 1 ;; planners) echo 2 ;; runtime) echo 3 ;; harness) echo 4 ;; *) echo 9 ;; esac
}
for room in graphs planners runtime harness; do
    own=$(rank $room)
    for other in graphs planners runtime harness tests; do
        [ "$(rank $other)" -gt "$own" ] || continue
        say "$(sources "$room/*.c" "$room/*.h" "$room/*.cu" "$room/*.def" |
            xargs -r grep -nE "^ *# *include *\"$other/" /dev/null | sed "s#\$#   [room $room must not include $other]#")"
    done
done

# foreign HEADER_PATTERN ALLOWED_FILES_PATTERN
foreign() {
    say "$(sources '*.c' '*.h' '*.cu' | xargs -r grep -nE "^ *# *include *[<\"]($1)" /dev/null | grep -vE "^($2):" |
        sed "s#\$#   [only $2 may include it]#")"
}
foreign 'igraph' 'graphs/problem/bounds/igraph\.c'
foreign 'glpk' 'planners/ilp/lp\.c'
foreign 'hwloc' 'runtime/machine\.c'
foreign 'dnnl|oneapi' 'runtime/cpu/cpu[a-z_]*\.[ch]'
foreign 'onnx\.pb|protobuf-c' 'graphs/io/onnx/[a-z_]*\.[ch]|tests/fuzz/[a-z_]*\.c|tests/io/test_graphs_onnx_write\.c'
foreign 'jansson' 'planners/plan/plan_(file|bindings)\.c|planners/import/pytorch\.c|harness/rows/record\.c|tests/[a-z_/]*\.c'
foreign 'cuda|cudnn|cublas' 'runtime/cuda/(real|kernels)_priv\.h'
foreign 'cmocka' 'tests/support/test\.h'
say "$(sources '*.[ch]' '*.sh' | xargs -r grep -nE "[\"' =]/tmp([/\"' ]|\$)" /dev/null | grep -v '^scripts/lint.sh:')"

for readme in $(sources '*/README.md'); do
    lines=$(wc -l <"$readme")
    [ "$lines" -le 30 ] || say "$readme:$lines: more than 30 lines"
done

say "$(sources 'graphs/*.[ch]' 'planners/*.[ch]' 'runtime/*.[ch]' 'runtime/*.cu' 'harness/*.[ch]' | xargs -r awk '
    FNR == 1 { start = 0 }
    $0 == "{" { start = FNR }
    $0 == "}" && start > 0 {
        if (FNR - start + 1 > 80)
            printf "%s:%d: a function of %d lines; 80 are the most\n", FILENAME, start, FNR - start + 1
        start = 0
    }')"

if command -v clang-format >/dev/null 2>&1; then
    # what clang-format prints is FILE:LINE:COL: error: code should be clang-formatted
    say "$(sources '*.c' '*.h' | xargs -r clang-format --dry-run -Werror 2>&1 | grep -E '^[^ ].*: error:' | head -20)"
else
    echo "lint: no clang-format here; the format was not checked"
fi
[ $found -eq 0 ] && echo "lint: clean"
exit $found
