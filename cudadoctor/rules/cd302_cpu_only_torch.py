"""torch was built without CUDA

What it checks
    Whether the installed torch is a CUDA build at all, where this machine has an NVIDIA GPU or one was asked for. This
    is the third of the three steps to take when torch.cuda.is_available() is False.

Why it matters
    A CPU build never sees a GPU, whatever driver and toolkit are installed. PyPI's torch for Windows and macOS is
    always a CPU build; on Linux it comes from the CPU index, from a lock file, or from conda.

How to fix
    Install the same version from the index of a CUDA variant that fits GPU and driver. Name the local version
    (torch==2.6.0+cu126): pip takes an installed 2.6.0+cpu for a good 2.6.0 and would leave it there.

References
    https://pytorch.org/get-started/locally/
    https://pytorch.org/get-started/previous-versions/
"""

from __future__ import annotations

from cudadoctor.derive.gpus import NONE, PRESENT, expected, gpus, presence
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CPU, MISSING, ROCM, UNCLEAR, UNTOLD, TorchBuild, platform_key, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD302",
    name="cpu-only-torch",
    title="torch was built without CUDA",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    follows_from=("CD314", "CD313"),
    precedence=31,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind == MISSING:
        return case.skipped("torch is not installed")
    if build.kind == UNCLEAR:
        if build.version is None and case.fact(_CPU_SAID).is_known and case.derived(expected).state == PRESENT:
            return case.failed(
                "the text says that the installation gave a torch without CUDA",
                (_CPU_SAID,),
                certainty=POSSIBLE,
                fixes=(Remedy("install-torch", {"effect": {_CPU_SAID: None}}),),
                not_helping=_NOT_HELPING,
            )
        return case.undecided("cannot tell whether torch was built with CUDA", ("torch.version", "torch.cuda"))
    evidence: tuple[str, ...] = ("torch.version", "torch.hip" if build.kind == ROCM else "torch.cuda")
    if build.kind not in (CPU, ROCM):
        return case.passed(f"torch {build.version} is built for CUDA {build.cuda}", evidence)
    what = "for AMD's ROCm" if build.kind == ROCM else "without CUDA"
    said = tuple(name for name in _SAID if case.fact(name).is_known and case.value(name) is not True)
    if build.version == UNTOLD:
        evidence = tuple(name for name in (*said, "torch.cuda") if not case.fact(name).is_unknown) or evidence
    seen = case.derived(expected)
    if seen.state == NONE:
        return case.skipped(f"torch {build.version} is built {what}, which suits a machine without an NVIDIA GPU")
    if seen.state != PRESENT:
        return case.undecided(
            f"torch {build.version} is built {what}; whether there is a GPU to use is not known", evidence
        )
    if seen is not case.derived(presence):
        if build.kind == ROCM:
            return case.skipped(f"torch {build.version} is built {what}, and the text shows no NVIDIA GPU")
        if not said and case.fact(_CPU_WANTED).is_known:
            return case.skipped(f"torch {build.version} is built {what}, and the program is started for the processor")
        return case.failed(
            f"torch {build.version} is built {what}: it cannot use an NVIDIA GPU",
            tuple(dict.fromkeys((*evidence, *said))),
            # A report that shows no GPU: who finds that CUDA is not available looks for one.
            certainty=LIKELY if said else POSSIBLE,
            data={"torch": build.version},
            fixes=(Remedy("install-torch", {"effect": _cured(said)}),),
            not_helping=_NOT_HELPING,
        )
    found = case.derived(gpus)
    card = f"the {found[0].label}" if found else "an NVIDIA GPU"
    if found and not on_jetson(case) and _no_build_has_code_for_any(case):
        return case.skipped(f"torch {build.version} is built {what}, and no CUDA build has code for {card}")
    # Beside a card of AMD's, a ROCm build may be meant as it is.
    meant = build.kind == ROCM and "1002" in case.value("pci.other_display", [])
    return case.failed(
        f"torch {build.version} is built {what}: it cannot use {card} of this machine",
        (*evidence, *seen.evidence),
        certainty=LIKELY if meant or _is_inferred(case, build) else CERTAIN,
        data={"torch": build.version},
        fixes=(Remedy("install-torch", {"effect": _cured(said)}),),
        not_helping=_NOT_HELPING,
    )


_CPU_SAID = "symptom.cpu_build_said"
_CPU_WANTED = "symptom.cpu_wanted"
_NOT_HELPING = ("a CUDA toolkit (nvcc) or another driver: a CPU build never looks for a GPU",)
# What a run says of a build without CUDA.
_SAID = ("symptom.torch_not_compiled_with_cuda", "symptom.xformers_built_for_another_torch", "torch.cuda_available")


def _is_inferred(case: Case, build: TorchBuild) -> bool:
    """Whether only the place that it came from, by its version, says so."""
    return not case.fact("torch.cuda").is_absent and "+" not in str(build.version) and build.kind == CPU


def _cured(said: tuple[str, ...]) -> dict[str, object]:
    return {name: None for name in said if name.startswith("symptom.")}


def _no_build_has_code_for_any(case: Case) -> bool:
    """Whether the matrix knows no build, of any release, for any of the cards: then the CPU build is the right one."""
    platform = case.derived(platform_key)
    capabilities = [gpu.compute_capability for gpu in case.derived(gpus)]
    if platform is None or any(not capability.is_known for capability in capabilities):
        return False
    builds = [
        build
        for release in case.matrix.torch_releases()
        for build in release.builds(platform)
        if build.cuda is not None and build.seen and not build.archs_guessed
    ]
    own = {capability.get() for capability in capabilities}
    return bool(builds) and all(
        case.matrix.build_runs_on(build, capability).answer == "no" for capability in own for build in builds
    )
