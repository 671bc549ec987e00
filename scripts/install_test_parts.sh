#!/usr/bin/env bash
# Fetches the real parts that the tests use, into a cache folder. Nothing is installed on the system,
# nothing of it may be committed. What is there already is left alone.
#
#   scripts/install_test_parts.sh [PART ...]
#
#   nvidia-smi       nvidia-smi and its libraries of four driver generations, out of Debian's packages
#   windows-python   CPython for Windows with the packages that we need, and a wine prefix to run it in
#   torch            a virtual environment with the CPU build of torch
#
# Without PART: all of them. The folder: $CUDADOCTOR_TEST_PARTS, else ${XDG_CACHE_HOME:-~/.cache}/cudadoctor-test-parts.
# Needs: Debian's apt-get and dpkg-deb (nvidia-smi), wine (windows-python), a Python that torch has a wheel for (torch).
set -euo pipefail

parts=${CUDADOCTOR_TEST_PARTS:-${XDG_CACHE_HOME:-$HOME/.cache}/cudadoctor-test-parts}
mkdir -p "$parts"
parts=$(cd "$parts" && pwd)

say() { printf 'test parts: %s\n' "$*"; }
fail() {
  printf 'test parts: %s\n' "$*" >&2
  exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---------------------------------------------------------------------------- nvidia-smi, out of Debian's packages

# generation, Debian release, packages
nvidia_packages() {
  cat <<'TABLE'
470 bookworm nvidia-tesla-470-smi libnvidia-tesla-470-ml1 libnvidia-tesla-470-cuda1
525 bookworm nvidia-tesla-smi libnvidia-tesla-ml1 libnvidia-tesla-cuda1
535 bookworm nvidia-smi libnvidia-ml1 libcuda1
550 trixie nvidia-smi libnvidia-ml1 libcuda1
TABLE
}

# The address of the Debian archive that this machine already uses: no host is named here.
debian_archive() {
  local found
  found=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' | grep -E '/debian/?$' | head -n 1 || true)
  [ -n "$found" ] || found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -n 's/^deb[[:space:]]*\(\[[^]]*\]\)\{0,1\}[[:space:]]*\([^[:space:]]*\).*/\2/p' | grep -E '/debian/?$' | head -n 1 || true)
  [ -n "$found" ] || fail 'no source of the Debian archive in /etc/apt: nvidia-smi can only be fetched on Debian'
  printf '%s\n' "$found"
}

# An apt of our own for one Debian release, with the non-free section; the system's lists and sources stay as they are.
apt_of() {
  local release=$1 dir=$scratch/apt-$1
  shift
  if [ ! -d "$dir" ]; then
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    printf 'deb [signed-by=%s] %s %s main contrib non-free\n' \
      /usr/share/keyrings/debian-archive-keyring.gpg "$(debian_archive)" "$release" >"$dir/sources.list"
  fi
  apt-get -qq -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Dir::State::status=/dev/null \
    -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}

nvidia_smi() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail 'nvidia-smi needs apt-get and dpkg-deb (Debian)'
  local era release packages package target work file
  while read -r era release packages; do
    target=$parts/nvidia/$era
    [ -x "$target/bin/nvidia-smi" ] && continue
    [ -d "$scratch/apt-$release" ] || apt_of "$release" update
    work=$scratch/nvidia-$era
    mkdir -p "$work/deb" "$work/root" "$work/part/bin" "$work/part/lib"
    # shellcheck disable=SC2086  # the packages are words
    (cd "$work/deb" && apt_of "$release" download $packages)
    # Extracted only: no maintainer script runs, no kernel module is built.
    for package in "$work"/deb/*.deb; do dpkg-deb -x "$package" "$work/root"; done
    find "$work/root" -type f -name nvidia-smi -path '*nvidia*' -perm -u+x -exec cp {} "$work/part/bin/" \;
    find "$work/root" \( -name 'libnvidia-ml.so.*' -o -name 'libcuda.so.*' \) -exec cp -P {} "$work/part/lib/" \;
    for file in bin/nvidia-smi lib/libnvidia-ml.so.1 lib/libcuda.so.1; do
      [ -e "$work/part/$file" ] || fail "Debian's packages $packages hold no $(basename "$file")"
    done
    mkdir -p "$parts/nvidia"
    rm -rf "$target"
    mv "$work/part" "$target"
    say "nvidia-smi of $era: $target/bin"
  done < <(nvidia_packages)
}

# ------------------------------------------------------------------------------------------------------- the rest

main() {
  local part
  [ $# -gt 0 ] || set -- nvidia-smi windows-python torch
  for part in "$@"; do
    case $part in
      nvidia-smi) nvidia_smi ;;
      windows-python) windows_python ;;
      torch) torch ;;
      *) fail "no part is called $part: nvidia-smi, windows-python or torch" ;;
    esac
  done
  say "ready in $parts"
}
main "$@"
