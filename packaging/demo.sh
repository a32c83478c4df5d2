#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/demo.sh [stampede options]
# Installs what is missing, builds the release and sends a stampede at one database row, on the embedded store.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

install_packages g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libsqlite3-dev libssl-dev
bash "$root/packaging/bootstrap_hiredis.sh"

say "Building the library and the example (log: build/logs/demo.log)"
mkdir -p "$logs"
if ! build release all -DSTN_TESTS=OFF >"$logs/demo.log" 2>&1; then
  tail -n 40 "$logs/demo.log"
  say "The build failed"
  exit 1
fi

say "100,000 requests on 50 nodes for one expired key; without protection, each of them asks the database"
(($#)) || set -- --svg "$root/build/stampede.svg"
"$root/build/release/examples/stampede/stampede" "$@"
