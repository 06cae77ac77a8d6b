#!/usr/bin/env bash
# Makes the wheel, installs it into an empty virtual environment, and runs example and tests there; no internet.
#
#   scripts/wheel-test.sh MODE
#
# Skips, and says why, where Python has no venv or pip. The last line adds up. WHEEL_PIP names packages to install beside, such as numpy.
set -u
mode=${1:-release}
skip() { echo "skip: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
command -v python3 >/dev/null || skip "no python3 here"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$(python3 --version) is older than 3.9"
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "Python has no venv or no ensurepip here (Debian: python3-venv)"
[ -r "$(gcc -print-file-name=libigraph.a)" ] || skip "no libigraph.a here: the wheel links it inside"
make -s wheel MODE="$mode" || exit 1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv" || skip "Python makes no environment here"
start=$(date +%s%N)
"$place/venv/bin/pip" install -q --no-index --disable-pip-version-check dist/memplan-*.whl || exit 1
# shellcheck disable=SC2086 # names of packages
[ -z "${WHEEL_PIP-}" ] || "$place/venv/bin/pip" install -q --disable-pip-version-check $WHEEL_PIP || exit 1
echo "wheel: installed in $((($(date +%s%N) - start) / 1000000)) ms"
env -u MEMPLAN -u MEMPLAN_LIBRARY "$place/venv/bin/python" harness/python/example/arena.py || exit 1
env -u MEMPLAN -u MEMPLAN_LIBRARY "$place/venv/bin/python" tests/python/test_wheel.py
