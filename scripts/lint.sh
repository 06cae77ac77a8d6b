#!/usr/bin/env bash
# Checks the rules of the house that a machine can check; prints each breach as FILE:LINE: what.
#
#   rooms     graphs < planners < runtime < harness: an include never points to the right
#   foreign   each foreign library is included by the files named here and no others
#   verify    planners/verify/ includes planners/plan/ and itself of all planners/
#   placement what places buffers sees no graph
#   tests     nothing outside tests/ includes from it
#   temporary no folder for temporary files is named: mpl_temporary_folder() knows it
#   format    clang-format would change nothing (where clang-format is installed)
#   docs      folders' READMEs have at most 30 lines, the first one 150
#   paper     PAPER.md is no larger than a paper, and its figures and tables are numbered, cited and ask something
#   origins   what the texts quote of others is a value of results/published.tsv, each with where it comes from
#   folders   at most 25 source files in a folder, and no base name of a .c file twice
#   named     a file that a document names exists: as it stands, beside the document, or in a folder below that
#   columns   a line of source ends at column 100
#   heads     a section of a file's head (Idea, Source, Cost, ..) begins its line
#   length    a file has at most 800 lines, a function of the four rooms at most 80
#   exits     a function that cleans up at out: returns failures by no other way (MPL_PASS would leak)
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

say "$(sources 'planners/verify/*.[ch]' 'planners/plan/*.[ch]' | xargs -r grep -nE '^ *# *include *"planners/' /dev/null |
    grep -vE '^planners/verify/[^:]*:[0-9]*: *# *include *"planners/(plan|verify)/|^planners/plan/[^:]*:[0-9]*: *# *include *"planners/plan/' |
    sed 's#$#   [what judges plans must not include what makes them]#')"
say "$(sources 'planners/published/*' 'planners/place/*' 'planners/exact/*' 'planners/spill/*' 'planners/planner.h' 'planners/plan/plan.h' |
    xargs -r grep -nE '^ *# *include *"graphs/(graph|source|ir/|build/|ops/|orders/|passes/|problem/(places|derive/|control/))' /dev/null |
    sed 's#$#   [what places buffers must not see the graph]#')"

say "$(sources '*.suite' | xargs -r grep -nF ../shared /dev/null | sed 's#$#   [{data} stands for that folder, wherever it is]#')"

# foreign HEADER_PATTERN ALLOWED_FILES_PATTERN
foreign() {
    say "$(sources '*.c' '*.h' '*.cu' | xargs -r grep -nE "^ *# *include *[<\"]($1)" /dev/null | grep -vE "^($2):" |
        sed "s#\$#   [only $2 may include it]#")"
}
foreign 'zlib' 'graphs/core/gzip\.c'
foreign 'igraph' 'graphs/problem/bounds/igraph\.c'
foreign 'glpk' 'planners/ilp/lp\.c'
foreign 'hwloc' 'runtime/machine\.c'
foreign 'dnnl|oneapi' 'runtime/cpu/cpu[a-z_]*\.[ch]|tests/cpu/test_runtime_isa\.c'
foreign 'onnx\.pb|protobuf-c' 'graphs/io/onnx/[a-z_/]*\.[ch]|tests/fuzz/[a-z_]*\.c|tests/io/test_graphs_onnx_write\.c'
foreign 'jansson' 'planners/plan/plan_json\.h|harness/rows/record\.c|tests/[a-z_/]*\.c'
foreign 'sqlite3' 'harness/report/relation\.c'
foreign 'cuda|cudnn|cublas' 'runtime/cuda/(real|kernels)_priv\.h'
foreign 'cmocka' 'tests/support/test\.h'
say "$(sources '*.[ch]' '*.sh' | xargs -r grep -nE "[\"' =]/tmp([/\"' ]|\$)" /dev/null | grep -v '^scripts/lint.sh:')"

for readme in $(sources '*/README.md'); do
    lines=$(wc -l <"$readme")
    [ "$lines" -le 30 ] || say "$readme:$lines: more than 30 lines"
done
lines=$(wc -l <README.md)
[ "$lines" -le 150 ] || say "README.md:$lines: more than 150 lines"

say "$(scripts/paper-size.sh)"
say "$(scripts/origins.sh)"

code() { sources "$@" | grep -E '\.(c|h|cu|def)$' | grep -v '/example/'; }
say "$(code graphs planners runtime harness tests | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 25 { print $2 ":0: " $1 " source files; 25 are the most" }')"
say "$(code graphs planners runtime harness tests | LC_ALL=C.UTF-8 xargs grep -nE '^.{101,}' | sed 's#$#   [over 100 columns]#')"
say "$(code graphs planners runtime harness tests | xargs awk 'FNR == 801 { print FILENAME ":801: a file of more than 800 lines" }')"
# A line of a head that was too long has been filled anew, sections and all.
say "$(code graphs planners runtime harness | xargs grep -nE '^ \* .*[.a-z)] +(Idea|Source|Differs|Lives|Places|Cost|Limits)   +[A-Za-z]' | sed 's#$#   [a section of the head begins inside a line]#')"
say "$(code graphs planners runtime harness | grep '\.c$' | awk -F / 'seen[$NF] { print $0 ":0: the name of " seen[$NF] } { seen[$NF] = $0 }')"

# Names in backquotes and links that look like a file of the tree. What a page tells its reader to write is a block that it names.
say "$(sources '*.md' | xargs -r awk -v tree="$(sources)" '
    BEGIN {
        n = split(tree, path, "\n")
        for (i = 1; i <= n; i++) {
            p = path[i]
            for (there[p]; match(p, "/"); there[p]) p = substr(p, RSTART + 1)
        }
    }
    FNR == 1 { block = 0 }
    /^```/ { block = !block; if (block && $2 != "") made[$2] }
    block { next }
    {
        text = $0
        while (match(text, /(`|\]\()[A-Za-z_0-9.\/-]*[a-z0-9_]\.(c|h|cu|def|md|sh|py|tsv|awk)(`|\))/)) {
            name = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            gsub(/^(`|\]\()|(`|\))$/, "", name)
            gsub(/^(\.\.?\/)+/, "", name)
            if (!(name in there) && !(name in made) && name !~ /^memplan\// && !(FILENAME ~ /OPTIONS|SCHEMA/))
                printf "%s:%d: there is no file %s\n", FILENAME, FNR, name
        }
    }')"

say "$(sources 'graphs/*.[ch]' 'planners/*.[ch]' 'runtime/*.[ch]' 'runtime/*.cu' 'harness/*.[ch]' | xargs -r awk '
    FNR == 1 { start = 0 }
    $0 == "{" { start = FNR; passes = 0 }
    /MPL_PASS\(/ { passes = FNR }
    $0 == "out:" && passes {
        printf "%s:%d: MPL_PASS in a function that cleans up at out:; MPL_TRY goes there\n", FILENAME, passes
    }
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
