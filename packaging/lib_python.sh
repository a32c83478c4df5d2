# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Sourced by the scripts about the Python package.

# One line for each minor version from 3.9 on that can make modules and environments: MINOR FILE, oldest first.
find_pythons() {
  local candidate candidates=()
  if [[ -n ${STN_PYTHONS-} ]]; then
    read -ra candidates <<<"$STN_PYTHONS"
  else
    candidates=("${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 $(compgen -c python3. | grep -E '^python3\.[0-9]+$'))
  fi
  for candidate in "${candidates[@]}"; do
    "$candidate" -c 'import os, sys, sysconfig, venv, ensurepip
here = sys.version_info[1], sys.executable
if sys.version_info >= (3, 9) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print(*here)' 2>/dev/null
  done | sort -n -u -k1,1
}

# The Pythons of find_pythons into `pythons`; ends the script if there is none.
need_pythons() {
  mapfile -t pythons < <(find_pythons)
  ((${#pythons[@]})) && return
  say "There is no Python >= 3.9 with headers and venv here"
  echo "0 passed, 1 failed"
  exit 1
}

# install_package: `pip install` of the package, from its sources, in a new environment of the newest Python, which is
# build/py-installed. What is there and younger than every source stays.
install_package() {
  local fresh=$root/build/py-installed sources=("$root"/{CMakeLists.txt,core,capi,packaging/cmake,bindings/python/{native,src,pyproject.toml}})
  [[ -e $fresh/done && -z $(find "${sources[@]}" -newer "$fresh/done" -type f -not -name '*.pyc' -print -quit) ]] && return
  rm -rf "$fresh"
  "${pythons[-1]#* }" -m venv "$fresh" && touch "$fresh/begun" &&
    "$fresh/bin/pip" install --quiet --disable-pip-version-check "$root/bindings/python" &&
    mv "$fresh/begun" "$fresh/done"
}

# quick_start URL: the five lines of the package's README, with that URL, and what they must have given.
quick_start() {
  URL=$1 python3 -c 'import os, pathlib, re, sys
text = pathlib.Path(sys.argv[1]).read_text()
code = re.search(r"```python\n(import stanchion\n.*?)```", text, re.S).group(1)
assert code.count("\"memory://\"") == 1, code
print(code.replace("\"memory://\"", repr(os.environ["URL"])) + """
assert user == {"name": "Ada"} and not users.lookup("42"), user
client.close()""")' "$root/bindings/python/README.md"
}

# Compilers' work is found again whatever the folder it is done in.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
