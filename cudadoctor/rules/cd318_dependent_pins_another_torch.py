"""An installed package wants another torch

What it checks
    Whether the packages that require one torch release (vllm, xformers, sglang, torchtune and others) require the one
    that is installed: by their own metadata, else by cudadoctor's matrix, else by what pip complained of.

Why it matters
    The next pip install moves torch back to what the package wants, often to a build without CUDA, because it asks the
    default index. Until then the package runs with a torch that it was not made for, or fails to import.

How to fix
    Install the torch that it wants from the index of a CUDA variant, or the release of the package that goes with the
    torch that is there. Install both in one command, so that pip finds versions that agree.

References
    https://pip.pypa.io/en/stable/topics/dependency-resolution/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.wheel import CPU, CUDA, required_torch, torch_build
from cudadoctor.matrix import COMPANIONS
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.versions import satisfies
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD318",
    name="dependent-pins-another-torch",
    title="An installed package wants another torch",
    severity=WARNING,
    blame=ENVIRONMENT,
    follows_from=("CD308", "CD405"),
    precedence=42,
)

# They have rules of their own.
_OTHERS = ("torch", *COMPANIONS, "triton", "pytorch-triton", "triton-windows")
_PIP_SAYS = "symptom.requirement_conflict"
_EXACT = pattern(r"==([0-9]+(?:\.[0-9]+){1,2})(?:\.\*)?")


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if build.kind not in (CUDA, CPU) or build.release is None:
        return case.skipped("torch is not installed, or its version is not known")
    unknown: list[str] = []
    fitting: list[str] = []
    for name in _dependents(case):
        version = str(case.value(f"package.{name}.version"))
        stated = required_torch(case, name)
        pin = None if stated else case.matrix.pin(name, version.partition("+")[0])
        wanted = stated[0] if stated else pin.torch if pin is not None else None
        if wanted is None:
            if case.matrix.pins(name) and not case.fact(f"package.{name}.requires").is_known:
                unknown.append(name)
            continue
        if _holds(build.release, wanted):
            fitting.append(name)
            continue
        if build.is_own_build or case.fact(f"package.{name}.built_for_torch").is_known:
            continue  # its maker's affair; that of CD308
        fact = f"package.{name}.requires" if stated else f"package.{name}.version"
        return _failed(case, name, version, wanted, (fact, "torch.version"), CERTAIN if stated else LIKELY)
    said = case.value(_PIP_SAYS, {})
    package, wants = str(said.get("package", "")).lower(), str(said.get("wants", ""))
    wanted = wants[len("torch") :].strip(" ()") if wants.startswith("torch") and not wants[5:6].isalpha() else ""
    if package and package not in _OTHERS and wanted and not _holds(build.release, wanted):
        version = str(said.get("version", ""))
        return _failed(case, package, version, wanted, (_PIP_SAYS, "torch.version"), CERTAIN)
    if unknown:
        name = unknown[0]
        return case.undecided(
            f"which torch {name} {case.value(f'package.{name}.version')} wants is not known",
            (f"package.{name}.version",),
        )
    if not fitting:
        return case.skipped("no installed package is tied to one torch")
    return case.passed(
        f"{', '.join(fitting)}: made for torch {build.release}",
        ("torch.version", *(f"package.{name}.version" for name in fitting)),
    )


def _dependents(case: Case) -> list[str]:
    found = []
    for key, fact in case.facts.under("package").items():
        name, _, what = key.rpartition(".")
        if what == "version" and fact.is_known and name not in _OTHERS:
            found.append(name)
    return sorted(found)


def _holds(release: str, specifier: str) -> bool:
    """What cannot be read holds; the build tag is no affair of this rule; a release to come counts as released."""
    plain = ",".join(clause.partition("+")[0] for clause in specifier.split(","))
    base = release
    for sign in ("a", "b", "rc", ".dev"):
        base = base.partition(sign)[0]
    return satisfies(release, plain) is not False or satisfies(base, plain) is not False


def _failed(case: Case, name: str, version: str, wanted: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    build = case.derived(torch_build)
    return case.failed(
        f"{name} {version} wants torch{wanted}, and torch {build.version} is installed".replace("  ", " "),
        tuple(dict.fromkeys((*evidence, f"package.{name}.version"))),
        certainty=certainty,
        data={"package": name, "version": version, "wants": wanted},
        fixes=(_remedy(case, name, wanted),),
        not_helping=("another driver or CUDA toolkit: two packages disagree about torch",),
    )


def _remedy(case: Case, name: str, wanted: str) -> Remedy:
    """The torch that it wants where a build of it serves this machine, else the release for the torch that is there."""
    exact = _EXACT.match(wanted)
    build = case.derived(torch_build)
    effect = {_PIP_SAYS: None, f"package.{name}.requires": None, f"package.{name}.version": None}
    if exact is not None and _serves(case, exact.group(1)):
        return Remedy("install-torch", {"torch": exact.group(1), "keep": False, "effect": {_PIP_SAYS: None}})
    fitting = next((pin.version for pin in case.matrix.pins(name) if _holds(build.release or "", pin.torch)), None)
    if fitting is not None:
        index = "torch" if name == "xformers" else ""
        return Remedy("reinstall-package", {"pins": {name: fitting}, "index": index, "effect": effect})
    return Remedy(
        "manual",
        {
            "title": f"Bring {name} and torch together",
            "text": f"{name} wants torch{wanted}. Install it and torch in one command, in an environment of its own if "
            "something else needs the torch that is here.",
            "kind": "install",
            "effect": effect,
        },
    )


def _serves(case: Case, torch: str) -> Optional[bool]:
    """Whether a build of that torch runs on this machine."""
    from cudadoctor.resolve import need, resolve

    wanted = case.derived(need)._replace(torch=f"=={torch}", keep=False, pins=())
    return resolve(wanted, case.matrix).choice is not None
