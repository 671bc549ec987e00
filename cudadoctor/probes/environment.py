"""Environment variables that matter to CUDA and to the patient's Python. All others, and PATH, stay unread.

Addresses, tokens and keys never matter here; a GPU's UUID is shown as GPU-* and MIG-*, since a report carries none.
"""

from __future__ import annotations

import re
from typing import Any

from cudadoctor.model.fact import Fact, absent, known
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.system.port import System

# Looked for by name: absent where they are not set.
_NAMES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_REQUIRE_CUDA",
    "NVIDIA_DISABLE_REQUIRE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_OVERRIDE_CUDA",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCH_CUDA_ARCH_LIST",
    "UV_TORCH_BACKEND",
    "TRITON_PTXAS_PATH",
    "SLURM_JOB_ID",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
    "SLURM_GPUS_ON_NODE",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
)

# Shown where they are set, whatever the rest of their names.
_PREFIXES = ("CUDA_", "CUDNN_", "NVIDIA_", "PYTORCH_", "TORCH_", "NCCL_", "CONDA_OVERRIDE_", "TRITON_", "XLA_PYTHON_")

# Parts of names whose values may be secret or personal.
_SECRET = ("TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL", "AUTH", "URL", "PROXY", "USER", "EMAIL", "API", "LICENSE")
# No value of these is long; one that is, is not what its name says.
_LONGEST = 4096


def look(system: System) -> dict[str, Fact[Any]]:
    facts: dict[str, Fact[Any]] = {f"env.{name}": _shown(system.variable(name)) for name in _NAMES}
    names = system.variable_names()
    for name in names.value or ():
        spelled = name.upper() if system.platform == "windows" else name
        if (
            spelled.startswith(_PREFIXES)
            and f"env.{spelled}" not in facts
            and not any(part in spelled for part in _SECRET)
            and spelled.isascii()
            and spelled.replace("_", "").isalnum()
        ):
            facts[f"env.{spelled}"] = _shown(system.variable(name))
    return facts


def _shown(variable: Fact[str]) -> Fact[str]:
    if not variable.is_known:
        return variable if variable.is_unknown else absent(variable.source)
    value = variable.get()[:_LONGEST]
    if "GPU-" in value or "MIG-" in value:
        value = re.sub(r"\b(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]*", r"\1-*", value)
    return known(value, variable.source)


PROBE = Probe("environment", EVERYWHERE, ("env.*",), look)
