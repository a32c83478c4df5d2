#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/test.sh [--quick] [STAGE...]
# Installs what is missing, builds, and runs every test. The last line is `N passed, M failed`, over all suites;
# a build, a crash or a time-out that fails counts as one. --quick is the stage dev only.
#
#   dev      g++ debug build; lint, unit, conformance, abi, faults, fuzz, the command line, the examples
#   live     the same build against redis-server and valkey-server, started by the tests; both against the embedded store;
#            a stampede of 50 processes on each; the examples that need servers
#   asan     AddressSanitizer + UndefinedBehaviorSanitizer: unit, stress, conformance, abi, faults, fuzz, sim
#   tsan     ThreadSanitizer: unit, stress, many threads and queues that work on a real server (this compiles the tests
#            with clang++-19, warnings are errors)
#   sim      release build; 10,000 seeds of the simulator; the benchmarks, shortly; the stampede as in the demo
#   clang    clang++-19 build of library and examples, warnings are errors; clang-tidy over core/ and capi/
#   format   clang-format changes nothing
#   python   the Python package on the oldest and the newest Python that is here; mypy, ruff
#   node     the Node package on the Node that is here, or on one from PyPI; publint, attw; its examples
#
# Everything a step prints goes to build/logs/<stage>-<step>.log; the end of it is shown when the step fails.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

stages=()
for word in "$@"; do
  case $word in
    --quick) stages+=(dev) ;;
    dev | live | asan | tsan | sim | clang | format | python | node) stages+=("$word") ;;
    *)
      sed -n '4,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 2
      ;;
  esac
