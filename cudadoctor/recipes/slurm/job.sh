#!/bin/sh
# Checks all nodes of a job before it trains
#
# Line for the job script, before the first srun:
#
#     sh /shared/cudadoctor/job.sh || exit
#
# so that a whole script is
#
#     #!/bin/sh
#     #SBATCH --nodes=4 --gres=gpu:8 --ntasks-per-node=8
#     #SBATCH --requeue --open-mode=append
#     . ~/venv/bin/activate
#     sh /shared/cudadoctor/job.sh || exit
#     srun python train.py
#
# What it does. One `cudadoctor check` a node, however many tasks the job has, each into a file of its own; then one
# report of all nodes (`cudadoctor fleet`) in the job's output. Then, by its exit status:
#
#     0    every node is well: the script goes on.
#     75   machines are at fault (or did not answer): the report says what to send to the admins. The job goes back to
#          the queue, without the bad nodes (ExcNodeList), and starts again about two minutes later; at most
#          CUDADOCTOR_RESTARTS times. Without --requeue it ends, with the words for sbatch.
#     1    the environment or the request is at fault: the report says what you can do. Another node would not help.
#     2, 3 nobody knows: the doctor failed or could not tell. The job ends, or goes on with CUDADOCTOR_UNPROVEN=train.
#
# The folder of the files must be seen by all nodes; it is removed where all is well. Heterogeneous jobs (het groups)
# are not looked at.
#
# Settings, as variables of the job's environment:
#
#     CUDADOCTOR            the command [cudadoctor]; "/usr/bin/python3 /shared/cudadoctor.pyz" will do
#     CUDADOCTOR_OPTIONS    more options of check, as --policy job.toml or --require gpu.count=8
#     CUDADOCTOR_FOLDER     where the files go [the folder that the job was submitted from]
#     CUDADOCTOR_RESTARTS   how often the job goes back to the queue [2]
#     CUDADOCTOR_UNPROVEN   train: go on where the doctor failed or could not tell [stop]
#     CUDADOCTOR_DEADLINE   seconds for a node [30]; twice as many for all nodes together
#
# By hand, on one node:
#
#     sbatch --nodes=1 --gres=gpu:1 --wrap 'sh /shared/cudadoctor/job.sh && echo would train'

set -f
: "${CUDADOCTOR:=cudadoctor}"
: "${CUDADOCTOR_OPTIONS:=}"
: "${CUDADOCTOR_FOLDER:=${SLURM_SUBMIT_DIR:-.}}"
: "${CUDADOCTOR_RESTARTS:=2}"
: "${CUDADOCTOR_UNPROVEN:=stop}"
: "${CUDADOCTOR_DEADLINE:=30}"
# The doctor's own deadline is five seconds shorter. (Digits only: a mistake in a sum would end this shell.)
case $CUDADOCTOR_DEADLINE in
  '' | 0* | *[!0-9]*) CUDADOCTOR_DEADLINE=30 ;;
esac
seconds=$((CUDADOCTOR_DEADLINE - 5))
[ $seconds -gt 0 ] || seconds=1

say() { printf 'pre-flight: %s\n' "$*"; }

unproven() {
  say "$2"
  if [ "$CUDADOCTOR_UNPROVEN" = train ]; then
    say 'goes on all the same (CUDADOCTOR_UNPROVEN=train)'
    exit 0
  fi
  say 'the job stops here; CUDADOCTOR_UNPROVEN=train would let it go on'
  exit "$1"
}

if [ -z "${SLURM_JOB_ID:-}" ] || [ -z "${SLURM_JOB_NODELIST:-}" ]; then
  say 'this is no Slurm job: call it from a job script (sbatch)'
  exit 2
fi
if [ "${SLURM_HET_SIZE:-1}" -gt 1 ]; then
  unproven 2 'a heterogeneous job: not looked at'
fi
nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-1}}
folder=$CUDADOCTOR_FOLDER/cudadoctor-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
rm -rf "$folder"
mkdir -p "$folder/nodes" "$folder/log" || unproven 2 "cannot write to $folder (CUDADOCTOR_FOLDER)"

