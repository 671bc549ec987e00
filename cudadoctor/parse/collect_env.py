r"""What `python -m torch.utils.collect_env` prints (torch 1.0 to 2.15, and vLLM's of the same layout), also where it
has all run together into one line:

    Collecting environment information...
    PyTorch version: 2.6.0+cu124
    Is debug build: False
    CUDA used to build PyTorch: 12.4
    ROCM used to build PyTorch: N/A

    OS: Ubuntu 22.04.4 LTS (x86_64)
    ...
    Libc version: glibc-2.35

    Python version: 3.10.12 (main, Jan  1 2024, 00:00:00) [GCC 11.4.0] (64-bit runtime)
    Python platform: Linux-6.5.0-41-generic-x86_64-with-glibc2.35
    Is CUDA available: True
    CUDA runtime version: 12.4.131
    GPU models and configuration:
    GPU 0: NVIDIA A10G
    GPU 1: NVIDIA A10G

    Nvidia driver version: 550.90.07
    ...
    [pip3] torch==2.6.0
    [conda] pytorch   1.4.0   py3.7_cuda10.1.243_cudnn7.6.3_0    pytorch

"CUDA runtime version" is that of the nvcc on PATH, not torch's. "Could not collect" says that a command failed, and
"No CUDA" that is_available() was False and nothing was found; neither says that a thing is not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cudadoctor.model.record import NamedTuple

# In the order in which they are printed; any may be missing.
_LABELS = (
    "PyTorch version",
    "Is debug build",
    "CUDA used to build PyTorch",
    "ROCM used to build PyTorch",
    "OS",
    "GCC version",
    "Clang version",
    "CMake version",
    "Libc version",
    "Python version",
    "Python platform",
    "Is CUDA available",
    "CUDA runtime version",
    "CUDA_MODULE_LOADING set to",
    "GPU models and configuration",
    "Nvidia driver version",
    "cuDNN version",
    "Is XPU available",
    "HIP runtime version",
    "MIOpen runtime version",
    "Is XNNPACK available",
    "Caching allocator config",
    "CPU",
    "Versions of relevant libraries",
    "ROCM Version",
    "Neuron SDK Version",
    "vLLM Version",
    "vLLM Build Flags",
    "GPU Topology",
)
_AT_LABEL = re.compile(r"(?:(?<=\s)|^)(" + "|".join(map(re.escape, _LABELS)) + r")[ \t]*:(?=\s|$)", re.MULTILINE)
_GPU = re.compile(r"GPU (\d{1,3}): (.+?)(?=\s+GPU \d{1,3}: |\s+MIG |\n|$)")
_LIBRARY = re.compile(r"\[pip3?\] ([A-Za-z0-9][\w.-]*)==([\w.!+-]+)")
_CONDA = re.compile(r"\[conda\] ([a-z0-9][\w.-]*)[ \t]+(\d[\w.!+]*)[ \t]+([\w.]+)(?:[ \t]+([\w./-]+))?")

NOTHING = ("could not collect", "n/a", "no cuda", "none", "")


class CondaEntry(NamedTuple):
    name: str
    version: str
    build: str
    channel: str | None


class CollectEnv(NamedTuple):
    """The values by label, each as printed; GPUs as (number, name); packages that pip and conda list."""

    values: Mapping[str, str]
    gpus: tuple[tuple[int, str], ...]
    pip: tuple[tuple[str, str], ...]
    conda: tuple[CondaEntry, ...]

    def value(self, label: str) -> str | None:
        """What stands behind a label; None where it is missing or says that nothing was collected."""
        text = self.values.get(label, "").strip()
        return None if text.lower() in NOTHING else text


def parse_collect_env(text: str) -> CollectEnv | None:
    """Reads one block; None where it has none of the labels that only this program prints."""
    parts = _AT_LABEL.split(text)
    flat = text.count("\n") < 5
    values: dict[str, str] = {}
    gpus: tuple[tuple[int, str], ...] = ()
    for label, value in zip(parts[1::2], parts[2::2]):
        if label in values:
            continue
        if label == "GPU models and configuration":
            body = value if flat else value.split("\n\n")[0]
            gpus = tuple((int(number), name.strip()) for number, name in _GPU.findall(body))
            values[label] = body.strip()
        elif label in ("CPU", "Versions of relevant libraries", "GPU Topology"):
            values[label] = ""
        else:
            values[label] = (value if flat else value.partition("\n")[0]).strip()
    if not {"PyTorch version", "Is CUDA available", "CUDA used to build PyTorch"} & set(values):
        return None
    return CollectEnv(
        values,
        gpus,
        tuple(dict.fromkeys(_LIBRARY.findall(text))),
        tuple(CondaEntry(name, version, build, at or None) for name, version, build, at in _CONDA.findall(text)),
    )
