#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/tidy.sh [PATTERN]: builds the preset clang, and runs clang-tidy over the files of core/ and capi/
# whose path below the repository matches PATTERN.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

bash "$root/packaging/bootstrap_hiredis.sh"
build clang all -DSTN_TESTS=OFF
escaped=$(sed 's/[][\.|$(){}?+*^]/\\&/g' <<<"$root")
run-clang-tidy-19 -quiet -p "$root/build/clang" -j "$jobs" "^$escaped/(?=core/|capi/).*${1-}" 2>&1 |
  grep -vE '^(\[[0-9]+/[0-9]+\]|[0-9]+ warnings? (generated|treated)|Suppressed |$)'
