"""What verify proves, and what its numbers mean

What it is
    check looks and does not touch: it says that torch should run on a GPU. cudadoctor verify makes it run, in your
    environment's own interpreter, in one process for each GPU and one for what needs all of them. A process that
    crashes or hangs is a result, too: the check that was at hand failed, and what came before it stays proven.

The checks
    - versions: torch can be imported and says that CUDA is available.
    - allocation: memory is taken, written, changed and read back.
    - matmul: products in fp32 (without TF32), fp16 and bf16 are those of the CPU: whole numbers to the last bit, others
      within the rounding of their size; again and again, as a fault may come and go.
    - bandwidth: copies from and to pinned memory, against what the PCIe link of card and slot carries.
    - memory-bandwidth: copies within the GPU's memory, against the figure of the card.
    - peer: copies between all pairs of GPUs arrive as they left.
    - nccl: a sum over all GPUs, one process each, as distributed training makes it.
    - cudnn: a convolution is that of the CPU.
    - compile: torch.compile; left out where Triton or a C compiler is not there, which is no fault.

What the numbers mean
    - A measurement passes from 60 % of what the way can do, is shown as slow below (CUDA works: exit 0, or 1 with
      --fail-on warning), and fails far below. 75 to 90 % is usual. A virtual machine, another NUMA node or a busy GPU
      costs some of it without any fault: measure on an idle machine.
    - Where no figure is known, as for a MIG device, the rate is shown and not judged.
    - A wrong value is a fault of the hardware or of a library, and not of your program:
      trust nothing that this GPU computes until it is found.
    - A crash alone convicts nobody; what check finds on the same machine is named beside it.

What it costs
    The time to load torch once for each GPU and some seconds of work; about a gigabyte of the GPU's memory, less where
    less is free. It writes nothing but a temporary folder, which it removes. --timeout bounds each process: when it is
    over, the whole group of processes is killed.

References
    https://docs.pytorch.org/docs/stable/notes/cuda.html
    https://github.com/NVIDIA/nvbandwidth
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""
