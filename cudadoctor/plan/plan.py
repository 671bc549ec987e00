"""A plan and what a person asks of it: data only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.resolve import Resolution

PIP = "pip"
UV = "uv"
CONDA = "conda"
INSTALLERS = (PIP, UV, CONDA)


class Options(NamedTuple):
    """What the person asked for. `installer` is pip, uv, conda or None (by the environment); `mirror` stands in for the
    base address of PyTorch's index; `torch`, `companions` and `partners` are wishes."""

    installer: Optional[str] = None
    mirror: Optional[str] = None
    torch: str = ""
    companions: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()


class Plan(NamedTuple):
    """`steps` mend what is wrong, in the order in which they are taken; `advice` would make things better and never
    runs by itself. `resolution` is the torch that was chosen on the way (None: nobody looked). `shell` is the
    shell in which the commands are pasted."""

    steps: tuple[FixStep, ...]
    advice: tuple[FixStep, ...] = ()
    resolution: Optional[Resolution] = None
    shell: str = "posix"


def wished(options: Options) -> bool:
    """Whether the person asks for something that a healthy machine may lack too."""
    return bool(options.torch or options.companions or options.partners)
