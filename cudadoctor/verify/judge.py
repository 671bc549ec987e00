"""From what a child has said, and how it ended, to results: held against what the machine should do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import CERTAIN, ERROR, FAIL, PASS, SKIP, WARNING, Facts
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.sizes import show_size
from cudadoctor.verify.lines import Ending, Said, number, text, whole
from cudadoctor.verify.meaning import NOT_STARTED, suspects
from cudadoctor.verify.plan import ALLOCATION, OF_ALL_GPUS, OF_ONE_GPU, VERSIONS
from cudadoctor.verify.results import (
    CRASHED,
    ENDED,
    HUNG,
    MISSING,
    NO_CUDA,
    REFUSED,
    SLOW,
    UNAVAILABLE,
    WRONG,
    Expected,
    Result,
    SeenGpu,
    Torch,
)

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "matmul": ("fp32", "fp16", "bf16"),
    "bandwidth": ("to-gpu", "from-gpu"),
}
_WAYS = {"to-gpu": "to the GPU", "from-gpu": "from the GPU"}
_NO_TRITON = "CD320"
_EXCEPTION = pattern(r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt): ")
_LONGEST = 300

Expectation = Callable[[Optional[SeenGpu], str], Optional[Expected]]


def no_expectation(gpu: Optional[SeenGpu], check: str) -> Optional[Expected]:
    return None


def expectations(facts: Optional[Facts], matrix: Matrix, device: Optional[int]) -> Expectation:
    """What link and memory of a GPU should give. `device` is its number by NVML, None: not known. Where a figure is not
    known there is no expectation, and the measurement is only shown."""

    def expected(gpu: Optional[SeenGpu], check: str) -> Optional[Expected]:
        share = matrix.share(check)
        if share is None or gpu is None:
            return None
        seen = None if facts is None else _same_gpu(facts, device, gpu)
        if check == "memory-bandwidth":
            pci = facts.value(f"gpu.{seen}.pci_device_id", "") if facts is not None and seen is not None else ""
            of_mig = facts is not None and seen is not None and facts.value(f"gpu.{seen}.mig_mode") is True
            rate = None if of_mig else matrix.memory_rate(gpu.name, gpu.total or 0, pci)
            what = "the card's memory"
        else:
            if facts is None or seen is None:
                return None
            generation = facts.value(f"gpu.{seen}.pcie_generation_max")
            lanes = facts.value(f"gpu.{seen}.pcie_width_max")
            if not isinstance(generation, int) or not isinstance(lanes, int):
                return None
            rate, what = matrix.pcie_rate(generation, lanes), f"PCIe {generation} x{lanes}"
        if rate is None:
            return None
        return Expected(rate.gbs * share.good, rate.gbs, f"{what}: {rate.source}; share: {share.source}")

    return expected


def _same_gpu(facts: Facts, device: Optional[int], gpu: SeenGpu) -> Optional[int]:
    """The number by which NVML's facts know this GPU; None where that is not sure."""
    count = facts.value("gpu.count")
    if not isinstance(count, int):
        return None
    if gpu.pci is not None:
        for place in range(count):
            if str(facts.value(f"gpu.{place}.pci_address", "")).lower() == gpu.pci:
                return place
        return None
    names = {place: facts.value(f"gpu.{place}.name") for place in range(count)}
    named = [place for place, name in names.items() if name == gpu.name]
    if device is not None:
        return device if device in named else None
    return named[0] if len(named) == 1 else None


# -- a child's results ------------------------------------------------------------------------------------------------


def judged(
    said: Said,
    ending: Ending,
    checks: Sequence[str],
    gpu: Optional[int] = None,
    expected: Expectation = no_expectation,
    matrix: Optional[Matrix] = None,
) -> list[Result]:
    """The results of one child, in the order of its checks; `gpu` is the one that it was for, None: all.

    A check that was never reported is one, too: it crashed, hung or was not reached.
    """
    seen = seen_gpu(said, gpu)
    scope = OF_ALL_GPUS if gpu is None else OF_ONE_GPU
    found: dict[tuple[str, str], Result] = {}
    for event in said.results:
        result = _judge(event, gpu, seen, expected, matrix)
        if gpu is None or result.check != VERSIONS or result.failed:
            found.setdefault((result.check, result.variant), result)
    if not said.ended or ending.refused:
        told = {text(event, "check") for event in said.results}
        left = [check for check in (VERSIONS, *scope) if check not in told and (check in checks or check == VERSIONS)]
        # Where nothing was announced it ended before the next check.
        lost = _lost(said.at_hand or (left[0] if left else scope[-1], "" if left else "end"), said, ending, gpu)
        found[lost.check, lost.variant] = lost
    results = list(found.values())
    broken = next((result for result in results if result.failed and result.severity == ERROR), None)
    reason = "not run" if broken is None else f"not run: {broken.name} failed"
    for check in scope:
        if check in checks and not any(result.check == check for result in results):
            results.append(Result(check, SKIP, reason, gpu))
    return sorted(results, key=lambda result: _place(result, scope))


