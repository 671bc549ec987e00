"""LD_LIBRARY_PATH puts other CUDA libraries before torch's own

What it checks
    Whether a folder in LD_LIBRARY_PATH holds a library that torch's wheels bring as well (cuBLAS, cuDNN, NCCL,
    nvJitLink, ...), of the same number in the file name and of an older version. A newer or the same one is no fault
    unless an error about a missing symbol was reported. In a report, what LD_LIBRARY_PATH names and what ldd shows.

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

from cudadoctor.derive.surroundings import in_report
from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.wheel import CUDA, UNCLEAR, required_packages, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.record import NamedTuple
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD206",
    name="library-path-shadows-wheel",
    title="LD_LIBRARY_PATH puts other CUDA libraries before torch's own",
    severity=WARNING,
    blame=ENVIRONMENT,
    # A library that cannot be loaded stops a program before anything else can go wrong in it.
    precedence=3,
)


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux" and not (case.fact("system.os").is_unknown and in_report(case)):
        return case.skipped("LD_LIBRARY_PATH is a matter of Linux")
    build = case.derived(torch_build)
    if case.fact("libraries.on_search_path").is_unknown and in_report(case):
        return _by_the_text(case)
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


# Folders of this kind hold the driver's own libraries.
_DRIVERS_OWN = ("/usr/local/nvidia", "/usr/lib/wsl", "/compat", "/stubs")
_JAX_OLDER = "jax_library_older"
_STEMS = (
    ("__nvjitlink", "libnvJitLink"),
    ("cublaslt", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cusparse", "libcusparse"),
    ("cusolver", "libcusolver"),
    ("cudnn", "libcudnn"),
    ("nccl", "libnccl"),
    ("cufft", "libcufft"),
    ("nvrtc", "libnvrtc"),
)


def _by_the_text(case: Case) -> Outcome:
    """A report: what lies in the folders is not known, and the text may show which library was taken."""
    said = symptom(case, "library_symbol_missing", "cudnn_version_differs", _JAX_OLDER)
    path = case.fact("env.LD_LIBRARY_PATH")
    folders = [folder for folder in str(path.value or "").split(":") if _holds_cuda(folder)]
    if said is None:
        crashed = symptom(case, "segmentation_fault")
        if crashed is not None and folders and case.derived(torch_build).kind in (CUDA, UNCLEAR):
            return _failed_by_text(
                case,
                f"LD_LIBRARY_PATH puts the CUDA libraries of {folders[0]} before torch's own, and a program crashed",
                (crashed.fact, "env.LD_LIBRARY_PATH"),
                LIKELY,
                folders,
                crashed.fact,
            )
        return case.skipped("no error points to a library of another release")
    stem = _culprit(said)
    taken = _taken_from(case, stem)
    if taken is not None:
        directory = taken.rpartition("/")[0]
        return _failed_by_text(
            case,
            f"{taken.rpartition('/')[2]} is taken from {directory} and not from torch's own packages",
            (said.fact, "libraries.loaded"),
            CERTAIN,
            [directory],
            said.fact,
        )
    if folders:
        return _failed_by_text(
            case,
            f"LD_LIBRARY_PATH puts the CUDA libraries of {folders[0]} before torch's own, and {stem} does not fit",
            (said.fact, "env.LD_LIBRARY_PATH"),
            LIKELY,
            folders,
            said.fact,
        )
    if stem == "libcudnn" and "LD_LIBRARY_PATH" not in said.text:
        return case.undecided("whether LD_LIBRARY_PATH names another cuDNN is not known", ("env.LD_LIBRARY_PATH",))
    if path.is_absent or (path.is_known and not folders):
        return case.skipped("LD_LIBRARY_PATH names no folder with CUDA libraries")
    # conda's own CUDA libraries beside torch's are the likelier cause where they are there.
    conda = case.value("package.cudatoolkit.version") or case.value("package.cuda-cudart.version")
    named = "LD_LIBRARY_PATH" in said.text
    if conda and not named:
        return case.undecided(
            "conda's CUDA libraries lie beside torch's; whether LD_LIBRARY_PATH leads to others is not known",
            ("env.LD_LIBRARY_PATH",),
        )
    return _failed_by_text(
        case,
        f"LD_LIBRARY_PATH leads to another {stem} than torch's own"
        if named
        else f"another release of {stem} is found before its own: by LD_LIBRARY_PATH, where that is set",
        (said.fact,),
        POSSIBLE if conda or (said.fact.endswith(_JAX_OLDER) and not _has_newer(case, said)) else LIKELY,
        [],
        said.fact,
    )


def _holds_cuda(folder: str) -> bool:
    """Whether a folder, by its name, holds CUDA libraries that are not the driver's."""
    lowered = folder.lower()
    return any(word in lowered for word in ("cuda", "cudnn", "nccl", "tensorrt")) and not any(
        part in lowered for part in (*_DRIVERS_OWN, "site-packages")
    )


def _culprit(said: Symptom) -> str:
    """The library that is of another release: whose symbol is missing."""
    if said.fact == "symptom.cudnn_version_differs":
        return "libcudnn"
    words = (said.get("symbol") or said.get("library") or said.text).lower()
    return next((stem for word, stem in _STEMS if word in words), "a CUDA library")


def _has_newer(case: Case, said: Symptom) -> bool:
    """Whether a package with that library is installed, and newer than the one that JAX found."""
    library = case.matrix.library(f"{_culprit(said)}.so.12")
    loaded = said.get("loaded")
    for package in library.packages if library is not None else ():
        have = numbers(str(case.value(f"package.{package}.version") or "")) or ()
        # 120205 is 12.2.5
        if len(have) > 1 and loaded.isdigit() and have[:2] > (int(loaded) // 10000, int(loaded) // 100 % 100):
            return True
    return False


def _taken_from(case: Case, stem: str) -> Optional[str]:
    """Where ldd shows that this library was taken from, if that is outside of torch's own packages."""
    for entry in case.value("libraries.loaded", []):
        path = str(entry.get("path") or "")
        if str(entry.get("soname", "")).startswith(stem + ".") and "site-packages" not in path:
            return path
    return None


def _failed_by_text(
    case: Case, message: str, evidence: tuple[str, ...], certainty: str, folders: list[str], symptom_fact: str
) -> Outcome:
    effect = {symptom_fact: None}
    known_path = case.fact("env.LD_LIBRARY_PATH").is_known
    listed = [folder for folder in folders if folder in str(case.value("env.LD_LIBRARY_PATH") or "").split(":")]
    if known_path and listed:
        remedy = Remedy("change-variable", {"name": "LD_LIBRARY_PATH", "without": listed, "effect": effect})
    else:
        remedy = Remedy("unset-variable", {"name": "LD_LIBRARY_PATH", "effect": effect})
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        severity=ERROR,
        data={"directories": folders},
        fixes=(remedy,),
        not_helping=(
            "installing torch again: its libraries are whole, and others are found first",
            "a newer driver: none of these libraries comes with it",
        ),
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
