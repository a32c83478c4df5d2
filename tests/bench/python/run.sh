#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash tests/bench/python/run.sh [--quick] [--only WORD] [--placements SU]
# Builds the Python module for the newest Python here and measures it beside its peers from PyPI, at the versions of
# constraints.txt: see tests/bench/README.md. Arguments are those of main.py.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../packaging/lib.sh"
source "$root/packaging/lib_python.sh"
cd "$root"
newest=$(find_pythons | tail -n 1)
venv=$root/build/peers/python-3.${newest%% *}
[[ -x $venv/bin/python ]] || "${newest#* }" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --constraint tests/bench/python/constraints.txt \
  --constraint bindings/python/constraints.txt pybind11 'redis[hiredis]' python-redis-lock pottery cashews aiocache dogpile.cache
mkdir -p "$logs"
build_module() {
  # What packaging/python.sh has built for the same Python is good enough.
  compgen -G "build/python/python/stanchion/_native.cpython-3${newest%% *}-*" >/dev/null ||
    cmake -S . -B build/python -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTN_TESTS=OFF -DSTN_EXAMPLES=OFF \
      -DSTN_PYTHON="$venv/bin/python" || return
  nice cmake --build build/python --target stn_python -j "$jobs"
}
build_module >"$logs/bench-python-build.log" 2>&1 || { tail -n 30 "$logs/bench-python-build.log" && exit 1; }
export PYTHONPATH=$root/build/python/python
exec "$venv/bin/python" tests/bench/python/main.py "$@"
