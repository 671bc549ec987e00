"""torchvision, torchaudio or triton do not belong to this torch

What it checks
    Whether the companions' versions are those that were made for the installed torch: by what their own metadata
    requires, else by the matrix.

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

from cudadoctor.derive.wheel import CPU, CUDA, ROCM, torch_build
from cudadoctor.rules.api import ENVIRONMENT, ERROR, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD306",
    name="companion-version-mismatch",
    title="torchvision, torchaudio or triton do not belong to this torch",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD405",),
    precedence=37,
)

_COMPANIONS = ("torchvision", "torchaudio")


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (CUDA, CPU, ROCM) or build.release is None:
        return case.skipped("torch is not installed, or its version is not known")
    installed = [name for name in _COMPANIONS if case.fact(f"package.{name}.version").is_known]
    unread = [name for name in _COMPANIONS if case.fact(f"package.{name}.version").is_unknown]
    open_question = ""
    for name in installed:
        fact = f"package.{name}.version"
        version = case.value(fact).partition("+")[0]
        required = _required_torch(case, name)
        if required is not None and not _holds(required, build.release):
            return _failed(case, name, version, f"it requires torch{required}", build.version, fact)
        if required is not None:
            continue
        verdict = case.matrix.companion_ok(name, version, build.release)
        if verdict.answer == "no":
            return _failed(case, name, version, verdict.reason.partition(", this is")[0], build.version, fact)
        if verdict.answer == "unknown":
            open_question = verdict.reason
    if open_question:
        return case.undecided(open_question, tuple(f"package.{name}.version" for name in installed))
    if not installed:
        if unread:
            return case.undecided("cannot tell which companions are installed", (f"package.{unread[0]}.version",))
        return case.skipped("no companions are installed")
    shown = ", ".join(f"{name} {case.value(f'package.{name}.version')}" for name in installed)
    return case.passed(
        f"{shown}: made for torch {build.version}",
        ("torch.version", *(f"package.{name}.version" for name in installed)),
    )


def _required_torch(case: Case, name: str) -> str | None:
    """What the companion's metadata requires of torch ("==2.9.1", ">=2.14"), or None where it says nothing."""
    for requirement in case.value(f"package.{name}.requires", []):
        text = requirement.partition(";")[0].strip().replace(" ", "").replace("(", "").replace(")", "")
        if text.startswith("torch") and text[5:6] in ("=", ">", "<", "~", "!"):
            return str(text[5:])
    return None


def _holds(specifier: str, release: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier).contains(release, prereleases=True)
    except InvalidSpecifier:
        return True


def _failed(case: Case, name: str, version: str, why: str, torch: str | None, fact: str) -> Outcome:
    return case.failed(
        f"{name} {version} does not belong to torch {torch}: {why}",
        ("torch.version", fact, f"package.{name}.requires"),
        severity=WARNING if name == "torchaudio" and "belongs" not in why and "requires" not in why else None,
        data={"package": name, "version": version},
        fixes=(Remedy("reinstall-companions", {"packages": [name], "effect": {f"package.{name}.requires": None}}),),
        not_helping=("another driver or CUDA toolkit: the two packages do not fit each other",),
    )
