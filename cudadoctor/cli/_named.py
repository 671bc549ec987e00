"""What options name: a GPU, a driver, a system."""

from __future__ import annotations

import re

from cudadoctor.cli._words import InputError
from cudadoctor.matrix import GpuMatch, Matrix
from cudadoctor.model import Facts
from cudadoctor.parse.versions import is_driver_version


def own_machine() -> tuple[str, str]:
    """System and architecture of the machine that we run on, as `check` sees them."""
    from cudadoctor.probes.examine import live_system
    from cudadoctor.probes.identity import look

    facts = Facts(look(live_system()))
    system = "windows" if facts.value("system.os") == "windows" else "linux"
    if facts["system.wsl"].is_known:
        system = "wsl"
    is_arm = facts.value("system.os") == "linux" and facts.value("system.arch") == "aarch64"
    return system, "aarch64" if is_arm else "x86_64"


def gpu_named(name: str, matrix: Matrix) -> GpuMatch:
    """What `--gpu NAME` stands for: products that run the same code, with their compute capability. InputError where
    it is none or several, with the nearest names."""
    match = matrix.gpu(name)
    if not match.found:
        close = matrix.gpu_names_like(name.strip())
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else "--gpu takes the name of an NVIDIA GPU or its compute capability, such as 8.9"
        )
        raise InputError(f"there is no GPU {name!r} in the compatibility data; {hint}")
    if match.capability is None:
        rows = {row.name: row.capability for row in match.rows}
        some = ", ".join(f"{product} ({capability})" for product, capability in list(rows.items())[:4])
        raise InputError(
            f"{name!r} can be GPUs of different compute capability: {some}; name the one, or its capability"
        )
    if matrix.architecture(match.capability) is None:
        raise InputError(f"no GPU of compute capability {match.capability} is known")
    return match


def driver_number(text: str, system: str, matrix: Matrix, purpose: str) -> str:
    """The number of `--driver`, "R580" without its letter. InputError where it is none, or one of another system;
    `purpose` is what the number is for ("the plan")."""
    number = text.strip().lstrip("Rr")
    own = "linux" if system == "linux" else "windows"
    other = "windows" if own == "linux" else "linux"
    example = "580.95.05" if own == "linux" else "581.57"
    if not (is_driver_version(number) or re.fullmatch(r"[0-9]{3}", number)):
        raise InputError(f"--driver takes a driver number such as {example}, not {text!r}")
    branches = matrix.branches()
    first = int(number.partition(".")[0])
    oldest = branches[-1].linux
    if first < oldest:
        raise InputError(
            f"--driver {text} is no driver number that can be judged: they begin at {oldest} "
            "(nvidia-smi prints the CUDA version behind it)"
        )
    if matrix.branch_of(number, own) is None:
        elsewhere = matrix.branch_of(number, other)
        if elsewhere is not None and not elsewhere.guessed:
            names = {"linux": "Linux", "windows": "Windows"}
            option = "--os windows or --os wsl" if other == "windows" else "--os linux"
            raise InputError(
                f"--driver {text} is a {names[other]} number ({elsewhere.name}), and {purpose} is for {names[own]}; "
                f"add {option}"
            )
    return number
