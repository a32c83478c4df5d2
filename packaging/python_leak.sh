#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/python_leak.sh [OPERATIONS] [URL]
# A million operations of the Python package (bindings/python/tests/programs/leak.py), on each Python that
# packaging/python.sh has built a module for; resident memory has to stay flat. The last line is `N passed, M failed`.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
passed=0
failed=0
export PYTHONPATH=$root/build/python/python
for python in "$root"/build/py-venv-3.*/bin/python; do
  "$python" -c 'import stanchion' 2>/dev/null || continue
  say "$("$python" --version)"
  if "$python" "$root/bindings/python/tests/programs/leak.py" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0 && passed))
