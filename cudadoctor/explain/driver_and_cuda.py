"""The driver, the CUDA number of nvidia-smi, and the CUDA of a PyTorch wheel

Three numbers
    Three different things are called "the CUDA version", and only one pair of them has to fit:

    - The driver's ceiling. "CUDA Version" in the corner of nvidia-smi is the newest CUDA that this driver can serve.
      It says nothing about what is installed, and it need not equal any other number.
    - The CUDA of the wheel. torch.version.cuda (the cu126 in 2.14.1+cu126) is the CUDA that this build of PyTorch was
      made with. Its runtime libraries come along inside the wheel or as nvidia-* packages.
    - The toolkit. nvcc --version is the compiler on this machine. Running PyTorch does not use it at all.

What has to fit
    The driver must serve the wheel's CUDA, and that is decided by the major number: see
    `cudadoctor explain minor-version-compatibility`. The toolkit matters only for building extensions.

Who brings what
    The driver brings the kernel module, libcuda and nvidia-smi, all of one version. It belongs to the machine: in a
    container and in WSL it is the host's. The wheel brings everything else. A CUDA toolkit from NVIDIA's site is not
    part of the chain, and installing one does not make torch.cuda.is_available() True.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/
"""
