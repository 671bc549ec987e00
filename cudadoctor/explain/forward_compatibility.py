"""Forward compatibility: a newer CUDA on an older driver

What it is
    NVIDIA's cuda-compat packages hold a newer libcuda that works on an older kernel module. With it a driver serves a
    newer CUDA major than its own. It exists for server fleets whose drivers are changed once a year.

Where it works
    - Only on data-centre cards (and a few workstation cards). On a GeForce the library refuses: error 804, "forward
      compatibility was attempted on non supported HW".
    - Only on drivers of the branches that the package names.
    - On Linux, and on Jetson with packages of its own. Not on Windows, and not in WSL.

When it is in the way
    Images (NVIDIA's own among them) bring a cuda-compat along. If the library path names it, its libcuda comes before
    the driver's. Error 803, "unsupported display driver / cuda driver combination", then means either that the driver
    is too old for it, or that the driver is newer than it: the cure is to take the compat folder off the library path,
    not to change the driver.

What is more common
    Within one major nothing is needed at all: `cudadoctor explain minor-version-compatibility`.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
"""
