#!/usr/bin/env bash
# Brings the public instances and models that tests, suites and tables read: `make data`.
#
#   scripts/data.sh [FOLDER]   into FOLDER; without it into $MEMPLAN_DATA, else memplan's folder in the user's cache
#   scripts/data.sh --where    prints the folder that programs and tests read, and brings nothing: $MEMPLAN_DATA, else
#                              ../shared/data where it is there, else the folder in the user's cache
#   scripts/data.sh --list     each file with its licence and its public addresses
#
# scripts/data.tsv names the files: path, SHA-256, licence, addresses, of a fixed commit each; `-`: no public address. A file
# that is there with the right sum is kept. MEMPLAN_MIRROR, a folder or an address (file:, http:, https:) that holds the same
# paths, is asked first; without it ../shared/data is, where it is there. A file whose sum is wrong is never kept.
# Of ONNX's own release its node tests are unpacked, into FOLDER/onnx-node/node.
# Exit status: 0 all are there; 1 some could not be brought, each is named; 2 wrong arguments.
set -u
cd "$(dirname "$0")/.."
table=scripts/data.tsv
cache=${XDG_CACHE_HOME:-${HOME:-.}/.cache}/memplan/data

where() {
    if [ -n "${MEMPLAN_DATA-}" ]; then
        realpath -m "$MEMPLAN_DATA"
    elif [ -d ../shared/data ]; then
        realpath ../shared/data
    else
        realpath -m "$cache"
    fi
}

case "${1-}" in
--where) where; exit ;;
--list) cut -f 1,3,4 "$table"; exit ;;
-*) echo "data: unknown argument '$1'; usage: scripts/data.sh [FOLDER|--where|--list]" >&2; exit 2 ;;
esac
[ $# -le 1 ] || { echo "data: one folder is enough; usage: scripts/data.sh [FOLDER|--where|--list]" >&2; exit 2; }
folder=${1:-${MEMPLAN_DATA:-$cache}}
mirror=${MEMPLAN_MIRROR-}
[ -n "$mirror" ] || [ ! -d ../shared/data ] || mirror=../shared/data
mkdir -p "$folder" || exit 2
part=$(mktemp "$folder/.part.XXXXXX") || exit 2
trap 'rm -f "$part"' EXIT

right() { [ -r "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ]; } # FILE SUM

curl_here() { # installed where it is not, tried once
    command -v curl >/dev/null && return
    [ -z "${asked-}" ] || return 1
    asked=1
    scripts/install-deps.sh --data && command -v curl >/dev/null
}

unreachable=' ' # hosts that did not answer: not asked again for each of their files
fetch() { # ADDRESS: into $part
    local host status=0
    case $1 in
    *://*)
        curl_here || { why="no curl here to read $1"; return 1; }
        host=$(sed 's#^\([a-z]*://[^/]*\).*#\1#' <<<"$1")
        [[ $unreachable != *" $host "* ]] || return 1
        curl -fsSL --connect-timeout 10 --retry 2 -o "$part" "$1" || status=$?
        case $status in 5 | 6 | 7 | 28) unreachable+="$host " ;; esac
        return $status
        ;;
    *) cp -- "$1" "$part" ;;
    esac
}

there=0 brought=0 missing=()
while IFS=$'\t' read -r path sum _ addresses; do
    if right "$folder/$path" "$sum"; then
        there=$((there + 1))
        continue
    fi
    why= none=
    [ "$addresses" != - ] || addresses='' none='it has no public address: MEMPLAN_MIRROR names a mirror'
    for address in ${mirror:+"${mirror%/}/$path"} $addresses; do
        why=
        if ! fetch "$address" 2>/dev/null; then
            why=${why:-not readable: $address}
        elif ! right "$part" "$sum"; then
            why="another SHA-256: $address"
        elif mkdir -p "$folder/$(dirname "$path")" && chmod 644 "$part" && cp -- "$part" "$folder/$path.new" &&
            mv -- "$folder/$path.new" "$folder/$path"; then
            echo "data: $path"
            brought=$((brought + 1))
            continue 2
        else
            rm -f -- "$folder/$path.new"
            why="not written to $folder"
        fi
    done
    missing+=("$path: $why${why:+${none:+; }}$none")
done <"$table"

node=$folder/onnx-node
for archive in "$node"/onnx-*.tar.gz; do # the newest release that has them as files
    [ -e "$archive" ] && [ ! -d "$node/node" ] || continue
    rm -rf "$node/part" && mkdir "$node/part" &&
        tar -xzf "$archive" -C "$node/part" --strip-components 5 --wildcards 'onnx-*/onnx/backend/test/data/node' &&
        mv "$node/part/node" "$node/node" || missing+=("onnx-node/node: not unpacked from $archive")
    rm -rf "$node/part"
done

[ ${#missing[@]} -eq 0 ] || printf 'data: %s\n' "${missing[@]}" >&2
echo "data: $folder: $there files were there, $brought brought, ${#missing[@]} missing"
[ ${#missing[@]} -eq 0 ]
