"""PTX that the driver cannot compile, or compiles at every start

What it checks
    Whether a program met error 222 ("the provided PTX was compiled with an unsupported toolchain"), and which CUDA made
    the PTX and which one the driver serves; and whether one that takes minutes to start does so because the driver
    compiles PTX and may not keep the result.

Why it matters
    Within one CUDA major, ready machine code runs on every driver. PTX is the exception: the driver compiles it, and
    takes none of a newer CUDA than its own, not even of a newer minor. torch.cuda.is_available() stays True. What it
    has compiled it keeps in ~/.nv/ComputeCache, unless CUDA_CACHE_DISABLE, a size or a read-only home forbids it.

How to fix
    Update the driver to the one of that CUDA; or take a build for the driver's CUDA, or one with machine code for this
    GPU. A vGPU guest and a container cannot choose their driver: there only the second way is open.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.coverage import coverage
from cudadoctor.derive.driver import cuda_ceiling, numbering, version, version_fact
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.toolkit import nvcc_of_a_build
from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Fix, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD312",
    name="ptx-newer-than-driver",
    title="PTX that the driver cannot compile, or compiles at every start",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD303",),
    precedence=33,
)


class _Maker(NamedTuple):
    """A CUDA that may have made the PTX, in words, and the facts that tell it."""

    cuda: str
    what: str
    evidence: tuple[str, ...]


def judge(case: Case) -> Outcome:
    said = symptom(case, "ptx_unsupported_toolchain")
    driver = case.derived(version)
    makers = _makers(case)
    if said is not None:
        return _reported(case, said, makers)
    broken = symptom(case, "kernel_image_invalid")
    if broken is not None:
        newer = _newer(case, makers)
        if newer is None:
            return case.undecided(
                "the driver could not load a piece of GPU code, for a reason not known", (broken.fact,)
            )
        return _failed(case, broken, newer, LIKELY)
    slow = _slow_start(case)
    if slow is not None:
        return slow
    if not makers or on_jetson(case):
        return case.skipped("nothing here makes PTX that is known")
    if not driver.is_known:
        return case.skipped("no error about PTX, and the driver's version is not known")
    if _newer(case, makers) is None:
        return case.passed(
            f"driver {driver.get()} compiles PTX of CUDA {makers[0].cuda}", (version_fact(case), *makers[0].evidence)
        )
    return case.skipped("the driver would not compile newer PTX, and nothing asked it to")


_CACHE = ("CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_PATH")


def _slow_start(case: Case) -> Optional[Outcome]:
    """A start that takes minutes, where PTX explains it: the cache's variables are set, or PTX is all there is."""
    said = symptom(case, "slow_start")
    off = str(case.value("env.CUDA_CACHE_DISABLE") or "0") not in ("", "0")
    if said is None:
        return None
    named = [f"env.{name}" for name in _CACHE if case.fact(f"env.{name}").is_known]
    by_ptx = [entry for entry in case.derived(coverage) if entry.answer == "likely"]
    if not named and not by_ptx:
        return None
    if off:
        why = "CUDA_CACHE_DISABLE forbids the driver to keep what it compiles"
    elif by_ptx:
        why = f"there is only PTX for the {by_ptx[0].gpu.label}"
    else:
        why = "the driver may not keep what it has compiled"
    return case.failed(
        f"each start takes minutes, as where the driver compiles PTX anew: {why}",
        (said.fact, *named, *(by_ptx[0].gpu.facts if by_ptx else ())),
        severity=WARNING,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Let the driver keep what it compiles",
                    "text": "In the shell that starts the program: export CUDA_CACHE_DISABLE=0 "
                    "CUDA_CACHE_MAXSIZE=4294967296, and see that ~/.nv/ComputeCache (or CUDA_CACHE_PATH) can be "
                    "written and outlives the start (in a container: a volume). A build with machine code for this "
                    "GPU needs no cache.",
                    "kind": "setting",
                    "effect": {said.fact: None},
                },
            ),
        ),
        not_helping=("a faster disk or a newer driver: the time goes into compiling",),
    )


