"""torchvision, torchaudio or triton do not belong to this torch

What it checks
    Whether the companions' versions are those that were made for the installed torch: by what their own metadata
    requires, else by the matrix. triton is held against what torch requires.

Why it matters
    Their compiled parts are bound to one torch: import fails with "operator torchvision::nms does not exist", an
    undefined symbol, or a missing library, and torch gets the blame.

How to fix
    Install the companions that belong to this torch, from the same index, in one command with it.

References
    https://github.com/pytorch/vision#installation
    https://pytorch.org/get-started/previous-versions/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.wheel import (
    CPU,
    CUDA,
    ROCM,
    TorchBuild,
    required_packages,
    required_torch,
    torch_build,
)
from cudadoctor.matrix import COMPANIONS
from cudadoctor.parse.versions import is_plain, satisfies, split_local
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule
from cudadoctor.rules.companions import remedy_for

RULE = Rule(
    id="CD306",
    name="companion-version-mismatch",
    title="torchvision, torchaudio or triton do not belong to this torch",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD405",),
    precedence=37,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (CUDA, CPU, ROCM) or build.release is None:
        return _by_words(case) or case.skipped("torch is not installed, or its version is not known")
    installed = [name for name in COMPANIONS if case.fact(f"package.{name}.version").is_known]
    unread = [name for name in COMPANIONS if case.fact(f"package.{name}.version").is_unknown]
    open_question: list[tuple[str, str]] = []
    for name in installed:
        fact = f"package.{name}.version"
        version = case.value(fact)
        required = _required_torch(case, name)
        if required is not None:
            if not _holds(required, build.release):
                wanted = f"it requires torch{required}"
                is_patch = _is_another_patch(required, build.release)
                return _failed(case, name, version, wanted, build.version, is_patch, f"package.{name}.requires")
            continue
        if build.is_own_build or build.is_from_conda or not _is_release(version):
            # What belongs to somebody's own build is that builder's affair.
            open_question.append((name, f"to which torch {name} {version} belongs is not known"))
            continue
        verdict = case.matrix.companion_ok(name, version, build.release)
        if verdict.answer == "no":
            why = verdict.reason.partition(", this is")[0].partition(f"{name} {version} ")[2] or verdict.reason
            is_patch = any(
                word.rstrip(",").startswith(_minor(build.release) + ".") for word in why.partition("torch ")[2].split()
            )
            return _failed(case, name, version, f"it {why}", build.version, is_patch, fact)
        if verdict.answer == "unknown":
            open_question.append((name, verdict.reason))
    triton = _triton(case, build)
    if triton is not None:
        return triton
    if open_question:
        own = [name for name, _ in open_question]
        if build.is_own_build or build.is_from_conda:
            return case.skipped(f"torch {build.version} is no build of PyTorch's index: its maker chooses {own[0]}")
        return case.undecided(open_question[0][1], tuple(f"package.{name}.version" for name in own))
    if not installed:
        found = _by_words(case)
        if found is not None:
            return found
        if unread:
            return case.undecided("cannot tell which companions are installed", (f"package.{unread[0]}.version",))
        return case.skipped("no companions are installed")
    shown = ", ".join(f"{name} {case.value(f'package.{name}.version')}" for name in installed)
    return case.passed(
        f"{shown}: made for torch {build.version}",
        ("torch.version", *(f"package.{name}.version" for name in installed)),
    )


_SAID = "symptom.companion_operator_missing"


def _by_words(case: Case) -> Optional[Outcome]:
    """torchvision's operator is unknown to torch: its extension did not load, mostly for want of the right torch. That
    a backend lacks it is another matter (CD307)."""
    text = str(case.value(_SAID, {}).get("text", ""))
    if not text or "backend" in text.lower():
        return None
    name = "torchaudio" if "torchaudio" in text or "_torch_sox" in text else "torchvision"
    return case.failed(
        f"{name}'s own operators are missing: it was made for another torch",
        (_SAID,),
        certainty=LIKELY,
        data={"package": name},
        fixes=(remedy_for(case, name, {_SAID: None}),),
        not_helping=("another driver or CUDA toolkit: the two packages do not fit each other",),
    )


def _triton(case: Case, build: TorchBuild) -> Optional[Outcome]:
    """A triton that torch's metadata does not want: torch works, torch.compile may not."""
    version = case.value("package.triton.version")
    required = case.derived(required_packages).get("triton")
    if version is None or not required or satisfies(str(version), required) is not False:
        return None
    exact = required[2:] if required.startswith("==") and "," not in required and "*" not in required else None
    text = f'Install the triton that torch requires: python -m pip install --no-deps "triton{required}"'
    remedy = Remedy("manual", {"title": "Install triton anew", "text": text, "kind": "install", "effect": _NO_TRITON})
    if exact is not None:
        remedy = Remedy("reinstall-package", {"pins": {"triton": exact}})
    return case.failed(
        f"triton {version} does not belong to torch {build.version}, which requires triton{required}",
        ("package.triton.version", "package.torch.requires"),
        certainty=LIKELY,
        severity=WARNING,
        data={"package": "triton", "version": version},
        fixes=(remedy,),
        not_helping=("another driver or CUDA toolkit: triton brings its own",),
    )


_NO_TRITON = {"package.triton.version": None}


def _is_release(version: str) -> bool:
    """Whether a companion's version is one of the index, and no nightly or build of somebody's own."""
    public, local = split_local(version)
    return is_plain(public) and (not local or local == "cpu" or local.startswith(("cu", "rocm", "xpu")))


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _required_torch(case: Case, name: str) -> Optional[str]:
    """What the companion's metadata requires of torch ("==2.9.1", ">=2.14"), or None where it says nothing."""
    for specifier in required_torch(case, name):
        # Some name the build as well (==2.9.1+cu128): that is the affair of CD307.
        return ",".join(clause.partition("+")[0] for clause in specifier.split(","))
    return None


def _holds(specifier: str, release: str) -> bool:
    """A build of 2.14 that is not yet released (2.14.0a0) counts as 2.14 too."""
    base = release
    for sign in ("a", "b", "rc", ".dev"):
        base = base.partition(sign)[0]
    return satisfies(release, specifier) is not False or (".dev" not in release and satisfies(base, specifier) is True)


def _is_another_patch(specifier: str, release: str) -> bool:
    """Whether it wants another patch release of the same minor, or another night's build: pip objects, and as a rule it
    works."""
    return specifier.startswith("==") and _minor(specifier[2:]) == _minor(release)


def _failed(case: Case, name: str, version: str, why: str, torch: Optional[str], is_patch: bool, fact: str) -> Outcome:
    evidence = dict.fromkeys(("torch.version", f"package.{name}.version", fact))
    return case.failed(
        f"{name} {version} does not belong to torch {torch}: {why}",
        tuple(evidence),
        severity=WARNING if is_patch else None,
        certainty=LIKELY if is_patch else CERTAIN,
        data={"package": name, "version": version},
        fixes=(remedy_for(case, name, {f"package.{name}.requires": None}),),
        not_helping=("another driver or CUDA toolkit: the two packages do not fit each other",),
    )
