#!/bin/sh
# Checks nodes with clush (ClusterShell)
#
#   NODES='node[001-512]' ./clush.sh
#
#   CUDADOCTOR           the command, here and on the nodes, by its full path:
#                        a command over ssh gets a short PATH [cudadoctor]
#   CUDADOCTOR_OPTIONS   options for `check`, as the nodes' shell reads them
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#   OUT                  where to make the folder of reports, a file a node [.]
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit).
set -eu

doctor=${CUDADOCTOR:-cudadoctor}
deadline=${CUDADOCTOR_DEADLINE:-60}
check="timeout -k 2 $deadline $doctor check --timeout 30 --format json-line"
out=$(mktemp -d "${OUT:-.}/cudadoctor-XXXXXX")

clush -q -w "$NODES" -f 64 -t 10 -u $((deadline + 30)) --outdir="$out" \
  "$check ${CUDADOCTOR_OPTIONS:-}" </dev/null >/dev/null || :
for file in "$out"/*; do
  if [ -s "$file" ]; then mv "$file" "$file.json"; else rm -f "$file"; fi
done
$doctor fleet "$out" --expect "$NODES"
