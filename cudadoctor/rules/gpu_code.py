"""Whether torch holds code for each GPU: what CD304 (too new) and CD305 (dropped) have in common."""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.coverage import NEWER, OLDER, Coverage, coverage
from cudadoctor.derive.driver import version_fact
from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.wheel import CUDA, UNCLEAR, UNTOLD, TorchBuild, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, LIKELY, WARNING, Case, Outcome, Remedy


def judge_gap(case: Case, gaps: tuple[str, ...]) -> Outcome:
    """Fails for GPUs that torch has no code for and that stand to its list as `gaps` says.

    Where another visible GPU is served it is a warning: the machine is of use.
    """
    build = case.derived(torch_build)
    if build.kind == UNCLEAR:
        return _by_words(case, gaps) or case.undecided("cannot tell which build of torch this is", ("torch.version",))
    if build.kind != CUDA:
        return case.skipped("no torch built with CUDA")
    covered = case.derived(coverage)
    if not covered:
        return _by_words(case, gaps) or case.skipped("no GPU to hold against torch's list")
    left_out = [entry for entry in covered if entry.answer == "no" and entry.gap in gaps]
    if left_out:
        return _failed(case, build, covered, left_out)
    unclear = [entry for entry in covered if entry.answer == "unknown"]
    if unclear:
        found = _by_words(case, gaps)
        if found is not None:
            return found
        return case.undecided(
            f"cannot tell whether torch {build.version} has code for the {unclear[0].gpu.label}: {unclear[0].reason}",
            (build.sass_fact, *unclear[0].gpu.facts),
        )
    names = ", ".join(dict.fromkeys(entry.gpu.label for entry in covered if entry.answer != "no"))
    if not names:
        return case.skipped("the gap is of the other kind")
    by_ptx = any(entry.answer == "likely" for entry in covered)
    how = " (through PTX that the driver compiles: slow at first)" if by_ptx else ""
    return case.passed(f"torch {build.version} has code for {names}{how}", (build.sass_fact, *covered[0].gpu.facts))


_NO_IMAGE = "symptom.no_kernel_image"
_NOT_COMPATIBLE = "symptom.capability_not_compatible"
_TOO_OLD = "symptom.gpu_too_old_for_torch"
_TRITON = "symptom.gpu_too_old_for_triton"


def _by_words(case: Case, gaps: tuple[str, ...]) -> Optional[Outcome]:
    """Where torch's list is not known: what a run has said, and whether the GPU is one that builds tend to lack.

    A warning about a capability alone is harmless where torch has code of the same major (12.1 on sm_120).
    """
    said = next((name for name in (_NOT_COMPATIBLE, _NO_IMAGE, _TOO_OLD) if case.fact(name).is_known), None)
    triton = case.fact(_TRITON).is_known
    if said is None and not (triton and OLDER in gaps):
        return None
    capability, label, facts = _capability(case)
    if triton and OLDER in gaps:
        return _too_old_for_triton(case, label, facts)
    if capability is None or said is None:
        return None
    gap = _usual_gap(case, capability)
    if gap is None or gap not in gaps or (said == _TOO_OLD and gap == NEWER and _within_major(case, capability)):
        return None
    target = "sm_" + capability.replace(".", "")
    build = case.derived(torch_build)
    if gap == NEWER and knows_gpu(case, capability):
        return None  # that of CD405: it was another torch that failed
    which = f"torch {build.version}" if build.kind == CUDA and build.version != UNTOLD else "this torch"
    why = "it is older than this GPU" if gap == NEWER else "newer builds have dropped it"
    bound = case.matrix.last_branch_for(capability) if gap == OLDER else None
    return case.failed(
        f"{which} has no code for the {label} ({target}): {why}",
        (said, *facts),
        certainty=LIKELY,
        data={"gpus": [{"name": label, "target": target}]},
        fixes=(Remedy("install-torch", {"effect": {said: None}}),),
        not_helping=(
            f"a newer driver: {bound.branch} is the last branch for this card, and none brings code to torch"
            if bound is not None
            else "a newer driver: no driver brings code that torch was built without",
        ),
    )


def _capability(case: Case) -> tuple[Optional[str], str, tuple[str, ...]]:
    """Compute capability and name of the GPU that is spoken of, and the facts that tell them."""
    for name, key in ((_NOT_COMPATIBLE, "target"), (_TOO_OLD, "capability"), (_TRITON, "capability")):
        value = case.value(name, {})
        text = str(value.get(key) or "")
        if text.startswith("sm_") and text[3:].isdigit():
            text = f"{text[3:-1]}.{text[-1]}"
        if numbers(text) is not None and len(numbers(text) or ()) == 2:
            named = [gpu.label for gpu in case.derived(gpus) if gpu.compute_capability.value == text]
            return text, named[0] if named else str(value.get("gpu") or "GPU"), (name,)
    known = [gpu for gpu in case.derived(gpus) if gpu.compute_capability.is_known]
    capabilities = {gpu.compute_capability.get() for gpu in known}
    if len(capabilities) == 1:
        return capabilities.pop(), _short(known[0]), known[0].facts
    return None, "GPU", ()


