"""A torch for a machine whose GPU nobody has named: the command for each kind of GPU, so that the person can choose."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.matrix import numbers
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import listed
from cudadoctor.plan.remedies.installer import install
from cudadoctor.resolve import Choice, Gpu, Need, resolve
from cudadoctor.resolve.need import PRESENT, WINDOWS

# Kinds that are served by many different builds are no choice but a catalogue.
_MOST = 3


def commands_by_gpu(context: Context, need: Need) -> list[str]:
    """Lines of instructions: for each kind of GPU that a current torch serves its name, what its driver has to be, and
    below it the command. Empty where the kinds differ in more than a person reads."""
    groups: dict[str, tuple[Choice, list[Gpu]]] = {}
    for gpu in _kinds(context):
        found = resolve(need._replace(gpus=(gpu,), gpu_state=PRESENT), context.matrix)
        choice = found.choice
        # A driver that is too old for all builds for this kind of GPU drives, as a rule, another kind.
        if choice is not None and found.driver_first is None:
            groups.setdefault(choice.version, (choice, []))[1].append(gpu)
    if not groups or len(groups) > _MOST:
        return []
    lines = []
    for choice, gpus in groups.values():
        command = install(context, list(choice.requirements), context.index(choice.variant))
        lines.append(f"{_named(gpus)}{_driver(context, need, choice)}:")
        lines.append("    " + context.text(command.argv))
    lines.append("nvidia-smi names the card; `cudadoctor fix --print --gpu NAME` prints its build.")
    return lines


def _kinds(context: Context) -> Iterator[Gpu]:
    """A GPU of each compute capability that newer toolkits still compile for and that is sold as a card."""
    newest = max((row.cuda for row in context.matrix.floors()), default=0)
    for row in context.matrix.architectures():
        last = numbers(row.last_cuda or "")
        if row.tegra or (last is not None and last[0] < newest - 1):
            continue
        for capability in row.capability:
            yield Gpu(row.name, capability)


def _named(gpus: list[Gpu]) -> str:
    names = listed(dict.fromkeys(gpu.label for gpu in gpus))
    capabilities = sorted({gpu.capability for gpu in gpus if gpu.capability}, key=_place)
    span = capabilities[0] if len(capabilities) == 1 else f"{capabilities[0]} to {capabilities[-1]}"
    return f"{names} (compute capability {span})"


def _place(capability: str) -> tuple[int, ...]:
    return numbers(capability) or ()


def _driver(context: Context, need: Need, choice: Choice) -> str:
    """The driver that the build's CUDA takes; nothing where the driver is known, and was weighed already."""
    major = numbers(choice.cuda or "")
    if need.driver is not None or major is None:
        return ""
    for row in context.matrix.floors():
        if row.cuda == major[0]:
            return f", driver {row.windows if need.numbering == WINDOWS else row.linux} or newer"
    return ""
