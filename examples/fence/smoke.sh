#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/fence/smoke.sh PROGRAM
# The whole play on a PostgreSQL and a redis-server of its own, and what the program says to a bad command line. Ends with
# the line `N passed, M failed`; with exit status 77 where one of the two servers is missing.

set -uo pipefail

program=${1:?the program fence is needed as an argument}
here=$(dirname "${BASH_SOURCE[0]}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# expect TEXT STATUS WORDS COMMAND...: it ends with STATUS and prints WORDS.
expect() {
  local what=$1 status=$2 words=$3 got
  shift 3
  timeout --kill-after=10 60 "$@" >"$folder/out" 2>&1 </dev/null
  got=$?
  if ((got == 77)); then
    cat "$folder/out"
    exit 77
  fi
  if ((got == status)) && grep -qF -e "$words" "$folder/out"; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what: exit status $got, wanted $status and the words '$words'"
    sed 's/^/   | /' "$folder/out"
  fi
}

expect "every promise is seen, on servers of its own" 0 "Every promise was seen." bash "$here/run.sh" "$program"
sed 's/^/   | /' "$folder/out"
expect "a database that is not there is told" 3 "refused" "$program" --store memory:// \
  --database "host=127.0.0.1 port=1 user=fence dbname=fence"
expect "an unknown option is named, with the known ones" 2 "--store --database --help" "$program" --sore x
expect "a missing value is named" 2 "--store needs a value" "$program" --store
expect "a missing option is named" 2 "--store and --database are needed" "$program" --store memory://
expect "help" 0 "--database CONNINFO" "$program" --help

echo "$passed passed, $failed failed"
((failed == 0))
