#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/scheduler/smoke.sh PROGRAM
# The whole play on a redis-server of its own, what it says when its promises are broken, and what it says to a bad
# command line. Ends with the line `N passed, M failed`; with exit status 77 where there is no redis-server.

set -uo pipefail

program=${1:?the program scheduler is needed as an argument}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

if ! command -v "${STN_REDIS_SERVER:-redis-server}" >/dev/null; then
  echo "There is no redis-server here"
  exit 77
fi

# expect TEXT STATUS WORDS ARGUMENTS...: the program ends with STATUS and prints WORDS.
expect() {
  local what=$1 status=$2 words=$3 got
  shift 3
  timeout 100 "$program" "$@" >"$folder/out" 2>&1 </dev/null
  got=$?
  if ((got == status)) && grep -qF -e "$words" "$folder/out"; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what: exit status $got, wanted $status and the words '$words'"
    sed 's/^/   | /' "$folder/out"
  fi
}

expect "every promise is seen, on a server of its own" 0 "Every promise was seen."
sed 's/^/   | /' "$folder/out"
expect "instances that share no store run a slot twice, and that is told" 1 "NO   no slot was run twice" \
  --store memory:// --only ticks
expect "a store that is not there is told" 3 "refused" --store redis://127.0.0.1:1
expect "an unknown option is named, with the known ones" 2 "--store --only --help" --sore x
expect "an unknown act is named, with the known ones" 2 "ticks broken renewed" --only fast
expect "a missing value is named" 2 "--only needs a value" --only
expect "help" 0 "--store URL" --help

echo "$passed passed, $failed failed"
((failed == 0))
