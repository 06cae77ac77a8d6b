#!/usr/bin/env bash
# Runs every command that the pages print, in blocks, tables and inline text: what begins with `memplan`, `build/memplan`, `make`, or
# with `run` beside another command; of pages that scripts/follow-docs.sh follows, not the blocks, which that runs. In the project's folder, after `make`; scripts/printed-commands.tsv says what is run in place of
# a text that holds a placeholder, would take long, or needs what is not here. A command must end with status 0; `memplan COMMAND`
# without arguments is a name, whose --help is asked for.
#
#   scripts/printed-commands.sh PAGE..
#
# Ends in `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.."
export PATH=$PWD/build:$PATH MAKEFLAGS=
table=scripts/printed-commands.tsv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# printed PAGE..: each command as it stands there, without what a comment says behind it
printed() {
    awk '
        function take(line) {
            sub(/[ ]+#.*/, "", line)
            sub(/[ ][ ][ ]+.*/, "", line)
            if (line ~ /^(build\/)?memplan( |$)|^make( |$)|^run [a-z]/) print line
        }
        function flush() {n = split(text, part, "`"); for (i = 2; i <= n; i += 2) take(part[i]); text = ""}
        /^```/ {flush(); fence = !fence; next}
        fence {if (FILENAME !~ /(ADDING|TUTORIAL|PROGRAMS|ENTRIES)[.]md$/) take($0); next}
        /^    (build\/)?memplan |^    make/ {take(substr($0, 5)); next}
        /^$/ {flush(); next}
        {text = text " " $0}
        END {flush()}' "$@" | sort -u
}

# verdict TEXT STATUS
verdict() {
    if [ "$2" -eq 0 ]; then echo "ok: $1"; passed=$((passed + 1)); else
        echo "FAILED: $1"; sed 's/^/    /' "$work/log" | tail -5; failed=$((failed + 1))
    fi
}

# run TEXT COMMAND: under a limit that a whole CI can bear
run() {
    timeout 300 bash -euc "$2" </dev/null >"$work/log" 2>&1
    verdict "$1" $?
}

printed "$@" >"$work/printed"
grep -v '^#' "$table" >"$work/table"
while IFS=$'\t' read -r text how _; do
    case $how in run | skip) grep -qxF -- "$text" "$work/printed" || { : >"$work/log"; verdict "$table: no page prints '$text'" 1; } ;; esac
    [ "$how" = first ] && run "$text" "$text"
done <"$work/table"
while IFS= read -r text; do
    line=$(awk -F '\t' -v text="$text" '$1 == text {print; exit}' "$work/table")
    IFS=$'\t' read -r _ how instead <<<"$line"
    case $how in
    run) run "$text" "$instead" ;;
    skip)
        echo "skip: $text: $instead"
        skipped=$((skipped + 1))
        [ "${text%% *}" != make ] || run "$text: is there" "make -n ${text#make }"
        ;;
    *)
        set -f
        # shellcheck disable=SC2086 # words are meant
        set -- $text
        set +f
        case $#:$1 in
        2:*memplan) case $2 in -*) run "$text" "$text" ;; *) run "$text" "$text --help" ;; esac ;;
        *:run) run "$text" "memplan $text" ;;
        *) run "$text" "$text" ;;
        esac
        ;;
    esac
done <"$work/printed"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