done
((${#stages[@]})) || stages=(dev live asan tsan sim clang format python node)

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

# --- Running and counting -----------------------------------------------------------------------------------

rows=()
total_passed=0
total_failed=0

record() {  # STAGE STEP PASSED FAILED SECONDS
  rows+=("$(printf '%-8s %-14s %8s %8s %7ss' "$1" "$2" "$3" "$4" "$5")")
  total_passed=$((total_passed + $3))
  total_failed=$((total_failed + $4))
}

finish() {
  printf '\n%-8s %-14s %8s %8s %8s\n' stage step passed failed time
  ((${#rows[@]})) && printf '%s\n' "${rows[@]}"
  printf '%-8s %-14s %8s %8s %7ss\n\n' all '' "$total_passed" "$total_failed" "$SECONDS"
  printf '%d passed, %d failed\n' "$total_passed" "$total_failed"
  ((total_failed == 0)) && exit 0
  exit 1
}
stop() {
  [[ -n ${child-} ]] && kill "$child" 2>/dev/null
  record "${stage:-start}" stopped 0 1 0
  exit 1
}
trap stop INT TERM HUP
trap finish EXIT

# logged STAGE STEP TIMEOUT COMMAND...: runs with a time limit; sets `log`, `status` and `took`.
logged() {
  local stage=$1 step=$2 limit=$3 started=$SECONDS
  shift 3
  log=$logs/$stage-$step.log
  say "$stage: $step"
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null &
  child=$!
  wait "$child"
  status=$?
  child=
  took=$((SECONDS - started))
  ((status == 124)) && echo "stopped after $limit s" >>"$log"
}

show_end() { grep -v '^ok ' "$log" | tail -n 40 | sed 's/^/   | /'; }

# Reads `P F` from doctest's summary, or from a last line `P passed, F failed`; nothing if there is neither.
counts() {
  sed -nE -e 's/^\[doctest\] test cases: +[0-9]+ \| +([0-9]+) passed \| +([0-9]+) failed.*/\1 \2/p' \
    -e 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$1" | tail -n 1
}

# counted STAGE STEP TIMEOUT COMMAND...: a program that counts its own tests, and has to say so.
counted() {
  local passed failed
  logged "$@"
  read -r passed failed <<<"$(counts "$log")"
  if [[ -z $passed ]]; then
    passed=0 failed=1
    echo "no count of tests was printed (exit status $status)" >>"$log"
  elif ((status != 0 && failed == 0)); then
    failed=1
    echo "every test passed, but the exit status was $status" >>"$log"
  fi
  ((failed)) && show_end
  record "$1" "$2" "$passed" "$failed" "$took"
}

# single STAGE STEP TIMEOUT COMMAND...: one test, told by its exit status.
single() {
  logged "$@"
  if ((status == 0)); then
    record "$1" "$2" 1 0 "$took"
  else
    echo "exit status $status" >>"$log"
    show_end
    record "$1" "$2" 0 1 "$took"
  fi
}

# compile PRESET TARGETS [cmake -D...]: a build counts only when it fails.
compile() {
  logged "$stage" build 1800 bash -c 'source "$0" && build "$@"' "$root/packaging/lib.sh" "$@"
  if ((status == 0)); then
    record "$stage" build 0 0 "$took"
    return 0
  fi
  show_end
  record "$stage" build 0 1 "$took"
  return 1
}

# suite PRESET NAME TIMEOUT [ARGUMENTS...]: the program of tests/NAME, and its run.py when it has one.
suite() {
  local preset=$1 name=$2 limit=$3
  shift 3
  local program=$root/build/$preset/tests/$name/$name
  if compgen -G "$root/tests/$name/*.cpp" >/dev/null; then
    counted "$stage" "$name" "$limit" "$program" "$@"
  fi
  if [[ -e $root/tests/$name/run.py ]]; then
    counted "$stage" "$name.py" "$limit" python3 "$root/tests/$name/run.py" "$root/build/$preset"
  fi
}

# suite_targets NAME...: what builds these suites, as far as they are there.
suite_targets() {
  local name targets=(stanchion)
  for name in "$@"; do
    if [[ -e $root/tests/$name/CMakeLists.txt ]]; then
      targets+=("tests/$name/all")
    elif compgen -G "$root/tests/$name/*.cpp" >/dev/null; then
      targets+=("test_$name")
    fi
  done
  echo "${targets[*]}"
}

# --- The stages ---------------------------------------------------------------------------------------------

stage_dev() {
  compile dev all -DSTN_TESTS=ON || return
  suite dev lint 120
  suite dev unit 300
  conformance dev
  suite dev abi 300
  suite dev faults 300
  suite dev fuzz 300
  suite dev cli 120
  examples dev
}

stage_live() {
  compile dev "$(suite_targets live differential) stanchion_cli stampede ${live_examples[*]}" -DSTN_TESTS=ON || return
  suite dev live 900
  counted live cli 120 python3 "$root/tests/cli/run.py" "$root/build/dev" --live
  suite dev differential 600
  STN_STAMPEDE=$root/build/dev/examples/stampede/stampede counted live stampede 120 \
    bash "$root/packaging/stampede_servers.sh" --strategy both
  local example
  for example in "${live_examples[@]}"; do
    counted live "$example" 120 bash "$root/examples/$example/smoke.sh" "$root/build/dev/examples/$example/$example"
  done
}

stage_asan() {
  compile asan tests/all || return
  suite asan unit 300
  suite asan stress 480
  conformance asan
  suite asan abi 300
  suite asan faults 300
  suite asan fuzz 300
  suite asan sim 240 --seeds 200
}

stage_tsan() {
  compile tsan tests/all || return
  suite tsan unit 300
  suite tsan stress 480
  counted tsan live 240 "$root/build/tsan/tests/live/live" --source-file="*many_threads*,*sync_queue*"
}

stage_sim() {
  compile release "tests/sim/all tests/bench/all" -DSTN_TESTS=ON -DSTN_BENCH=ON || return
  suite release sim 360 --seeds 10000
  single sim bench 120 "$root/build/release/tests/bench/bench" --benchmark_min_time=0.01 --benchmark_repetitions=1
  single sim bench_store 120 "$root/build/release/tests/bench/bench_store" --rounds 1 --ms 50
  single sim bench_locks 120 "$root/build/release/tests/bench/bench_locks" --rounds 1 --ms 50 --contest-ms 200
  if [[ -d $root/examples/stampede ]]; then
    single sim demo 300 bash "$root/packaging/demo.sh"
  fi
}

# The tests met clang++-19 and its warnings in the stage tsan.
stage_clang() {
  compile clang all -DSTN_TESTS=OFF || return
  single clang tidy 900 bash "$root/packaging/tidy.sh"
}

stage_format() {
  single format clang-format 120 bash "$root/packaging/format.sh" --check
}

stage_python() { counted python package 900 bash "$root/packaging/python.sh"; }

stage_node() { counted node tests 900 bash "$root/packaging/node.sh"; }

# Each script of tests/conformance is a test of its own.
conformance() {  # PRESET
  counted "$stage" conformance 300 "$root/build/$1/tests/conformance/conformance_c" "$root/tests/conformance"
}

# Those that need servers run in the stage live.
live_examples=(scheduler fence)

# Every other example runs through: by its smoke.sh, or just so.
examples() {  # PRESET
  local program folder
  export LD_LIBRARY_PATH=$root/build/$1/capi
  for program in "$root/build/$1"/examples/*/*; do
    [[ -f $program && -x $program ]] || continue
    folder=$(basename "$(dirname "$program")")
    [[ " ${live_examples[*]} " == *" $folder "* ]] && continue
    if [[ -e $root/examples/$folder/smoke.sh ]]; then
      counted "$stage" "$folder" 600 bash "$root/examples/$folder/smoke.sh" "$program"
    else
      single "$stage" "$(basename "$program")" 60 "$program"
    fi
  done
  unset LD_LIBRARY_PATH
}

# The servers that tests start, by what they look for in the environment.
find_servers() {
  bash "$root/packaging/bootstrap_redis.sh" && bash "$root/packaging/bootstrap_valkey.sh" || return
  STN_REDIS_SERVER=$(command -v redis-server || echo "$root/build/deps/redis/redis-server")
  STN_VALKEY_SERVER=$(command -v valkey-server || echo "$root/build/deps/valkey/usr/bin/valkey-server")
  export STN_REDIS_SERVER STN_VALKEY_SERVER
}

# --- The run ------------------------------------------------------------------------------------------------

mkdir -p "$logs"
exec 9>"$root/build/.test.lock"
flock --nonblock 9 || { say "Another run is at work here; waiting for it" && flock 9; }

stage=install
packages=(g++ cmake ninja-build ccache python3 git doctest-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev
  libssl-dev)
for stage in "${stages[@]}"; do
  case $stage in
    tsan | clang) packages+=(clang-19 libclang-rt-19-dev llvm-19 clang-tidy-19 libpq-dev) ;;
    sim) packages+=(libbenchmark-dev) ;;
    live) packages+=(openssl libpq-dev) ;;
    format) packages+=(clang-format-19) ;;
    python) packages+=(python3-dev python3-venv) ;;
    node) packages+=(python3-dev python3-venv openssl) ;;
  esac
done
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
stage=install
failed=0
install_packages "${packages[@]}" || failed=1
bash "$root/packaging/bootstrap_hiredis.sh" || failed=1
if [[ " ${stages[*]} " =~ \ (live|tsan|sim|python|node)\  ]]; then
  find_servers || failed=1
fi
if [[ " ${stages[*]} " == *" live "* ]]; then
  bash "$root/packaging/bootstrap_postgresql.sh" || failed=1
fi
record install packages 0 "$failed" "$SECONDS"
for stage in "${stages[@]}"; do "stage_$stage"; done
