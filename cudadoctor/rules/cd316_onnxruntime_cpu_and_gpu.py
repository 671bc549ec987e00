"""onnxruntime runs on the CPU

What it checks
    Whether onnxruntime (for the CPU) is installed beside onnxruntime-gpu, or in its place; and whether the CUDA that
    onnxruntime-gpu was built for is one that the driver serves and of which libraries are there.

Why it matters
    Both packages fill the same folder: whichever came last wins, and removing one breaks the other. Then
    get_available_providers() has no CUDAExecutionProvider. A release of onnxruntime-gpu loads the libraries of one
    major of CUDA; beside those of another it falls back to the CPU with no more than a warning.

How to fix
    Uninstall both, then install onnxruntime-gpu alone, in a release for the CUDA major that this machine can use.

References
    https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html
    https://onnxruntime.ai/docs/install/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.gpus import NONE, presence
from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.wheel import torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD316",
    name="onnxruntime-cpu-and-gpu",
    title="onnxruntime runs on the CPU",
    # A warning: nobody has tried, and the GPU package may have come last.
    severity=WARNING,
    blame=ENVIRONMENT,
    # A library that is not there keeps the provider from loading.
    follows_from=("CD210",),
    precedence=38,
)

_CPU, _GPU = "package.onnxruntime.version", "package.onnxruntime-gpu.version"
# What a run has said, the plainest first.
_NO_PROVIDER = ("symptom.onnxruntime_cpu_only", "symptom.onnxruntime_no_cuda")
_LIBRARY = "symptom.onnxruntime_provider_library"
_CUDA_LIBRARY = pattern(r"(?:libcublas(?:Lt)?\.so\.|libcudart\.so\.|cublas(?:Lt)?64_|cudart64_)([0-9]{2})")


def judge(case: Case) -> Outcome:
    cpu, gpu = case.fact(_CPU), case.fact(_GPU)
    said = next((name for name in _NO_PROVIDER if case.fact(name).is_known), None)
    library = case.fact(_LIBRARY)
    if not cpu.is_known and not gpu.is_known and said is None and not library.is_known:
        return case.skipped("no onnxruntime is seen")
    if case.derived(presence).state == NONE:
        return case.skipped("onnxruntime on the CPU suits a machine without an NVIDIA GPU")
    if cpu.is_known and gpu.is_known:
        return _both(case, said)
    if cpu.is_known and said is not None and not gpu.is_unknown:
        return _failed(
            case,
            f"onnxruntime {cpu.get()} is the build for the CPU",
            (_CPU, said),
            CERTAIN,
            ERROR,
            ["onnxruntime"],
        )
    if cpu.is_known and said is not None:
        return _failed(
            case,
            f"onnxruntime {cpu.get()} is the build for the CPU; the one for GPUs is onnxruntime-gpu",
            (_CPU, said),
            LIKELY,
            ERROR,
            ["onnxruntime"],
        )
    if gpu.is_known:
        return _majors(case, str(gpu.get()), said)
    if said == _NO_PROVIDER[0] or library.is_known or said is not None:
        shown = said or _LIBRARY
        return case.undecided("onnxruntime runs on the CPU; which of its packages are installed is not known", (shown,))
    return case.passed(f"onnxruntime {cpu.get()} is for the CPU, alone, and as far as is known meant so", (_CPU,))


def _both(case: Case, said: Optional[str]) -> Outcome:
    return _failed(
        case,
        f"onnxruntime {case.value(_CPU)} and onnxruntime-gpu {case.value(_GPU)} are both installed: they fill the same "
        "folder, and the one for the CPU may win",
        (_CPU, _GPU, *((said,) if said else ())),
        CERTAIN if said else LIKELY,
        # Who shows both in a report has found onnxruntime on the CPU.
        ERROR if said or in_report(case) else None,
        ["onnxruntime", "onnxruntime-gpu"],
    )


def _majors(case: Case, installed: str, said: Optional[str]) -> Outcome:
    """onnxruntime-gpu alone: the CUDA that it was built for against driver and libraries."""
    release = _release(case, installed)
    wanted = release[0] if release else None
    named = _CUDA_LIBRARY.search(" ".join(map(str, case.value(_LIBRARY, {}).values())))
    if named is not None:
        wanted = named.group(1).lstrip("0") or wanted
    if wanted is None:
        return case.undecided(f"which CUDA onnxruntime-gpu {installed} was built for is not known", (_GPU,))
    driver = case.derived(version)
    if driver.is_known:
        verdict = case.matrix.driver_serves(driver.get(), numbering(case), f"{wanted}.0")
        if verdict.answer == "no":
            return _failed(
                case,
                f"onnxruntime-gpu {installed} is for CUDA {wanted}, and driver {driver.get()} is too old for it",
                (_GPU, version_fact(case)),
                CERTAIN if release else LIKELY,
                ERROR if said or named else None,
                ["onnxruntime-gpu"],
            )
    has, fact = _libraries(case)
    if has is not None and has != wanted and (said or named is not None):
        return _failed(
            case,
            f"onnxruntime-gpu {installed} is for CUDA {wanted}, and the libraries here are of CUDA {has}",
            (_GPU, fact, *((said,) if said else ()), *((_LIBRARY,) if named else ())),
            LIKELY,
            ERROR,
            ["onnxruntime-gpu"],
        )
    if said or named:
        return case.undecided(
            f"onnxruntime-gpu {installed} is for CUDA {wanted} and runs on the CPU; which libraries are there is not "
            "known",
            (_GPU, said or _LIBRARY),
        )
    return case.passed(f"onnxruntime-gpu {installed} is for CUDA {wanted}", (_GPU,))


def _release(case: Case, installed: str) -> Optional[tuple[str, ...]]:
    """The CUDA majors of that release: its own row, else the nearest older one."""
    have = numbers(installed)
    if have is None:
        return None
    for row in case.matrix.framework_releases("onnxruntime-gpu"):
        if (numbers(row.version) or ()) <= have:
            return row.cuda
    return None


def _libraries(case: Case) -> tuple[Optional[str], str]:
    """The CUDA major of the libraries that are at hand, and the fact that tells: NVIDIA's wheels, else torch's, else a
    toolkit."""
    for major in ("13", "12", "11"):
        for name in (f"nvidia-cublas-cu{major}", f"nvidia-cuda-runtime-cu{major}"):
            if case.fact(f"package.{name}.version").is_known:
                return major, f"package.{name}.version"
    cuda = case.derived(torch_build).cuda
    if cuda is not None:
        return cuda.partition(".")[0], "torch.cuda" if case.fact("torch.cuda").is_known else "torch.version"
    nvcc = case.value("toolkit.nvcc_on_path_version")
    return (str(nvcc).partition(".")[0], "toolkit.nvcc_on_path_version") if nvcc else (None, "")


def _failed(
    case: Case,
    message: str,
    evidence: tuple[str, ...],
    certainty: str,
    severity: Optional[str],
    gone: list[str],
) -> Outcome:
    effect = {_CPU: None, **dict.fromkeys((*_NO_PROVIDER, _LIBRARY))}
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=severity,
        data={"installed": {name: case.value(name) for name in (_CPU, _GPU)}},
        fixes=(
            Remedy(
                "install-framework",
                {
                    "package": "onnxruntime-gpu",
                    "version": str(case.value(_GPU, "")) if _GPU.split(".")[1] not in gone or len(gone) > 1 else "",
                    "remove": gone,
                    "instead": "onnxruntime-gpu[cuda,cudnn]",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("uninstalling only one of the two: it takes files of the other along",) if len(gone) > 1 else (),
    )
