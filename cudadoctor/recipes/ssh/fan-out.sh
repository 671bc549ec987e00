#!/bin/sh
# Checks nodes over plain ssh
#
#   cudadoctor recipes ssh/fan-out -o fan-out.sh
#   ./fan-out.sh node1 node2 ...          or          ./fan-out.sh $(cat hosts)
#
#   CUDADOCTOR           the command, here and on the nodes, by its full path:
#                        a command over ssh gets a short PATH [cudadoctor]
#   CUDADOCTOR_OPTIONS   options for `check`, as the nodes' shell reads them
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#   FANOUT               how many nodes at once [32]
#   OUT                  where to make the folder of reports, a file a node [.]
#
# Keys must let you in without a question. A node that cannot be reached, or
# gives no report, is missing in the report, and that is a fault.
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit).
set -eu

[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
doctor=${CUDADOCTOR:-cudadoctor}
deadline=${CUDADOCTOR_DEADLINE:-60}
check="timeout -k 2 $deadline $doctor check --timeout 30 --format json-line"
out=$(mktemp -d "${OUT:-.}/cudadoctor-XXXXXX")

# -n: ssh must not eat the list of nodes. A report is named when it is whole.
# shellcheck disable=SC2016  # for the inner shell
printf '%s\n' "$@" | xargs -P "${FANOUT:-32}" -I '{}' sh -c '
  out=$1 check=$2 deadline=$3 node=$4 code=0
  timeout --foreground -k 2 "$deadline" \
    ssh -n -o BatchMode=yes -o ConnectTimeout=10 -- "$node" "$check" \
    >"$out/.$node.part" || code=$?
  if [ -s "$out/.$node.part" ]; then
    mv "$out/.$node.part" "$out/$node.json"
  else
    rm -f "$out/.$node.part"
    echo "$node: no report (exit status $code)" >&2
  fi
' sh "$out" "$check ${CUDADOCTOR_OPTIONS:-}" $((deadline + 30)) '{}'

$doctor fleet "$out" --expect "$(printf '%s\n' "$@" | paste -sd, -)"