def _makers(case: Case) -> tuple[_Maker, ...]:
    """The CUDAs at hand that PTX can come from: torch's, and the toolkit's."""
    build = case.derived(torch_build)
    nvcc = case.derived(nvcc_of_a_build)
    found = []
    if build.kind == CUDA and build.cuda is not None:
        found.append(_Maker(build.cuda, f"torch {build.version}", ("torch.version", "torch.cuda")))
    if nvcc.version.is_known:
        found.append(_Maker(str(nvcc.version.get()), "the CUDA toolkit", nvcc.evidence))
    return tuple(found)


def _newer(case: Case, makers: tuple[_Maker, ...]) -> Optional[_Maker]:
    """The newest of these CUDAs that is newer than what the driver compiles."""
    ceiling = case.derived(cuda_ceiling)
    if not ceiling.is_known:
        return None
    limit = (numbers(ceiling.get()) or ())[:2]
    newer = [maker for maker in makers if (numbers(maker.cuda) or ())[:2] > limit]
    return max(newer, key=lambda maker: numbers(maker.cuda) or ()) if newer else None


def _reported(case: Case, said: Symptom, makers: tuple[_Maker, ...]) -> Outcome:
    newer = _newer(case, makers)
    return _failed(case, said, newer, CERTAIN if newer is not None or said.get("ptx") else LIKELY)


def _failed(case: Case, said: Symptom, newer: Optional[_Maker], certainty: str) -> Outcome:
    driver, ceiling = case.derived(version), case.derived(cuda_ceiling)
    evidence: tuple[str, ...] = (said.fact,)
    shown = f"driver {driver.get()}" if driver.is_known else "the driver"
    serves = f" (CUDA {ceiling.get()})" if ceiling.is_known else ""
    if driver.is_known:
        evidence = (*evidence, version_fact(case))
    if newer is not None:
        made = f"made by CUDA {_short(newer.cuda)} ({newer.what})"
        evidence = (*evidence, *newer.evidence)
    elif said.get("ptx"):
        made = f"of version {said.get('ptx')}; it takes up to {said.get('newest')}"
    else:
        made = "made by a newer CUDA"
    return case.failed(
        f"{shown}{serves} cannot compile PTX {made}: error 222",
        evidence,
        certainty=certainty,
        data={"driver": driver.value, "driver_cuda": ceiling.value, "ptx_cuda": newer.cuda if newer else None},
        fixes=_fixes(case, said, newer),
        not_helping=(
            "another CUDA toolkit beside it: the driver compiles the PTX, not the toolkit",
            "that CUDA's majors fit: minor-version compatibility holds for machine code, not for PTX",
        ),
    )


def _short(cuda: str) -> str:
    return ".".join(cuda.split(".")[:2])


def _fixes(case: Case, said: Symptom, newer: Optional[_Maker]) -> tuple[Fix, ...]:
    effect: dict[str, Any] = {said.fact: None}
    branch = _branch_for(case, newer.cuda) if newer is not None else None
    ceiling = case.derived(cuda_ceiling)
    limit = f"CUDA {ceiling.get()}" if ceiling.is_known else "the CUDA that nvidia-smi shows"
    why = (
        f"The other way: take a build of the program for {limit} or older, or build it with machine code for this GPU "
        "(nvcc -gencode arch=compute_XY,code=sm_XY; for torch extensions TORCH_CUDA_ARCH_LIST without +PTX)."
    )
    if branch is not None:
        return (Remedy("update-driver", {"minimum_branch": branch, "why": why, "effect": effect}),)
    driver = case.derived(version)
    if driver.is_known:
        # Which CUDA made it is not known: any newer driver serves more.
        return (Remedy("update-driver", {"why": why, "effect": effect}),)
    return (
        Remedy(
            "manual",
            {
                "title": "Bring the driver and the PTX to one CUDA",
                "text": f"Update the driver to the branch of the CUDA that made the program. {why}",
                "kind": "driver",
                "effect": effect,
            },
        ),
    )


def _branch_for(case: Case, cuda: str) -> Optional[int]:
    """The first branch whose driver serves that CUDA by itself."""
    wanted = (numbers(cuda) or ())[:2]
    serving = [row for row in case.matrix.branches() if row.cuda and (numbers(row.cuda) or ())[:2] >= wanted]
    if not serving or numbering(case) not in ("linux", "windows"):
        return None
    return min(row.linux for row in serving)
