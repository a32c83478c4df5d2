#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/stampede/smoke.sh PROGRAM
# A small stampede with every strategy, and what the program says to a bad command line.
# Ends with the line `N passed, M failed`.

set -uo pipefail

program=${1:?the program stampede is needed as an argument}
source "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

run() { expect "$1" "$2" "$3" "$program" "${@:4}"; }

small=(--nodes 5 --requests 2000 --load-ms 50)

run "every strategy keeps its promises" 0 "Every promise was kept." "${small[@]}" --svg "$folder/chart.svg"
run "so it does in a burst" 0 "Every promise was kept." "${small[@]}" --arrive burst
run "one object for programs" 0 '"every_promise_kept": true' "${small[@]}" --strategy both,soft --json
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

run "an unknown option is named, with the nearest" 2 "Did you mean --nodes?" --node 5
run "an unknown strategy is named, with the known ones" 2 "none lease flight both soft" --strategy fast
run "a number out of range is named, with the range" 2 "from 1 to 500" --nodes 0
run "a wrong arrival is named, with the valid ones" 2 "or burst" --arrive soon
run "a missing value is named" 2 "--load-ms needs a value" --load-ms
run "a chart that cannot be written is told at once" 3 "cannot be written" --svg "$folder/none/chart.svg"
run "a store that it cannot speak to is told" 3 "unsupported" --store "redis+cluster://user:secret@127.0.0.1:6379"
check "without the password" bash -c '! grep -q secret "$1"' _ "$folder/out"
run "so is a server that is not there" 3 "cannot be asked" --store "redis://user:secret@127.0.0.1:1/0"
check "without the password either" bash -c '! grep -q secret "$1"' _ "$folder/out"
run "runs are counted" 0 "2 of 2 runs kept every promise" "${small[@]}" --strategy both --runs 2
run "help" 0 "--strategy NAMES" --help

told
