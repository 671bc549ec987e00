"""Many nodes in one report

What it is
    cudadoctor fleet reads what cudadoctor check --format json-line has printed on each node, and answers three
    questions: which nodes fail and with what, which are missing, and which are unlike the others. A launcher that is
    there already brings the snapshots (srun, mpirun, kubectl, pdsh); cudadoctor recipes has the lines for each.

How nodes are compared
    - Only nodes with the same GPU models are compared: A100 nodes may well have another driver than H100 nodes.
    - A value that at least two in three nodes have is the norm, and the others are named. Where no value is so
      frequent, the nodes are split and nobody is called odd.
    - What is not known of a node is no difference.
    - Settings that differ (driver, torch, NCCL, kernel, MIG, ...) are CD707. States that differ (clocks that are held
      down, ECC errors) are shown beside it, as the node's own verdict weighs them.

What goes wrong
    - One node with another NCCL or torch stops a job of all nodes, and the error is seen on another node.
    - A node that hangs writes no snapshot: only --expect tells that it is missing.
    - Job scripts that all print to one stream mix their lines. Write a file a node (srun --output with %N, or -o), or
      print one line a node (json-line), which a pipe keeps whole only up to some kilobytes.
    - Names differ: the scheduler's node001 is the same node as node001.cluster.example.

Exit status
    0 all nodes are fine; 1 nodes fail, are missing or (with --fail-on warning) disagree; 2 the input cannot be used;
    3 nodes without a verdict, or snapshots that cannot be read. --format bad-nodes prints failing and missing nodes as
    a list for --exclude, and leaves out those without a verdict: nobody knows that they are bad.
    What a node's own check failed by (--fail-on warning, a policy) fails here, too, and what was undecided and fine
    there (--unknown-ok) is fine.

References
    https://slurm.schedmd.com/scontrol.html
    https://clustershell.readthedocs.io/en/latest/tools/nodeset.html
"""
