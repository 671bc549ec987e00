#!/usr/bin/env bash
# Everything that must hold before a change lands: ruff, mypy and the tests, in a virtual environment of their own.
#
#   scripts/check.sh [--python PATH|VERSION] [--venv DIR] [--fast] [PYTEST ARGUMENT ...]
#
#   --python   the interpreter, by path or as "3.9"; default: python3
#   --venv     the virtual environment, made where it is missing; default: .venv-check
#   --fast     only the tests
#
# Needs Python 3.9 or newer with its venv module, and PyPI. Tests that need more (nvidia-smi, wine, other Pythons;
# see scripts/install_test_parts.sh) are skipped where it is missing; with CUDADOCTOR_TESTS_STRICT=1 they fail.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/find_python.sh
. scripts/find_python.sh

fail() {
  printf 'check.sh: %s\n' "$*" >&2
  exit 2
}

python=python3 venv=.venv-check fast=
while [ $# -gt 0 ]; do
  case $1 in
    --python) [ $# -gt 1 ] || fail '--python needs a path or a version'; python=$2; shift 2 ;;
    --venv) [ $# -gt 1 ] || fail '--venv needs a folder'; venv=$2; shift 2 ;;
    --fast) fast=yes; shift ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit ;;
    *) break ;;
  esac
done

case $python in
  3 | 3.*) found=$(find_python "$python"); [ -n "$found" ] || fail "no Python $python is at hand"; python=$found ;;
esac
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || fail "$python is not a Python 3.9 or newer."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
  fail "$python has no venv module with ensurepip: install it (Debian, Ubuntu: apt-get install python3-venv)."

# An environment of another Python is made anew.
version() { "$1" -c 'import sys; print(sys.version, sys.base_prefix)' 2>/dev/null || true; }
if [ "$(version "$venv/bin/python")" != "$(version "$python")" ]; then
  "$python" -m venv --clear "$venv"
fi
in_venv=$venv/bin/python
"$in_venv" -m pip --disable-pip-version-check -q install -e '.[test]'
printf 'check.sh: %s in %s\n' "$("$in_venv" --version)" "$venv"

if [ -z "$fast" ]; then
  "$in_venv" -m ruff check .
  "$in_venv" -m mypy
fi

# As many workers as there are processors, where pytest-xdist is installed.
workers=()
if "$in_venv" -c 'import xdist' 2>/dev/null; then workers=(-n auto --dist worksteal); fi
exec "$in_venv" -m pytest "${workers[@]}" "$@"
