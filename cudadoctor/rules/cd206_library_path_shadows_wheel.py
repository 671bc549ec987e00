"""LD_LIBRARY_PATH puts other CUDA libraries before torch's own

What it checks
    Whether a folder in LD_LIBRARY_PATH holds a library that torch's wheels bring as well (cuBLAS, cuDNN, NCCL,
    nvJitLink, ...), of the same number in the file name and of another version.

Why it matters
    The loader looks there first. An older nvJitLink or cuDNN in front of the wheel's ends in "undefined symbol
    __nvJitLink...", CUDNN_STATUS_NOT_INITIALIZED, or wrong sublibrary versions at import.

How to fix
    Take the folder out of LD_LIBRARY_PATH for programs that use the wheels. Where another program needs it, set it for
    that one only.

References
    https://man7.org/linux/man-pages/man8/ld.so.8.html
"""

from __future__ import annotations

from typing import Any

from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD206",
    name="library-path-shadows-wheel",
    title="LD_LIBRARY_PATH puts other CUDA libraries before torch's own",
    severity=WARNING,
    blame=ENVIRONMENT,
    precedence=36,
)


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux":
        return case.skipped("LD_LIBRARY_PATH is a matter of Linux")
    build = case.derived(torch_build)
    if build.kind != CUDA or build.cuda is None:
        return case.skipped("no torch built with CUDA")
    found = case.fact("libraries.on_search_path")
    if found.is_absent or found.value == []:
        return case.passed("LD_LIBRARY_PATH holds no CUDA libraries", ("libraries.search_path",))
    if not found.is_known:
        return case.undecided(f"cannot look into LD_LIBRARY_PATH: {found.reason}", ("libraries.on_search_path",))
    reported = case.fact("symptom.library_symbol_missing").is_known
    suspects = []
    for entry in found.get():
        suspect = _shadows(case, entry, build.cuda)
        if suspect is not None:
            suspects.append(suspect)
    if not suspects:
        return case.passed("LD_LIBRARY_PATH holds nothing in the way of torch's own", ("libraries.on_search_path",))
    # The surest first: an older library than the wheel's is known to break it.
    suspects.sort(key=lambda suspect: suspect[0] != LIKELY)
    certainty, entry, package, own = suspects[0]
    directories = list(dict.fromkeys(str(suspect[1]["directory"]) for suspect in suspects))
    shown = entry.get("version") or "of unknown version"
    return case.failed(
        f"{entry['directory']} in LD_LIBRARY_PATH holds {entry['soname']} ({shown}) before torch's own ({own})",
        ("libraries.on_search_path", "libraries.search_path", f"package.{package}.version"),
        certainty=CERTAIN if reported and certainty == LIKELY else certainty,
        severity=ERROR if reported else WARNING,
        data={"directories": directories, "libraries": [suspect[1]["soname"] for suspect in suspects]},
        fixes=(
            Remedy(
                "change-variable",
                {
                    "name": "LD_LIBRARY_PATH",
                    "without": directories,
                    "effect": {"symptom.library_symbol_missing": None},
                },
            ),
        ),
        not_helping=("installing torch again: its libraries are whole, and others are found first",),
    )


def _shadows(case: Case, entry: dict[str, Any], cuda: str) -> tuple[str, dict[str, Any], str, str] | None:
    """How sure it is that this library is in the way of the wheel's, with the package that brings the wheel's own."""
    library = case.matrix.library(str(entry.get("soname", "")), int(cuda.partition(".")[0]))
    if library is None or library.from_driver:
        return None
    for package in library.packages:
        own = case.value(f"package.{package}.version")
        if own is None:
            continue
        version = entry.get("version")
        if version is None:
            return POSSIBLE, entry, package, own
        if _numbers(version)[:2] < _numbers(own)[:2]:
            return LIKELY, entry, package, own
    return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in str(text).split(".") if part.isdigit())
