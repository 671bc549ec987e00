"""What the compatibility data is looked up with, and what it answers: the tables both ways. Data only; the looking up
is in `look_up`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from cudadoctor.model.record import NamedTuple

from .tables import (
    Architecture,
    Branch,
    Build,
    DriverBound,
    Floor,
    Gpu,
    GpuMatch,
    HostCompiler,
    Toolkit,
    TorchRelease,
    Verdict,
)
from .versions import numbers, torch_key

YES, LIKELY, NO, UNKNOWN = "yes", "likely", "no", "unknown"

# Of a wheel for a Python that was seen for the release, but not for the very build.
INFERRED = "inferred"

# From bad to good: a build is as good as the worst that is said of it.
_ANSWERS = (NO, UNKNOWN, LIKELY, YES)


class UnknownVersion(Exception):
    """The data has no such ``kind`` ("torch", "CUDA") of version. The message says which."""

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(f"{kind} {version} is not known")
        self.kind = kind


class Question(NamedTuple):
    """What is looked up. ``system`` ("linux", "windows", "wsl") is the numbering of ``driver`` and of driver floors;
    ``platforms`` are those whose builds are looked at. ``torch`` is "2.6", "2.6.0" or "2.6.0+cu124", ``cuda`` "12.4" or
    "12", ``python`` "3.12" or "3.13t"; None: not asked. ``day`` is today, for ends of life (None: the data's own)."""

    gpus: tuple[GpuMatch, ...] = ()
    driver: Optional[str] = None
    torch: Optional[str] = None
    cuda: Optional[str] = None
    python: Optional[str] = None
    system: str = "linux"
    platforms: tuple[str, ...] = ("linux-x86_64",)
    day: Optional[str] = None

    @property
    def variant(self) -> Optional[str]:
        """ "cu124" of torch 2.6.0+cu124."""
        return (self.torch or "").partition("+")[2] or None


class Line(NamedTuple):
    """A build, and what is said of it: for each GPU, for the driver, for the Python; each None where not asked.
    ``floor`` is the oldest driver for its CUDA, in the numbers of that system (None: a CPU build, or not known), and
    ``branch`` the driver branch with which its GPUs begin, where that is a later one."""

    build: Build
    release: TorchRelease
    floor: Optional[str]
    branch: Optional[str]
    gpus: tuple[Verdict, ...]
    driver: Optional[Verdict]
    python: Optional[Verdict]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return (*self.gpus, *(verdict for verdict in (self.driver, self.python) if verdict is not None))

    @property
    def answer(self) -> str:
        """Whether it runs: "yes", "likely" (PTX), "unknown" or "no"."""
        return min((verdict.answer for verdict in self.verdicts), key=_ANSWERS.index, default=YES)

    @property
    def passes(self) -> bool:
        return self.answer in (YES, LIKELY)

    @property
    def reason(self) -> str:
        """What keeps it from running, or makes that uncertain; empty where nothing does."""
        worst = self.answer
        return "" if worst == YES else next(v.reason for v in self.verdicts if v.answer == worst)

    @property
    def inferred(self) -> bool:
        """There is a wheel for the Python in the release, but nobody has seen it of this very build."""
        return self.python is not None and self.python.via == INFERRED

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Newer is greater: torch first, CUDA second."""
        return torch_key(self.build.torch) or (), numbers(self.build.cuda or "0") or ()


class Served(NamedTuple):
    """Whether the driver runs programs of a CUDA major: ``cuda`` is "12.x", or "10.1" for the newest that it does."""

    cuda: str
    verdict: Verdict


class Driven(NamedTuple):
    """Whether the driver drives the GPUs of an architecture; for "no", ``needed`` is the branch that does."""

    architecture: Architecture
    verdict: Verdict


class DriverView(NamedTuple):
    """A driver. ``branch`` is None where its number belongs to none that is known; ``newest`` is the newest known
    one. ``over``: its support has ended, by every source (None: not known)."""

    driver: str
    system: str
    branch: Optional[Branch]
    newest: Branch
    serves: tuple[Served, ...]
    drives: tuple[Driven, ...]
    over: Optional[bool]

    @property
    def is_newer(self) -> bool:
        """Newer than every driver that the data knows."""
        if self.branch is not None:
            return False
        first = (numbers(self.driver) or (0,))[0]
        return first > max((self.newest.linux, *(self.newest.windows if self.system != "linux" else ())))


class GpuView(NamedTuple):
    """A GPU. ``products`` are all that the name can be. ``first_branch`` is the first that can drive it,
    ``seen_branch`` the first known to drive this very product, where that is later. ``drives`` and ``compiles``:
    whether the driver that was asked for drives it, and the toolkit compiles for it. ``first`` and ``last``: the oldest
    and the newest build with code for it, of the newest CUDA where there are several; ``best``: the newest that runs on
    it alone, as all was asked (where several GPUs were)."""

    match: GpuMatch
    capability: str
    architecture: Architecture
    products: tuple[Gpu, ...]
    first_branch: Optional[DriverBound]
    seen_branch: Optional[DriverBound]
    last_branch: Optional[DriverBound]
    drives: Optional[Verdict]
    compiles: Optional[Verdict]
    first: Optional[Line]
    last: Optional[Line]
    best: Optional[Line]

    @property
    def label(self) -> str:
        if self.match.kind == "capability":
            return f"a GPU of compute capability {self.capability}"
        names = tuple(dict.fromkeys(row.name for row in self.match.rows))
        if len(names) == 1 or (names and self.match.text.strip().isdigit()):
            return names[0]
        return self.match.text.strip()

    @property
    def by_ptx(self) -> bool:
        """No build has machine code for it; what runs, runs by PTX."""
        return self.last is not None and self.last.answer == LIKELY

    @property
    def target(self) -> str:
        """ "sm_89"."""
        return "sm_" + self.capability.replace(".", "")


class TorchView(NamedTuple):
    """A torch release. ``others`` are the releases that the question could mean as well."""

    release: TorchRelease
    others: tuple[str, ...]


class CudaView(NamedTuple):
    """A CUDA version. ``toolkits`` are its releases, newest first (none: there never was such a toolkit, or it is not
    known); ``shown_by`` are the driver branches whose nvidia-smi shows it; ``ptx_branch`` the first one that compiles
    its PTX. ``served`` and ``ptx``: whether the driver that was asked for runs its programs and compiles its PTX."""

    cuda: str
    toolkits: tuple[Toolkit, ...]
    floor: Optional[Floor]
    shown_by: tuple[Branch, ...]
    ptx_branch: Optional[Branch]
    compilers: tuple[HostCompiler, ...]
    compiles_for: tuple[Architecture, ...]
    adds: tuple[Architecture, ...]
    drops: tuple[Architecture, ...]
    builds: tuple[Line, ...]
    served: Optional[Verdict]
    ptx: Optional[Verdict]


class Refused(NamedTuple):
    """A variant with no build that runs, and why its newest one does not."""

    variant: str
    line: Line


class Answer(NamedTuple):
    """Everything that a question is told.

    ``lines``: of one torch, all its builds; else the newest build of each variant that runs, newest CUDA first.
    ``unsure`` and ``announced`` are newer builds of which that is not known, or that no source has seen on an index.
    ``default``: what a plain ``pip install torch`` gives on each platform.
    """

    question: Question
    driver: Optional[DriverView]
    gpus: tuple[GpuView, ...]
    torch: Optional[TorchView]
    cuda: Optional[CudaView]
    lines: tuple[Line, ...]
    refused: tuple[Refused, ...]
    unsure: tuple[Line, ...]
    announced: tuple[Line, ...]
    default: tuple[Line, ...]
    oldest_torch: str
    """The oldest release in the data: what begins with it may have begun before."""

    @property
    def misfits(self) -> tuple[GpuView, ...]:
        """The GPUs that the driver does not drive: no build helps them."""
        return tuple(gpu for gpu in self.gpus if gpu.drives is not None and gpu.drives.answer == NO)

    @property
    def best(self) -> Optional[Line]:
        """The newest seen build that runs; a plain yes goes before a likely one."""
        return best_of(self.lines)


def best_of(lines: Iterable[Line]) -> Optional[Line]:
    """The newest seen build that runs; a plain yes goes before a likely one, and in a release a wheel that was seen for
    the Python before one that is only inferred."""
    fit = [line for line in lines if line.passes and line.build.seen]
    sure = [line for line in fit if line.answer == YES]
    return max(sure or fit, key=lambda line: (line.key[0], not line.inferred, line.key[1]), default=None)
