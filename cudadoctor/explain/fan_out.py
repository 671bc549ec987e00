"""Checking many nodes

What it takes
    Something that starts a command on every node, a report from each, and `cudadoctor fleet`, which makes one of them.
    The first is an engine that the cluster has already: Slurm, MPI, Kubernetes, Ray, ssh. cudadoctor brings none, but
    a tried piece for each: `cudadoctor recipes` lists them, `cudadoctor recipes mpi/fan-out -o fan-out.sh` writes one.

What every engine has to be told
    - One process a node, not one a GPU or a task: mpirun --map-by ppr:1:node, srun --ntasks-per-node=1, a pod a node, a
      Ray task with affinity to a node.
    - No GPU for the check where it only looks: else it waits until a job ends. Under Slurm and Kubernetes a process
      sees the GPUs that it was given and no others; then it has to be given them.
    - A file a node, or one line a node: --format json-line. mpirun joins what the nodes print in pieces and tears long
      lines, so each node writes its own file there. pdsh and srun --label write the node's name before the line, which
      `cudadoctor fleet` reads; pdsh -N leaves it out.
    - An exit status of 1 on one node must not end the others: mpirun, srun --kill-on-bad-exit and a Kubernetes Job do
      that. So each process ends with 0 there, and `cudadoctor fleet` gives the verdict.
    - A deadline from outside (timeout -k 5 60 cudadoctor check --timeout 30): --timeout bounds the check, but not what
      stalls before it begins, such as a dead network path in LD_LIBRARY_PATH.
    - The command by its full path: neither mpirun nor ssh takes your PATH to the other nodes. One file in a shared
      folder will do (cudadoctor.pyz).
    - The names of the nodes that must answer: `cudadoctor fleet --expect "node[001-512]"`. Who says nothing is then a
      finding, and not one node less.

What was tried
    Slurm, Open MPI, MPICH, Ray, ssh, pdsh, clush and parallel-ssh for real, over several nodes, one of them sick. The
    manifests for Kubernetes are checked against the schemas of its API (1.29 to 1.37), and what their containers run
    was run; no cluster has seen them.

Who can mend it
    --blame machine counts only what the node itself is to blame for; that is for health checks. --retry-code 75 tells a
    runner that another node may do, and 1 that none will.

References
    https://docs.open-mpi.org/en/main/man-openmpi/man1/mpirun.1.html
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
    https://docs.ray.io/en/latest/ray-core/scheduling/index.html
"""
