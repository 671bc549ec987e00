"""The assembler or compiler is older than this GPU

What it checks
    Whether the ptxas inside Triton, or the nvcc of a build, knows the GPU that it is to make code for: by its own words
    ("Value 'sm_121a' is not defined for option 'gpu-name'", "Unsupported gpu architecture 'compute_120'"), else by
    Triton's version and the GPU.

Why it matters
    torch itself runs: its kernels are compiled already. torch.compile, vLLM and everything else that uses Triton fails
    when it compiles its first kernel, and a build with an old nvcc fails at once.

How to fix
    A newer Triton (with the torch that belongs to it), or the ptxas of a newer CUDA toolkit in its place, by
    TRITON_PTXAS_PATH. For a build: a newer toolkit, or a list of GPUs that the present one knows.

References
    https://github.com/triton-lang/triton
    https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/#gpu-feature-list
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.derive.coverage import visible_gpus
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.toolkit import nvcc_of_a_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Fix, Outcome, Remedy, Rule

RULE = Rule(
    id="CD319",
    name="bundled-ptxas-too-old",
    title="The assembler or compiler is older than this GPU",
    severity=INFO,
    blame=ENVIRONMENT,
    follows_from=("CD304",),
    precedence=38,
)

# Where a toolkit's ptxas stands when nobody has said where the toolkit is.
_USUAL = "/usr/local/cuda"


def judge(case: Case) -> Outcome:
    said = symptom(case, "ptxas_unknown_gpu", "nvcc_unknown_gpu", "nvrtc_unknown_gpu")
    if said is not None:
        return _reported(case, said)
    triton = case.fact("package.triton.version")
    if triton.is_absent:
        return case.skipped("no Triton")
    cards = [gpu for gpu in visible_gpus(case) if gpu.compute_capability.is_known]
    if not triton.is_known:
        if in_report(case):
            return case.skipped("no error speaks of an assembler that does not know the GPU")
        return case.undecided("cannot tell Triton's version", ("package.triton.version",))
    if not cards:
        return case.skipped("no GPU is known for which Triton would compile")
    for gpu in cards:
        capability = gpu.compute_capability.get()
        bundled = case.matrix.assembler(triton.get(), capability)
        first = _first_cuda(case, capability)
        if bundled is None or first is None:
            continue
        if (numbers(bundled.cuda) or ()) < (numbers(first) or ()):
            return case.failed(
                f"the ptxas inside triton {triton.get()} is of CUDA {bundled.cuda} and does not know the {gpu.label} "
                f"(CUDA {first}): torch.compile fails, torch itself runs",
                ("package.triton.version", *gpu.facts),
                certainty=LIKELY,
                data={"triton": triton.get(), "ptxas_cuda": bundled.cuda, "needed_cuda": first},
                fixes=(_other_ptxas(case, bundled.variable, first, {"package.triton.version": None}),),
            )
    return case.passed(f"triton {triton.get()} knows the {cards[0].label}", ("package.triton.version", *cards[0].facts))


def _first_cuda(case: Case, capability: str) -> Optional[str]:
    row = case.matrix.architecture(capability)
    return row.first_cuda if row is not None else None


def _capability(target: str) -> Optional[str]:
    """ "12.1" of sm_121a and of compute_121."""
    digits = re.search(r"_(\d{2,3})", target)
    return f"{digits.group(1)[:-1]}.{digits.group(1)[-1]}" if digits else None


def _reported(case: Case, said: Symptom) -> Outcome:
    target = said.get("target")
    capability = _capability(target) or next(
        (gpu.compute_capability.get() for gpu in visible_gpus(case) if gpu.compute_capability.is_known), None
    )
    row = case.matrix.architecture(capability) if capability else None
    first = row.first_cuda if row is not None else None
    gone = row is not None and row.last_cuda is not None and said.fact == "symptom.nvcc_unknown_gpu"
    shown = target or (f"compute capability {capability}" if capability else "this GPU")
    triton = case.value("package.triton.version")
    evidence: tuple[str, ...] = (said.fact,)
    nvcc = case.derived(nvcc_of_a_build).version
    if said.fact == "symptom.ptxas_unknown_gpu":
        what = f"the ptxas inside triton {triton}" if triton else "the ptxas that Triton brings"
        if triton:
            evidence = (*evidence, "package.triton.version")
    elif said.fact == "symptom.nvcc_unknown_gpu":
        what = f"nvcc {nvcc.get()}" if nvcc.is_known else "nvcc"
        if nvcc.is_known:
            evidence = (*evidence, *case.derived(nvcc_of_a_build).evidence)
        if gone and nvcc.is_known and _is_later(nvcc.get(), row.last_cuda if row is not None else None):
            return _dropped(case, said, what, shown, str(row.last_cuda) if row is not None else "", evidence)
    else:
        what = "the run-time compiler (NVRTC)"
    known = f": CUDA {first} is the first that does" if first else ""
    return case.failed(
        f"{what} does not know {shown}{known}",
        evidence,
        severity=ERROR,
        certainty=CERTAIN if target else LIKELY,
        data={"target": target or None, "needed_cuda": first},
        fixes=_fixes(case, said, first, capability),
        not_helping=("a newer driver: the assembler is part of Triton or of the toolkit, not of the driver",),
    )


def _is_later(nvcc: str, last: Optional[str]) -> bool:
    return last is not None and (numbers(nvcc) or ())[:2] > (numbers(last) or ())


def _dropped(case: Case, said: Symptom, what: str, shown: str, last: str, evidence: tuple[str, ...]) -> Outcome:
    """The other end: a toolkit that has dropped this GPU."""
    text = (
        f"Take {shown} out of the list of GPUs that the build is for (TORCH_CUDA_ARCH_LIST, CMAKE_CUDA_ARCHITECTURES), "
        f"or, where this machine's GPU is one of these, build with CUDA {last}, the last that has it."
    )
    return case.failed(
        f"{what} no longer knows {shown}: CUDA {last} was the last that did",
        evidence,
        severity=ERROR,
        data={"target": shown, "last_cuda": last},
        fixes=(
            Remedy(
                "manual",
                {"title": f"Build without {shown}", "text": text, "kind": "setting", "effect": {said.fact: None}},
            ),
        ),
    )


def _fixes(case: Case, said: Symptom, first: Optional[str], capability: Optional[str]) -> tuple[Fix, ...]:
    effect: dict[str, Any] = {said.fact: None}
    if said.fact == "symptom.ptxas_unknown_gpu":
        triton = case.value("package.triton.version")
        bundled = case.matrix.assembler(triton, capability) if triton and capability else None
        return (_other_ptxas(case, bundled.variable if bundled else "TRITON_PTXAS_PATH", first, effect),)
    if said.fact == "symptom.nvcc_unknown_gpu":
        version = {"version": first} if first else {}
        return (
            Remedy(
                "install-toolkit",
                {**version, "why": "Or leave this GPU out of TORCH_CUDA_ARCH_LIST and add +PTX", "effect": effect},
            ),
        )
    return (Remedy("install-torch", {"effect": effect}),)


def _other_ptxas(case: Case, variable: str, first: Optional[str], effect: dict[str, Any]) -> Remedy:
    """The ptxas of a toolkit that knows the GPU, where one is installed; else how to come by one."""
    wanted = numbers(first) if first else None
    for entry in case.value("toolkit.found", []):
        have = numbers(str(entry.get("version") or ""))
        if entry.get("nvcc") and wanted and have and have[:2] >= wanted:
            path = f"{entry['root']}/bin/ptxas"
            return Remedy("change-variable", {"name": variable, "value": path, "effect": effect})
    version = f" {first} or newer" if first else ", newer than the GPU"
    triton = case.value("package.triton.version")
    # Which of the two variables counts depends on Triton's release: where that is not known, both are set.
    names = [variable] if triton else ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]
    setting = " ".join(f"{name}={_USUAL}/bin/ptxas" for name in names)
    return Remedy(
        "manual",
        {
            "title": "Give Triton a ptxas that knows this GPU",
            "text": f"With a CUDA toolkit{version} installed: export {setting}. Or install the newest torch, whose "
            "Triton brings a newer one. Then delete ~/.triton/cache.",
            "kind": "setting",
            "effect": effect,
        },
    )
