"""A GPU that waits: for its CPU, the disk or the data loader

How it looks
    Training is slow, nothing is broken, and the GPU's utilization swings between nothing and full, or stays low. The
    GPU works off what it gets; it gets too little. No driver, CUDA or wheel changes that.

Which of them it is
    - Data loader: the time between steps vanishes when the same batch is used again and again. More workers, pinned
      memory, less work on each sample, or samples prepared ahead.
    - Disk: the workers themselves wait (state D in top; iostat near full). Many small files on a network drive or a
      spinning disk are the usual case; WSL's /mnt/c is another. Copy the data to a local disk, or pack it.
    - CPU: one core is full, the rest idle. Many small kernels are launched one by one: larger batches, torch.compile or
      CUDA graphs; and no .item(), .cpu() or print in the loop, each of which waits for the GPU.
    - Threads: a container with two cores and sixty-four threads spends its time on switching; set OMP_NUM_THREADS.
    - Other GPUs: with several, the slowest sets the pace, and slow links between them show as waiting in NCCL.

How to look
    nvidia-smi dmon shows utilization over time; torch.profiler shows what the gaps are. Utilization says how much of
    the time something ran, not how well: full does not mean fast.

References
    https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""
