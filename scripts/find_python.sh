# shellcheck shell=bash
# Sourced by the other scripts: finding an interpreter. Nothing is downloaded.

# find_python VERSION ...: prints the path of the first interpreter of these versions ("3.11", or "3" for any) that
# runs and can make virtual environments; prints nothing where there is none. Looked for in
# CUDADOCTOR_TEST_PYTHONS (paths, separated by colons), on PATH, among pyenv's versions and with uv.
find_python() {
  local version python pyenv=${PYENV_ROOT:-$HOME/.pyenv}/versions given
  IFS=: read -r -a given <<<"${CUDADOCTOR_TEST_PYTHONS:-}"
  for version in "$@"; do
    for python in "${given[@]}" "$(type -P "python$version" || true)" "$pyenv/$version".*/bin/python \
      "$(uv python find --no-python-downloads --no-project "$version" 2>/dev/null || true)"; do
      if [ -x "$python" ] && python_is "$python" "$version"; then
        printf '%s\n' "$python"
        return
      fi
    done
  done
}

# python_is PYTHON VERSION: is it of this version, and can it make virtual environments?
python_is() {
  local code='import sys, venv, ensurepip; want = sys.argv[1].split("."); have = [str(n) for n in sys.version_info]
sys.exit(have[: len(want)] != want)'
  "$1" -I -c "$code" "$2" >/dev/null 2>&1
}
