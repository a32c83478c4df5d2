#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash examples/fence/run.sh [PROGRAM]
# Starts a PostgreSQL and a redis-server of its own and runs the program fence on them. Both are on free ports of the
# loopback interface, have their data in a temporary folder and are stopped by their process ids. Started by root,
# PostgreSQL runs as the user postgres or nobody, for as root it refuses to. Exit status: the program's; 77 where one of
# the servers is not installed, 3 where one does not start.
#
#   PROGRAM            else the one of build/release or build/dev
#   STN_POSTGRES_BIN   the folder of initdb and postgres; else pg_ctl's on PATH, Debian's, or what
#                      packaging/bootstrap_postgresql.sh has brought
#   STN_REDIS_SERVER   the redis-server; else that of PATH, or what packaging/bootstrap_redis.sh has brought

set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

first() {  # the first of these that is an executable file
  local path
  for path in "$@"; do
    [[ -f $path && -x $path ]] && echo "$path" && return 0
  done
  return 1
}

program=$(first "${1:-$root/build/release/examples/fence/fence}" "${1:-$root/build/dev/examples/fence/fence}") || {
  echo "The program is not built: cmake --preset release && cmake --build build/release --target fence"
  exit 3
}
redis=$(first "${STN_REDIS_SERVER-}" "$(command -v redis-server)" "$root/build/deps/redis/redis-server") || {
  echo "There is no redis-server here"
  exit 77
}
mapfile -t found < <(printf '%s\n' /usr/lib/postgresql/*/bin/initdb "$root"/build/deps/postgresql/usr/lib/postgresql/*/bin/initdb | sort -rV)
pg_ctl=$(readlink -f "$(command -v pg_ctl || echo /)")
initdb=$(first "${STN_POSTGRES_BIN-}/initdb" "${pg_ctl%/*}/initdb" "${found[@]}") || {
  echo "There is no PostgreSQL here: bash packaging/bootstrap_postgresql.sh"
  exit 77
}
bin=${initdb%/*}

folder=$(mktemp -d)
pids=()
clean() {
  local pid
  for pid in "${pids[@]}"; do
    kill -INT "$pid" 2>/dev/null # for PostgreSQL: at once, but in order
    wait "$pid" 2>/dev/null
  done
  rm -rf "$folder"
}
trap clean EXIT
trap 'exit 3' INT TERM HUP

as_user=()
if ((EUID == 0)); then
  for user in postgres nobody; do
    id -u "$user" >/dev/null 2>&1 || continue
    as_user=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups --)
    break
  done
  mkdir "$folder/postgres"
  chown "$user" "$folder/postgres"
  chmod 711 "$folder"
  # A build folder may be closed to that user.
  if ! "${as_user[@]}" test -x "$bin/postgres"; then
    cp -r "${bin%/usr/lib/*}/usr" "$folder/usr"
    bin=$folder/usr/lib/${bin#*/usr/lib/}
  fi
else
  mkdir "$folder/postgres"
fi
data=$folder/postgres/data

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Another process may take a port between the question and the server: so up to five times each.
start_redis() {
  local attempt pid
  for attempt in 1 2 3 4 5; do
    redis_port=$(free_port)
    rm -f "$folder/redis.log"
    "$redis" --bind 127.0.0.1 --port "$redis_port" --save '' --appendonly no --dir "$folder" \
      --logfile "$folder/redis.log" --daemonize no >"$folder/redis.out" 2>&1 &
    pid=$!
    for _ in {1..200}; do
      grep -qi 'ready to accept connections' "$folder/redis.log" 2>/dev/null && pids+=("$pid") && return 0
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.05
    done
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  cat "$folder/redis.out" "$folder/redis.log" 2>/dev/null
  return 1
}

start_postgres() {
  local attempt pid
  (
    umask 077
    head -c 24 /dev/urandom | base64 >"$folder/postgres/password"
  )
  ((EUID != 0)) || chown "$user" "$folder/postgres/password"
  PGPASSWORD=$(<"$folder/postgres/password")
  export PGPASSWORD
  (cd "$folder" && "${as_user[@]}" "$bin/initdb" --pgdata="$data" --username=fence --pwfile="$folder/postgres/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync) >"$folder/postgres.log" 2>&1 || {
    cat "$folder/postgres.log"
    return 1
  }
  for attempt in 1 2 3 4 5; do
    postgres_port=$(free_port)
    (cd "$folder" && exec "${as_user[@]}" "$bin/postgres" -D "$data" -p "$postgres_port" -k '' -F \
      -c listen_addresses=127.0.0.1 -c shared_buffers=16MB) >"$folder/postgres.log" 2>&1 &
    pid=$!
    for _ in {1..400}; do
      grep -q 'ready to accept connections' "$folder/postgres.log" && pids+=("$pid") && return 0
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.05
    done
    kill -INT "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  cat "$folder/postgres.log"
  return 1
}

start_redis || exit 3
start_postgres || exit 3
echo "$("$redis" --version | cut -d ' ' -f 1-3), $("$bin/postgres" --version)"
echo
"$program" --store "redis://127.0.0.1:$redis_port" \
  --database "host=127.0.0.1 port=$postgres_port user=fence dbname=postgres connect_timeout=10"