def _place(result: Result, scope: Sequence[str]) -> tuple[int, int]:
    variants = VARIANTS.get(result.check, ("",))
    return (
        scope.index(result.check) if result.check in scope else -1,
        variants.index(result.variant) if result.variant in variants else 0,
    )


def seen_gpu(said: Said, gpu: Optional[int]) -> Optional[SeenGpu]:
    """The GPU as the child saw it, or None where it came not so far."""
    for event in said.results:
        about = event.get("about")
        if gpu is not None and event.get("check") == ALLOCATION and isinstance(about, Mapping):
            return SeenGpu(
                gpu,
                text(about, "name"),
                text(about, "capability"),
                whole(about, "total"),
                whole(about, "free"),
                whole(about, "allocated"),
                whole(about, "reserved"),
                text(about, "pci") or None,
            )
    return None


def torch_of(said: Said) -> Torch:
    """What torch says of itself; empty where it was not reached."""
    for event in said.results:
        if event.get("check") == VERSIONS:
            archs = event.get("archs")
            return Torch(
                text(event, "torch") or None,
                text(event, "cuda") or None,
                text(event, "hip") or None,
                _cudnn(event.get("cudnn")),
                text(event, "nccl") or None,
                text(event, "path") or None,
                tuple(str(arch) for arch in archs) if isinstance(archs, list) else (),
                whole(event, "count"),
            )
    return Torch()


def _cudnn(value: Any) -> Optional[str]:
    """ "9.10.2" for 91002, "8.9.2" for 8902: since its ninth release the number has a digit more."""
    if isinstance(value, str):
        return value or None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1000:
        return None
    step = 10000 if value >= 90000 else 1000
    return f"{value // step}.{value % step // 100}.{value % 100}"


def _judge(
    event: Mapping[str, Any],
    gpu: Optional[int],
    seen: Optional[SeenGpu],
    expected: Expectation,
    matrix: Optional[Matrix],
) -> Result:
    check, variant = text(event, "check"), text(event, "variant")
    status = text(event, "status")
    base = Result(
        check, PASS, "", gpu, variant, value=number(event, "value"), unit=text(event, "unit"),
        seconds=number(event, "seconds"), error=text(event, "error"),
    )  # fmt: skip
    if status == "skip":
        return _skipped(base, event)
    if status == "error" and text(event, "type") == "RankCrashed":
        return _failed(base, CRASHED, said_first(base.error))
    if status == "error":
        what = "torch cannot be imported" if check == VERSIONS else "failed"
        return _failed(base, REFUSED, f"{what}: {said_first(base.error)}")
    if check == VERSIONS:
        return _versions(base, event, status)
    wrong, of = whole(event, "wrong"), whole(event, "of")
    if status != "done" or wrong is None or of is None or wrong < 0 or of < 1:
        return _failed(base, ENDED, "gave no result that can be read")
    if check == "peer":
        return _peer(base, event, wrong, of)
    if wrong:
        count = f"{wrong:,} of {of:,} value{'s' if of != 1 else ''}"
        return _failed(base, WRONG, f"{count} {'is' if wrong == 1 else 'are'} wrong: not what the CPU gives")
    if check in ("bandwidth", "memory-bandwidth"):
        return _measured(base, seen, expected, matrix)
    if check == "nccl":
        rate = "" if base.value is None else f", {base.value:.3g} GB/s"
        return base._replace(message=f"all-reduce over {whole(event, 'ranks') or '?'} GPUs is right{rate}")
    if check == ALLOCATION:
        return base._replace(message=f"{show_size(int(base.value or 0))} written, changed and read back")
    return base._replace(message=f"all {of:,} values are those of the CPU")


def _versions(base: Result, event: Mapping[str, Any], status: str) -> Result:
    if status == "missing":
        return _failed(base, MISSING, "there is no torch in this environment")
    version = text(event, "torch")
    named = [("CUDA", text(event, "cuda")), ("ROCm", text(event, "hip"))]
    parts = [f"torch {version}", *(f"{name} {value}" for name, value in named if value)]
    warned = event.get("warnings")
    said = [base.error, *(str(one) for one in warned)] if isinstance(warned, list) else [base.error]
    base = base._replace(error="\n".join(one for one in said if one))
    if not text(event, "cuda"):
        what = "is for AMD's GPUs, not for CUDA" if text(event, "hip") else "was built without CUDA"
        return _failed(base, NO_CUDA, f"{', '.join(parts)} {what}")._replace(certainty=CERTAIN)
    if status != "done" or not version:
        why = said_first(text(event, "error"))
        return _failed(base, UNAVAILABLE, f"{', '.join(parts)}: CUDA is not available" + (f" ({why})" if why else ""))
    libraries = (("cuDNN", _cudnn(event.get("cudnn"))), ("NCCL", text(event, "nccl")))
    parts += [f"{name} {value}" for name, value in libraries if value]
    return base._replace(message=", ".join(parts), error="")


