"""Slurm: nodes that are checked, drained and taken back

What it is
    Four pieces that put the doctor in front of jobs; "cudadoctor recipes" lists them, "cudadoctor recipes slurm/job -o
    job.sh" writes one. Each begins with its line for slurm.conf or for the job script, its settings, and how to try it.

    - slurm/job, for users: a line in the job script. It looks at every node once, prints one report, and trains only if
      all is well. Where machines are at fault, the job goes back to the queue without them.
    - slurm/task_prolog, for users, set by the admin (TaskProlog=): says in a job's own output what is wrong.
    - slurm/prolog (Prolog=): no job with GPUs starts on a node whose driver or GPU is at fault; the node is drained.
    - slurm/health_check (HealthCheckProgram=): drains such nodes between jobs, and takes back what it drained itself.

    In that order: the first needs nobody's leave, the last two act for everybody. Begin with the health check where
    nodes stay idle for long, with the prolog where every start counts.

How to try it on one node
    - The doctor itself, as root: cudadoctor check --blame machine --retry-code 75 --timeout 20; echo $?
    - Copy a piece, make it executable, and run it with CUDADOCTOR_DRY_RUN=yes: it prints what it would tell Slurm.
    - Then set the line in slurm.conf, run scontrol reconfigure, and look at sinfo -R.
    - What all nodes share stands in /etc/cudadoctor/slurm.sh, as CUDADOCTOR="/usr/bin/python3 /shared/cudadoctor.pyz".
      What a node must have stands in a policy: /etc/cudadoctor/policy.toml ("cudadoctor explain policy").

Who is at fault
    - Exit 75: the machine. It is drained, or left out. A driver that does not answer is such a fault.
    - Exit 1: the user's environment, or what the job asked for. No node is drained for it, and another node would not
      help. A job without --gres sees no GPU and looks like a broken driver: CD705 says so, and nobody is drained.
    - Exit 2, 3, a crash, a doctor that is missing or does not end: that says nothing of the node. Nobody is drained,
      unless the site asks (CUDADOCTOR_DRAIN_ON).

What goes wrong
    - A node stays drained with "Prolog error": another prolog failed, or scontrol did not answer. The reason is not
      ours, so nobody lifts it: scontrol update NodeName=n7 State=resume.
    - A node comes back that should not: its reason still was ours. Change the reason, and it is yours.
    - Nodes that are well drain with CD106 (it hangs): their driver sleeps while no job runs, and takes longer to wake
      up than CUDADOCTOR_DEADLINE allows. Start nvidia-persistenced on them, or give it more seconds.
    - A job is held after a prolog failed: that is Slurm's way. scontrol release JOBID, or for all jobs
      SchedulerParameters=nohold_on_prolog_fail. One that went back to the queue starts two minutes later.
    - The output of the first attempt is gone: sbatch --open-mode=append keeps it.
    - A job that runs under the machine's own reservation or --nodelist cannot leave a node out: take it from the list.

References
    https://slurm.schedmd.com/prolog_epilog.html
    https://slurm.schedmd.com/slurm.conf.html
"""
