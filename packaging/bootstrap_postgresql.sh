#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/bootstrap_postgresql.sh
# A PostgreSQL for examples/fence, without installing Debian's package, which would make a database and start a service:
# unpacks it into build/deps/postgresql. Shared libraries that it lacks are installed. Does nothing where there is a
# pg_ctl on PATH or one of Debian's.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_apt.sh"

prefix=$deps/postgresql
log=$logs/bootstrap-postgresql.log
mkdir -p "$deps" "$logs"
exec 7>"$deps/.postgresql.lock"
flock 7

if command -v pg_ctl >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
  "$(compgen -G "$prefix/usr/lib/postgresql/*/bin/postgres")" --version >/dev/null 2>&1; then
  exit 0
fi

suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")

say "Unpacking PostgreSQL from $suite (log: ${log#"$root/"})"
log_to "$log" "There is no PostgreSQL now"

work=$deps/postgresql-build
rm -rf "$work" "$prefix"
mkdir -p "$work"
private_apt deb "$suite"
package=$(apt-cache -c "$deps/apt/$suite/apt.conf" depends postgresql | awk '$2 ~ /^postgresql-[0-9]+$/ { print $2; exit }')
(cd "$work" && apt_in "$suite" download "$package")
dpkg -x "$work/$package"_*.deb "$work/root"
server=$(compgen -G "$work/root/usr/lib/postgresql/*/bin/postgres")
if ldd "$server" | grep 'not found'; then
  # libllvm is for a part that is not used here.
  mapfile -t libraries < <(dpkg-deb -f "$work/$package"_*.deb Depends | tr ',|' '\n\n' | awk '{ print $1 }' |
    grep '^lib' | grep -v '^libllvm')
  install_packages "${libraries[@]}"
fi
"$server" --version
mv "$work/root" "$prefix"
rm -rf "$work" "$deps/apt/$suite"
