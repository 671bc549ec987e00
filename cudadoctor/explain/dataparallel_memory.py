"""DataParallel's uneven memory

What happens
    torch.nn.DataParallel runs one process for all GPUs. Each forward pass copies the model from the first GPU to the
    others and gathers outputs, and mostly the loss, on the first. So the first GPU holds more, and runs out of memory
    while the others have room. It is no fault of the card.

What helps
    DistributedDataParallel, with a process a GPU (torchrun --nproc_per_node=N): memory is even, and it is faster, on a
    single machine too. Where the model itself is too large, sharding it (FSDP, ZeRO) or splitting it over the GPUs.

The same picture, other causes
    - Every process of a distributed job also takes some hundred MiB on the first GPU: it was not told which GPU is its
      own before it first used CUDA. torch.cuda.set_device(local_rank) comes first; a checkpoint is loaded with
      map_location.
    - A desktop draws on the first GPU.
    - device_map="auto" fills the GPUs one after another by design.

References
    https://pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    https://pytorch.org/tutorials/intermediate/ddp_tutorial.html
"""
