"""Reading torch.cuda.memory_summary()

What the table is
    One table a GPU, of this process alone. The columns are the usage now, the peak since the start (or since
    torch.cuda.reset_peak_memory_stats()), and what was allocated and freed in all. The last two only ever grow: they
    tell how busy the allocator was, not how much is in use.

The lines that matter
    - CUDA OOMs: how often an allocation has failed. cudaMalloc retries: how often the cache was emptied to make room.
      Retries that go up during training mean that the memory is full, and cost time.
    - Allocated memory: tensors that are alive. Active memory: these and the blocks that a stream has not let go yet.
    - GPU reserved memory: what the allocator holds. Reserved less active is the cache.
    - Non-releasable memory: free pieces of blocks of which another piece is in use. If it is large while an allocation
      fails, that is fragmentation.
    - Requested memory, in newer releases: what was asked for, before rounding up.

    "from large pool" and "from small pool" split each line: tensors of 1 MiB and more lie in the large pool.

What to do with it
    Print it right after the error, or catch torch.cuda.OutOfMemoryError and print it there. Compare the peak of
    "Allocated memory" with the total: that is the need. `cudadoctor check --log FILE` reads such a table.

References
    https://pytorch.org/docs/stable/generated/torch.cuda.memory_summary.html
    https://pytorch.org/docs/stable/torch_cuda_memory.html
"""
