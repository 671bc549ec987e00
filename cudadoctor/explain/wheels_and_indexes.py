"""PyTorch wheels and where they come from: +cpu, +cu126 and the index

Builds of one release
    Every release of PyTorch is built several times: without CUDA (+cpu), and for a few versions of CUDA (+cu126,
    +cu130, ...). They differ in the driver that they need and in the GPUs that they hold machine code for. A newer CUDA
    build is not better in itself: it drops old GPUs.

Where they lie
    - download.pytorch.org/whl/cpu, /whl/cu126, /whl/cu130, ...: one index for each kind of build. There the version
      carries its kind, as in 2.14.1+cu126.
    - PyPI: one build a release and platform, without a suffix. On Linux x86_64 it is a CUDA build; on Windows and
      macOS it is always the CPU build. On Linux aarch64 it depends on the release.

    `pip list` shows "2.14.1" for a build from PyPI, whichever it is. `cudadoctor check` reads what is installed.

Traps
    - pip regards 2.14.1+cpu as satisfying torch==2.14.1, and then installs nothing. The command that `cudadoctor fix`
      prints names the build, so that it is really replaced.
    - --extra-index-url lets pip choose between two indexes by version alone. Use --index-url for torch.
    - An index exists only for the CUDA versions that PyTorch was built with, which are few. A cuXXX made up from the
      number in nvidia-smi is often not among them.
    - torchvision and torchaudio must come from the same index and fit the release.

References
    https://pytorch.org/get-started/previous-versions/
"""
