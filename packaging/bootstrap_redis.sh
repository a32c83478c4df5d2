#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/bootstrap_redis.sh
# A redis-server for tests, without the Debian package of that name, which would start a service: its program is a link
# to one in redis-tools, so build/deps/redis/redis-server is such a link. Does nothing when redis-server is on PATH.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

server=$root/build/deps/redis/redis-server
if command -v redis-server >/dev/null || "$server" --version >/dev/null 2>&1; then
  exit 0
fi

install_packages redis-tools
mkdir -p "$(dirname "$server")"
ln -sf "$(command -v redis-check-rdb)" "$server"
if ! "$server" --version | grep -q '^Redis server'; then
  rm "$server"
  say "redis-check-rdb of this system is not redis-server under another name. Install a redis-server"
  exit 1
fi
