#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/node.sh
# Builds the Node package (addon by the preset release, TypeScript) and runs all its tests; the last line is
# `N passed, M failed`. Needs node >= 20 and npm; the development tools come from npm, pinned by package-lock.json.
# What a step prints goes to build/logs/node-<step>.log.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

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
  local name=$1 log=$logs/node-$1.log good bad
  shift
  say "node: $name"
  timeout --kill-after=10 300 "$@" >"$log" 2>&1 </dev/null
  local status=$?
  good=$(sed -nE 's/^# pass ([0-9]+)$/\1/p; s/^([0-9]+) passed, [0-9]+ failed$/\1/p' "$log" | tail -n 1)
  bad=$(sed -nE 's/^# (fail|cancelled) ([0-9]+)$/\2/p; s/^[0-9]+ passed, ([0-9]+) failed$/\1/p' "$log" | paste -sd+ | bc)
  ((status != 0 && ${bad:-0} == 0)) && bad=1
  ((${bad:-0})) && grep -vE '^ *(ok|#|---|\.\.\.|type:|duration_ms:)' "$log" | tail -n 60
  passed=$((passed + ${good:-0}))
  failed=$((failed + ${bad:-0}))
}

if ! command -v node npm >/dev/null; then
  say "node and npm are not installed"
  failed=1
  finish
fi

cd "$package" || exit
[[ node_modules/.package-lock.json -nt package-lock.json ]] || step install npm ci --ignore-scripts
step addon build release "stanchion_node stanchion" -DSTN_NODE=ON
step typescript npm run build
for file in test/*.test.mjs; do
  counted "$(basename "$file" .test.mjs)" node --test --test-reporter=tap "$file"
done
counted conformance node test/conformance.mjs "$root/tests/conformance"

cd "$root/examples/node" || exit
[[ node_modules/.package-lock.json -nt package-lock.json ]] || step install-examples npm ci --ignore-scripts
counted examples node --test --test-reporter=tap test.mjs
finish
