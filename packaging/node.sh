#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/node.sh
# Builds the Node package (addon by the preset release, TypeScript) and runs all its tests; the last line is
# `N passed, M failed`. Takes node >= 20 and npm from PATH, or else what bootstrap_node.sh brings; the development tools come
# from npm, pinned by package-lock.json. Installs the Python package too, for the mixed fleet. Servers are those that STN_REDIS_SERVER names, or those on PATH.
# What a step prints goes to build/logs/node-<step>.log.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_python.sh"

package=$root/bindings/node
mkdir -p "$logs"
passed=0
failed=0

finish() {
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0))
  exit
}

# step NAME COMMAND...: what has to work before anything else can.
step() {
  local name=$1
  shift
  say "node: $name"
  "$@" >"$logs/node-$name.log" 2>&1 </dev/null && return
  tail -n 40 "$logs/node-$name.log"
  ((++failed))
  finish
}

# counted NAME COMMAND...: tests that count themselves, as TAP or by `N passed, M failed`.
counted() {
  local name=$1 log=$logs/node-$1.log good=0 bad=0 counts count
  shift
  say "node: $name"
  timeout --kill-after=10 300 "$@" >"$log" 2>&1 </dev/null
  local status=$?
  counts=$(sed -nE -e 's/^# pass ([0-9]+)$/good=\1/p; s/^# (fail|cancelled) ([0-9]+)$/bad+=\2/p' \
    -e 's/^([0-9]+) passed, ([0-9]+) failed$/good=\1 bad=\2/p' "$log")
  for count in $counts; do (($count)); done
  ((status != 0 || good == 0)) && ((bad == 0)) && bad=1
  ((bad)) && grep -vE '^ *(ok|#|---|\.\.\.|type:|duration_ms:)' "$log" | tail -n 60
  passed=$((passed + good))
  failed=$((failed + bad))
}

bash "$root/packaging/bootstrap_node.sh" || {
  failed=1
  finish
}
[[ -e $root/build/deps/node ]] && PATH=$root/build/deps/node/bin:$PATH
say "node: $(node --version), npm $(npm --version)"

cd "$package" || exit
[[ node_modules/.package-lock.json -nt package-lock.json ]] || step install npm ci --ignore-scripts
step addon build release "stanchion_node stanchion" -DSTN_NODE=ON
step typescript npm run build
# The Python process of the mixed fleet.
need_pythons
step python install_package
export STN_PYTHON=$root/build/py-installed/bin/python
for file in test/*.test.mjs; do
  counted "$(basename "$file" .test.mjs)" node --test --test-reporter=tap "$file"
done
counted conformance node test/conformance.mjs "$root/tests/conformance"

cd "$root/examples/node" || exit
[[ node_modules/.package-lock.json -nt package-lock.json ]] || step install-examples npm ci --ignore-scripts
counted examples node --test --test-reporter=tap test.mjs
finish
