#!/usr/bin/env bash
# Follows the ADDING.md pages, the tutorial and the page on programs to the letter in a copy of the tree: writes each block that names a file, runs each
# block of shell, looks for each line of a block of `says` in what the last one printed, page after page, and then asks whether
# what was added is there and runs.
#
#   scripts/follow-docs.sh FOLDER       where the copy goes; its build is kept, so that a second time is quick, and the first
#                                       begins with what build/MODE has
#
# Ends in `N passed, N failed, N skipped`.
set -u
folder=$(realpath -m "${1:?usage: scripts/follow-docs.sh FOLDER}")
cd "$(dirname "$0")/.."
passed=0 failed=0

# seed: copies sources with their times, and what was built of them: the copy need not compile it again
seed() {
    local built=build/${MODE:-release}
    mkdir -p "$folder/$built"
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$folder"
    [ -x "$built/memplan" ] || return 0
    cp -p --parents -r -t "$folder" build/features.mk build/mpl_config.h build/gen build/include
    [ ! -d build/cuda ] || cp -p --parents -r -t "$folder" build/cuda
    find "$built" -path "$built/tests" -prune -o -type f -print0 | xargs -0 cp -p --parents -t "$folder"
}

[ -d "$folder/build" ] || seed
# What the last time added goes, what it changed is as it was, what did not change keeps its time, and the build stays.
comm -13 <(git ls-files --cached --others --exclude-standard | sort) \
    <(cd "$folder" && find . -path ./build -prune -o -type f -printf '%P\n' | sort) |
    while IFS= read -r f; do rm -f "$folder/$f"; done
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do
    [ -e "$f" ] || continue
    cmp -s "$f" "$folder/$f" || install -D -m "$(stat -c %a "$f")" "$f" "$folder/$f"
done
pages=$(git ls-files --cached --others --exclude-standard '*ADDING.md' '*TUTORIAL.md' '*PROGRAMS.md' '*ENTRIES.md' | sort)
cd "$folder" || exit 1

# blocks PAGE: writes every fenced block to $work/NUMBER, its head to $work/NUMBER.head
blocks() {
    awk -v to="$work" '
        /^```/ && !open {n++; print substr($0, 4) >(to "/" n ".head"); open = 1; printf "" >(to "/" n); next}
        /^```/ {open = 0; next}
        open {print >(to "/" n)}' "$1"
}

# said FILE: each of its lines is in what the last block of shell printed
said() {
    local line
    while IFS= read -r line; do
        grep -qF -- "$line" "$work/log" || { echo "    not said: $line"; sed 's/^/    | /' "$work/log" | tail -20; return 1; }
    done <"$1"
}

follow() {
    local n=1 kind path
    work=$(mktemp -d)
    blocks "$1"
    while [ -e "$work/$n" ]; do
        read -r kind path <"$work/$n.head"
        case $kind in
        c | text) mkdir -p "$(dirname "$path")" && cp "$work/$n" "$path" ;;
        sh) MAKEFLAGS= sh -eu "$work/$n" >"$work/log" 2>&1 || { sed 's/^/    /' "$work/log" | tail -20; rm -rf "$work"; return 1; } ;;
        says) said "$work/$n" || { rm -rf "$work"; return 1; } ;;
        *) echo "    $1: a block of '$kind'"; rm -rf "$work"; return 1 ;;
        esac
        n=$((n + 1))
    done
    rm -rf "$work"
    [ $n -gt 2 ] # two blocks at least
}

# verdict NAME STATUS
verdict() {
    if [ "$2" -eq 0 ]; then echo "ok: $1"; passed=$((passed + 1)); else echo "FAILED: $1"; failed=$((failed + 1)); fi
}

for page in $pages; do
    lines=$(grep -c '' "$page")
    case $page in
    *ADDING.md | *PROGRAMS.md | *ENTRIES.md) [ "$lines" -le 80 ]; verdict "$page: $lines lines are at most a page" $? ;;
    esac
    follow "$page"
    verdict "$page: followed" $?
done
for added in "list planners:mine" "list graphs:tower" "list backends:twice"; do
    # shellcheck disable=SC2086 # words are meant
    build/memplan ${added%%:*} | grep -q "^${added##*:} "
    verdict "memplan $added" $?
done
build/memplan run tower --planner mine --backend twice --json | grep -q '"outputs":"equal"'
verdict "the new graph by the new planner on the new backend" $?
scripts/printed-commands.sh README.md PAPER.md results/APPENDIX.md harness/COMMANDS.md harness/TUTORIAL.md | tee build/printed.log
read -r p f skipped < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' build/printed.log)
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
echo "$passed passed, $failed failed, ${skipped:-0} skipped"
[ "$failed" -eq 0 ]
