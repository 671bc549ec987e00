"""The system's C library is too old for torch's wheels

What it checks
    Whether glibc is at least what the wheels need (their manylinux tag), and whether the system uses glibc at all:
    there are no torch wheels for musl (Alpine).

Why it matters
    pip passes over wheels that the system cannot load: it says that no version matches, or installs an old one. A wheel
    that was copied in by force ends in "version GLIBC_2.28 not found".

How to fix
    Use a container or a conda environment with a newer base, update the system, or take the last torch whose wheels the
    system can load.

References
    https://github.com/pypa/manylinux
    https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

from cudadoctor.derive.wheel import MISSING, UNCLEAR, platform_key, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD403",
    name="glibc-too-old",
    title="The system's C library is too old for torch's wheels",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=34,
)


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux" and not case.fact("symptom.glibc_version_missing").is_known:
        return case.skipped("only Linux wheels need a glibc")
    build = case.derived(torch_build)
    if case.value("system.libc") == "musl":
        if build.kind not in (MISSING, UNCLEAR):
            return case.skipped("this torch was not built from the usual wheels")
        return case.failed(
            "this system uses musl instead of glibc, and torch has no wheels for it",
            ("system.libc",),
            fixes=(_newer_base(),),
            not_helping=("another Python or index: no wheel for musl exists",),
        )
    glibc = case.fact("system.glibc")
    missed = case.value("symptom.glibc_version_missing", {})
    if missed:
        needed = str(missed.get("needed") or "")
        if not needed or not glibc.is_known or _numbers(glibc.get()) < _numbers(needed):
            return _reported(case, needed)
    if not glibc.is_known:
        return case.undecided(f"cannot tell the version of glibc: {glibc.reason or 'not found'}", ("system.glibc",))
    have = _numbers(glibc.get())
    if build.row is not None and build.row.glibc and not build.is_from_conda:
        if have < _numbers(build.row.glibc):
            return _failed(case, f"torch {build.version}", build.row.glibc, LIKELY, ERROR)
        return case.passed(f"glibc {glibc.get()}, and torch needs {build.row.glibc}", ("system.glibc", "torch.version"))
    if build.kind not in (MISSING, UNCLEAR):
        return case.passed(f"glibc {glibc.get()}; torch is installed", ("system.glibc",))
    platform = case.derived(platform_key) or "linux-x86_64"
    floors = case.matrix.glibc_floors(platform)
    if not floors:
        return case.undecided(f"the matrix knows no wheels for {platform}", ("system.arch",))
    if have < min(map(_numbers, floors)):
        return _failed(case, "every torch wheel", min(floors, key=_numbers), CERTAIN, ERROR)
    if have < _numbers(floors[0]):
        # Advice: older releases run here, and the plan chooses among those.
        return _failed(case, "the current torch", floors[0], CERTAIN, INFO)
    return case.passed(f"glibc {glibc.get()} is new enough for every wheel", ("system.glibc",))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _failed(case: Case, what: str, needed: str, certainty: str, severity: str) -> Outcome:
    return case.failed(
        f"{what} needs glibc {needed}, and this system has {case.value('system.glibc')}",
        ("system.glibc", "system.distribution_name"),
        certainty=certainty,
        severity=severity,
        data={"needed": needed},
        fixes=(_newer_base(needed),),
        not_helping=("a newer pip: the wheels are there, and this system cannot load them",),
    )


def _reported(case: Case, needed: str) -> Outcome:
    """The loader itself said so, whatever the platform tag of the wheel promises."""
    have = f", and this system has {case.value('system.glibc')}" if case.fact("system.glibc").is_known else ""
    return case.failed(
        f"a library needs glibc {needed or 'of a newer system'}{have}",
        ("symptom.glibc_version_missing", "system.glibc"),
        data={"needed": needed},
        fixes=(_newer_base(needed),),
        not_helping=("a newer pip, or installing the same package again: this system cannot load it",),
    )


def _newer_base(needed: str = "") -> Remedy:
    wanted = f" with glibc {needed} or newer" if needed else " with glibc"
    return Remedy(
        "manual",
        {
            "title": f"Use a base system{wanted}",
            "text": f"Run in a container or a conda environment whose base has a system{wanted}, or update this one. "
            "The driver of the host serves containers too.",
            "kind": "manual",
            "effect": {
                "system.libc": "glibc",
                "system.glibc": needed or "2.39",
                "symptom.glibc_version_missing": None,
            },
        },
    )
