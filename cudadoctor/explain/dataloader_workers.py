"""DataLoader workers and the host's memory

What a worker is
    With num_workers=N, N processes load samples. Each holds a copy of the dataset object, and keeps some batches ready
    (prefetch_factor). Batches come back through shared memory.

What runs out
    - /dev/shm: "Bus error", "unable to write to file /torch_...", "DataLoader worker is killed by signal: Bus error".
      Docker gives a container little of it: start it with --shm-size or --ipc=host.
    - Memory: "DataLoader worker (pid ...) is killed by signal: Killed" is the kernel's OOM killer, or the limit of a
      container or job. Fewer workers, a smaller prefetch_factor. Lists of Python objects in a dataset grow in each
      worker, because counting references writes to them: arrays do not.
    - Windows: each worker imports torch anew and reserves page file for it: WinError 1455. The main module needs
      if __name__ == "__main__".
    - File descriptors: "Too many open files". Raise ulimit -n, or torch.multiprocessing.set_sharing_strategy
      ("file_system").
    - CUDA: a worker that is forked must not touch the GPU ("Cannot re-initialize CUDA in forked subprocess").

How many
    About as many as cores that the job was given (not those of the machine), less one; more help only while the GPU
    waits for data. num_workers=0 is the test: if the fault goes away, it was the workers.

References
    https://pytorch.org/docs/stable/data.html
"""
