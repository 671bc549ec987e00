#!/bin/sh
# Checks nodes with pdsh
#
#   NODES='node[001-512]' ./pdsh.sh
#
#   CUDADOCTOR           the command, here and on the nodes, by its full path:
#                        a command over ssh gets a short PATH [cudadoctor]
#   CUDADOCTOR_OPTIONS   options for `check`, as the nodes' shell reads them
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#
# pdsh puts "node001: " before a node's line and keeps lines whole if long.
# `fleet` takes the nodes' names from there; other programs that read the JSON
# need pdsh -N, which leaves it out. "ssh exited with exit code 1" says no more
# than that the check found something on that node.
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit).
set -eu

doctor=${CUDADOCTOR:-cudadoctor}
deadline=${CUDADOCTOR_DEADLINE:-60}
check="timeout -k 2 $deadline $doctor check --timeout 30 --format json-line"

pdsh -R ssh -w "$NODES" -t 10 -u $((deadline + 30)) \
  "$check ${CUDADOCTOR_OPTIONS:-}" </dev/null |
  $doctor fleet - --expect "$NODES"
