"""nvidia-smi fails and CUDA works

What it checks
    Whether a program reports that CUDA works (torch.cuda.is_available() is True, or a GPU that torch named) while
    nvidia-smi or NVML fails in the same environment, for another reason than a version mismatch (CD105) or a GPU that
    has been lost (CD113).

Why it matters
    NVML (libnvidia-ml, nvidia-smi) and CUDA (libcuda) are two libraries, and each can fail alone. Programs run; what
    asks NVML does not: monitors, exporters, and whatever counts GPUs through it.

How to fix
    In a container, let the capability "utility" in (NVIDIA_DRIVER_CAPABILITIES=compute,utility), which brings
    nvidia-smi and libnvidia-ml along, and start it again. Elsewhere, look whether an old copy of nvidia-smi or
    libnvidia-ml comes first on PATH or LD_LIBRARY_PATH, and install the driver's packages again.

References
    https://docs.nvidia.com/deploy/nvml-api/
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.surroundings import in_container, in_report
from cudadoctor.rules.api import LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD121",
    name="nvml-broken-cuda-fine",
    title="nvidia-smi fails and CUDA works",
    severity=WARNING,
    blame=MACHINE,
    follows_from=("CD105", "CD113", "CD702"),
    precedence=70,
)

_WORKS = "torch.cuda_available"
_SYMPTOMS = ("symptom.nvml_unknown_error", "symptom.nvml_library_missing", "symptom.smi_not_found")
_FAILURES = ("driver.nvml_error", "driver.smi_failure", *_SYMPTOMS)


def judge(case: Case) -> Outcome:
    works = case.fact(_WORKS)
    failing = _failing(case)
    if works.value is not True:
        if failing and works.is_unknown and in_report(case):
            return case.undecided("nvidia-smi fails; whether CUDA works is not told", (failing, _WORKS))
        return case.skipped("nobody has told whether CUDA works" if works.is_unknown else "CUDA does not work")
    if failing is None:
        return case.passed("CUDA works, and nothing is told of NVML", (_WORKS,))
    words = "nvidia-smi is not found" if failing == "symptom.smi_not_found" else "nvidia-smi or NVML fails"
    text = (
        "Look whether an old nvidia-smi or libnvidia-ml comes first on PATH or LD_LIBRARY_PATH; else install the "
        "driver again."
    )
    if in_container(case):
        text = "Start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility, which brings nvidia-smi and libnvidia-ml."
    effect = {name: None for name in _FAILURES if case.fact(name).is_known}
    return case.failed(
        f"{words}, and CUDA works: programs run, and only what asks NVML does not",
        (failing, _WORKS),
        certainty=LIKELY,
        fixes=(Remedy("manual", {"title": "Mend NVML", "text": text, "kind": "driver", "effect": effect}),),
        not_helping=("another torch build: CUDA works",),
    )


def _failing(case: Case) -> Optional[str]:
    for name in _FAILURES:
        if case.fact(name).is_known:
            return name
    return None
