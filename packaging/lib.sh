# SPDX-License-Identifier: MIT
#
# What the scripts of this folder share. Sourced, never run. Sets `root` (the repository) and `jobs`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
logs=$root/build/logs

say() { printf '== %s\n' "$*"; }

# install_packages NAME...: installs the Debian packages that are missing, and only those.
install_packages() {
  local missing=() name
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian system: taking for granted that these are installed: $*"
    return 0
  fi
  for name in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    say "Nothing to install"
    return 0
  fi
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      say "These packages are missing, and there is no sudo. As root: apt-get install ${missing[*]}"
      return 1
    fi
    as_root=(sudo)
  fi
  say "Installing with apt: ${missing[*]}"
  mkdir -p "$logs"
  "${as_root[@]}" apt-get update >"$logs/install.log" 2>&1 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}" >>"$logs/install.log" 2>&1 && return 0
  tail -n 20 "$logs/install.log"
  return 1
}

# build PRESET TARGETS [cmake -D...]: configures and builds build/PRESET; TARGETS are one word, with blanks between.
build() {
  local preset=$1 targets
  read -ra targets <<<"$2"
  shift 2
  (cd "$root" && cmake --preset "$preset" "$@") && cmake --build "$root/build/$preset" --target "${targets[@]}" -j "$jobs"
}

# log_to FILE TEXT: all that follows is written to FILE. When a command of the script fails, the end of it and TEXT are shown.
log_to() {
  log=$1 failure=$2
  exec 5>&1 >"$log" 2>&1
  trap 'tail -n 30 "$log" >&5; say "$failure" >&5' ERR
}
