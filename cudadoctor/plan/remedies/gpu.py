"""Modes of a GPU that root sets, its reset, and the service that sets up NVSwitches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import numbers
from cudadoctor.model import ParseError
from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, SETTING, Draft, draft
from cudadoctor.plan.remedies.owner import elsewhere

_FABRIC_MANAGER = "nvidia-fabricmanager"


def _index(number: object) -> str:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < MOST_GPUS:
        raise ParseError(f"{number!r} is not the number of a GPU, and goes into no command")
    return str(number)


def _on(context: Context, indexes: Optional[Sequence[int]]) -> tuple[str, ...]:
    """The option that names the GPUs; none means all."""
    every = {gpu.index for gpu in context.gpus}
    if not indexes or set(indexes) == every:
        return ()
    return ("-i", ",".join(_index(number) for number in indexes))


def reset_gpu(context: Context, index: Optional[int] = None) -> list[Draft]:
    """A GPU starts anew, without a reboot; only while no program uses it."""
    other = elsewhere(context, "Reset the GPU")
    if other is not None:
        return other
    which = "" if index is None else f" {_index(index)}"
    on = () if index is None else ("-i", _index(index))
    return [
        draft(
            SETTING,
            "reset-gpu",
            f"Reset GPU{which}" if which else "Reset the GPU",
            "driver",
            context.root("nvidia-smi", "--gpu-reset", *on),
            needs=("root",),
            changes="starts the GPU anew; what uses it must have ended, monitoring and display too",
            instructions="Where it is refused (a display runs on it, NVLink joins it to others, or it hangs): reboot.",
        )
    ]


def set_compute_mode(context: Context, indexes: Optional[Sequence[int]] = None) -> list[Draft]:
    """Any number of processes may use the GPU again."""
    on = _on(context, indexes)
    return [
        draft(
            SETTING,
            "compute-mode-default",
            "Let more than one process use the GPU",
            "setting",
            context.root("nvidia-smi", *on, "-c", "DEFAULT"),
            needs=("root",),
            changes="the compute mode, until the driver is loaded anew",
            undo=context.text(context.root("nvidia-smi", *on, "-c", "EXCLUSIVE_PROCESS")),
        )
    ]


def switch_mig_off(context: Context, indexes: Optional[Sequence[int]] = None) -> list[Draft]:
    """CUDA sees the whole GPU again."""
    on = _on(context, indexes)
    return [
        draft(
            SETTING,
            "switch-mig-off",
            "Switch MIG off, or make instances",
            "setting",
            context.root("nvidia-smi", *on, "-mig", "0"),
            needs=("root",),
            changes="MIG mode; nothing may use the GPU meanwhile, and some cards need a reset",
            undo=context.text(context.root("nvidia-smi", *on, "-mig", "1")),
            instructions="To keep MIG and make instances: nvidia-smi mig -lgip lists the profiles, and sudo nvidia-smi "
            "mig -cgi PROFILE -C makes one with its compute instance.",
        )
    ]


def install_fabric_manager(context: Context, version: str = "") -> list[Draft]:
    """The fabric manager of the driver's own version, and the service started."""
    distribution = context.distribution
    parts = numbers(validate.version(version)) if version else None
    start = context.text(context.root("systemctl", "enable", "--now", _FABRIC_MANAGER))
    note = (
        f"It must be of exactly the driver's version{' ' + version if version else ''}; then start it:\n"
        f"    {start}\nAfter a change of the driver, reboot."
    )
    if distribution is not None and distribution.family == "debian" and parts:
        package = f"{_FABRIC_MANAGER}-{parts[0]}"
        return [
            draft(
                DRIVER,
                "install-fabric-manager",
                f"Install {package}",
                "install",
                context.install(distribution, (package,)),
                needs=("root", "network"),
                effect={"driver.fabric_manager": "running"},
                changes="installs the service that sets up NVSwitches",
                undo=context.text(context.remove(distribution, (package,))),
                instructions=note,
            )
        ]
    return [
        draft(
            BY_HAND,
            "install-fabric-manager",
            "Install the fabric manager",
            "driver",
            needs=("root", "network"),
            effect={"driver.fabric_manager": "running"},
            instructions=f"Its package ({_FABRIC_MANAGER}) is where the driver's are: NVIDIA's repository. {note}",
        )
    ]
