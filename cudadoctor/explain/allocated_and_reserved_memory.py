"""Allocated and reserved GPU memory, and why nvidia-smi shows more

Three numbers
    - Allocated: what tensors that are alive take (torch.cuda.memory_allocated()).
    - Reserved: what PyTorch's caching allocator holds of the GPU, used or kept for the next tensor
      (torch.cuda.memory_reserved()). It is never less than allocated.
    - nvidia-smi: reserved, and the CUDA context (some hundred MiB a process: kernels, cuBLAS and cuDNN workspaces), and
      what NCCL, graphs and other processes take.

    Memory that is reserved and not allocated is no leak. It is handed out again without asking the driver. Another
    process cannot have it, though; torch.cuda.empty_cache() gives back the blocks that are wholly free.

When memory runs out
    The error names all of them. What they say together:

    - Allocated is near the total: the need is real. Smaller batch with accumulation, shorter sequences, checkpointing,
      a smaller dtype, an optimizer with less state, sharding or offloading lower it.
    - Reserved is near the total, and allocated is far below: fragmentation. The free pieces are too small for what was
      asked. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True mostly cures it (Linux); varying input sizes cause it.
    - Free is small, and reserved is small too: another process holds the memory. nvidia-smi names it.

    The first step of training takes less than the second: optimizer state appears with the first update.

References
    https://pytorch.org/docs/stable/notes/cuda.html#memory-management
"""
