"""For which GPUs the builds of a release were compiled, as torch's own source says it. Read, never run.

torch/cuda/__init__.py since 2.13: the GPU lists of all Linux builds of that release, by CUDA version and machine.

    PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {
        "12.6": {
            "x86_64": {50, 60, 70, 75, 80, 86, 90},
            "aarch64": {80, 90},
        },
        "13.2": {
            "x86_64": {75, 80, 86, 90, 100, 120},
            "aarch64": {80, 90, 100, 110, 120},
        },
    }

Up to 2.12 the table was flat, {"13.0": {75, 80, 86, 90, 100, 110, 120}}: the machines thrown together, so it is the
list of no build and is not taken. A version that stands in the table need not have been published.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudadoctor.model.record import NamedTuple

from .arch import parse_arch
from .errors import ParseError

_TABLE = re.compile(r"^PYTORCH_RELEASES_CODE_CC\b[^=\n]{0,200}=\s{0,4}(?=\{)", re.M)
_LONGEST_TABLE = 20_000
_CUDA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}", re.ASCII)


class BuildArchs(NamedTuple):
    """Compiled targets as the matrix writes them: "86" for sm_86, "90a" for sm_90a; `ptx`: "120" for compute_120."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]


class BuildKey(NamedTuple):
    """A Linux build: CUDA version and machine (x86_64, aarch64)."""

    cuda: str
    machine: str


def parse_release_archs(text: str) -> dict[BuildKey, BuildArchs]:
    """The table in torch/cuda/__init__.py. Empty where there is none that names each machine. ParseError where a table
    stands there that cannot be read."""
    import ast

    found = _TABLE.search(text)
    if found is None:
        return {}
    start = found.end()
    end = text.find("\n}", start, start + _LONGEST_TABLE)
    try:
        table = ast.literal_eval(text[start : end + 2] if end > 0 else "")
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ParseError(
            "the table of GPU lists in torch/cuda/__init__.py is laid out in a way not known here"
        ) from None
    builds = {}
    for cuda, by_machine in table.items() if isinstance(table, dict) else ():
        if not isinstance(by_machine, dict) or not isinstance(cuda, str) or not _CUDA.fullmatch(cuda):
            continue
        for machine, targets in by_machine.items():
            numbers = sorted(targets) if _are_targets(targets) else []
            if numbers and isinstance(machine, str):
                builds[BuildKey(cuda, machine)] = BuildArchs(tuple(map(str, numbers)), ())
    return builds


def _are_targets(value: object) -> bool:
    return isinstance(value, (set, list, tuple)) and all(
        isinstance(item, int) and not isinstance(item, bool) and 20 <= item <= 999 for item in value
    )


def targets_of(names: Iterable[str]) -> BuildArchs:
    """The list that torch.cuda.get_arch_list() gives, ("sm_75", "compute_90"), as the matrix writes it. ParseError for
    any other word."""
    archs = [parse_arch(name) for name in names]
    written = [(arch.kind, f"{arch.major}{arch.minor}{arch.suffix}") for arch in archs]
    return BuildArchs(
        tuple(target for kind, target in written if kind == "sm"),
        tuple(target for kind, target in written if kind == "compute"),
    )
