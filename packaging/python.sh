#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash packaging/python.sh [--all] [PYTEST ARGUMENTS...]
# Builds the library once and the Python module for the oldest and the newest Python >= 3.9 that is here (--all: for each;
# STN_PYTHONS="FILE FILE..." names them), each in a virtual environment of its own below build/, with the versions of
# bindings/python/constraints.txt. Runs the package's tests on each, with those of examples/python on the newest, and mypy,
# ruff and a look at the exported symbols.
# The last line is `N passed, M failed`.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/packaging/lib_python.sh"
package=$root/bindings/python
all=0
[[ ${1-} == --all ]] && all=1 && shift
passed=0
failed=0

# check NAME COMMAND...: one test, told by its exit status.
check() {
  local name=$1
  shift
  if "$@" >"$logs/python-$name.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    say "$name failed"
    tail -n 40 "$logs/python-$name.log"
  fi
}

exports_only_its_init() { [[ $(nm -D --defined-only "$1" | awk '{ print $3 }') == PyInit__native ]]; }
needs_no_path() { ! readelf -d "$1" | grep -E 'RPATH|RUNPATH'; }

mkdir -p "$logs"
need_pythons
((all)) || mapfile -t pythons < <(printf '%s\n' "${pythons[0]}" "${pythons[-1]}" | uniq)

interpreters=()
for line in "${pythons[@]}"; do
  minor=${line%% *}
  venv=$root/build/py-venv-3.$minor
  interpreters+=("$venv/bin/python")
  tools=(gunicorn pybind11 pytest ruff typing_extensions prometheus_client opentelemetry-sdk)
  ((minor == 9)) && tools+=(mypy)    # the last one that checks against 3.9
  ((minor >= 10)) && tools+=(uvloop)
  [[ $line == "${pythons[-1]}" ]] && ((minor >= 11)) && tools+=(fastapi uvicorn httpx flask django)    # the examples
  [[ -x $venv/bin/python ]] || "${line#* }" -m venv "$venv" || failed=$((failed + 1))
  "$venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$package/constraints.txt" "${tools[@]}" ||
    failed=$((failed + 1))
done
say "Python: ${pythons[*]}"

built() {
  cmake -S "$root" -B "$root/build/python" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTN_TESTS=OFF -DSTN_EXAMPLES=OFF \
    -DSTN_PYTHON="$(IFS=';' && echo "${interpreters[*]}")" &&
    cmake --build "$root/build/python" --target stn_python -j "$jobs"
}
check build built
export PYTHONPATH=$root/build/python/python
cd "$package" || exit 1
for python in "${interpreters[@]}"; do
  name=$(basename "$(dirname "$(dirname "$python")")")
  module=$("$python" -c 'import stanchion._native as native; print(native.__file__)')
  check "exports-$name" exports_only_its_init "$module"
  check "runpath-$name" needs_no_path "$module"
  unset STN_EXAMPLES
  [[ -x ${python%python}flask ]] && export STN_EXAMPLES=1    # then examples/python is tested, and not skipped
  "$python" -m pytest -p no:cacheprovider "$@" >"$logs/python-$name.log" 2>&1
  status=$?
  grep -E '^(FAILED|ERROR)' "$logs/python-$name.log"
  summary=$(tail -n 1 "$logs/python-$name.log")
  say "$name: $summary"
  good=$(grep -oE '[0-9]+ passed' <<<"$summary" | cut -d' ' -f1)
  bad=$(grep -oE '[0-9]+ (failed|errors?)' <<<"$summary" | awk '{ n += $1 } END { print n + 0 }')
  ((status != 0 && bad == 0)) && bad=1 && tail -n 20 "$logs/python-$name.log"
  passed=$((passed + ${good:-0}))
  failed=$((failed + bad))
done
for python in "${interpreters[@]}"; do
  [[ -x ${python%python}mypy ]] && check mypy "${python%python}mypy"
done
installed() {
  install_package &&
    (cd "$root/build/py-installed" && quick_start memory:// | env -u PYTHONPATH bin/python -W error -)
}
check pip-install installed
check ruff "${interpreters[-1]%python}ruff" check --config pyproject.toml . "$root/examples/python"
check ruff-format "${interpreters[-1]%python}ruff" format --config pyproject.toml --check . "$root/examples/python"

echo "$passed passed, $failed failed"
((failed == 0))
