# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Sourced by the smoke.sh of each example: what is expected of a program, counted. They end with `told`.

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# count WHAT STATUS FILE: one test more, and what was printed if it failed.
count() {
  if (($2 == 0)); then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1"
    sed 's/^/   | /' "$3"
  fi
}

# expect WHAT STATUS WORDS COMMAND...: it ends with STATUS and prints WORDS. One that ends with 77 cannot run here: so
# does the script.
expect() {
  local what=$1 status=$2 words=$3 got
  shift 3
  timeout --kill-after=10 120 "$@" >"$folder/out" 2>&1 </dev/null
  got=$?
  if ((got == 77)); then
    cat "$folder/out"
    exit 77
  fi
  ((got == status)) && grep -qF -e "$words" "$folder/out" && count "$what" 0 "$folder/out" && return
  count "$what: exit status $got, wanted $status and the words '$words'" 1 "$folder/out"
}

# check WHAT COMMAND...: it succeeds. What the last `expect` printed stays in $folder/out.
check() {
  local what=$1
  shift
  "$@" >"$folder/checked" 2>&1
  count "$what" $? "$folder/checked"
}

told() {
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
