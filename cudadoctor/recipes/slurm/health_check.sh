#!/bin/sh
# HealthCheckProgram: drains ill nodes, takes them back
#
# Lines for slurm.conf (the file on every node, executable, of root):
#
#     HealthCheckProgram=/etc/slurm/cudadoctor/health_check.sh
#     HealthCheckInterval=300
#     HealthCheckNodeState=ANY,CYCLE
#
# ANY: a drained node is looked at, too, or it would never come back. CYCLE: not all nodes ask the controller at once.
#
# What it does. Where `cudadoctor check --blame machine` finds the machine at fault, a driver that does not answer among
# it, the node is drained: "cudadoctor: CD113 gpu-lost: ... (auto)" in sinfo -R. Running jobs go on. When a later look
# finds nothing, the node is taken back (State=undrain), if the reason still is ours, word for word. A node that anybody
# else has drained, or whose reason anybody has changed, is left alone: so to keep a node out, change its reason,
#
#     scontrol update NodeName=n7 Reason="waits for a new GPU"
#
# Slurm's own reason is all the memory there is, of what was drained. The controller is asked when a look finds a fault;
# where all is well, once an hour and after a start of the node: a file in CUDADOCTOR_MEMORY says when.
#
# What it does not. A node without GPUs in its Gres is not looked at. A doctor that is missing, fails, cannot tell or
# does not end drains nobody and takes nobody back.
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
#     CUDADOCTOR_TAKE_BACK  no: a node stays drained until an admin says otherwise [yes]
#     CUDADOCTOR_DEADLINE   seconds for the whole look [25]; Slurm kills the program after 60. A driver that no job and
#                           no nvidia-persistenced keeps awake takes ten or more to answer on eight GPUs: with less, it
#                           would count as one that hangs.
#     CUDADOCTOR_DRY_RUN    yes: print what Slurm would be told
#     CUDADOCTOR_MEMORY     a folder that goes with a start of the node [/run/cudadoctor]; no: ask Slurm at each look
#
# By hand, as root on one node:
#
#     CUDADOCTOR_DRY_RUN=yes /etc/slurm/cudadoctor/health_check.sh

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

# What Slurm last said that concerns a well node, if that was in this hour: nothing, "well", or "no-gpus".
remembered() {
  [ "$CUDADOCTOR_MEMORY" != no ] && [ "$CUDADOCTOR_DRY_RUN" != yes ] || return
  [ -z "$(find "$CUDADOCTOR_MEMORY/$node" -mmin -60 2>/dev/null)" ] || cat "$CUDADOCTOR_MEMORY/$node"
}

remember() {
  [ "$CUDADOCTOR_MEMORY" != no ] && [ "$CUDADOCTOR_DRY_RUN" != yes ] || return
  mkdir -p "$CUDADOCTOR_MEMORY" && echo "$1" >"$CUDADOCTOR_MEMORY/$node"
}

ours_to_take_back() {
  case $state in
    *REBOOT*) false ;;
    *DRAIN*) [ "$CUDADOCTOR_TAKE_BACK" = yes ] && is_ours ;;
    *) false ;;
  esac
}

: "${CUDADOCTOR_TAKE_BACK:=yes}"
known=$(remembered)
if [ -z "$known" ]; then
  if ! ask_slurm; then
    say 'scontrol does not answer: not looked at'
    exit 0
  fi
  case $gres in
    *gpu*) ;;
    *)
      remember no-gpus
      exit 0
      ;;
  esac
fi
[ "$known" != no-gpus ] || exit 0
look
# Before anything is changed, Slurm is asked again: an admin may have been here during the look.
if [ -n "$fault" ]; then
  if ask_slurm; then drain; else say "$fault (scontrol does not answer: not drained)"; fi
elif [ $well = yes ] && [ -z "$known" ]; then
  if ! ours_to_take_back; then
    remember well
  elif ask_slurm && ours_to_take_back; then
    say "well again, taken back: $reason"
    change State=undrain
  fi
fi
exit 0
