"""WSL: the driver is the one of Windows

How it works
    WSL 2 has no NVIDIA driver of its own. The driver of Windows brings a libcuda and an nvidia-smi for Linux along, and
    WSL shows them under /usr/lib/wsl/lib. The GPU is /dev/dxg there; /dev/nvidia0 does not exist and need not.

What follows
    - Install and update the driver in Windows. A Linux driver inside WSL (nvidia-driver-*, cuda-drivers, the meta
      package "cuda") puts a libcuda in the way that knows no GPU.
    - A toolkit, if one is needed for building, is cuda-toolkit-*: it brings no driver.
    - nvidia-smi in WSL prints two version numbers that differ: its own and the one of Windows' driver. The latter
      counts.
    - WSL 1 has no GPU. `wsl --list --verbose` in Windows shows which one a distribution runs under.
    - Memory is shared with Windows: WSL gets a part of it, which .wslconfig sets; pinned memory is limited.
    - A card that Windows runs in TCC mode is not passed on.

References
    https://docs.nvidia.com/cuda/wsl-user-guide/
"""
