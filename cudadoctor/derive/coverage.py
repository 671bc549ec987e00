"""Which of the visible GPUs the installed torch holds code for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.derive.driver import numbering, version
from cudadoctor.derive.gpus import Gpu
from cudadoctor.derive.left_out import within_reach
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.visible_devices import parse_visible_devices

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

OLDER = "older"  # the GPU is older than everything that the build holds code for
NEWER = "newer"
BETWEEN = "between"  # the build has older and newer code, none of this GPU's kind


class Coverage(NamedTuple):
    """One GPU against torch's list. `answer` is yes, likely (by PTX), no or unknown; `gap` says where an uncovered GPU
    stands to the list. `ptx_needs_driver`: there is PTX for it, and the driver is too old to compile it."""

    gpu: Gpu
    answer: str
    reason: str
    gap: Optional[str]
    ptx_needs_driver: bool = False


def visible_gpus(case: Case) -> tuple[Gpu, ...]:
    """The GPUs that CUDA would show: all, less those that CUDA_VISIBLE_DEVICES names away by number.

    Only a list of NVML's numbers in PCI order can be followed; anything else leaves all of them in.
    """
    everything = case.derived(within_reach)
    wanted = parse_visible_devices(case.value("env.CUDA_VISIBLE_DEVICES"))
    if not wanted.entries or (case.value("env.CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and _mixed(everything)):
        return everything
    numbers_wanted = [entry.number for entry in wanted.entries]
    if None in numbers_wanted:
        return everything
    chosen = tuple(gpu for gpu in everything if gpu.index in numbers_wanted)
    return chosen or everything


def _mixed(everything: tuple[Gpu, ...]) -> bool:
    # CUDA numbers the fastest first, NVML by PCI address: among unlike cards a number does not say which is meant.
    return len({gpu.compute_capability.value for gpu in everything}) > 1


def coverage(case: Case) -> tuple[Coverage, ...]:
    """Each visible GPU against the list of the installed torch; empty without a torch built with CUDA."""
    build = case.derived(torch_build)
    if build.kind != CUDA:
        return ()
    found = []
    for gpu in visible_gpus(case):
        if not gpu.compute_capability.is_known:
            found.append(Coverage(gpu, "unknown", gpu.compute_capability.reason, None))
            continue
        if not build.sass.is_known:
            found.append(Coverage(gpu, "unknown", build.sass.reason, None))
            continue
        capability = gpu.compute_capability.get()
        sass = [target[len("sm_") :] for target in build.sass.get()]
        ptx = [target[len("compute_") :] for target in (build.ptx.value or ())]
        compiles = _ptx_compiles(case, build.cuda)
        verdict = case.matrix.runs_on(sass, ptx, capability, build.disputed, compiles)
        if verdict.answer == "no" and build.ptx.is_unknown:
            reason = "there is no machine code for it, and whether there is PTX could not be read"
            found.append(Coverage(gpu, "unknown", reason, None))
            continue
        gap = _gap(sass, capability) if verdict.answer == "no" else None
        # With a driver that compiles it, PTX would have done.
        by_driver = (
            verdict.answer == "no" and compiles == "no" and case.matrix.runs_on(sass, ptx, capability).answer != "no"
        )
        found.append(Coverage(gpu, verdict.answer, verdict.reason, gap, by_driver))
    return tuple(found)


def _ptx_compiles(case: Case, cuda: Optional[str]) -> str:
    """Whether the driver can compile the build's PTX: yes, no or unknown."""
    driver = case.derived(version)
    if cuda is None or not driver.is_known or on_jetson(case):
        return "unknown"
    newest = case.matrix.branches()[0]
    last = max(newest.windows or (newest.linux,)) if numbering(case) == "windows" else newest.linux
    if (numbers(driver.get()) or (0,))[0] > last:
        return "yes"  # a driver newer than the matrix
    return str(case.matrix.ptx_ok(driver.get(), numbering(case), cuda).answer)


def _gap(sass: list[str], capability: str) -> str:
    major, _, minor = capability.partition(".")
    own = int(major) * 10 + int(minor)
    targets = [int(digits) for digits in ("".join(c for c in target if c.isdigit()) for target in sass) if digits]
    if not targets or own < min(targets):
        return OLDER
    return NEWER if own > max(targets) else BETWEEN
