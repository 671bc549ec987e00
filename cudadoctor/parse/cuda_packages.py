"""Which installed packages matter to CUDA, by normalised name. Everything else in an environment is passed over."""

from __future__ import annotations

TORCH = "torch"

# Released together with torch, each version for one of torch.
COMPANIONS = ("torchvision", "torchaudio", "torchtext", "torchdata", "torchcodec", "torchrec", "triton")

# Compiled against one torch, or pinned to one.
EXTENSIONS = (
    "apex",
    "auto-gptq",
    "autoawq",
    "autoawq-kernels",
    "bitsandbytes",
    "causal-conv1d",
    "deepspeed",
    "detectron2",
    "dgl",
    "exllamav2",
    "exllamav3",
    "fbgemm-gpu",
    "fbgemm-gpu-genai",
    "flash-attn",
    "flash-attn-3",
    "flashinfer-cubin",
    "flashinfer-jit-cache",
    "flashinfer-python",
    "gptqmodel",
    "gsplat",
    "kaolin",
    "lmdeploy",
    "mamba-ssm",
    "mmcv",
    "mmcv-full",
    "natten",
    "pytorch3d",
    "sageattention",
    "sgl-kernel",
    "sglang",
    "tensorrt-llm",
    "tinycudann",
    "torch-cluster",
    "torch-scatter",
    "torch-sparse",
    "torch-spline-conv",
    "torch-tensorrt",
    "torchao",
    "transformer-engine",
    "transformer-engine-torch",
    "unsloth",
    "unsloth-zoo",
    "vllm",
    "vllm-flash-attn",
    "xformers",
)

# Frameworks and libraries that bring a CUDA of their own, and what people report beside torch.
OTHERS = (
    "accelerate",
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
    "cuda-python",
    "cuda-toolkit",
    "ctranslate2",
    "cupy",
    "diffusers",
    "faiss-cpu",
    "faiss-gpu",
    "jax",
    "jaxlib",
    "lightning",
    "liger-kernel",
    "llama-cpp-python",
    "megatron-core",
    "numba",
    "numba-cuda",
    "numpy",
    "nvidia-ml-py",
    "onnx",
    "onnxruntime",
    "onnxruntime-directml",
    "onnxruntime-gpu",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "peft",
    "pycuda",
    "pynvml",
    "pytorch-lightning",
    "pytorch-triton",
    "ray",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tensorrt",
    "tf-nightly",
    "torch-geometric",
    "transformers",
    "triton-windows",
)

# Names that only conda has.
CONDA_NAMES = (
    "cuda",
    "cuda-cudart",
    "cuda-nvcc",
    "cuda-runtime",
    "cuda-version",
    "cudatoolkit",
    "cudnn",
    "libtorch",
    "nccl",
    "pytorch-cpu",
    "pytorch-cuda",
    "pytorch-gpu",
    "pytorch-mutex",
)

# The same software under conda's name and under PyPI's.
CONDA_TO_PYPI = {"pytorch": TORCH}

_STARTS = (
    "cuda-",
    "cudf-",
    "cugraph-",
    "cuml-",
    "cupy-",
    "faiss-gpu-",
    "jax-cuda",
    "jax-rocm",
    "nvidia-",
    "rmm-",
    "spconv-",
    "tensorrt-",
    "transformer-engine-",
)

# These are said to be absent where they are; the others are known by the start of their names alone.
NAMES = frozenset((TORCH, *COMPANIONS, *EXTENSIONS, *OTHERS))
_CONDA_ONLY = frozenset(CONDA_NAMES)

# Of these METADATA is read; in it these requirements count.
WITH_REQUIREMENTS = frozenset(
    (
        TORCH,
        *COMPANIONS,
        *EXTENSIONS,
        "cuda-toolkit",
        "jax",
        "jaxlib",
        "tensorflow",
        "onnxruntime-gpu",
        "pytorch-lightning",
        "lightning",
    )
)
REQUIREMENTS = (
    TORCH,
    *COMPANIONS,
    *EXTENSIONS,
    "cuda-*",
    "jax-cuda*",
    "jaxlib",
    "nvidia-*",
    "pytorch-triton*",
    "triton-windows",
)


def matters(name: str) -> bool:
    """Whether a distribution (normalised name) matters to CUDA."""
    return name in NAMES or name.startswith(_STARTS)


def matters_in_conda(name: str) -> bool:
    """The same for a conda package, after its name was translated to PyPI's."""
    return name in _CONDA_ONLY or matters(name)
