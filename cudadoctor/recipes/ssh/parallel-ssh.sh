#!/bin/sh
# Checks nodes with parallel-ssh (pssh)
#
#   ./parallel-ssh.sh HOSTS          HOSTS: a file with one node a line
#
#   CUDADOCTOR           the command, here and on the nodes, by its full path:
#                        a command over ssh gets a short PATH [cudadoctor]
#   CUDADOCTOR_OPTIONS   options for `check`, as the nodes' shell reads them
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#   OUT                  where to make the folder of reports, a file a node [.]
#
# "[FAILURE] node001 Exited with error code 1" says no more than that the check
# found something there. (Some systems call the program pssh.)
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit).
set -eu

doctor=${CUDADOCTOR:-cudadoctor}
deadline=${CUDADOCTOR_DEADLINE:-60}
check="timeout -k 2 $deadline $doctor check --timeout 30 --format json-line"
out=$(mktemp -d "${OUT:-.}/cudadoctor-XXXXXX")

parallel-ssh -h "$1" -p 64 -t $((deadline + 30)) -o "$out" -O BatchMode=yes \
  "$check ${CUDADOCTOR_OPTIONS:-}" </dev/null >&2 || :
for file in "$out"/*; do
  if [ -s "$file" ]; then mv "$file" "$file.json"; else rm -f "$file"; fi
done
$doctor fleet "$out" --expect "$(paste -sd, "$1")"
