#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/python_soak.sh [SECONDS] [SEED]
# Builds library and module with AddressSanitizer and UndefinedBehaviorSanitizer for the newest Python, and runs threads,
# tasks and cancellations at random (bindings/python/tests/programs/soak.py) for a minute against a redis-server of its own.
# The last line is `N passed, M failed`.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_python.sh"
need_pythons
seconds=${1:-60}
build=$root/build/python-asan
venv=$build/venv
mkdir -p "$build" "$logs"
[[ -x $venv/bin/python ]] || "${pythons[-1]#* }" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$root/bindings/python/constraints.txt" pybind11
say "Python: ${pythons[-1]}"
{
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTN_TESTS=OFF -DSTN_EXAMPLES=OFF \
    -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer" \
    -DCMAKE_C_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined" -DSTN_PYTHON="$venv/bin/python" &&
    cmake --build "$build" --target stn_python -j "$jobs"
} >"$logs/python-asan.log" 2>&1 || {
  tail -n 30 "$logs/python-asan.log"
  echo "0 passed, 1 failed"
  exit 1
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"${STN_REDIS_SERVER:-redis-server}" --bind 127.0.0.1 --port "$port" --save "" --dir "$build" >"$build/redis.log" 2>&1 &
redis=$!
trap 'kill "$redis"' EXIT

# Leaks are looked for by python_leak.sh: an interpreter keeps too much at its end for LeakSanitizer.
if env PYTHONPATH="$build/python" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 \
  UBSAN_OPTIONS=print_stacktrace=1 LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
  "$venv/bin/python" "$root/bindings/python/tests/programs/soak.py" "$seconds" "redis://127.0.0.1:$port" ${2:+"$2"}; then
  echo "1 passed, 0 failed"
else
  echo "0 passed, 1 failed"
  exit 1
fi
