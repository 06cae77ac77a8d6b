#!/usr/bin/env bash
# Finds the libraries that memplan uses and writes $1/features.mk (for make) and $1/mpl_config.h (for C).
#
# Asks pkg-config first, then compiles and links a two-line program: a header without its library does not count.
# Exit status: 0 what is needed is there; 1 something that is needed is missing (named).
set -eu
out=${1:?usage: scripts/features.sh BUILD_FOLDER}
cc=${CC:-gcc}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cppflags= ldlibs= missing= report=

# links NAME HEADER EXPRESSION CPPFLAGS LDLIBS: whether a program that includes and calls it links
links() {
    printf '#include <%s>\nint main(void) { return (%s) ? 0 : 1; }\n' "$2" "$3" >"$work/$1.c"
    # shellcheck disable=SC2086 # flags are words
    $cc $4 -o "$work/$1" "$work/$1.c" $5 >"$work/$1.log" 2>&1
}

# need NAME PKG HEADER EXPRESSION FALLBACK_LDLIBS
need() {
    local flags libs
    flags=$(pkg-config --cflags "$2" 2>/dev/null | sed 's/-I/-isystem /g') || flags=
    libs=$(pkg-config --libs "$2" 2>/dev/null) || libs=$5
    if links "$1" "$3" "$4" "$flags" "$libs"; then
        cppflags="$cppflags $flags" ldlibs="$ldlibs $libs" report="$report $1"
    else
        missing="$missing $1"
    fi
}

need igraph igraph igraph.h 'igraph_strerror(IGRAPH_SUCCESS) != 0' -ligraph
need hwloc hwloc hwloc.h 'hwloc_get_api_version()' -lhwloc
need onednn - dnnl.h 'dnnl_version() != 0' '-ldnnl -lgomp'
need protobuf-c libprotobuf-c protobuf-c/protobuf-c.h 'protobuf_c_version() != 0' -lprotobuf-c
need jansson jansson jansson.h 'json_true() != 0' -ljansson
need zlib zlib zlib.h 'zlibVersion() != 0' -lz
proto=/usr/include/onnx/onnx.proto
[ -r "$proto" ] || missing="$missing onnx.proto(libonnx-dev)"
if [ -n "$missing" ]; then
    echo "features: missing:$missing; scripts/install-deps.sh installs them" >&2
    exit 1
fi

have_glpk=0
if links glpk glpk.h 'glp_version() != 0' "" -lglpk; then
    have_glpk=1 ldlibs="$ldlibs -lglpk" report="$report glpk"
fi

# ->> of JSON is of 3.38
have_sqlite=0
if links sqlite sqlite3.h 'sizeof(char[SQLITE_VERSION_NUMBER >= 3038000 ? 1 : -1]) && sqlite3_threadsafe() >= 0' "" -lsqlite3; then
    have_sqlite=1 ldlibs="$ldlibs -lsqlite3" report="$report sqlite"
fi

# A linker that takes a third of the time, for the programs of tests.
linker=
for l in lld gold; do
    if links linker stdio.h 'puts("") < 0' "" -fuse-ld=$l; then linker=-fuse-ld=$l; break; fi
done

# CUDA's runtime is linked in its static form, cuDNN and cuBLAS are opened when the program runs: of them the headers
# count. They may lie in the toolkit, in the folder MEMPLAN_CUDNN or in Python's packages.
cuda=${CUDA_HOME:-/usr/local/cuda}
have_cuda=0 lacks= cudnn= cublas=
cuda_libs="$cuda/lib64/libcudart_static.a -lrt"
# first_with FILE FOLDER..: the first folder that has the file
first_with() {
    local file=$1 folder
    shift
    for folder; do [ ! -r "$folder/$file" ] || { echo "$folder"; return; }; done
}
if ! links cuda cuda_runtime_api.h 'cudaGetErrorName(cudaSuccess) != 0' "-isystem $cuda/include" \
    "$cuda_libs -ldl -lpthread -lm"; then
    lacks="no CUDA toolkit in $cuda (CUDA_HOME names another)"
elif ! [ -x "$cuda/bin/nvcc" ]; then
    lacks="no $cuda/bin/nvcc"
else
    python=$(ls -d /usr/lib/python3*/*-packages /usr/local/lib/python3*/*-packages /opt/*/lib/python3*/site-packages \
        /opt/*/.venv/lib/python3*/site-packages ${VIRTUAL_ENV:+"$VIRTUAL_ENV"/lib/python3*/site-packages} 2>/dev/null) || true
    # shellcheck disable=SC2086 # folders are words
    cudnn=$(first_with cudnn.h ${MEMPLAN_CUDNN:+"$MEMPLAN_CUDNN" "$MEMPLAN_CUDNN/../include"} "$cuda/include" \
        /usr/local/include /usr/include $(for p in $python; do echo "$p/nvidia/cudnn/include"; done))
    # shellcheck disable=SC2086
    cublas=$(first_with cublas_v2.h "$cuda/include" \
        $(for p in $python; do echo "$p/nvidia/cu13/include" "$p/nvidia/cublas/include"; done))
    if [ -z "$cudnn" ]; then
        lacks="no cudnn.h"
    elif [ -z "$cublas" ]; then
        lacks="no cublas_v2.h"
    elif ! printf '__global__ void k(void) {}\n' >"$work/k.cu" ||
        ! "$cuda/bin/nvcc" -arch=sm_80 -c "$work/k.cu" -o "$work/k.o" >"$work/k.log" 2>&1; then
        lacks="nvcc cannot compile here (it needs g++)"
    else
        have_cuda=1
        cppflags="$cppflags -isystem $cuda/include -isystem $cudnn -isystem $cublas"
        ldlibs="$ldlibs $cuda_libs"
    fi
fi

cat >"$out/mpl_config.h.new" <<CONFIG
/* Made by scripts/features.sh; do not edit. */
#define MPL_HAVE_GLPK $have_glpk
#define MPL_HAVE_SQLITE $have_sqlite
#define MPL_HAVE_CUDA $have_cuda
#define MPL_CUDA_LACKS "$lacks"
CONFIG
cmp -s "$out/mpl_config.h.new" "$out/mpl_config.h" && rm "$out/mpl_config.h.new" ||
    mv "$out/mpl_config.h.new" "$out/mpl_config.h"
cat >"$out/features.mk" <<MAKE
# Made by scripts/features.sh; do not edit.
FEATURE_CPPFLAGS := $cppflags
FEATURE_LDLIBS := $ldlibs
FEATURE_LINKER := $linker
ONNX_PROTO := $proto
HAVE_CUDA := $have_cuda
NVCC := $cuda/bin/nvcc
NVCC_INCLUDES := -isystem $cuda/include
MAKE
absent=
[ $have_glpk = 1 ] || absent="$absent GLPK"
[ $have_sqlite = 1 ] || absent="$absent SQLite (no tables)"
[ $have_cuda = 1 ] || absent="$absent CUDA: $lacks"
echo "features: found$report$([ $have_cuda = 0 ] || echo ' CUDA with cuDNN')${absent:+; absent:$absent (building without)}"
