#!/usr/bin/env bash
# On a machine with a GPU: keeps what `cudadoctor verify` gives there, and the machine as `check` sees it, in a folder.
# No test of this project has a GPU; what is recorded here shows whether the child script, the sizes of its work and the
# shares in compat/verify.toml hold on real ones.
#
#   scripts/record_verify.sh FOLDER [OPTIONS OF VERIFY ...]        for example --python ~/proj/.venv
#
# verify.json, verify.txt   the results, with every detail
# machine/                  the machine, for `cudadoctor check --replay FOLDER/machine`; no names, serials or tokens
# cards.txt                 the links while idle, by nvidia-smi
#
# Look at: does each check pass on a healthy machine, and how long does it take; how much of `expected.most` do bandwidth
# (with the link's real generation and width) and memory-bandwidth reach; is what --verbose says of a failure enough.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { sed -n '2,14p' "$0" >&2; exit 2; }
folder=$1
shift
mkdir -p "$folder"
read -r -a doctor <<<"${CUDADOCTOR:-python3 -m cudadoctor}"

status=0
"${doctor[@]}" verify --format json -o "$folder/verify.json" "$@" || status=$?
[ -s "$folder/verify.json" ] || exit "$status"
"${doctor[@]}" verify --verbose -o "$folder/verify.txt" "$@" || true
"${doctor[@]}" facts --record "$folder/machine" -o "$folder/facts.json"
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=index,name,pcie.link.gen.max,pcie.link.width.max,pcie.link.gen.current,pcie.link.width.current \
    --format=csv >"$folder/cards.txt" || true
fi
head -n 1 "$folder/verify.txt"
exit "$status"
