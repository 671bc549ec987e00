"""nvcc is missing, and that is no fault

What nvcc is
    nvcc is the compiler of the CUDA toolkit. It builds CUDA programs from source. Running PyTorch, vLLM, ComfyUI and
    nearly everything else that is installed with pip needs none: their wheels hold machine code for the GPUs and bring
    the CUDA runtime along.

When you do need it
    - pip compiles an extension because it has no wheel for your Python and torch (flash-attn, apex, some custom
      operators). The message is "CUDA_HOME environment variable is not set" or "nvcc not found".
    - You write CUDA code, or use torch.utils.cpp_extension.

    The toolkit must then be of the same major version as torch.version.cuda. The minor may differ.

When you do not
    torch.cuda.is_available() is False. That is about the driver, the wheel or the GPU, never about nvcc:
    `cudadoctor check` says which.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
"""
