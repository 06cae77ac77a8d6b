#!/usr/bin/env bash
# Runs fuzz targets, each from its own corpus: one after the other, or for CI as many at a time as there are cores.
#
#   scripts/fuzz.sh FOLDER LIMIT TARGET..     LIMIT: a libFuzzer flag, -runs=N or -max_total_time=SECONDS
#   scripts/fuzz.sh FOLDER again=N TARGET..   the same N inputs at every call: tests/fuzz/again.c, for CI
#
# The first inputs are copied into FOLDER/corpus/NAME at run time: files of the kind in tests/data, graphs/data and, where
# they are there, what `make data` brings and Debian's ONNX test data, up to 64 KiB each. What a target finds stays in the
# corpus for the next run; an input that breaks it goes to FOLDER/crashes.
# Prints one line a target with the number of executions. Exit status 1 when a target broke.
set -u
folder=${1:?usage: scripts/fuzz.sh FOLDER LIMIT TARGET..}
limit=${2:?usage: scripts/fuzz.sh FOLDER LIMIT TARGET..}
shift 2
# A report names where memory was freed, not by which calls; freed memory is kept from use for fewer bytes. Twice as fast. Of leaks, only
# those whose caller is known are reported: two addresses at least.
export ASAN_OPTIONS=${ASAN_OPTIONS-malloc_context_size=2:quarantine_size_mb=4:handle_sigill=1}

# seeds NAME CORPUS: copies what there is, under names that cannot meet
seeds() {
    local pattern
    case "$1" in
    csv) pattern='*.csv' ;;
    plan) pattern='*.plan.json' ;;
    template) pattern='*.template.json' ;;
    text) pattern='*.graph' ;;
    onnx) pattern='*.onnx' ;;
    import) pattern='small*.*' ;;
    readers) pattern= ;;
    *) pattern="*.$1" ;;
    esac
    find tests/data graphs/data "$(scripts/data.sh --where)/" /usr/share/libonnx-testdata -name "$pattern" -size -64k 2>/dev/null |
        while read -r file; do
            cp "$file" "$2/seed-$(echo "$file" | tr / _)"
        done
    if [ "$1" = readers ]; then # in front of a file the letter by which the target chooses its reader
        for file in tests/data/import/*.{dsa_solver,ort_profile,tflm,usmp}.*; do
            { echo "$file" | sed 's/[^.]*\.\(.\).*/\1/' | tr -d '\n'; cat "$file"; } >"$2/seed-$(basename "$file")"
        done
    fi
    if [ "$1" = pb ]; then
        for type in '<f8' '<f4' '<i8' '|b1'; do npy "$type" >"$2/seed-${type:1}.npy"; done
    fi
}

# npy TYPE: a file of one element, as many bytes as the type's name says
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': (1, 1), }"
    printf "%.${1:2}s" 12345678
}

explore() {
    local length=${MAX_LEN:-4096}
    [ "$name" != readers ] || length=4096 # a profile is that long
    "$target" "$limit" -print_final_stats=1 -rss_limit_mb=4096 -timeout=20 -verbosity=1 -max_len="$length" \
        -artifact_prefix="$folder/crashes/$name-" "$corpus"
}

# again N: only the first inputs, by name, whatever an earlier run found
again() {
    local seeds
    mapfile -t seeds < <(find "$corpus" -type f -name 'seed-*' | LC_ALL=C sort)
    "$target" "$1" "$folder/crashes/$name-again" "${seeds[@]}" &&
        echo "stat::number_of_executed_units: $((${#seeds[@]} + $1))"
}

# fuzz TARGET: one that breaks is listed in FOLDER/broken
fuzz() {
    local target=$1 name=${1##*_} corpus log result=ok command=(explore)
    corpus=$folder/corpus/$name
    log=$folder/$name.log
    mkdir -p "$corpus"
    seeds "$name" "$corpus"
    case "$limit" in again=*) command=(again "${limit#again=}") ;; esac
    if ! "${command[@]}" >"$log" 2>&1; then
        result=BROKEN
        echo "$name" >>"$folder/broken"
        grep -E 'ERROR|SUMMARY|Test unit written|memplan:|again:' "$log" | head -5
    fi
    printf 'fuzz_%-12s %10s executions  %6s inputs kept  %s\n' "$name" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$(find "$corpus" -type f | wc -l)" $result
}

mkdir -p "$folder/crashes"
rm -f "$folder/broken"
jobs=${JOBS:-$(nproc)}
case "$limit" in again=*) trap 'trap - TERM; kill 0' INT TERM ;; esac # what runs in the background heeds no Ctrl-C
for target in "$@"; do
    case "$limit" in
    again=*)
        [ "$(jobs -rp | wc -l)" -lt "$jobs" ] || wait -n
        fuzz "$target" &
        ;;
    *) fuzz "$target" ;;
    esac
done
wait
[ ! -e "$folder/broken" ]
