#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/bootstrap_valkey.sh
# Debian 12 itself has no Valkey: unpacks valkey-server from bookworm-backports into build/deps/valkey, for tests. It is
# not installed and no service starts; shared libraries that it lacks are installed. Does nothing when valkey-server is
# on PATH.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_apt.sh"

prefix=$deps/valkey
server=$prefix/usr/bin/valkey-server
log=$logs/bootstrap-valkey.log
mkdir -p "$deps" "$logs"
exec 7>"$deps/.valkey.lock"
flock 7

if command -v valkey-server >/dev/null || "$server" --version >/dev/null 2>&1; then
  exit 0
fi

suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
[[ $suite == bookworm ]] && suite=bookworm-backports

say "Unpacking valkey-server from $suite (log: ${log#"$root/"})"
log_to "$log" "There is no valkey-server now"

work=$deps/valkey-build
rm -rf "$work" "$prefix"
mkdir -p "$work"
private_apt deb "$suite"
# Its binary, valkey-server, is a link to one of valkey-tools.
(cd "$work" && apt_in "$suite" download valkey-server valkey-tools)
for package in "$work"/*.deb; do
  dpkg -x "$package" "$work/root"
done
mv "$work/root" "$prefix"
rm -rf "$work" "$deps/apt/$suite"
if ldd "$server" | grep 'not found'; then
  install_packages libatomic1 libjemalloc2 liblzf1 libssl3 libsystemd0
fi
"$server" --version
