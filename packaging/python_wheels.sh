#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/python_wheels.sh
# Builds a wheel from scratch with `pip wheel` for each Python >= 3.9 that is here (STN_PYTHONS names them), says what
# `auditwheel show` thinks of it, installs it in a new environment and runs the README's quick start there, on memory://
# and on a redis-server of its own. The wheels stay in build/wheels. The last line is `N passed, M failed`.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_python.sh"
wheels=$root/build/wheels
passed=0
failed=0
need_pythons
rm -rf "$wheels"
mkdir -p "$wheels"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"${STN_REDIS_SERVER:-redis-server}" --bind 127.0.0.1 --port "$port" --save "" --dir "$wheels" >"$wheels/redis.log" 2>&1 &
redis=$!
trap 'kill "$redis"' EXIT

newest=${pythons[-1]#* }
"$newest" -m venv "$wheels/tools"
"$wheels/tools/bin/pip" install --quiet --disable-pip-version-check auditwheel

wheel_works() {
  local minor=$1 python=$2 fresh=$wheels/py3.$1 wheel
  "$python" -m venv "$fresh" || return 1
  # with build isolation: what the package says it needs for its build is all there is
  "$fresh/bin/pip" wheel --disable-pip-version-check --no-deps --wheel-dir "$wheels" "$root/bindings/python" || return 1
  wheel=$(find "$wheels" -maxdepth 1 -name "stanchion-*-cp3$minor-*.whl")
  "$wheels/tools/bin/auditwheel" show "$wheel" || return 1
  "$fresh/bin/pip" install --quiet --disable-pip-version-check "$wheel" || return 1
  cd "$fresh" || return 1
  quick_start memory:// | "$fresh/bin/python" -W error - && quick_start "redis://127.0.0.1:$port" | "$fresh/bin/python" -W error -
}

for line in "${pythons[@]}"; do
  minor=${line%% *}
  if wheel_works "$minor" "${line#* }" >"$wheels/py3.$minor.log" 2>&1; then
    passed=$((passed + 1))
    say "Python 3.$minor: $(cd "$wheels" && ls -sh stanchion-*-cp3"$minor"-*.whl); $(grep -A1 'consistent with' "$wheels/py3.$minor.log" | tr '\n' ' ')"
  else
    failed=$((failed + 1))
    say "Python 3.$minor failed"
    tail -n 30 "$wheels/py3.$minor.log"
  fi
done
echo "$passed passed, $failed failed"
((failed == 0))
