"""The job sees another number of GPUs than it needs

What it checks
    How many GPUs a program started here would see, against gpu.count of the policy. GPUs that CUDA_VISIBLE_DEVICES
    leaves out and those that have fallen off the bus do not count.

Why it matters
    A launcher starts one process a GPU: with one too few the last process ends with "invalid device ordinal", and the
    others wait for it until their timeout. With fewer, training takes longer and other batch sizes than were planned.

How to fix
    It depends on who gave too few. The job: ask for as many (--gres=gpu:8, --gpus-per-node=8, nvidia.com/gpu: 8). The
    variable: unset CUDA_VISIBLE_DEVICES, or name all. The machine: a card that the PCI bus shows and the driver does
    not has to be looked at (kernel log, reseat, replace); take another node.

References
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
    https://slurm.schedmd.com/gres.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.gpus import LENT_TO_GUESTS
from cudadoctor.derive.policy import NOT_ASKED, in_range, is_split, plainly, seen
from cudadoctor.derive.surroundings import in_container, in_job
from cudadoctor.model.catalogue import MOST_GPUS, gpu_numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.rules.api import (
    ALLOCATION,
    CERTAIN,
    ENVIRONMENT,
    ERROR,
    LIKELY,
    MACHINE,
    Case,
    Fix,
    Outcome,
    Remedy,
    Rule,
)
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD001",
    name="gpu-count",
    title="The job sees another number of GPUs than it needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD706", "CD113"),
    precedence=10,
)

_ASKED = "policy.gpu.count"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class _Why(NamedTuple):
    """Who gave too few: words, whose matter it is, how sure that is, facts, what would help."""

    words: str
    blame: str
    certainty: str
    facts: tuple[str, ...]
    fixes: tuple[Fix, ...] = ()


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted = str(asked.get())
    here = case.derived(seen)
    if not here.how_many.is_known:
        return case.undecided(f"cannot tell how many GPUs are seen: {here.how_many.reason}", (_ASKED, *here.facts))
    count = here.how_many.get()
    fine = in_range(count, wanted)
    if fine is None:
        return case.undecided(f"cannot hold {count} GPUs against {wanted}", (_ASKED, *here.facts))
    split = next((number for number in here.numbers if is_split(case, number)), None)
    if fine and count > 1 and split is not None and not _asks_for_parts(case) and not in_range(1, wanted):
        return case.undecided(
            f"MIG is on for GPU {split}, and a program sees a single MIG device: {plainly(wanted)} GPUs are asked for. "
            "Where cards with MIG are meant, say gpu.mig = true",
            (_ASKED, f"gpu.{split}.mig_mode"),
        )
    if fine:
        return case.passed(f"{_gpus(count)} seen, {plainly(wanted)} asked for", (_ASKED, *here.facts))
    too_few = any(in_range(number, wanted) for number in range(count + 1, MOST_GPUS + 1))
    why = _too_few(case, count, wanted) if too_few else _too_many(case, wanted)
    return case.failed(
        f"{_gpus(count)} seen, {plainly(wanted)} asked for: {why.words}",
        tuple(dict.fromkeys((_ASKED, *here.facts, *why.facts))),
        certainty=why.certainty,
        blame=why.blame,
        data={"count": count, "wanted": wanted},
        fixes=why.fixes,
    )


def _asks_for_parts(case: Case) -> bool:
    """Whether MIG is what the policy wants, or what the job was given."""
    by_name = str(case.value(f"env.{_VISIBLE}", "")).startswith("MIG-")
    return by_name or bool(case.value("policy.gpu.mig")) or case.fact("policy.gpu.mig_devices").is_known


def _too_few(case: Case, count: int, wanted: str) -> _Why:
    allocated = case.value("scheduler.gpus_allocated")
    total: int = case.value("gpu.count", len(case.value("smi.gpus", [])))
    if allocated is not None and not in_range(allocated, wanted):
        return _given(case, f"the job was given {allocated}", CERTAIN, ("scheduler.gpus_allocated",), wanted)
    lost = [number for number in gpu_numbers(case.facts) if case.value(f"gpu.{number}.lost")]
    if lost and count + len(lost) == total and _some_of(count + 1, total, wanted) is not None:
        words = f"GPU {', '.join(map(str, lost))} has fallen off the bus"
        return _Why(words, MACHINE, CERTAIN, (f"gpu.{lost[0]}.lost",), (_look_at_the_card(),))
    # Of the cards that are there as many as are asked for could be named; else the variable is not what is wrong.
    enough = _some_of(count + 1, total - len(lost), wanted)
    if case.fact(f"env.{_VISIBLE}").is_known and enough is not None:
        facts = (f"env.{_VISIBLE}",)
        words = f"{_VISIBLE} leaves {count} of {total}"
        if allocated is None and (in_container(case) or in_job(case)):
            return _given(case, words, LIKELY, facts, wanted)
        every = not lost and in_range(total, wanted)
        fix = Remedy("unset-variable", {"name": _VISIBLE}) if every else _name(enough)
        return _Why(words, ENVIRONMENT, CERTAIN, facts, (fix,))
    bus = case.fact("pci.gpus")
    on_bus = [entry for entry in bus.value or () if entry.get("driver") not in LENT_TO_GUESTS]
    more_on_bus = len(on_bus) > count
    if in_container(case) and allocated is None and (more_on_bus or not on_bus):
        if case.value("env.NVIDIA_VISIBLE_DEVICES") != "all":
            return _given(case, "the container was given no more", LIKELY, ("system.container",), wanted)
    elif in_job(case) and allocated is None and (more_on_bus or not on_bus):
        return _given(case, "the job was probably given no more", LIKELY, ("scheduler.in_job",), wanted)
    if len(on_bus) > total:
        words = f"the PCI bus has {len(on_bus)}, and the driver shows {total}"
        return _Why(words, MACHINE, CERTAIN, ("pci.gpus",), (_look_at_the_card(),))
    return _Why("the machine has no more", MACHINE, CERTAIN if bus.is_known else LIKELY, (), (_take_another(),))


def _too_many(case: Case, wanted: str) -> _Why:
    most = next((number for number in range(MOST_GPUS, 0, -1) if in_range(number, wanted)), None)
    fixes = () if most is None else (_name(most),)
    if in_container(case) or in_job(case):
        return _Why("the job was given too many", ALLOCATION, LIKELY, (), fixes)
    return _Why("set CUDA_VISIBLE_DEVICES to those that are meant", ENVIRONMENT, CERTAIN, (), fixes)


def _some_of(least: int, most: int, wanted: str) -> Optional[int]:
    """A number of GPUs within these bounds that is as asked for."""
    return next((number for number in range(least, most + 1) if in_range(number, wanted)), None)


def _name(count: int) -> Remedy:
    devices = ",".join(str(number) for number in range(count))
    return Remedy(
        "manual",
        {
            "title": f"Name {'the GPU that is' if count == 1 else f'the {count} GPUs that are'} meant",
            "text": f"Before the program starts: export {_VISIBLE}={devices}, or the numbers of others.",
            "kind": "setting",
        },
    )


def _given(case: Case, words: str, certainty: str, facts: tuple[str, ...], wanted: str) -> _Why:
    least = next((number for number in range(1, MOST_GPUS + 1) if in_range(number, wanted)), 1)
    in_a_job = case.value("scheduler.kind") is not None
    effect = {"gpu.count": least, **{f"gpu.{number}.lost": False for number in range(least)}}
    fix = Remedy("request-gpu", {"count": least, "effect": effect}) if in_a_job else Remedy("run-container-with-gpu")
    return _Why(words, ALLOCATION, certainty, facts, (fix,))


def _take_another() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Take a machine with as many GPUs",
            "text": "Or ask for fewer: gpu.count of the policy. Where this machine should have more, see whether the "
            "bus shows them: lspci -d 10de:",
            "kind": "job",
        },
    )


def _look_at_the_card() -> Remedy:
    return Remedy(
        "manual",
        {
            "title": "Find out why the driver leaves a card out",
            "text": "As root: dmesg | grep -i -e NVRM -e Xid -e pcie, and lspci -d 10de: for the card that nvidia-smi "
            "does not list. Reboot; if the card stays away, have it looked at. A job goes on another node meanwhile.",
        },
    )


def _gpus(count: int) -> str:
    return "no GPU is" if count == 0 else "1 GPU is" if count == 1 else f"{count} GPUs are"
