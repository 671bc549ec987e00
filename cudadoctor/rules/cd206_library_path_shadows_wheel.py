"""LD_LIBRARY_PATH puts other CUDA libraries before torch's own

What it checks
    Whether a folder in LD_LIBRARY_PATH holds a library that torch's wheels bring as well (cuBLAS, cuDNN, NCCL,
    nvJitLink, ...), of the same number in the file name and of an older version. A newer or the same one is no fault
    unless an error about a missing symbol was reported.

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

from typing import Any, Optional

from cudadoctor.derive.wheel import CUDA, required_packages, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.record import NamedTuple
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
        suspect = _shadows(case, entry, build.cuda, reported)
        if suspect is not None:
            suspects.append(suspect)
    if not suspects:
        return case.passed("LD_LIBRARY_PATH holds nothing in the way of torch's own", ("libraries.on_search_path",))
    # The surest first: an older library than the wheel's is known to break it.
    suspects.sort(key=lambda suspect: suspect.certainty != LIKELY)
    first = suspects[0]
    directories = list(dict.fromkeys(str(suspect.entry["directory"]) for suspect in suspects))
    shown = first.entry.get("version") or "version unknown"
    more = f" and {len(directories) - 1} more" if len(directories) > 1 else ""
    evidence = ["libraries.on_search_path", "libraries.search_path", f"package.{first.package}.version"]
    return case.failed(
        f"LD_LIBRARY_PATH puts {first.entry['soname']} {shown} of {directories[0]}{more} before torch's {first.own}",
        (*evidence, "symptom.library_symbol_missing") if reported else evidence,
        certainty=CERTAIN if reported and first.is_older else first.certainty,
        severity=ERROR if reported else WARNING,
        data={"directories": directories, "libraries": [suspect.entry["soname"] for suspect in suspects]},
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


class _Suspect(NamedTuple):
    """A library in LD_LIBRARY_PATH, and the package of torch's own with its version."""

    certainty: str
    entry: dict[str, Any]
    package: str
    own: str
    is_older: bool


def _shadows(case: Case, entry: dict[str, Any], cuda: str, reported: bool) -> Optional[_Suspect]:
    """Whether and how surely this library is in the way of the wheel's. Of the same version it does no harm, and a
    newer one is taken for harmless until an error says otherwise."""
    major = (numbers(cuda) or (0,))[0]
    library = case.matrix.library(str(entry.get("soname", "")), major)
    if library is None or library.from_driver:
        return None
    required = case.derived(required_packages)
    for package in library.packages:
        own = case.value(f"package.{package}.version")
        # A build that brings its libraries in other ways (conda, NVIDIA's containers) has nothing here to be shadowed.
        if own is None or package not in required:
            continue
        version = entry.get("version")
        if version is None:
            return _Suspect(POSSIBLE, entry, package, own, False)
        there, here = numbers(version) or (), numbers(own) or ()
        if there[:1] != here[:1] or there[:2] == here[:2]:
            # The file's own numbering (NVTX, CUPTI) is another than the package's, or it is the same release.
            if not (reported and there[:1] == here[:1] and there[:3] != here[:3]):
                continue
            return _Suspect(POSSIBLE, entry, package, own, there < here)
        if there < here:
            return _Suspect(LIKELY, entry, package, own, True)
        if reported:
            return _Suspect(LIKELY, entry, package, own, False)
    return None
