"""From the options of `matrix query` to its answer."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Optional

from cudadoctor.cli._named import driver_number, gpu_named, own_machine
from cudadoctor.cli._program import program
from cudadoctor.cli._words import InputError
from cudadoctor.matrix import GpuMatch, Matrix, MatrixError, cuda_of_variant, load_matrix, numbers
from cudadoctor.matrix.holdings import data_of
from cudadoctor.matrix.look_up import look_up, platforms_of
from cudadoctor.matrix.views import Question, UnknownVersion
from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.plan.shell import POSIX, POWERSHELL, quote
from cudadoctor.render.matrix import Shown
from cudadoctor.render.matrix_words import verdict
from cudadoctor.render.style import Style


class Asked(NamedTuple):
    """The options as they were typed."""

    gpus: Sequence[str] = ()
    driver: Optional[str] = None
    torch: Optional[str] = None
    cuda: Optional[str] = None
    python: Optional[str] = None
    system: Optional[str] = None
    arch: Optional[str] = None


def answer(asked: Asked, style: Style) -> Shown:
    """The answer as it is shown; InputError where something that was typed cannot be used."""
    from datetime import date

    if not asked.gpus and asked.driver is None and asked.torch is None and asked.cuda is None:
        raise InputError("what is the question? Name a --gpu, a --driver, a --torch or a --cuda")
    try:
        matrix = load_matrix()
        today = date.today().isoformat()
        question = _question(asked, matrix)._replace(day=today)
        found = look_up(question, matrix)
    except MatrixError as error:
        raise InputError(str(error)) from None
    except UnknownVersion as error:
        raise InputError(f"{error}; {_known(error.kind, matrix)}") from None
    return Shown(found, verdict(found), data_of(matrix, today), _more(asked), style)


def _question(asked: Asked, matrix: Matrix) -> Question:
    gpus = tuple(gpu_named(name, matrix) for name in asked.gpus)
    system, arch = asked.system, asked.arch
    one_machine = bool(gpus) or asked.driver is not None
    if one_machine and not (system and arch):
        system, arch = _machine(gpus, system, arch)
    numbering = system or "linux"
    driver = None if asked.driver is None else driver_number(asked.driver, numbering, matrix, "the question")
    return Question(
        gpus,
        driver,
        None if asked.torch is None else _torch(asked.torch),
        None if asked.cuda is None else _cuda(asked.cuda),
        None if asked.python is None else _python(asked.python),
        numbering,
        platforms_of(system, arch, matrix),
    )


def _machine(gpus: Sequence[GpuMatch], system: Optional[str], arch: Optional[str]) -> tuple[str, str]:
    """The system and architecture that a GPU or a driver is asked for: this machine's where nobody says."""
    own_system, own_arch = own_machine()
    system = system or own_system
    on_arm = any(match.rows and all(row.arm_only for row in match.rows) for match in gpus)
    if arch is None:
        # Windows on Arm has no wheels with CUDA: who asks for Windows means the usual one.
        arch = "x86_64" if system == "windows" else "aarch64" if on_arm else own_arch
    return system, arch


def _torch(text: str) -> str:
    public, _, variant = text.strip().lower().partition("+")
    public = public.removesuffix(".*")
    if numbers(public) is None or (variant and not re.fullmatch(r"cpu|cu\d{2,3}", variant)):
        raise InputError(f"--torch takes a version such as 2.6, 2.6.0 or 2.6.0+cu124, not {text!r}")
    return f"{public}+{variant}" if variant else public


def _cuda(text: str) -> str:
    """ "12.4", also of "cu124"."""
    wanted = text.strip().lower()
    wanted = cuda_of_variant(wanted) or wanted
    if numbers(wanted) is None:
        raise InputError(f"--cuda takes a version such as 12.4 or 12, not {text!r}")
    return wanted


def _python(text: str) -> str:
    match = re.fullmatch(r"(3\.\d{1,2})(?:\.\d{1,2})?(t?)", text.strip())
    if match is None:
        raise InputError(f"--python takes a version such as 3.12 or 3.13t, not {text!r}")
    return match.group(1) + match.group(2)


def _known(kind: str, matrix: Matrix) -> str:
    """What there is instead of a version that is not known."""
    every = matrix.torch_versions() if kind == "torch" else [row.cuda for row in matrix.toolkits()]
    return f"the compatibility data has {every[-1]} to {every[0]}"


def _more(asked: Asked) -> str:
    """What to type next: the plan for the machine that was described."""
    if not (asked.gpus or asked.driver):
        return ""
    words = ["fix", "--print"]
    for gpu in asked.gpus or ("NAME",):
        words += ["--gpu", gpu]
    named = (("--driver", asked.driver), ("--os", asked.system), ("--arch", asked.arch), ("--python", asked.python))
    for option, value in named:
        words += [option, value] if value else []
    try:
        return f"{program()} {quote(words, POWERSHELL if os.name == 'nt' else POSIX)}"
    except ParseError:
        return ""
