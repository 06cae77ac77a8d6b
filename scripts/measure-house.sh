#!/usr/bin/env bash
# Measures the house: how much there is, where it lies, how densely it is written, and what hangs in circles.
#
#   scripts/measure-house.sh OBJECT_FOLDER      after `make`; the folder holds its objects, as build/release does
#
# Prints `measure<TAB>value` lines, so that two commits are compared by `diff`. Comments and texts count as lines, and as
# nothing else. A circle is a set of files each of which uses a function or a table of the next one and, over others, of
# itself: nm tells who defines and who uses what. A file at the top of a room is the room's contract, and a folder by itself. Exit status 2 where no objects are.
set -u
objects=${1:?usage: scripts/measure-house.sh OBJECT_FOLDER}
cd "$(dirname "$0")/.."
[ -n "$(find "$objects" -name '*.o' -print -quit 2>/dev/null)" ] || { echo "$objects: no objects; make builds them" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms='graphs planners runtime harness'

# Files of source under a folder; examples are documents.
sources() { git ls-files --cached --others --exclude-standard "$@" | grep -E '\.(c|h|cu|def)$' | grep -v '/example/'; }
tell() { printf '%s\t%s\n' "$1" "$2"; }

# The text of FILE.. without comments, strings and characters: one stream, with line ends kept.
bare() {
    cat "$@" | awk '
        function strip(s,    out, c, i, n) {
            n = length(s)
            for (i = 1; i <= n; i++) {
                c = substr(s, i, 1)
                if (inside) {
                    if (c == "*" && substr(s, i + 1, 1) == "/") { inside = 0; i++ }
                } else if (c == "/" && substr(s, i + 1, 1) == "*") { inside = 1; i++ }
                else if (c == "/" && substr(s, i + 1, 1) == "/") return out
                else if (c == "\"" || (c == "\x27")) {
                    for (q = c; ++i <= n && substr(s, i, 1) != q;) if (substr(s, i, 1) == "\\") i++
                    out = out "0"
                } else out = out c
            }
            return out
        }
        { print /["\x27\/*]/ || inside ? strip($0) : $0 }'
}

lines_by_folder() {
    local room
    for room in $rooms tests; do
        tell "lines $room" "$(sources $room | xargs cat | wc -l)"
        sources $room | xargs wc -l | awk -v room=$room '
            $2 != "total" { sub("/[^/]*$", "", $2); n[$2] += $1 }
            END { for (f in n) if (f != room) printf "lines %s\t%d\n", f, n[f] }' | sort
    done
    tell 'lines outside tests' "$(sources $rooms | xargs cat | wc -l)"
}

# Functions as the style has them: a brace alone in the first column opens and closes one.
functions() {
    sources $rooms | grep -v '\.def$' | xargs awk '
        FNR == 1 { start = 0 }
        $0 == "{" { start = FNR }
        $0 == "}" && start { print FNR - start + 1; start = 0 }' | sort -n | awk '
        { n[NR] = $1 }
        END {
            printf "functions\t%d\nlines of a function, median\t%d\nlines of a function, 90 %%\t%d\n", NR, n[int((NR + 1) / 2)], n[int(.9 * NR)]
            printf "lines of a function, longest\t%d\n", n[NR]
        }'
}

density() {
    bare $(sources $rooms | grep -v '\.def$') >"$work/bare"
    awk '
        BEGIN {
            split("auto break case char const continue default do double else enum extern float for goto if inline int long register " \
                "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false " \
                "NULL include define ifdef ifndef endif elif defined uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t " \
                "int64_t size_t", words, " ")
            for (i in words) keyword[words[i]] = 1
        }
        /[^ \t]/ { lines++ }
        {
            statements += gsub(/;/, ";")
            while (match($0, /[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9A-Za-z.]*|->|<<=?|>>=?|[-+*\/%&|^=!<>]=|&&|\|\||\+\+|--|[^ \tA-Za-z_0-9]/)) {
                token = substr($0, RSTART, RLENGTH)
                $0 = substr($0, RSTART + RLENGTH)
                tokens++
                if (token ~ /^[A-Za-z_]/ && !(token in keyword)) { names++; length_of += length(token); one += length(token) == 1 }
                asserts += token ~ /^mpl_(assert|assert_ok|assert_slow)$|^mpl_[a-z]+_ok$/
            }
        }
        END {
            printf "identifiers of one letter, %%\t%.1f\nletters of an identifier\t%.2f\n", 100 * one / names, length_of / names
            printf "tokens a line\t%.2f\nstatements a line\t%.3f\n", tokens / lines, statements / lines
            printf "asserts\t%d\n", asserts
        }' "$work/bare" | tee "$work/density"
    awk -F '\t' -v lines="$(sources $rooms | xargs cat | wc -l)" '$1 == "asserts" { printf "asserts in 1,000 lines\t%.1f\n", 1000 * $2 / lines }' "$work/density"
    for part in "$rooms" tests; do
        tell "lines over 100 columns in $part" "$(sources $part | xargs cat | LC_ALL=C.UTF-8 grep -cE '^.{101,}')"
    done
}

tree() {
    sources $rooms tests | sed 's|/[^/]*$||' | sort | uniq -c | sort -k1,1nr -k2 |
        awk '$1 > 25 { printf "files in %s\t%d\n", $2, $1; n++ } END { printf "folders of more than 25 files\t%d\n", n }'
    tell 'base names twice' "$(sources $rooms | grep '\.c$' | sed 's|.*/||' | sort | uniq -d | tr '\n' ' ')"
}

# Strongly connected sets of who uses whom, by Tarjan: FROM TO pairs in, a set a line out, those of one left out.
circles() {
    awk '
        function visit(v,    i, n, list, w, set, size) {
            at[v] = low[v] = ++clock; stack[++top] = v; on[v] = 1
            n = split(next_of[v], list, " ")
            for (i = 1; i <= n; i++) {
                w = list[i]
                if (!(w in at)) { visit(w); if (low[w] < low[v]) low[v] = low[w] }
                else if (on[w] && at[w] < low[v]) low[v] = at[w]
            }
            if (low[v] == at[v]) {
                do { w = stack[top--]; on[w] = 0; set = set " " w; size++ } while (w != v)
                if (size > 1) printf "%d\t%s\n", size, set
            }
        }
        $1 != $2 && !seen[$1, $2]++ { next_of[$1] = next_of[$1] " " $2; name[$1]; name[$2] }
        END { for (v in name) if (!(v in at)) visit(v) }' | sort -k1,1nr -k2
}

uses() {
    find "$objects" -name '*.o' | sed "s|^$objects/||" | grep -E "^(${rooms// /|})/" | sort | while read -r object; do
        [ -f "${object%.o}.c" ] || [ -f "${object%.o}.cu" ] || continue # of a file that is there no more
        nm -g "$objects/$object" | awk -v file="${object%.o}" '{ print ($(NF - 1) == "U" ? "U" : "D"), $NF, file }'
    done | awk '$1 == "D" { home[$2] = $3; next } { user[++n] = $3; what[n] = $2 } END { for (i = 1; i <= n; i++) if (what[i] in home) print user[i], home[what[i]] }'
}

lines_by_folder
functions
density
tree
uses >"$work/uses"
circles <"$work/uses" >"$work/circles"
tell 'circles of files' "$(wc -l <"$work/circles")"
sed 's/^/  a circle of /' "$work/circles"
sed -E 's#([a-z]+/[^ ]*)/[^/ ]*( |$)#\1\2#g' "$work/uses" | circles >"$work/circles"
tell 'circles of folders' "$(wc -l <"$work/circles")"
sed 's/^/  a circle of /' "$work/circles"
