"""What the remedies know of the machine: its system, its distribution, the environment whose packages are changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Optional

from cudadoctor.derive import gpus as gpu_questions
from cudadoctor.derive.case import Case
from cudadoctor.derive.driver import numbering
from cudadoctor.matrix import Distribution, Matrix
from cudadoctor.model import Facts, ParseError
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.versions import satisfies
from cudadoctor.plan import validate
from cudadoctor.plan.index import Index
from cudadoctor.plan.online import settled
from cudadoctor.plan.plan import Options
from cudadoctor.plan.shell import POSIX, quote, shell_of
from cudadoctor.resolve import Need, Resolution, need, resolution, resolve
from cudadoctor.resolve.judge import torch_specifier

NEW_ENVIRONMENT = ".venv"

# Flavours of the Linux kernel modules.
OPEN = "open"
PROPRIETARY = "proprietary"


class Target(NamedTuple):
    """The environment whose packages the plan changes. `is_new`: the plan makes it first."""

    python: str
    version: Optional[str]
    kind: str
    prefix: Optional[str] = None
    has_pip: Optional[bool] = None
    is_uv: bool = False
    is_new: bool = False
    why_new: str = ""


class Context:
    """One machine before the remedies."""

    def __init__(
        self,
        facts: Facts,
        matrix: Matrix,
        options: Options,
        kinds: Iterable[str] = (),
        planned: Optional[Need] = None,
    ) -> None:
        self.planned = planned
        self.case = Case(facts, matrix)
        self.facts = facts
        self.matrix = matrix
        self.options = options
        self.kinds = frozenset(kinds)
        self.os = str(facts.value("system.os", "linux"))
        self.is_wsl = facts["system.wsl"].is_known
        self.is_jetson = facts["system.jetson"].is_known
        self.container: Optional[str] = facts.value("system.container")
        self.target = _target(self)
        self._wanted_python: Optional[str] = None

    @property
    def shell(self) -> str:
        return shell_of(self.os)

    @property
    def numbering(self) -> str:
        return self.case.derived(numbering)

    def root(self, *argv: str) -> tuple[str, ...]:
        """The command as root: with sudo for everybody else."""
        return argv if self.facts.value("system.is_admin", False) else ("sudo", *argv)

    def text(self, argv: Sequence[str]) -> str:
        """A command inside a sentence."""
        return quote(argv, self.shell, home=True)

    def one_line(self, commands: Sequence[str]) -> str:
        """Commands after one another; in sh each only if the one before it went well."""
        return (" && " if self.shell == POSIX else "; ").join(commands)

    @property
    def distribution(self) -> Optional[Distribution]:
        if self.os != "linux":
            return None
        name = self.facts.value("system.distribution")
        if not isinstance(name, str):
            return None
        like = " ".join(map(str, self.facts.value("system.distribution_like", [])))
        return self.matrix.distribution(name, like, self.facts.value("system.distribution_version"))

    @property
    def is_image(self) -> bool:
        """Whether packages are layered onto an image: the distribution's own package manager changes nothing then."""
        return bool(self.facts.value("system.ostree", False))

    def install(self, distribution: Distribution, packages: Sequence[str]) -> tuple[str, ...]:
        """The command, as root, that installs packages of the distribution."""
        if self.is_image:
            return self.root("rpm-ostree", "install", *packages)
        return self.root(*distribution.install_command(packages))

    def remove(self, distribution: Distribution, packages: Sequence[str]) -> tuple[str, ...]:
        """The command, as root, that removes them."""
        if self.is_image:
            return self.root("rpm-ostree", "uninstall", *packages)
        return self.root(*distribution.remove_command(packages))

    @property
    def gpus(self) -> tuple[gpu_questions.Gpu, ...]:
        return self.case.derived(gpu_questions.gpus)

    @property
    def kernel(self) -> str:
        """The running kernel's release, fit for a command."""
        return validate.kernel(self.facts.value("system.kernel_release"))

    @property
    def makes_python(self) -> bool:
        """Whether a step makes an environment with another Python: nobody has to make one beside it."""
        return "use-python" in self.kinds or self._wanted_python is not None

    def use_python(self, version: str) -> None:
        """Packages go into a new environment with this Python."""
        self._wanted_python = version
        self.target = _new_target(self, self.target, version, f"it gets Python {version}")

    @property
    def present(self) -> Need:
        """What torch has to be on this machine, before anybody's wishes; for a planned machine all that is known."""
        return self.planned if self.planned is not None else self.case.derived(need)

    def need(self, torch: str = "", variant: Optional[str] = None, keep: bool = True) -> Need:
        """What torch has to be here, with the person's wishes."""
        wanted = self.present
        torch = self.options.torch or torch
        wishes = torch or variant or self.options.companions or self.options.partners
        if not wishes and keep and self._wanted_python is None:
            return wanted
        public, _, local = torch.partition("+")
        return wanted._replace(
            torch=validate.specifier(public) if public else "",
            variant=variant or (validate.name(local) if local else None),
            # Who asks for a version does not want another one kept; a mere companion changes nothing.
            keep=keep and (not torch or _fits(wanted, torch)),
            companions=tuple(validate.requirement(text) for text in self.options.companions),
            partners=tuple(validate.requirement(text) for text in self.options.partners),
            python=self._wanted_python or wanted.python,
            free_threaded=wanted.free_threaded and self._wanted_python is None,
            python_bits=64 if self._wanted_python else wanted.python_bits,
            implementation="CPython" if self._wanted_python else wanted.implementation,
        )

    def resolved(self, torch: str = "", variant: Optional[str] = None, keep: bool = True) -> Resolution:
        wanted = self.need(torch, variant, keep)
        if self.planned is None and wanted is self.present:
            found = self.case.derived(resolution)
        else:
            found = resolve(wanted, self.matrix)
        return settled(found, self.options.answers, wanted)

    def index(self, variant: str) -> Index:
        """Where the wheels of a variant are taken from: the person's mirror where they named one."""
        return index_of(variant, self.matrix, self.options)


