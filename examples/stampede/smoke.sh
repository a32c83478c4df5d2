#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/stampede/smoke.sh PROGRAM
# A small stampede with every strategy, and what the program says to a bad command line.
# Ends with the line `N passed, M failed`.

set -uo pipefail

program=${1:?the program stampede is needed as an argument}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# expect TEXT STATUS WORDS ARGUMENTS...: the program ends with STATUS and prints WORDS.
expect() {
  local what=$1 status=$2 words=$3 got
  shift 3
  timeout 120 "$program" "$@" >"$folder/out" 2>&1 </dev/null
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

check() {
  local what=$1
  shift
  if "$@" >"$folder/out" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what"
    sed 's/^/   | /' "$folder/out"
  fi
}

small=(--nodes 5 --requests 2000 --load-ms 50)

expect "every strategy keeps its promises" 0 "Every promise was kept." "${small[@]}" --svg "$folder/chart.svg"
expect "so it does in a burst" 0 "Every promise was kept." "${small[@]}" --arrive burst
expect "one object for programs" 0 '"every_promise_kept": true' "${small[@]}" --strategy both,soft --json
cp "$folder/out" "$folder/report.json"
check "it is JSON, with one query for each of the two" python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert [run["queries"] for run in report["strategies"]] == [1, 1]
assert all(run["library"]["loads"] == 1 for run in report["strategies"])
' "$folder/report.json"
check "the chart is well-formed" python3 -c '
import sys, xml.dom.minidom
assert xml.dom.minidom.parse(sys.argv[1]).documentElement.tagName == "svg"
' "$folder/chart.svg"

expect "an unknown option is named, with the nearest" 2 "Did you mean --nodes?" --node 5
expect "an unknown strategy is named, with the known ones" 2 "none lease flight both soft" --strategy fast
expect "a number out of range is named, with the range" 2 "from 1 to 500" --nodes 0
expect "a wrong arrival is named, with the valid ones" 2 "or burst" --arrive soon
expect "a missing value is named" 2 "--load-ms needs a value" --load-ms
expect "a chart that cannot be written is told at once" 3 "cannot be written" --svg "$folder/none/chart.svg"
expect "a store that it cannot speak to is told" 3 "unsupported" --store "redis+cluster://user:secret@127.0.0.1:6379"
check "without the password" bash -c '! grep -q secret "$1"' _ "$folder/out"
expect "so is a server that is not there" 3 "cannot be asked" --store "redis://user:secret@127.0.0.1:1/0"
check "without the password either" bash -c '! grep -q secret "$1"' _ "$folder/out"
expect "runs are counted" 0 "2 of 2 runs kept every promise" "${small[@]}" --strategy both --runs 2
expect "help" 0 "--strategy NAMES" --help

echo "$passed passed, $failed failed"
((failed == 0))
