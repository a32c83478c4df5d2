#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/stampede_servers.sh [stampede options]
# The stampede with 50 processes, on a redis-server and on a valkey-server that it starts: on a free port and a unix socket,
# in a temporary folder, nothing kept; both are stopped by their process ids. Without options: 20 runs each of 100,000
# callers over 1 s and of a burst, with both layers. The last line is `N passed, M failed`: what the options ask for counts
# once for each server.
#
#   STN_REDIS_SERVER, STN_VALKEY_SERVER   the programs; else those of PATH, else what bootstrap_*.sh bring
#   STN_STAMPEDE                          the example; else the release is built

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir -p "$logs"
program=${STN_STAMPEDE-}
if [[ -z $program ]]; then
  install_packages g++ cmake ninja-build nlohmann-json3-dev libsqlite3-dev libssl-dev || exit 1
  bash "$root/packaging/bootstrap_hiredis.sh" || exit 1
  if ! build release stampede -DSTN_TESTS=OFF >"$logs/stampede-servers.log" 2>&1; then
    tail -n 40 "$logs/stampede-servers.log"
    exit 1
  fi
  program=$root/build/release/examples/stampede/stampede
fi
if [[ -z ${STN_REDIS_SERVER-} || -z ${STN_VALKEY_SERVER-} ]]; then
  bash "$root/packaging/bootstrap_redis.sh" && bash "$root/packaging/bootstrap_valkey.sh" || exit 1
fi
redis=${STN_REDIS_SERVER:-$(command -v redis-server || echo "$root/build/deps/redis/redis-server")}
valkey=${STN_VALKEY_SERVER:-$(command -v valkey-server || echo "$root/build/deps/valkey/usr/bin/valkey-server")}

folder=$(mktemp -d)
pid=
stop_server() {
  [[ -n $pid ]] || return 0
  kill "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  pid=
}
trap 'stop_server; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

# start_server PROGRAM: sets `pid` and `port`. Another process may take the port between the question and the server.
start_server() {
  local attempt
  for attempt in 1 2 3 4 5; do
    rm -f "$folder/socket" "$folder/log"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$1" --bind 127.0.0.1 --port "$port" --unixsocket "$folder/socket" --save '' --appendonly no --dir "$folder" \
      --logfile "$folder/log" --daemonize no >"$folder/out" 2>&1 &
    pid=$!
    for _ in {1..200}; do
      grep -qi 'ready to accept connections' "$folder/log" 2>/dev/null && [[ -S $folder/socket ]] && return 0
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.05
    done
    stop_server
  done
  cat "$folder/out" "$folder/log" 2>/dev/null
  return 1
}

passed=0
failed=0
stampede() {  # the options
  if "$program" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  echo
}

for server in "$redis" "$valkey"; do
  say "$("$server" --version)"
  if ! start_server "$server"; then
    say "It does not start"
    failed=$((failed + 1))
    continue
  fi
  if (($#)); then
    stampede --store "redis://127.0.0.1:$port" "$@"
  else
    stampede --store "redis://127.0.0.1:$port" --strategy both --runs 20
    stampede --store "unix://$folder/socket" --strategy both --arrive burst --runs 20
  fi
  stop_server
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
