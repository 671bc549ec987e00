r"""What `python -m torch.utils.collect_env` prints (torch 1.0 to 2.15), and vLLM's program of the same name, also where
it has all run together into one line:

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

vLLM's since 0.9 parts it by titles in lines of equals signs, and pads the labels: "PyTorch version     : 2.7.0+cu126".

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
    "XPU used to build PyTorch",
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
LABELS = frozenset(_LABELS)
_AT_LABEL = re.compile(r"(?:(?<=\s)|^)(" + "|".join(map(re.escape, _LABELS)) + r")[ \t]*:(?=\s|$)", re.MULTILINE)
_GPU = re.compile(
    r"GPU (\d{1,3}): (\S.{0,120}?)(?=\s{1,200}GPU \d{1,3}: |\s{1,200}MIG \d|\s{1,200}={5}|[ \t]{0,200}(?:\n|$))"
)
_MIG_CHILD = re.compile(r"\s{1,200}MIG \d\S* +Device +\d+:")
_LIBRARY = re.compile(r"\[pip3?\] ([A-Za-z0-9][\w.-]*)==([\w.!+-]+)")
_CONDA = re.compile(r"\[conda\] ([a-z0-9][\w.-]*)[ \t]+(\d[\w.!+]*)[ \t]+([\w.]+)(?:[ \t]+([\w./-]+))?")

NOTHING = ("could not collect", "n/a", "no cuda", "none", "")


class CondaEntry(NamedTuple):
    name: str
    version: str
    build: str
    channel: str | None


class CollectEnv(NamedTuple):
    """The values by label, each as printed; GPUs as (number, name); the numbers of those that are divided by MIG;
    packages that pip and conda list."""

    values: Mapping[str, str]
    gpus: tuple[tuple[int, str], ...]
    divided: tuple[int, ...]
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
    gpus: list[tuple[int, str]] = []
    divided: list[int] = []
    for label, value in zip(parts[1::2], parts[2::2]):
        if label in values:
            continue
        if label == "GPU models and configuration":
            body = value if flat else value.split("\n\n")[0]
            for match in _GPU.finditer(body):
                gpus.append((int(match.group(1)), match.group(2).strip()))
                if _MIG_CHILD.match(body, match.end()):
                    divided.append(gpus[-1][0])
            values[label] = body.strip()
        elif label in ("CPU", "Versions of relevant libraries", "GPU Topology"):
            values[label] = ""
        else:
            # Where all has run together, one of vLLM's titles may stand between this value and the next label.
            values[label] = (value.partition("=====")[0] if flat else value.partition("\n")[0]).strip()
    if not {"PyTorch version", "Is CUDA available", "CUDA used to build PyTorch"} & set(values):
        return None
    return CollectEnv(
        values,
        tuple(gpus),
        tuple(divided),
        tuple(dict.fromkeys(_LIBRARY.findall(text))),
        tuple(CondaEntry(name, version, build, at or None) for name, version, build, at in _CONDA.findall(text)),
    )
