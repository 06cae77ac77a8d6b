#!/usr/bin/env bash
# Installs the Debian packages that memplan builds and tests with; does nothing when none is missing.
#
#   scripts/install-deps.sh          what building and running need
#   scripts/install-deps.sh --test   and what only tests and checks need
#   scripts/install-deps.sh --data   what scripts/data.sh reads public addresses by, alone
#   scripts/install-deps.sh --paper  what building and running need, and the allocators that `make paper` measures beside malloc
#
# Says what it does before it does it. Uses sudo only when not root.
# Exit status: 0 all there (now); 1 a package could not be installed.
set -eu

build="gcc make pkg-config libigraph-dev libglpk-dev libhwloc-dev libdnnl-dev libprotobuf-c-dev
       protobuf-c-compiler protobuf-compiler libonnx-dev libjansson-dev zlib1g-dev libsqlite3-dev gnuplot-nox"
data="curl ca-certificates"
test="libcmocka-dev libonnx-testdata clang libclang-rt-14-dev valgrind $data groff-base nodejs python3-yaml
      slurmctld slurmd slurm-client munge parallel openssh-server openssh-client"

case "${1-}" in
"") want=$build ;;
--test) want="$build $test" ;;
--data) want=$data ;;
--paper) want="$build libjemalloc2 libmimalloc2.0" ;;
*) echo "install-deps: unknown argument '$1'; usage: scripts/install-deps.sh [--test|--data|--paper]" >&2; exit 2 ;;
esac

missing=
for package in $want; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-deps: no apt-get here; install by hand:$missing" >&2
    exit 1
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
echo "install-deps: installing$missing"
$as_root apt-get -qq update
# shellcheck disable=SC2086 # one word a package is meant
DEBIAN_FRONTEND=noninteractive $as_root apt-get -qq -y --no-install-recommends install $missing >/dev/null
echo "install-deps: done"
