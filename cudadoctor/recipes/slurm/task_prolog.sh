#!/bin/sh
# TaskProlog that tells users what is wrong
#
# Line for slurm.conf (the file on every node, readable and executable for all):
#
#     TaskProlog=/etc/slurm/cudadoctor/task_prolog.sh
#
# or, for one step, without the admin: srun --task-prolog=/path/to/task_prolog.sh ...
#
# What it does. Runs as the user, in the user's environment, before a node's first task; once a job and node (about half
# a second). What is wrong is written into the task's output: what the user can do, or, where it is the machine's fault,
# what to send to the admins. Nothing is said where nothing is wrong, and the tasks start all the same.
# It drains nobody: it has not the right to.
#
# A job without GPUs may be right as it is; in a partition where it cannot be (CUDADOCTOR_GPU_PARTITIONS), it is told
# that it did not ask for one (CD705).
#
# Settings: in /etc/cudadoctor/slurm.sh (lines of sh, read if it is there; everybody must be able to read it), or below.
#
#     CUDADOCTOR                 the command [cudadoctor]; "/usr/bin/python3 /shared/cudadoctor.pyz" will do
#     CUDADOCTOR_OPTIONS         more options of check, as --policy /shared/job.toml
#     CUDADOCTOR_GPU_PARTITIONS  partitions, separated by blanks, where a job without GPUs is a mistake [none]
#     CUDADOCTOR_STOP            yes: a task that would fail does not start (Slurm: "TaskProlog failed status=1") [no]
#     CUDADOCTOR_DEADLINE        seconds for the whole look [25]; see prolog.sh
#     CUDADOCTOR_TASK_PROLOG     no, in a job's own environment: say nothing [yes]
#
# By hand, in a job on one node (srun --gres=gpu:1 --pty sh):
#
#     SLURM_LOCALID=0 /etc/slurm/cudadoctor/task_prolog.sh

set -f
# Read by a shell of its own first: a mistake in that file ends the shell that reads it, and with it every task.
settings=/etc/cudadoctor/slurm.sh
if [ -r $settings ]; then
  # shellcheck source=/dev/null
  to_the_end=$(. $settings >/dev/null 2>&1; echo yes)
  # shellcheck source=/dev/null
  if [ "$to_the_end" = yes ]; then . $settings; fi
  set +eu
fi
: "${CUDADOCTOR:=cudadoctor}"
: "${CUDADOCTOR_OPTIONS:=}"
: "${CUDADOCTOR_GPU_PARTITIONS:=}"
: "${CUDADOCTOR_STOP:=no}"
: "${CUDADOCTOR_DEADLINE:=25}"
: "${CUDADOCTOR_TASK_PROLOG:=yes}"
# The doctor's own deadline is five seconds shorter. (Digits only: a mistake in a sum would end this shell.)
case $CUDADOCTOR_DEADLINE in
  '' | 0* | *[!0-9]*) CUDADOCTOR_DEADLINE=25 ;;
esac
seconds=$((CUDADOCTOR_DEADLINE - 5))
[ $seconds -gt 0 ] || seconds=1

[ "$CUDADOCTOR_TASK_PROLOG" = yes ] && [ "${SLURM_LOCALID:-0}" = 0 ] || exit 0
if [ -z "${SLURM_JOB_GPUS:-}${SLURM_STEP_GPUS:-}" ]; then
  case " $CUDADOCTOR_GPU_PARTITIONS " in
    *" ${SLURM_JOB_PARTITION:-?} "*) ;;
    *) exit 0 ;;
  esac
fi

# A batch script and its steps, or several steps, are one job: what was looked at is left in the environment that goes
# on to them. (Steps that are started from elsewhere do not see it, and look again.)
here=${SLURM_JOB_ID:-?}.${SLURMD_NODENAME:-?}
case " ${CUDADOCTOR_LOOKED_AT:-} " in
  *" $here "*) exit 0 ;;
esac
echo "export CUDADOCTOR_LOOKED_AT=${CUDADOCTOR_LOOKED_AT:+$CUDADOCTOR_LOOKED_AT }$here"

# Slurm writes what follows "print" into the task's output.
tell() { sed 's/^/print cudadoctor: /'; }

# shellcheck disable=SC2086  # both may be several words
words=$(timeout -k 2 "$CUDADOCTOR_DEADLINE" $CUDADOCTOR check --retry-code 75 --timeout $seconds \
  --format termination-log $CUDADOCTOR_OPTIONS </dev/null 2>/dev/null)
status=$?
first=$(printf '%s\n' "$words" | head -n 1)
case $status in
  1)
    # The verdict, and what mends it.
    printf '%s\n' "$words" | awk 'NR == 1 || /^what mends it:/ { on = 1; print; next } /^[^ ]/ { on = 0 } on' | tell
    echo 'more: cudadoctor check, in this job' | tell
    ;;
  75)
    printf '%s\n' "$first" 'this is the machine'\''s fault: nothing in your job mends it. Exclude the node' \
      "(sbatch --exclude=${SLURMD_NODENAME:-NODE} ...) and send this to your admin:" \
      "  ${SLURMD_NODENAME:-this node}, job ${SLURM_JOB_ID:-?}: $first" | tell
    ;;
  *) exit 0 ;; # nothing found, undecided, or the doctor's own trouble
esac
[ "$CUDADOCTOR_STOP" != yes ] || exit 1
