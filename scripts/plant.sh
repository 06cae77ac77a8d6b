# What scripts/plant-*.sh share; sourced with $build set, a folder of objects. A fault is a word for it, a file, and a sed command
# that must change it. The file is compiled anew into a folder of its own and linked before the library. `caught_by`, of the script
# that sources this, runs the tests and prints the name of the one that fails, or nothing; exit status 2: they do not link.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libs="$(sed -n 's/^FEATURE_LDLIBS *:*= *//p' "${build%/*}/features.mk") -lm -ldl -lpthread"
flags="-std=c11 -O1 -g -DMPL_CHECK=0 -ffp-contract=off -D_GNU_SOURCE -I. -I${build%/*} -isystem ${build%/*}/gen"
planted=0 lived=0

compile() { ${CC:-gcc} $flags -c -o "$2" "$1" 2>"$work/log"; }
link() { ${CC:-gcc} -o "$1" "${@:2}" "$work/fault.o" "$build/libmemplan.a" -lcmocka $libs 2>"$work/log"; }

fault() { # what, file, sed command
    local by
    mkdir -p "$work/$(dirname "$2")"
    sed "$3" "$2" >"$work/$2"
    planted=$((planted + 1))
    if cmp -s "$2" "$work/$2"; then
        echo "$1: the fault changes nothing in $2"
    elif ! compile "$work/$2" "$work/fault.o" || ! by=$(caught_by); then
        echo "$1: does not compile or link"
        cat "$work/log"
    elif [ -z "$by" ]; then
        echo "$1: LIVES"
    else
        echo "$1: caught by $by $(sed -n 's/^\[  FAILED  \] \([a-z_]*\)$/\1/p' "$work/log" | sort -u | paste -sd,)"
        return
    fi
    lived=$((lived + 1))
}

# The last line of a script: exit status 1 when a fault lives, or changed nothing.
planted_all() {
    echo "$planted faults planted, $lived lived"
    [ $lived -eq 0 ]
}
