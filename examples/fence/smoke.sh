#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/fence/smoke.sh PROGRAM
# The whole play on a PostgreSQL and a redis-server of its own, and what the program says to a bad command line. Ends with
# the line `N passed, M failed`; with exit status 77 where one of the two servers is missing.

set -uo pipefail

program=${1:?the program fence is needed as an argument}
here=$(dirname "${BASH_SOURCE[0]}")
source "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

expect "every promise is seen, on servers of its own" 0 "Every promise was seen." bash "$here/run.sh" "$program"
sed 's/^/   | /' "$folder/out"
expect "a database that is not there is told" 3 "refused" "$program" --store memory:// \
  --database "host=127.0.0.1 port=1 user=fence dbname=fence"
expect "an unknown option is named, with the known ones" 2 "--store --database --help" "$program" --sore x
expect "a missing value is named" 2 "--store needs a value" "$program" --store
expect "a missing option is named" 2 "--store and --database are needed" "$program" --store memory://
expect "help" 0 "--database CONNINFO" "$program" --help

told
