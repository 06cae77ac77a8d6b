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

cuda=${CUDA_HOME:-/usr/local/cuda}
have_cuda=0 have_cudnn=0
if links cuda cuda_runtime_api.h 'cudaGetErrorName(cudaSuccess) != 0' "-isystem $cuda/include" "-L$cuda/lib64 -lcudart"; then
    have_cuda=1
    ! links cudnn cudnn.h 'cudnnGetVersion()' "-isystem $cuda/include" "-L$cuda/lib64 -lcudnn" || have_cudnn=1
fi

cat >"$out/mpl_config.h.new" <<CONFIG
/* Made by scripts/features.sh; do not edit. */
#define MPL_HAVE_GLPK $have_glpk
#define MPL_HAVE_CUDA $have_cuda
#define MPL_HAVE_CUDNN $have_cudnn
CONFIG
cmp -s "$out/mpl_config.h.new" "$out/mpl_config.h" && rm "$out/mpl_config.h.new" ||
    mv "$out/mpl_config.h.new" "$out/mpl_config.h"
cat >"$out/features.mk" <<MAKE
# Made by scripts/features.sh; do not edit.
FEATURE_CPPFLAGS := $cppflags
FEATURE_LDLIBS := $ldlibs
ONNX_PROTO := $proto
HAVE_CUDA := $have_cuda
HAVE_CUDNN := $have_cudnn
MAKE
absent=
[ $have_glpk = 1 ] || absent="$absent GLPK"
[ $have_cuda = 1 ] || absent="$absent CUDA"
[ $have_cudnn = 1 ] || absent="$absent cuDNN"
echo "features: found$report$([ $have_cuda = 0 ] || echo ' CUDA')$([ $have_cudnn = 0 ] || echo ' cuDNN')${absent:+; absent:$absent (building without)}"
