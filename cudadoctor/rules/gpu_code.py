"""Whether torch holds code for each GPU: what CD304 (too new) and CD305 (dropped) have in common."""

from __future__ import annotations

from cudadoctor.derive.coverage import OLDER, Coverage, coverage
from cudadoctor.derive.driver import version_fact
from cudadoctor.derive.gpus import Gpu
from cudadoctor.derive.wheel import CUDA, UNCLEAR, TorchBuild, torch_build
from cudadoctor.rules.api import WARNING, Case, Outcome, Remedy


def judge_gap(case: Case, gaps: tuple[str, ...]) -> Outcome:
    """Fails for GPUs that torch has no code for and that stand to its list as `gaps` says.

    Where another visible GPU is served it is a warning: the machine is of use.
    """
    build = case.derived(torch_build)
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell which build of torch this is", ("torch.version",))
    if build.kind != CUDA:
        return case.skipped("no torch built with CUDA")
    covered = case.derived(coverage)
    if not covered:
        return case.skipped("no GPU to hold against torch's list")
    left_out = [entry for entry in covered if entry.answer == "no" and entry.gap in gaps]
    if left_out:
        return _failed(case, build, covered, left_out)
    unclear = [entry for entry in covered if entry.answer == "unknown"]
    if unclear:
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
        not_helping = [f"a newer driver: no driver brings code that torch {build.version} was built without"]
        bound = case.matrix.last_branch_for(gpu.compute_capability.get()) if first.gap == OLDER else None
        if bound is not None:
            not_helping = [
                f"a newer driver: {bound.branch} is the last branch for this card, and no driver brings code that "
                f"torch {build.version} was built without"
            ]
    message = f"torch {build.version} has no code for this GPU: {span}, the {_short(gpu)} is {target}"
    if served:
        message = (
            f"torch {build.version} has no code for the {_short(gpu)} ({target}): {span}; "
            f"the {_short(served[0].gpu)} is served"
        )
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
