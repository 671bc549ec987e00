#!/bin/sh
# Checks every node of an MPI job
#
#   cudadoctor recipes mpi/fan-out -o fan-out.sh
#   ./fan-out.sh [OPTION OF cudadoctor check ...] && mpirun ... train
#
# Where mpirun knows the nodes by itself (inside an allocation) nothing else is
# needed. Elsewhere name them, and keep one process a node:
# MPIRUN='mpirun --hostfile hosts --map-by ppr:1:node'.
#
#   CUDADOCTOR           the command, by its full path: mpirun does not take
#                        your PATH to the nodes [cudadoctor, where it is here]
#   CUDADOCTOR_DEADLINE  seconds for the doctor on a node [60]
#   EXPECT               the nodes that must answer, as node[001-512]
#   OUT                  where to make the folder of reports; all nodes must see
#                        it [.]
#
# This was tried with Open MPI 4.1, and with MPICH 4.0, which starts one process
# a node by MPIRUN='mpiexec -ppn 1'. So does Intel MPI (not tried).
#
# Exit status: that of `cudadoctor fleet` (0: all nodes are fit); 2 where mpirun
# failed, or a node gave no report, and the others have no fault.
#
# Traps that this avoids
#   - One process that ends with another status than 0 makes mpirun end all the
#     others. So each ends with 0, and the verdict is in its file.
#   - mpirun joins what the nodes print piece by piece, not line by line: a long
#     line of JSON is torn. So each node writes a file. (--tag-output would put
#     "[1,0]<stdout>:" before the pieces besides.)
set -eu

doctor=${CUDADOCTOR:-$(command -v cudadoctor)}
deadline=${CUDADOCTOR_DEADLINE:-60}
out=$(mktemp -d "${OUT:-$PWD}/cudadoctor-XXXXXX")
mkdir "$out/silent"
failed=0

# shellcheck disable=SC2016,SC2086  # the node expands it; commands are words
timeout --foreground -k 5 $((deadline + 60)) \
  ${MPIRUN:-mpirun --map-by ppr:1:node} sh -c '
  out=$1 doctor=$2 deadline=$3 code=0
  shift 3
  node=$(uname -n)
  node=${node%%.*}
  timeout -k 2 "$deadline" $doctor check --timeout 30 --node "$node" \
    --format json-line -o "$out/$node.json" "$@" </dev/null || code=$?
  if [ ! -s "$out/$node.json" ]; then
    echo "$node: no report (exit status $code)" >&2
    : >"$out/silent/$node"
  fi
  exit 0
' sh "$out" "$doctor" "$deadline" "$@" </dev/null || failed=2
rmdir "$out/silent" 2>/dev/null || failed=2

$doctor fleet "$out" ${EXPECT:+--expect "$EXPECT"} || exit $?
exit $failed
