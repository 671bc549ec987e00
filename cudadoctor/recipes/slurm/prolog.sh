#!/bin/sh
# Prolog that drains an ill node and sends the job on
#
# Line for slurm.conf (the file on every node, executable, of root):
#
#     Prolog=/etc/slurm/cudadoctor/prolog.sh
#     PrologFlags=Alloc
#
# What it does. A job that was given GPUs starts after `cudadoctor check --blame machine` has found nothing (about half
# a second). Where the driver or a GPU is at fault, a driver that does not answer among it, the node is drained with the
# finding as the reason ("cudadoctor: CD113 gpu-lost: ... (auto)", see sinfo -R), and this program exits 1. Slurm then
# puts the job back into the queue: held, until `scontrol release JOBID`, or, with
#
#     SchedulerParameters=nohold_on_prolog_fail
#
# free to start on other nodes two minutes later. Slurm drains a node whose Prolog fails by itself, but says no more
# than "Prolog error" and nobody lifts it: so the reason is set first. That is the one Slurm command here, and only an
# ill node runs it: a Prolog should not lean on the controller.
#
# What it does not. Jobs without GPUs pass. The user's environment is none of a Prolog's business (task_prolog.sh). A
# doctor that is missing, fails, cannot tell or does not end drains nobody and holds nobody up.
#
# Settings: in /etc/cudadoctor/slurm.sh (lines of sh, read if it is there), or below. Where slurm.conf is in no usual
# place, that file must export SLURM_CONF, too: Slurm hands on next to no environment.
#
#     CUDADOCTOR            the command, by its full path [cudadoctor]; "/usr/bin/python3 /shared/cudadoctor.pyz" is one
#     CUDADOCTOR_OPTIONS    more options of check, as --policy /etc/cudadoctor/node.toml. /etc/cudadoctor/policy.toml
#                           counts without being named. Do not ask for what jobs use up, such as gpu.memory_free:
#                           a node at work would be drained.
#     CUDADOCTOR_DRAIN_ON   what else drains: any of "undecided" (exit 3), "failure" (the doctor is missing or broken),
#                           "timeout" (it did not end within the deadline) [none]
#     CUDADOCTOR_DEADLINE   seconds for the whole look [25]. A driver that no job and no nvidia-persistenced keeps awake
#                           takes ten or more to answer on eight GPUs: with less, it would count as one that hangs.
#     CUDADOCTOR_DRY_RUN    yes: print what Slurm would be told
#     CUDADOCTOR_MEMORY     as in health_check.sh [/run/cudadoctor]
#
# Time: at worst CUDADOCTOR_DEADLINE and then half a minute, where the controller does not answer. PrologEpilogTimeout,
# if it is set, and BatchStartTimeout (10 seconds by itself) must be longer: a minute will do. A Prolog that Slurm ends
# drains its node.
#
# By hand, as root on one node:
#
#     CUDADOCTOR_DRY_RUN=yes SLURM_JOB_GPUS=0 /etc/slurm/cudadoctor/prolog.sh; echo $?

# ---- the same in prolog.sh and health_check.sh -----------------------------------------------------------------

# What Slurm gives these programs to go by is the node's name, and next to no environment.
set -f
PATH=${PATH:-/usr/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
# Read by a shell of its own first: a mistake in that file ends the shell that reads it, and a Prolog that ends so
# would drain every node.
settings=/etc/cudadoctor/slurm.sh mistaken=no
if [ -r $settings ]; then
  # shellcheck source=/dev/null
  to_the_end=$(. $settings >/dev/null 2>&1; echo yes)
  # shellcheck source=/dev/null
  if [ "$to_the_end" = yes ]; then . $settings; else mistaken=yes; fi
  set +eu
fi
: "${CUDADOCTOR:=cudadoctor}"
: "${CUDADOCTOR_OPTIONS:=}"
: "${CUDADOCTOR_DRAIN_ON:=}"
: "${CUDADOCTOR_DEADLINE:=25}"
: "${CUDADOCTOR_DRY_RUN:=no}"
: "${CUDADOCTOR_MEMORY:=/run/cudadoctor}"
# The doctor's own deadline is five seconds shorter. (Digits only: a mistake in a sum would end this shell.)
case $CUDADOCTOR_DEADLINE in
  '' | 0* | *[!0-9]*) CUDADOCTOR_DEADLINE=25 ;;
esac
seconds=$((CUDADOCTOR_DEADLINE - 5))
[ $seconds -gt 0 ] || seconds=1
node=${SLURMD_NODENAME:-$(hostname -s)}

# Every reason that is ours ends so. Whoever wants the node to stay drained changes the reason: then it is theirs.
mark='(auto)'

# To the log of slurmd and, where there is one, to the system's.
say() {
  printf 'cudadoctor: %s: %s\n' "$node" "$*" >&2
  timeout 2 logger -t cudadoctor -p daemon.warning -- "$node: $*" 2>/dev/null || :
}
[ $mistaken = no ] || say "$settings does not do as lines of sh: not read"

