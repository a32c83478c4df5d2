# SPDX-License-Identifier: MIT
#
# apt with a configuration of its own below build/deps/apt: other suites of this machine's own mirror, without a line in
# /etc/apt, without root and without installing anything. Sourced after lib.sh, never run.

deps=$root/build/deps

# mirrors: the addresses from which this machine installs Debian itself, one a line.
mirrors() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
    awk -v codename="$codename" \
      '($1 == codename || $1 == "stable") && $2 == "main" && !seen[$3]++ { print $3 }'
}

# private_apt KIND SUITE: reads the lists of SUITE, main (KIND is deb or deb-src) from the first mirror that has them
# and whose signature is Debian's. After it, `apt_in SUITE COMMAND...` runs apt-get COMMAND there.
private_apt() {
  local kind=$1 suite=$2 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  local home=$deps/apt/$suite
  if ! command -v apt-get >/dev/null || [[ ! -r $keyring ]]; then
    say "This needs apt-get and the keyring $keyring (package debian-archive-keyring)"
    return 1
  fi
  mkdir -p "$home/lists/partial" "$home/cache/archives/partial"
  # As root apt would download as the user _apt, who may not be allowed to look into this folder.
  cat >"$home/apt.conf" <<END
Dir::Etc::sourcelist "$home/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$home/lists";
Dir::Cache "$home/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
APT::Update::Error-Mode "any";
END
  while read -r mirror; do
    echo "$kind [signed-by=$keyring] $mirror $suite main" >"$home/sources.list"
    apt_in "$suite" update && return 0
  done < <(mirrors)
  say "None of this machine's Debian mirrors gave a list of $suite that is signed with a key in $keyring."
  say "If it says NO_PUBKEY above, the keyring is older than $suite: apt-get install debian-archive-keyring"
  return 1
}

apt_in() {
  local suite=$1
  shift
  apt-get -c "$deps/apt/$suite/apt.conf" "$@"
}
