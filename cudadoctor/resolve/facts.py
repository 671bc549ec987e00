"""From the facts of a machine to the need that its torch has to meet."""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.derive import driver as driver_questions
from cudadoctor.derive import gpus as gpu_questions
from cudadoctor.derive.case import Case
from cudadoctor.derive.left_out import within_reach
from cudadoctor.derive.surroundings import on_jetson
from cudadoctor.derive.wheel import MISSING, UNCLEAR, platform_key, required_torch, torch_build
from cudadoctor.matrix import COMPANIONS, numbers
from cudadoctor.parse.versions import is_plain, satisfies, split_local
from cudadoctor.resolve.choose import resolve
from cudadoctor.resolve.need import (
    BROKEN,
    NONE,
    PRESENT,
    UNKNOWN,
    WORKS,
    Gpu,
    Installed,
    Need,
    Pin,
    Resolution,
)

# What comes and goes with torch binds nothing: torch wants one triton, not the other way round.
_WITH_TORCH = ("torch", *COMPANIONS, "triton")


def need(case: Case) -> Need:
    """What torch has to be on this machine, in this environment, changed as little as may be."""
    python = case.value("python.version")
    installed = _installed(case)
    return Need(
        gpus=tuple(
            Gpu(gpu.label, gpu.compute_capability.value if gpu.compute_capability.is_known else None, gpu.index)
            # A card for the screen alone, or one of another job, asks nothing of torch.
            for gpu in case.derived(within_reach)
        ),
        gpu_state={gpu_questions.PRESENT: PRESENT, gpu_questions.NONE: NONE}.get(
            case.derived(gpu_questions.presence).state, UNKNOWN
        ),
        driver=_driver(case),
        driver_state=_driver_state(case),
        numbering=driver_questions.numbering(case),
        platform=case.derived(platform_key) or "linux-x86_64",
        python=_minor(python),
        free_threaded=bool(case.value("python.free_threaded", False)),
        python_bits=int(case.value("python.bits", 64)),
        implementation=str(case.value("python.implementation", "CPython")),
        glibc=case.value("system.glibc"),
        libc=str(case.value("system.libc", "glibc")),
        wsl=case.fact("system.wsl").is_known,
        jetson=on_jetson(case),
        installed=installed,
        # PyTorch's own instructions put torchvision beside a new torch.
        welcome=() if installed is not None else ("torchvision",),
        pins=_pins(case),
    )


def resolution(case: Case) -> Resolution:
    """Which torch build serves this machine, changing as little as cures. Ask with `case.derived(resolution)`."""
    return resolve(case.derived(need), case.matrix)


def _driver(case: Case) -> Optional[str]:
    version = case.derived(driver_questions.version)
    if version.is_known and is_plain(version.get()):
        return version.get()
    # After the reboot or reload that mends a mismatch it is the library's version that counts.
    library = case.value("driver.library_version")
    if isinstance(library, str) and is_plain(library):
        return library
    return _driver_of_words(case) if version.is_unknown else None


def _driver_of_words(case: Case) -> Optional[str]:
    """The branch of a driver of which torch tells in a report which CUDA it serves ("found version 12020")."""
    found = str(case.value("symptom.driver_too_old", {}).get("found") or "")
    if not found.isdigit():
        return None
    cuda = (int(found) // 1000, int(found) % 1000 // 10)
    for branch in case.matrix.branches():
        if (numbers(branch.cuda) or ()) == cuda:
            return branch.number("windows" if driver_questions.numbering(case) == "windows" else "linux")
    return None


def _driver_state(case: Case) -> str:
    answer = case.derived(driver_questions.answer).state
    if answer == driver_questions.YES:
        return WORKS
    if answer == driver_questions.NO:
        return BROKEN if _driver(case) is not None else NONE
    return UNKNOWN


def _minor(python: object) -> Optional[str]:
    match = re.match(r"(\d+\.\d+)", python) if isinstance(python, str) else None
    return match.group(1) if match else None


def _installed(case: Case) -> Optional[Installed]:
    build = case.derived(torch_build)
    if build.kind in (MISSING, UNCLEAR) or build.release is None:
        return None
    companions = tuple(
        (name, split_local(str(case.value(f"package.{name}.version"))).public)
        for name in COMPANIONS
        if case.fact(f"package.{name}.version").is_known
    )
    broken = bool(case.value("torch.missing_libraries", [])) or len(case.value("torch.copies", [])) > 1
    return Installed(build.release, build.variant, companions, broken)


def _pins(case: Case) -> tuple[Pin, ...]:
    """What the other packages of the environment want of torch: what their metadata requires, what their compiled parts
    were built for, which CUDA they have libraries for.

    What the present torch does not satisfy has been overruled already and binds no more, except for packages that the
    matrix knows: people have torch for their sake.
    """
    found = []
    present = _installed(case)
    for package in sorted({name.rpartition(".")[0] for name in case.facts.under("package")}):
        version = case.value(f"package.{package}.version")
        if isinstance(version, str) and package not in _WITH_TORCH:
            found += _pins_of(case, package, split_local(version).public, present)
    return tuple(found)


def _pins_of(case: Case, package: str, version: str, present: Optional[Installed]) -> list[Pin]:
    known = case.matrix.pin(package, version)
    built_for_cuda = case.value(f"package.{package}.built_for_cuda")
    cuda = known.cuda if known is not None else ()
    if isinstance(built_for_cuda, str):
        cuda = (built_for_cuda.partition(".")[0],)
    wants = required_torch(case, package)
    minor = _minor(case.value(f"package.{package}.built_for_torch"))
    if minor is not None and not any("==" in text or _is_open(text, minor) for text in wants):
        pins = [Pin(package, version, f"=={minor}.*", cuda, built=True)]
    elif wants:
        pins = [Pin(package, version, specifier, cuda) for specifier in wants]
    elif known is not None or cuda:
        pins = [Pin(package, version, known.torch if known is not None else "", cuda)]
    else:
        return []
    if present is not None and not case.matrix.pins(package):
        return [pin for pin in pins if satisfies(present.torch, pin.specifier) is not False]
    return pins


def _is_open(specifier: str, minor: str) -> bool:
    """Whether a package that was built for one torch says (torch>=2.10) that it takes newer ones as well, as those with
    the stable ABI do: the least that it takes is not older than what it was built for."""
    least = specifier[len(">=") :].partition(",")[0]
    return specifier.startswith(">=") and (numbers(least) or ())[:2] >= (numbers(minor) or ())