# Judges the node: sets `fault` to what is wrong with it, in one line, or to nothing; and `well`, where the doctor
# looked and found the machine without fault.
# shellcheck disable=SC2034  # one of the two pieces asks
look() {
  fault='' well=no
  # The node is judged, not the job: without the job's variables, or a job that asked for no GPU looks like a
  # broken driver (CD705). The outer timeout covers what stalls before the doctor's own deadline counts.
  words=$(
    unset SLURM_JOB_ID SLURM_JOBID SLURM_JOB_GPUS SLURM_STEP_GPUS SLURM_GPUS_ON_NODE
    unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
    # shellcheck disable=SC2086  # both may be several words
    exec timeout -k 2 "$CUDADOCTOR_DEADLINE" $CUDADOCTOR check --blame machine --retry-code 75 --timeout $seconds \
      --format termination-log $CUDADOCTOR_OPTIONS </dev/null 2>&1
  )
  status=$?
  first=$(printf '%s\n' "$words" | sed -n '1{s/[^ -~]//g;p;}' | cut -c 1-200)
  case $status in
    0) # A doctor that looked says so. An empty file ends with 0, too.
      if [ -n "$first" ]; then well=yes; else doubtful failure 'the doctor said nothing'; fi
      ;;
    75)
      # The verdict begins with the check's number. Something else that ends with 75 is not the doctor.
      fault=$(printf '%s\n' "$words" | sed -n '/^CD[0-9][0-9][0-9] /{s/[^ -~]//g;p;q;}' | cut -c 1-200)
      [ -n "$fault" ] || doubtful failure "exit status 75 without a verdict: $first"
      ;;
    1) say "not the machine's: $first" ;;
    3) doubtful undecided "$first" ;;
    124 | 137) doubtful timeout "the doctor did not end within $CUDADOCTOR_DEADLINE s" ;;
    *) doubtful failure "the doctor itself failed (exit status $status): $first" ;;
  esac
}

# Not the node's fault, as far as anybody knows: no more than a word in the log, unless the site asks.
doubtful() {
  case " $CUDADOCTOR_DRAIN_ON " in
    *" $1 "*) fault="$1: $2" ;;
    *) say "$2 (drains nobody)" ;;
  esac
}

# What Slurm knows of the node: `state`, `gres`, `reason`, and `whose` reason it is.
# shellcheck disable=SC2034  # one of the two pieces asks
ask_slurm() {
  [ -n "$node" ] || return 1 # scontrol would show them all
  told=$(timeout -k 2 10 scontrol --oneliner show node "$node" 2>/dev/null) || return 1
  before=${told%% Reason=*}
  state=$(printf '%s\n' "$before" | sed -n 's/.* State=\([^ ]*\).*/\1/p')
  gres=$(printf '%s\n' "$before" | sed -n 's/.* Gres=\([^ ]*\).*/\1/p')
  reason=$(printf '%s\n' "$told" | sed -n 's/.* Reason=\(.*\) \[[^] @]*@[^] ]*\].*/\1/p')
  whose=$(printf '%s\n' "$told" | sed -n 's/.* Reason=.* \[\([^] @]*\)@[^] ]*\].*/\1/p')
  [ -n "$state" ]
}

# Is the reason ours, word for word as we leave it, and by the user that we are?
is_ours() {
  case $reason in
    "cudadoctor: "*" $mark") [ "$whose" = "$(id -un)" ] || [ "$whose" = "$(id -u)" ] ;;
    *) false ;;
  esac
}

change() {
  [ "$CUDADOCTOR_MEMORY" = no ] || rm -f "$CUDADOCTOR_MEMORY/$node"
  if [ "$CUDADOCTOR_DRY_RUN" = yes ]; then
    printf 'would run: scontrol update NodeName=%s %s\n' "$node" "$*"
  else
    timeout -k 2 10 scontrol update "NodeName=$node" "$@" || say "scontrol could not set: $*"
  fi
}

# Drains the node, with the fault as the reason. A node that somebody else took out of service stays as it is.
drain() {
  wanted="cudadoctor: $fault $mark"
  case $state in
    *REBOOT_ISSUED* | *POWERING_DOWN* | *POWERED_DOWN*)
      say "$fault (left as it is: $state)" # a driver ends, too, when its node does
      return
      ;;
    *DRAIN* | *DOWN* | *FAIL*)
      if [ -n "$reason" ] && ! is_ours; then
        say "$fault (left as it is: $state, $reason)"
        return
      fi
      [ "$reason" != "$wanted" ] || return 0
      ;;
  esac
  say "drained: $fault"
  change State=drain "Reason=$wanted"
}

# ---- to here ---------------------------------------------------------------------------------------------------

[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
look
[ -n "$fault" ] || exit 0
# Where Slurm cannot be asked, its own "Prolog error" must do.
if ask_slurm; then drain; fi
exit 1
