#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/bootstrap_hiredis.sh
# Debian 12 has hiredis 0.14.1, and Stanchion needs 1.2 or newer: builds Debian 13's source, static, position independent
# and with TLS, into build/deps/hiredis, where CMake finds it. Does nothing when a new enough one is there.
# Needs a C compiler, cmake, ninja, libssl-dev, apt and its sources; no root, and it installs nothing.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_apt.sh"

version=1.2.0
sha256=82ad632d31ee05da13b537c124f819eb88e18851d9cb0c30ae0552084811588c
prefix=$deps/hiredis
log=$logs/bootstrap-hiredis.log
mkdir -p "$deps" "$logs"
exec 7>"$deps/.hiredis.lock"
flock 7

# is_new_enough DIR...: DIR has both headers, of 1.2 or newer.
is_new_enough() {
  local folder
  for folder in "$@"; do
    [[ -r $folder/hiredis/hiredis_ssl.h ]] &&
      awk '$2 == "HIREDIS_MAJOR" { major = $3 } $2 == "HIREDIS_MINOR" { minor = $3 }
           END { exit major * 1000 + minor < 1002 }' "$folder/hiredis/hiredis.h" && return 0
  done
  return 1
}

if is_new_enough "$prefix/include" ${hiredis_ROOT:+"$hiredis_ROOT/include"} /usr/local/include /usr/include; then
  exit 0
fi

say "Building hiredis $version from Debian 13's source (log: ${log#"$root/"})"
log_to "$log" "There is no hiredis >= 1.2 now. Install one, or name its folder: cmake -Dhiredis_ROOT=FOLDER"

work=$deps/hiredis-build
rm -rf "$work" "$prefix"
mkdir -p "$work"
private_apt deb-src trixie
(cd "$work" && apt_in trixie source --download-only --tar-only hiredis)
echo "$sha256  $work/hiredis_$version.orig.tar.gz" | sha256sum --check
tar -xzf "$work/hiredis_$version.orig.tar.gz" -C "$work"
# hiredis would take the content of LIBRARY_PATH for the place of its own libraries.
unset LIBRARY_PATH
cmake -G Ninja -S "$work/hiredis-$version" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DENABLE_SSL=ON -DBUILD_SHARED_LIBS=OFF \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DDISABLE_TESTS=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCMAKE_POLICY_VERSION_MINIMUM=3.5
cmake --build "$work/build" -j "$jobs"
DESTDIR=$work/root cmake --install "$work/build"
mv "$work/root$prefix" "$prefix"
rm -rf "$work" "$deps/apt/trixie"
