"""There is no torch wheel for this Python

What it checks
    Whether any torch release has a wheel for this version of Python (and for its free-threaded kind) on this platform.

Why it matters
    pip then says "Could not find a version that satisfies the requirement torch (from versions: none)". New Pythons get
    their wheels some months after their release; old ones lose them.

How to fix
    Use a Python that torch has wheels for; cudadoctor fix names one and makes a virtual environment with it.

References
    https://pytorch.org/get-started/locally/
    https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.wheel import MISSING, UNCLEAR, platform_key, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model.pattern import pattern
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD401",
    name="no-wheel-for-python",
    title="There is no torch wheel for this Python",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=("CD402",),
    precedence=33,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (MISSING, UNCLEAR):
        return case.passed("torch is installed, so there was a wheel", ("torch.version",))
    version = case.fact("python.version")
    platform = case.derived(platform_key)
    if version.is_absent:
        return case.skipped("no Python environment to install into")
    said = next((name for name in _PIP_SAYS if _of_torch(case, name)), None)
    if not version.is_known and said is not None and case.value("python.bits") != 32:
        told = _by_what_pip_saw(case, platform or "linux-x86_64")
        if told is not None:
            return told
    if version.is_known and platform is None and said is not None:
        platform = "linux-x86_64"  # pip asked for torch: the Pythons are nearly the same everywhere
    if not version.is_known or platform is None:
        return case.undecided("cannot tell Python's version or the platform", ("python.version", "system.arch"))
    if case.value("python.implementation", "CPython") != "CPython":
        message = f"{case.value('python.implementation')} has no torch wheels: they are for CPython"
        return _failed(case, message, (), ("python.implementation",), CERTAIN)
    reported = _reported(case, str(version.get()), platform)
    if reported is not None:
        return reported
    tag = ".".join(version.get().split(".")[:2]) + ("t" if case.value("python.free_threaded", False) else "")
    pythons = case.matrix.wheel_pythons(platform)
    if not pythons:
        return case.undecided(f"the matrix knows no wheels for {platform}", ("system.os", "system.arch"))
    if tag in pythons:
        return case.passed(f"torch {pythons[tag]} has wheels for Python {tag}", ("python.version",))
    if build.kind == UNCLEAR:
        return case.undecided("cannot tell whether torch is installed", ("torch.version",))
    plain = sorted((p for p in pythons if not p.endswith("t")), key=lambda p: numbers(p) or ())
    # A Python that came out after the matrix may have its wheels by now.
    is_newer = (numbers(tag.rstrip("t")) or ()) > (numbers(plain[-1]) or ())
    known = " that cudadoctor knows" if is_newer else ""
    return _failed(
        case,
        f"no torch release{known} has a wheel for Python {tag} on {platform}, only for {plain[0]} to {plain[-1]}",
        tuple(plain),
        ("python.version", "system.os", "system.arch"),
        LIKELY if is_newer else CERTAIN,
    )


_PIP_SAYS = ("symptom.no_matching_wheel", "symptom.version_not_on_index", "symptom.wheel_not_supported")
_OF_PYTORCH = pattern(r"download\.pytorch\.org/whl/(cu\d{3})/?$")
_RELEASE = pattern(r"torch\s*==\s*([0-9]+(?:\.[0-9]+){1,2})")


def _by_what_pip_saw(case: Case, platform: str) -> Optional[Outcome]:
    """Of a Python that the text does not tell: pip lists the releases that have a wheel for it."""
    others = case.value("symptom.version_not_on_index", {})
    requirement = str(others.get("requirement") or "")
    listed = [
        word for word in str(others.get("versions") or "").replace(",", " ").split() if numbers(word.partition("+")[0])
    ]
    asked = _RELEASE.match(requirement)
    if listed and all(word.startswith("0.1.2") for word in listed):
        # Two source packages of 2017 are all that fits any Python.
        return _failed(
            case,
            "pip finds no wheel of torch for this Python: it is too new, too old, or a 32-bit build",
            (),
            ("symptom.version_not_on_index",),
            LIKELY,
        )
    if listed and asked is not None:
        newest = max((numbers(word.partition("+")[0]) or () for word in listed), default=())
        tags = {word.partition("+")[2] for word in listed}
        tag = tags.pop() if len(tags) == 1 else ""
        release = case.matrix.torch_release(asked.group(1))
        there = release is not None and (tag == "" or release.variant(tag) is not None)
        if there and release is not None and (numbers(release.version) or ()) > newest:
            has = {python for build in release.builds(platform) for python in build.pythons if not python.endswith("t")}
            return _failed(
                case,
                f"pip finds torch up to {listed[-1]} for this Python: it is too old for torch {release.version}",
                tuple(sorted(has, key=lambda python: numbers(python) or ())),
                ("symptom.version_not_on_index",),
                LIKELY,
            )
    # On an index of PyTorch's the list begins with the first release of that CUDA variant.
    if listed and asked is not None and not any("+" in word for word in listed):
        oldest = min((numbers(word) or () for word in listed), default=())
        wanted = numbers(asked.group(1)) or oldest
        # Of long-term releases (1.8.2) the first of their minor tells.
        releases = [r for r in case.matrix.torch_releases() if (numbers(r.version) or ())[:2] == wanted[:2]]
        if wanted < oldest and releases:
            has = {tag for r in releases for b in r.builds(platform) for tag in b.pythons if not tag.endswith("t")}
            return _failed(
                case,
                f"pip finds torch from {listed[0]} on for this Python: torch {asked.group(1)} is older than it",
                tuple(sorted(has, key=lambda tag: numbers(tag) or ())),
                ("symptom.version_not_on_index",),
                LIKELY,
            )
    nothing = case.value("symptom.no_matching_wheel", {}).get("versions") == "none"
    index = _OF_PYTORCH.search(str(case.value("install.index_url") or ""))
    whole = index is not None and any(r.variant(index.group(1)) is not None for r in case.matrix.torch_releases())
    if nothing and (whole or not case.fact("install.index_url").is_known):
        # An index of PyTorch's has torch: that pip finds none there is for want of a wheel that fits.
        where = f" on the index of {index.group(1)}" if index is not None else ""
        return _failed(
            case,
            f"pip finds no torch at all{where} for this Python: it is too new, too old, or a 32-bit build",
            (),
            ("symptom.no_matching_wheel",),
            POSSIBLE,
        )
    return None


def _of_torch(case: Case, name: str) -> bool:
    said = case.value(name, {})
    text = str(said.get("requirement") or said.get("wheel") or "").lower()
    return text.startswith("torch") and not text[5:6].isalpha()


def _reported(case: Case, python: str, platform: str) -> Optional[Outcome]:
    """What pip said of one release, or on the first days of a Python."""
    said = next((name for name in _PIP_SAYS if _of_torch(case, name)), None)
    if said is None or case.value("python.bits") == 32:
        return None
    minor = ".".join(python.split(".")[:2]) + ("t" if case.value("python.free_threaded", False) else "")
    asked = _RELEASE.match(str(case.value(said).get("requirement") or ""))
    release = case.matrix.torch_release(asked.group(1)) if asked else None
    if release is not None:
        has = {tag for build in release.builds(platform) for tag in build.pythons}
        if has and minor not in has:
            usable = sorted((tag for tag in has if not tag.endswith("t")), key=lambda tag: numbers(tag) or ())
            return _failed(
                case,
                f"torch {release.version} has no wheel for Python {minor}, only for {usable[0]} to {usable[-1]}",
                tuple(usable),
                (said, "python.version"),
                CERTAIN,
            )
    if (
        asked is None
        and python.endswith(".0")
        and python.count(".") == 2
        and minor in case.matrix.wheel_pythons(platform)
    ):
        return _failed(
            case,
            f"pip found no torch for Python {python}, the first of its kind: wheels for a new Python come months later",
            tuple(
                sorted(
                    (
                        p
                        for p in case.matrix.wheel_pythons(platform)
                        if (numbers(p) or (9, 99)) < (numbers(minor) or ())
                    ),
                    key=lambda p: numbers(p) or (),
                )
            ),
            (said, "python.version"),
            LIKELY,
        )
    return None


def _failed(case: Case, message: str, pythons: tuple[str, ...], evidence: tuple[str, ...], certainty: str) -> Outcome:
    newest = case.matrix.torch_releases()[0]
    # One below the newest Python that has wheels: companions and extensions follow later than torch itself.
    usable = pythons or tuple(
        python for wheel in newest.builds("linux-x86_64")[:1] for python in wheel.pythons if not python.endswith("t")
    )
    wanted = usable[-2] if len(usable) > 1 else usable[-1]
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        data={"pythons": list(pythons)},
        fixes=(
            Remedy(
                "use-python",
                {"version": wanted, "effect": {"python.implementation": "CPython", **dict.fromkeys(_PIP_SAYS)}},
            ),
            Remedy("install-torch", {}),
        ),
        not_helping=("another index or a newer pip: there is no such wheel to find",),
    )
