#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/scheduler/smoke.sh PROGRAM
# The whole play on a redis-server of its own, what it says when its promises are broken, and what it says to a bad
# command line. Ends with the line `N passed, M failed`; with exit status 77 where there is no redis-server.

set -uo pipefail

program=${1:?the program scheduler is needed as an argument}
source "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

if ! command -v "${STN_REDIS_SERVER:-redis-server}" >/dev/null; then
  echo "There is no redis-server here"
  exit 77
fi

run() { expect "$1" "$2" "$3" "$program" "${@:4}"; }

run "every promise is seen, on a server of its own" 0 "Every promise was seen."
sed 's/^/   | /' "$folder/out"
run "instances that share no store run a slot twice, and that is told" 1 "NO   no slot was run twice" \
  --store memory:// --only ticks
run "a store that is not there is told" 3 "refused" --store redis://127.0.0.1:1
run "an unknown option is named, with the known ones" 2 "--store --only --help" --sore x
run "an unknown act is named, with the known ones" 2 "ticks broken renewed" --only fast
run "a missing value is named" 2 "--only needs a value" --only
run "help" 0 "--store URL" --help

told
