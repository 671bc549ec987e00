"""The torch build needs a newer driver

What it checks
    Whether the driver is new enough for the major version of CUDA that torch was built with. Only the major counts:
    every 12.x build runs on every driver from the first 12.x floor on, whatever "CUDA Version" nvidia-smi shows.

Why it matters
    Below the floor torch says "The NVIDIA driver on your system is too old" and torch.cuda.is_available() is False.

How to fix
    Either update the driver, or keep it and install a build of the same torch for an older CUDA major. The plan offers
    what changes least; where the GPU is too old for the newer driver or build, it says so.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import cuda_ceiling, cuda_works, numbering, version, version_fact
from cudadoctor.derive.libcuda import forward_compatibility
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CUDA, UNCLEAR, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD303",
    name="torch-needs-newer-driver",
    title="The torch build needs a newer driver",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=32,
)


_TOO_OLD = "symptom.driver_too_old"
_WORKS = "torch.cuda_available"


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind == UNCLEAR and not case.fact(_TOO_OLD).is_known:
        return case.undecided("cannot tell which CUDA torch was built with", ("torch.version", "torch.cuda"))
    if on_jetson(case):
        return case.skipped("a Jetson's driver belongs to its JetPack release and has numbers of its own")
    if build.kind not in (CUDA, UNCLEAR):
        return case.skipped("no torch built with CUDA")
    driver = case.derived(version)
    works = case.derived(cuda_works)
    if build.cuda is None and works:
        return case.passed("torch finds a GPU: its driver serves the CUDA that it was built with", (_WORKS,))
    if build.cuda is None:
        return _by_its_words(case) or case.undecided("cannot tell which CUDA torch was built with", ("torch.cuda",))
    if not driver.is_known and works:
        major = build.cuda.partition(".")[0]
        return case.passed(f"torch finds a GPU: its driver serves CUDA {major}.x", (_WORKS,))
    if not driver.is_known:
        reason = driver.reason or "no source tells it"
        return _by_its_words(case) or case.undecided(
            f"cannot tell the driver's version: {reason}", (version_fact(case),)
        )
    told = tuple(name for name in ("torch.version", "torch.cuda") if not case.fact(name).is_unknown)
    evidence = (version_fact(case), *(told or ("torch.version",)))
    verdict = case.matrix.driver_serves(driver.get(), numbering(case), build.cuda)
    major = build.cuda.partition(".")[0]
    compat = case.derived(forward_compatibility)
    if compat is not None and case.matrix.driver_serves(compat, "linux", build.cuda).answer == "yes":
        return case.passed(
            f"libcuda {compat} (forward compatibility) serves CUDA {major}.x on driver {driver.get()}",
            (*evidence, "driver.libcuda"),
        )
    if verdict.answer == "no" and works:
        # An image of NVIDIA's brings a libcuda for it, which a pasted text seldom shows.
        return case.passed(
            f"torch finds a GPU: a libcuda of its own serves CUDA {major}.x on driver {driver.get()}",
            (*evidence, _WORKS),
        )
    if verdict.answer == "no":
        return case.failed(
            f"torch {build.version} needs CUDA {major}, and driver {driver.get()} is too old for it"
            + (f" (it takes {verdict.needed} or newer)" if verdict.needed else ""),
            (*evidence, *((_TOO_OLD,) if case.fact(_TOO_OLD).is_known else ())),
            data={"driver": driver.get(), "cuda": build.cuda, "needed_driver": verdict.needed},
            fixes=(Remedy("install-torch", {"driver_for": int(major), "effect": {_TOO_OLD: None}}),),
            not_helping=_NOT_HELPING,
        )
    if verdict.answer == "unknown":
        ceiling = case.derived(cuda_ceiling)
        if ceiling.is_known and (numbers(ceiling.get()) or ()) >= (numbers(build.cuda) or (1 << 30,)):
            # A torch newer than the matrix: the driver itself says what it serves.
            return case.passed(f"driver {driver.get()} serves CUDA {ceiling.get()} by its own word", evidence)
        return case.undecided(verdict.reason, evidence)
    return case.passed(f"driver {driver.get()} serves every CUDA {major}.x build", evidence)


_NOT_HELPING = ("a CUDA toolkit (nvcc): torch brings its own runtime, and the driver stays too old",)


def _by_its_words(case: Case) -> Optional[Outcome]:
    """torch says "too old (found version 12020)": what it found is what its libcuda serves, mostly the driver's.

    A libcuda of another driver, found first, gives the same words (CD208): then its number is not the driver's.
    """
    if not case.fact(_TOO_OLD).is_known:
        return None
    found = str(case.value(_TOO_OLD).get("found") or "")
    cuda = f"{int(found) // 1000}.{int(found) % 1000 // 10}" if found.isdigit() else None
    build, ceiling, driver = case.derived(torch_build), case.derived(cuda_ceiling), case.derived(version)
    if cuda is None:
        return None
    if ceiling.is_known and numbers(ceiling.get()) != numbers(cuda):
        return case.undecided(
            f"torch found a driver for CUDA {cuda}, and this one serves {ceiling.get()}: another libcuda is in the way",
            (_TOO_OLD, "driver.smi_cuda"),
        )
    have, wanted = numbers(cuda) or (), numbers(build.cuda or "") or ()
    if wanted and (have[:1] > wanted[:1] or have >= wanted):
        return None
    shown = f"driver {driver.get()} serves" if driver.is_known else "the driver serves"
    needs = f"torch {build.version} needs CUDA {build.cuda}" if wanted else "this torch needs a newer CUDA"
    told = tuple(name for name in ("torch.cuda", "torch.version", version_fact(case)) if case.fact(name).is_known)
    return case.failed(
        f"{needs}, and {shown} CUDA {cuda}: it is too old for it",
        (_TOO_OLD, *told),
        # The text carries both numbers, and of CUDA 11 and later only another major says so.
        certainty=CERTAIN if wanted and driver.is_known else LIKELY,
        data={"cuda": build.cuda, "driver_cuda": cuda},
        # Where torch's own CUDA is not told it is a later one than what the driver serves.
        fixes=(
            Remedy(
                "install-torch",
                {"driver_for": wanted[0] if wanted else have[0] + 1, "effect": {_TOO_OLD: None}},
            ),
        ),
        not_helping=_NOT_HELPING,
    )
