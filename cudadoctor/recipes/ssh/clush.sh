#!/bin/sh
# Checks nodes with clush (ClusterShell)
#
#   NODES='node[001-512]' ./clush.sh
#
#   CUDADOCTOR          the command, here and on the nodes, by its full path:
#                       a command over ssh gets a short PATH [cudadoctor]
#   CUDADOCTOR_OPTIONS  options for `check`, as the nodes' shell reads them
#   OUT                 where to make the folder of reports, a file a node [.]
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit).
set -eu

doctor=${CUDADOCTOR:-cudadoctor}
check="timeout -k 5 60 $doctor check --timeout 30 --format json-line"
out=$(mktemp -d "${OUT:-.}/cudadoctor-XXXXXX")

clush -q -w "$NODES" -f 64 -t 10 -u 90 --outdir="$out" \
  "$check ${CUDADOCTOR_OPTIONS:-}" </dev/null >/dev/null || :
for file in "$out"/*; do
  if [ -s "$file" ]; then mv "$file" "$file.json"; else rm -f "$file"; fi
done
$doctor fleet "$out" --expect "$NODES"
