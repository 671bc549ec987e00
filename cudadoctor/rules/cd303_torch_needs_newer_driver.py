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

from cudadoctor.derive.driver import cuda_ceiling, numbering, version, version_fact
from cudadoctor.derive.libcuda import forward_compatibility
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CUDA, UNCLEAR, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Remedy, Rule
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


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell which CUDA torch was built with", ("torch.version", "torch.cuda"))
    if build.kind != CUDA or build.cuda is None:
        return case.skipped("no torch built with CUDA")
    if on_jetson(case):
        return case.skipped("a Jetson's driver belongs to its JetPack release and has numbers of its own")
    driver = case.derived(version)
    if not driver.is_known:
        reason = driver.reason or "no source tells it"
        return case.undecided(f"cannot tell the driver's version: {reason}", (version_fact(case),))
    evidence = (version_fact(case), "torch.version", "torch.cuda")
    verdict = case.matrix.driver_serves(driver.get(), numbering(case), build.cuda)
    major = build.cuda.partition(".")[0]
    compat = case.derived(forward_compatibility)
    if compat is not None and case.matrix.driver_serves(compat, "linux", build.cuda).answer == "yes":
        return case.passed(
            f"libcuda {compat} (forward compatibility) serves CUDA {major}.x on driver {driver.get()}",
            (*evidence, "driver.libcuda"),
        )
    if verdict.answer == "no":
        return case.failed(
            f"torch {build.version} needs CUDA {major}, and driver {driver.get()} is too old for it"
            + (f" (it takes {verdict.needed} or newer)" if verdict.needed else ""),
            evidence,
            data={"driver": driver.get(), "cuda": build.cuda, "needed_driver": verdict.needed},
            fixes=(Remedy("install-torch", {}),),
            not_helping=("a CUDA toolkit (nvcc): torch brings its own runtime, and the driver stays too old",),
        )
    if verdict.answer == "unknown":
        ceiling = case.derived(cuda_ceiling)
        if ceiling.is_known and (numbers(ceiling.get()) or ()) >= (numbers(build.cuda) or (1 << 30,)):
            # A torch newer than the matrix: the driver itself says what it serves.
            return case.passed(f"driver {driver.get()} serves CUDA {ceiling.get()} by its own word", evidence)
        return case.undecided(verdict.reason, evidence)
    return case.passed(f"driver {driver.get()} serves every CUDA {major}.x build", evidence)