def _skipped(base: Result, event: Mapping[str, Any]) -> Result:
    if event.get("kind") == "lost":
        return base._replace(status=SKIP, message=f"not run: CUDA works no more after {text(event, 'after')}")
    rule = _NO_TRITON if event.get("kind") == "triton" else None
    return base._replace(status=SKIP, message=said_first(text(event, "reason")) or "not possible here", rule=rule)


def _peer(base: Result, event: Mapping[str, Any], wrong: int, of: int) -> Result:
    if wrong:
        listed = event.get("pairs")
        pairs = [pair for pair in listed if isinstance(pair, Mapping)] if isinstance(listed, list) else []
        named = ", ".join(f"{pair.get('from')} to {pair.get('to')}" for pair in pairs[:4])
        return _failed(
            base, WRONG, f"{wrong} of {of} copies between GPUs arrive wrong" + (f": {named}" if named else "")
        )
    direct = int(base.value or 0)
    way = "directly" if direct == of else f"{direct} of them directly" if direct else "through the host's memory"
    return base._replace(message=f"{of} copies between GPUs arrive right, {way}")


def _measured(base: Result, gpu: Optional[SeenGpu], expected: Expectation, matrix: Optional[Matrix]) -> Result:
    value = base.value
    if value is None or value <= 0:
        return _failed(base, ENDED, "gave no rate that can be read")
    way = _WAYS.get(base.variant, "copied within the GPU's memory")
    limits = expected(gpu, base.check)
    if limits is None:
        return base._replace(message=f"{rate(value)} {way}; no figure to compare with")
    base = base._replace(expected=limits)
    what = limits.source.partition(":")[0]
    if value >= limits.least:
        return base._replace(message=f"{rate(value)} {way}, of {rate(limits.most)} ({what})")
    share = None if matrix is None else matrix.share(base.check)
    broken = share is not None and value < share.least * limits.most
    message = f"{rate(value)} {way}: {what} can do {rate(limits.most)}, at least {rate(limits.least)} are expected"
    return _failed(base, SLOW, message)._replace(severity=ERROR if broken else WARNING)


def _failed(base: Result, how: str, message: str) -> Result:
    possible = suspects(base.check, how)
    return base._replace(
        status=FAIL, how=how, message=message, rule=possible[0] if possible else None, suspects=possible
    )


# -- a child that did not come to its end -----------------------------------------------------------------------------


def _lost(at_hand: tuple[str, str], said: Said, ending: Ending, gpu: Optional[int]) -> Result:
    check, variant = at_hand
    base = Result(check, PASS, "", gpu, variant, seconds=round(ending.seconds, 1), error=ending.errors)
    if ending.refused:
        message = f"the interpreter cannot be started: {ending.refused}"
        return _failed(base, ENDED, message)._replace(rule=None, suspects=())
    if ending.timed_out and not said.python:
        # Before torch, and before anything that has to do with a GPU.
        found = _failed(base, HUNG, "the interpreter did not start in time")
        return found._replace(rule=NOT_STARTED[0], suspects=NOT_STARTED)
    if ending.timed_out:
        return _failed(base, HUNG, f"did not end within {round(ending.seconds, 2):g} s")
    if ending.signal:
        what = "the check crashed" if said.at_hand else "the process crashed"
        return _failed(base, CRASHED, f"{what} ({ending.signal})")
    last = last_line(ending.errors)
    status = "unknown" if ending.status is None else ending.status
    return _failed(base, ENDED, f"the process ended with status {status}" + (f": {last}" if last else ""))


def said_first(error: str) -> str:
    """The line of an error that says what it is, cut to a length that can be read."""
    for line in error.splitlines():
        if line.strip():
            return _cut(line.strip())
    return ""


def last_line(errors: str) -> str:
    """The last line of a program's complaints that names an error, else the last one."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if _EXCEPTION.match(line)]
    return _cut((named or lines or [""])[-1])


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def rate(gbs: float) -> str:
    """ "25.1 GB/s", "2,039 GB/s"."""
    return f"{gbs:,.0f} GB/s" if gbs >= 100 else f"{gbs:.3g} GB/s"