def _usual_gap(case: Case, capability: str) -> Optional[str]:
    """How torch's builds as a whole stand to this GPU: NEWER where the newest serve it and many older ones do not,
    OLDER where the newest default builds have dropped it; None where nearly all serve it."""
    releases = case.matrix.torch_releases()
    default = [release.default.get("linux-x86_64") for release in releases[:1]]
    newest = [
        build for build in releases[0].builds("linux-x86_64") if build.cuda is not None and build.variant in default
    ]
    if not newest:
        return None
    if all(case.matrix.build_runs_on(build, capability).answer == "no" for build in newest):
        lowest = min((_order("sm_" + target)[0] for build in newest for target in build.sass), default=0)
        return OLDER if int(capability.replace(".", "")) < lowest else NEWER
    builds = [b for release in releases for b in release.builds("linux-x86_64") if b.cuda is not None]
    lacking = [b for b in builds if case.matrix.build_runs_on(b, capability).answer == "no"]
    return NEWER if len(lacking) * 4 > len(builds) else None


def knows_gpu(case: Case, capability: str) -> bool:
    """Whether the CUDA that torch was built with compiles for this GPU."""
    row, cuda = case.matrix.architecture(capability), case.derived(torch_build).cuda
    first = numbers(row.first_cuda) if row is not None and row.first_cuda else None
    last = numbers(row.last_cuda) if row is not None and row.last_cuda else None
    have = numbers(cuda) if cuda else None
    return bool(have and first and have >= first and (last is None or have <= last))


def _within_major(case: Case, capability: str) -> bool:
    """Whether the builds that have code for GPUs of its major serve it as well, so that a warning may be harmless."""
    sass = [build.sass for release in case.matrix.torch_releases()[:3] for build in release.builds("linux-x86_64")]
    major = capability.partition(".")[0]
    return any(target.rstrip("af")[:-1] == major for targets in sass for target in targets)


def _too_old_for_triton(case: Case, label: str, facts: tuple[str, ...]) -> Outcome:
    least = case.value(_TRITON, {}).get("minimum")
    below = f" from compute capability {least} on" if least else " of a newer kind"
    return case.failed(
        f"Triton takes GPUs{below}: the {label} is too old for torch.compile, and for vLLM, which rests on it",
        tuple(dict.fromkeys((_TRITON, *facts))),
        certainty=CERTAIN,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Do without Triton",
                    "text": "torch itself may well run on this card: set TORCHDYNAMO_DISABLE=1, or leave torch.compile "
                    "out. For language models take llama.cpp or ollama, which run on older cards.",
                    "kind": "setting",
                    "effect": {_TRITON: None},
                },
            ),
        ),
        not_helping=("a newer driver, toolkit or torch: no release of Triton serves this card",),
    )


def _failed(case: Case, build: TorchBuild, covered: tuple[Coverage, ...], left_out: list[Coverage]) -> Outcome:
    first = left_out[0]
    gpu = first.gpu
    target = _target_of(first)
    targets = tuple(sorted(build.sass.value or (), key=_order))
    served = [entry for entry in covered if entry.answer in ("yes", "likely")]
    evidence = (build.sass_fact, *gpu.facts)
    if first.ptx_needs_driver:
        span = "its PTX is newer than the driver can compile"
        not_helping = []
        evidence = (*evidence, version_fact(case))
    else:
        span = _span(targets, target, first.gap)
        not_helping = ["a newer driver: no driver brings code that torch was built without"]
        bound = case.matrix.last_branch_for(gpu.compute_capability.get()) if first.gap == OLDER else None
        if bound is not None:
            not_helping = [
                f"a newer driver: {bound.branch} is the last branch for this card, and no driver brings code that "
                "torch was built without"
            ]
    named = "this torch" if build.version == UNTOLD else f"torch {build.version}"
    message = f"{named} has no code for this GPU: {span}, the {_short(gpu)} is {target}"
    if served:
        message = f"{named} has no code for the {_short(gpu)} ({target}): {span}; the {_short(served[0].gpu)} is served"
    return case.failed(
        message,
        evidence,
        severity=WARNING if served else None,
        data={
            "torch": build.version,
            "sass": list(targets),
            "ptx": list(build.ptx.value or ()),
            "gpus": [{"name": entry.gpu.label, "target": _target_of(entry)} for entry in left_out],
        },
        fixes=() if served else (Remedy("install-torch", {}),),
        not_helping=not_helping,
    )


def _short(gpu: Gpu) -> str:
    return gpu.label[len("NVIDIA ") :] if gpu.label.startswith("NVIDIA ") else gpu.label


def _target_of(entry: Coverage) -> str:
    return "sm_" + str(entry.gpu.compute_capability.get()).replace(".", "")


def _span(targets: tuple[str, ...], target: str, gap: str | None) -> str:
    """Where the GPU stands to the list, in words."""
    if not targets:
        return "it lists none"
    if gap == OLDER:
        return f"it starts at {targets[0]}"
    below = [other for other in targets if _order(other)[0] < _order(target)[0]]
    above = [other for other in targets if _order(other)[0] > _order(target)[0]]
    if below and above:
        return f"it has {below[-1]} and {above[0]}, nothing between"
    return f"it ends at {targets[-1]}" if below else f"it has {', '.join(targets)}"


def _order(target: str) -> tuple[int, str]:
    """sm_90a -> (90, "sm_90a"): the lists come in the order of the library, or of their letters."""
    digits = "".join(letter for letter in target if letter.isdigit())
    return int(digits or 0), target
