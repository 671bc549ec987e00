"""A plan and what a person asks of it: data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Optional

from cudadoctor.model import FixStep
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.plan.index import Mirror
    from cudadoctor.resolve import Need, Resolution

PIP = "pip"
UV = "uv"
CONDA = "conda"
INSTALLERS = (PIP, UV, CONDA)

_NOTHING: Mapping[tuple[str, str], int] = {}
_NO_VERSIONS: Mapping[str, str] = {}


class IndexAnswers(NamedTuple):
    """What an index was seen to hold (`--online`), by torch release and variant. `without`: companions, by name and
    version, that it lacks; `download`: bytes of a build's own wheels, its companions included."""

    has: frozenset[tuple[str, str]] = frozenset()
    lacks: frozenset[tuple[str, str]] = frozenset()
    without: frozenset[tuple[str, str]] = frozenset()
    download: Mapping[tuple[str, str], int] = _NOTHING


class Options(NamedTuple):
    """What the person asked for. `installer` is pip, uv, conda or None (by the environment); `mirror` stands in for
    PyTorch's index; `torch`, `companions` and `partners` are wishes; `answers` is what an index was seen to hold."""

    installer: Optional[str] = None
    mirror: Optional[Mirror] = None
    torch: str = ""
    companions: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    answers: IndexAnswers = IndexAnswers()


class Plan(NamedTuple):
    """`steps` mend what is wrong, in the order in which they are taken; `advice` would make things better and never
    runs by itself. `resolution` is the torch that was chosen on the way (None: nobody looked), `need` what for.
    `shell` is the shell in which the commands are pasted. `before` are the versions of what an install of torch
    replaces, `undo` the one line that brings them back, `download` the bytes that the steps download (None: not known).
    `driver_words` say which driver branches the GPUs take, where that is in question.
    """

    steps: tuple[FixStep, ...]
    advice: tuple[FixStep, ...] = ()
    resolution: Optional[Resolution] = None
    shell: str = "posix"
    need: Optional[Need] = None
    before: Mapping[str, str] = _NO_VERSIONS
    undo: str = ""
    download: Optional[int] = None
    driver_words: tuple[str, ...] = ()


def wished(options: Options) -> bool:
    """Whether the person asks for something that a healthy machine may lack too."""
    return bool(options.torch or options.companions or options.partners)
