"""Minor-version compatibility: why a CUDA 12.2 driver runs a CUDA 12.8 wheel

The rule
    Each major version of CUDA has one floor: the oldest driver that serves it. From that driver on, every build of the
    same major runs, whatever the minor. A driver whose nvidia-smi shows "CUDA Version: 12.2" runs cu126, cu128 and
    cu129 wheels. Newer drivers also serve every older major.

    Comparing nvidia-smi's number with torch.version.cuda digit by digit is the classic false alarm. `cudadoctor check`
    compares the driver's own version with the floor of the wheel's major.

Where the minor counts after all
    - PTX: a wheel may carry PTX, which the driver compiles for GPUs that the wheel has no machine code for. A driver
      cannot compile PTX that is newer than itself (error 222, "unsupported toolchain"). Machine code is not affected.
    - Features that need a newer driver by their nature are then reported as not supported by the call that wants them.
    - Building from source against a newer toolkit, for the same reason as PTX.

What does not help
    Installing another CUDA toolkit. The wheel does not look at it.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""
