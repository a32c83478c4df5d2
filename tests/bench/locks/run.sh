#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds bench_locks and runs it beside the locks of redis-py and python-redis-lock from PyPI. Arguments are passed on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cd "$root"
venv=$root/build/peers/venv
if [[ ! -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import redis, redis_lock' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet redis python-redis-lock
fi
cmake --preset bench >/dev/null
cmake --build build/bench --target bench_locks
exec build/bench/tests/bench/bench_locks --peers "$venv/bin/python" "$root/tests/bench/locks/peers.py" "$@"