# A job with --gpus-per-task would lend our one task the GPUs of one task.
gpus=
if [ -n "${SLURM_GPUS_PER_TASK:-}${SLURM_TRES_PER_TASK:-}" ] && [ "${SLURM_GPUS_ON_NODE:-0}" -gt 0 ]; then
  case ${SLURM_TASKS_PER_NODE:-1} in
    *,*) say 'tasks are spread unevenly: of each node, the GPUs of one task are looked at' ;;
    *) gpus=--gpus-per-node=$SLURM_GPUS_ON_NODE ;;
  esac
fi

# Runs on each node. Whatever happens, a status file says that it happened; none: the node did not answer.
# shellcheck disable=SC2016  # expanded on the node
on_a_node='
folder=$1 deadline=$2
shift 2
name=${SLURMD_NODENAME:-$(hostname -s)}
cannot() {
  echo "$name cannot write to $folder" >&2
  exit 200
}
[ -d "$folder/log" ] || cannot
timeout -k 2 "$deadline" "$@" --also "json-line=$folder/nodes/$name.json" \
  --also "termination-log=$folder/log/$name.short" -o "$folder/log/$name.txt" </dev/null >"$folder/log/$name.err" 2>&1
echo $? >"$folder/log/$name.status" || cannot
'

# One task a node: neither what the job says of its tasks nor what srun would take from the job script's environment
# may add to it. --overlap: beside what else the job runs. No -l and no common stream: each node writes its own files.
(
  unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_SOCKET
  unset SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_TRES SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_CPUS_PER_GPU
  unset SLURM_GPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_GPUS_PER_SOCKET SLURM_GPU_BIND SLURM_DISTRIBUTION
  unset SLURM_HOSTFILE SLURM_ARBITRARY_NODELIST SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE
  unset SLURM_CPU_BIND_VERBOSE SLURM_MEM_BIND SLURM_HINT SLURM_THREADS_PER_CORE SLURM_CORE_SPEC SLURM_EXACT
  unset SLURM_EXCLUSIVE SLURM_LABELIO SLURM_MULTI_PROG SLURM_SPREAD_JOB SLURM_DIST_PLANESIZE SLURM_CONTAINER
  unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_STDOUTMODE SLURM_STDERRMODE
  CUDADOCTOR_TASK_PROLOG=no
  export CUDADOCTOR_TASK_PROLOG
  # shellcheck disable=SC2086  # may be several words, or none
  exec timeout -k 5 $((2 * CUDADOCTOR_DEADLINE)) srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 \
    --overlap $gpus --kill-on-bad-exit=0 --wait=0 --mpi=none --export=ALL \
    sh -c "$on_a_node" sh "$folder" "$CUDADOCTOR_DEADLINE" \
    $CUDADOCTOR check --retry-code 75 --timeout $seconds $CUDADOCTOR_OPTIONS </dev/null
)
srun=$?
[ $srun = 0 ] || say "srun ended with $srun"

all_seen() {
  # A network folder's list is read anew where something has changed in it from here.
  echo >"$folder/log/list" && rm -f "$folder/log/list"
  [ "$(find "$folder/log" -name '*.status' | wc -l)" -ge "$nodes" ]
}

# Another node's file may take a moment to be seen here; longer, where srun says that all of them have been written.
waits='1 1 1'
[ $srun != 0 ] || waits='1 1 1 2 5 10 15'
for wait in $waits; do
  all_seen && break
  sleep "$wait"
done
if [ $srun = 200 ] || ! echo >"$folder/log/list"; then
  unproven 2 "the nodes do not share $folder, or may not write there (CUDADOCTOR_FOLDER)"
fi
if [ $srun = 0 ] && ! all_seen; then
  unproven 2 "all nodes have looked, and not all that they wrote is seen here: $folder (CUDADOCTOR_FOLDER)"
fi
broken=''
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  # A doctor that wrote no report is no judge of the node. One that never came to its end: the node did not answer.
  [ ! -e "$folder/log/$node.status" ] || [ -s "$folder/nodes/$node.json" ] || broken=$broken,$node