def index_of(variant: str, matrix: Matrix, options: Options) -> Index:
    """See `Context.index`."""
    if options.mirror is not None:
        return options.mirror.of(variant)
    return Index(matrix.index_url(validate.name(variant)))


def _fits(wanted: Need, torch: str) -> bool:
    """Whether the torch that is there is what was asked for."""
    asked = torch_specifier(torch)
    return bool(asked and wanted.installed is not None and satisfies(wanted.installed.torch, asked))


def _target(context: Context) -> Target:
    facts = context.facts
    executable = facts.value("python.executable") or _python_in_prefix(context)
    unspeakable = None
    try:
        python = validate.path(executable) if executable is not None else "python"
    except ParseError:
        # Another Python than the one that was looked at must not be changed in its place.
        python, unspeakable = "python", "the path of this environment holds characters that no command can carry"
    match = facts.value("python.version")
    present = Target(
        python=python,
        version=".".join(str(match).split(".")[:2]) if match else None,
        kind=str(facts.value("python.environment", "unknown")),
        prefix=facts.value("python.prefix"),
        has_pip=facts.value("python.pip", False if facts["python.pip"].is_absent else None),
        is_uv=bool(facts.value("python.uv_environment", False)),
    )
    why = None
    if "use-python" in context.kinds or "make-venv" in context.kinds:
        why = ""
    elif unspeakable:
        why = unspeakable
    elif facts.value("python.externally_managed", False):
        why = "the system's package manager owns this Python"
    elif present.kind == "tool":
        why = "this environment belongs to a tool"
    elif facts.value("disk.environment_writable") is False:
        why = "you may not write to this environment"
    return _new_target(context, present, present.version, why) if why is not None else present


def _python_in_prefix(context: Context) -> Optional[str]:
    """The interpreter of an environment of which only the folder is known, as a traceback tells it."""
    prefix, kind = context.facts.value("python.prefix"), context.facts.value("python.environment")
    if not isinstance(prefix, str):
        return None
    if context.os != "windows":
        # The system's own is the one on PATH, under whichever name.
        is_own = kind in ("venv", "conda") or (prefix.startswith(("/", "~/")) and not prefix.startswith("/usr"))
        return prefix.rstrip("/") + "/bin/python" if is_own else None
    if kind == "venv":
        return prefix.rstrip("\\/") + "\\Scripts\\python.exe"
    is_home = kind == "conda" or (_WINDOWS_HOME if prefix[:1] != "~" else _EMBEDDED).search(prefix)
    return prefix.rstrip("\\/") + "\\python.exe" if is_home else None


# Folders of Windows in which python.exe itself lies: of an installer, of a program that brings its own, as ComfyUI. The
# former in the user's home is on PATH as a rule, and a home can be named in PowerShell alone.
_WINDOWS_HOME = pattern(r"[\\/](?:Python3\d{1,2}(?:-32)?|python_embed\w*|python)[\\/]?$", re.IGNORECASE)
_EMBEDDED = pattern(r"[\\/]python_embed\w*[\\/]?$", re.IGNORECASE)


def _new_target(context: Context, base: Target, version: Optional[str], why: str) -> Target:
    python = f"{NEW_ENVIRONMENT}\\Scripts\\python.exe" if context.os == "windows" else f"{NEW_ENVIRONMENT}/bin/python"
    return Target(
        python=python,
        version=version,
        kind="venv",
        prefix=NEW_ENVIRONMENT,
        has_pip=True,
        is_uv=False,
        is_new=True,
        why_new=why,
    )
