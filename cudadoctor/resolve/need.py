"""What the resolver is asked and what it answers; data only.

A `Need` is one machine, environment and wish as plain values, so that the choice of a wheel can be asked for a machine
that nobody has ever looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.matrix import Branch

# What is known of the GPUs and of the driver.
PRESENT = "present"
NONE = "none"
UNKNOWN = "unknown"
WORKS = "works"
BROKEN = "broken"

LINUX = "linux"
WINDOWS = "windows"

CPU = "cpu"

# What becomes of a package for the sake of the choice.
UP = "up"
DOWN = "down"
AWAY = "away"
REBUILD = "rebuild"

FORWARD_COMPAT = "forward-compat"

# What can stand against a build.
BY_GPU = "gpu"
BY_DRIVER = "driver"
BY_PLATFORM = "platform"
BY_PYTHON = "python"
BY_GLIBC = "glibc"
BY_REQUEST = "request"
BY_PIN = "pin"
BY_COMPANION = "companion"
BY_INDEX = "index"


class Gpu(NamedTuple):
    """One GPU: what people call it, its compute capability ("8.9"; None: not known), its number where a driver lists
    it."""

    label: str
    capability: Optional[str]
    number: Optional[int] = None


class Installed(NamedTuple):
    """The torch that is there: public version, variant ("cu126", "cpu"; None where nothing tells) and companions with
    their public versions. `broken`: it does not run whatever the GPU (missing libraries, two copies, ...)."""

    torch: str
    variant: Optional[str]
    companions: tuple[tuple[str, str], ...] = ()
    broken: bool = False


class Pin(NamedTuple):
    """What an installed package requires of torch: vllm 0.33.0 wants ==2.14.0. `cuda` are the CUDA versions that it has
    binaries for ("12.6", or "12" for any 12.x; empty: not known). `built`: it was compiled for that torch, and requires
    none by name."""

    package: str
    version: str
    specifier: str
    cuda: tuple[str, ...] = ()
    built: bool = False


class Need(NamedTuple):
    """One question to the resolver.

    `driver` is a version in the numbering of `numbering` (WSL counts as windows); `driver_state` is works, broken,
    none or unknown. `python` is "3.12" or None (not known: nothing is ruled out by it), `glibc` likewise. `torch` is
    what the person asks for ("2.7.*"; empty: nothing), `variant` a build that they ask for. `companions` (torchvision,
    torchaudio) have to be there, `welcome` ones are taken where there are any; `partners` are other packages that are
    asked for, tied to torch releases (vllm) or to CUDA (jax). Companions and partners may name versions: "vllm<0.30".
    `keep` says that an installed torch keeps its version where it can. `cuda_major` is the CUDA that a partner brings
    ("12"), of which torch has to be, too: NVIDIA's cudnn and nccl of two majors are the same files.
    """

    gpus: tuple[Gpu, ...] = ()
    gpu_state: str = UNKNOWN
    driver: Optional[str] = None
    driver_state: str = UNKNOWN
    numbering: str = LINUX
    platform: str = "linux-x86_64"
    python: Optional[str] = None
    free_threaded: bool = False
    python_bits: int = 64
    implementation: str = "CPython"
    glibc: Optional[str] = None
    libc: str = "glibc"
    wsl: bool = False
    jetson: bool = False
    installed: Optional[Installed] = None
    torch: str = ""
    variant: Optional[str] = None
    companions: tuple[str, ...] = ()
    welcome: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    keep: bool = True
    cuda_major: Optional[str] = None

    @property
    def python_tag(self) -> Optional[str]:
        """As the matrix names it: "3.13", free-threaded "3.13t"."""
        if self.python is None:
            return None
        return self.python + ("t" if self.free_threaded else "")


class Objection(NamedTuple):
    """Why a build is no choice. `needed` is what would lift it: a driver number, a Python, a glibc."""

    by: str
    reason: str
    needed: Optional[str] = None


class Choice(NamedTuple):
    """One torch build and what belongs to it.

    `companions` maps names to versions with their local part: torchvision, torchaudio, and what else was asked for and
    lies beside torch on its index. `replaces_by_name`: packages whose local version on the index is not known, so that
    a pin alone may leave another build of the same version in place. `certainty` is certain or likely. `assumes` says
    what was not known and is taken for granted. `partners` come from PyPI, after torch. `sources` name where the
    numbers in `reasons` were read.
    """

    torch: str
    variant: str
    cuda: Optional[str]
    local: Optional[str]
    index_url: str
    python: Optional[str]
    pythons: tuple[str, ...]
    companions: tuple[tuple[str, str], ...] = ()
    replaces_by_name: tuple[str, ...] = ()
    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    certainty: str = "certain"
    assumes: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    platform: str = ""
    seen: bool = True
    nvidia: tuple[tuple[str, str], ...] = ()
    triton: Optional[str] = None
    partners: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """As `torch.__version__` says it: 2.14.1+cu126."""
        return self.torch + (f"+{self.local or self.variant}" if (self.local or self.variant) else "")

    @property
    def requirements(self) -> tuple[str, ...]:
        """What an installer is told: torch first, then the companions."""
        torch = f"torch=={self.torch}" + (f"+{self.local}" if self.local else "")
        return (torch, *(f"{name}=={version}" for name, version in self.companions))


class Split(NamedTuple):
    """GPUs that one build serves, where no single build serves all."""

    gpus: tuple[Gpu, ...]
    choice: Choice


class Blocker(NamedTuple):
    """One change that would open a better build. `by` is what stands in the way, `needed` what it takes (a driver
    number on this system, a Python), `opens` the build that it opens."""

    by: str
    needed: Optional[str]
    change: str
    opens: Choice


class Move(NamedTuple):
    """A package of the environment that has to change for the choice.

    `have` is its version now, `to` the one to install (None where none is known). `direction`: up, down, rebuild (the
    same or an unknown release, built for the chosen torch) or away (no release is known that goes with it).
    """

    package: str
    have: str
    to: Optional[str]
    direction: str
    reason: str


class OtherWay(NamedTuple):
    """Something else than the change that a blocker names, which opens a build as well.

    `kind` is "forward-compat": NVIDIA's package of newer user libraries beside the old kernel driver. `needed` is the
    package's name, `change` says it in words, `reason` under which conditions it works.
    """

    kind: str
    change: str
    needed: Optional[str]
    opens: Choice
    reason: str


class DriverRange(NamedTuple):
    """Driver branches for a machine's GPUs: the `first` that drives them all (None: not known), the `last` that does
    (None: all newer ones do) and the one to install (`fitting`; None: no branch drives them all). `flavour` is what the
    Linux kernel modules have to be: "open", "proprietary", "either", or None (not known, or not both together)."""

    first: Optional[Branch] = None
    last: Optional[Branch] = None
    fitting: Optional[Branch] = None
    flavour: Optional[str] = None


class Framework(NamedTuple):
    """A package that was asked for and is bound to CUDA and the driver, not to torch (jax, cupy).

    `requirement` is what an installer is told ("jax[cuda12]==0.10.1"), None where no release serves this machine:
    `reasons` say why. `cuda` is the CUDA major that it brings or needs ("12"), `better` what would open a newer one.
    `brings_cuda`: with NVIDIA's cudnn or nccl, which lie where those of another major do.
    """

    name: str
    requirement: Optional[str]
    cuda: Optional[str] = None
    reasons: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    certainty: str = "certain"
    brings_cuda: bool = False


class Resolution(NamedTuple):
    """The answer.

    Without a `choice`: `reasons` say why, `blocked_by` what would open one, `split` which build serves which GPU.
    `split` beside a choice: newer builds that each kind of GPU could have in an environment of its own.
    `nothing_to_do`: the installed build is the choice. `driver_first`: why the driver is to be mended before any wheel
    matters. `undecided`: what is not known and would decide. `moves`: packages of the environment that have to change
    with torch. `other_ways`: what else than a blocker's change would open a better build. `drivers`: the branches for
    the GPUs, where they are known. `frameworks`: what was asked for and is not bound to torch. `not_helping`: what
    people try in vain. `clash`: why one system cannot drive all the GPUs, whatever build serves them.
    """

    choice: Optional[Choice]
    alternatives: tuple[Choice, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    reasons: tuple[str, ...] = ()
    split: tuple[Split, ...] = ()
    nothing_to_do: bool = False
    driver_first: Optional[str] = None
    undecided: Optional[str] = None
    objections: tuple[Objection, ...] = ()
    moves: tuple[Move, ...] = ()
    other_ways: tuple[OtherWay, ...] = ()
    drivers: Optional[DriverRange] = None
    frameworks: tuple[Framework, ...] = ()
    not_helping: tuple[str, ...] = ()
    clash: Optional[str] = None
