#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/format.sh [--check] [FILE...]: clang-format over the C and C++ sources, in place or as a check.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mode=(-i)
if [[ ${1-} == --check ]]; then
  mode=(--dry-run --Werror)
  shift
fi
if (($#)); then
  files=("$@")
else
  mapfile -t files < <(find "$root"/{core,capi,bindings,examples,tests} -name node_modules -prune -o '(' -name '*.[ch]pp' -o -name '*.[ch]' ')' -print | sort)
fi
clang-format-19 "${mode[@]}" "${files[@]}"