done
broken=${broken#,}

if [ -n "$broken" ]; then
  node=${broken%%,*}
  sed -n '1,20p' "$folder/log/$node.err"
  say "the doctor failed on $broken (exit status $(cat "$folder/log/$node.status")): that says nothing of the nodes"
fi
if [ -z "$(find "$folder/nodes" -name '*.json')" ]; then
  unproven 2 'no node was looked at'
fi

# It reads this job's own files; but what it needs itself (the user's home) may lie on a path that answers no more.
fleet() {
  # shellcheck disable=SC2086  # may be several words
  timeout -k 2 $((2 * CUDADOCTOR_DEADLINE)) $CUDADOCTOR fleet "$folder/nodes" --expect "$SLURM_JOB_NODELIST" "$@"
}
fleet --retry-code 75
verdict=$?

case $verdict in
  0)
    rm -rf "$folder"
    say "$nodes of $nodes nodes are well"
    exit 0
    ;;
  1 | 75) ;;
  124 | 137) unproven 2 "the report did not come in time; the nodes' own reports: $folder/log" ;;
  *) unproven $verdict "undecided; the nodes' own reports: $folder/log" ;;
esac
if [ -n "$broken" ]; then
  unproven 2 "not every node could be looked at; the nodes' own reports: $folder/log"
fi

# One task of an array, and not the array: the number of a task's job may be that of all of them.
job=$SLURM_JOB_ID
[ -z "${SLURM_ARRAY_JOB_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID:-}

# A job that Slurm is ending loses its steps first: that is no node's fault, and nothing is to be sent back.
shown=$(scontrol --oneliner show job "$job")
case $shown in
  *' PreemptTime='[0-9]*) how='is preempted' ;;
  '' | *' JobState=RUNNING '*) how='' ;;
  *) how='is at its end' ;;
esac
if [ -n "$how" ]; then
  say "the job $how: nothing is said of the nodes"
  exit 75
fi

# Names the nodes that do not ("bad") or do ("good") what the job needs, as Slurm takes a list.
named() { fleet --format "$1-nodes"; }

ended() { cat "$folder/log/$1.status" 2>/dev/null || echo none; }

bad=$(named bad)
admin=''
for node in $(scontrol show hostnames "${bad:-,}" 2>/dev/null); do
  case $(ended "$node") in
    75) admin="$admin  $node: $(head -n 1 "$folder/log/$node.short")
" ;;
    none) admin="$admin  $node: did not answer
" ;;
  esac
done
if [ -n "$admin" ]; then
  printf '\nsend this to your admin:\n%s  (job %s; the whole reports: %s/log)\n\n' "$admin" "$SLURM_JOB_ID" "$folder"
fi

if [ $verdict = 1 ]; then
  for node in $(scontrol show hostnames "${bad:-,}" 2>/dev/null); do
    if [ "$(ended "$node")" = 1 ]; then
      printf '\n%s:\n' "$node"
      cat "$folder/log/$node.txt"
      break
    fi
  done
  say 'your environment or your request is at fault: what you can do stands above'
  good=$(named good)
  [ -z "$good" ] || say "these nodes would do: $good"
  exit 1
fi

if [ -z "$bad" ]; then
  say 'a machine is at fault, and none could be named'
  exit 75
fi
if [ "${SLURM_RESTART_COUNT:-0}" -ge "$CUDADOCTOR_RESTARTS" ]; then
  say "this was attempt $((${SLURM_RESTART_COUNT:-0} + 1)), and again a machine is at fault: the job stops here"
  exit 75
fi
excluded=$(printf '%s\n' "$shown" | sed -n 's/.* ExcNodeList=\([^ ]*\).*/\1/p')
case $excluded in
  '' | '(null)') excluded=$bad ;;
  *) excluded=$excluded,$bad ;;
esac
# Slurm takes a list of nodes to leave out for a job that waits, and ends one that goes back to the queue: so we first
# stop listening to it.
trap '' TERM
if ! scontrol requeue "$job"; then
  say "the job cannot go back to the queue by itself; submit it again with: sbatch --exclude=$excluded ..."
  exit 75
fi
for wait in 1 1 1 1 0; do
  if scontrol update JobId="$job" ExcNodeList="$excluded"; then
    say "back to the queue, without $excluded"
    exit 75
  fi
  sleep $wait
done
say "back to the queue; it could not be told to leave out $excluded"
exit 75
