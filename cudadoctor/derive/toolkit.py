"""Which nvcc a build would call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudadoctor.model import Fact, known
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case


class Nvcc(NamedTuple):
    """The version of an nvcc, and the facts that tell it."""

    version: Fact[str]
    evidence: tuple[str, ...]


def nvcc_of_a_build(case: Case) -> Nvcc:
    """The nvcc that torch's extension builder calls: that of CUDA_HOME, else that on PATH, else the only one that is
    installed."""
    home = case.value("toolkit.cuda_home") or {}
    found = [entry for entry in case.value("toolkit.found", []) if entry.get("nvcc")]
    if home.get("has_nvcc"):
        for entry in found:
            if entry.get("root") == home.get("path") and entry.get("version"):
                return Nvcc(known(entry["version"], str(home.get("variable"))), ("toolkit.cuda_home", "toolkit.found"))
    return Nvcc(case.fact("toolkit.nvcc_on_path_version"), ("toolkit.nvcc_on_path_version",))
