"""nvcc and torch are of different CUDA majors

What it checks
    Whether the CUDA major of the nvcc that a build would use (CUDA_HOME's, else the one on PATH) is the one that torch
    was built with.

Why it matters
    It does not matter for running. Building an extension ends in "The detected CUDA version mismatches the version that
    was used to compile PyTorch" when the majors differ; another minor of the same major is accepted.

How to fix
    For building, point CUDA_HOME at a toolkit of torch's CUDA major, or install one. Where the two fit and a build
    complains all the same, it was built against another torch: pip install --no-build-isolation. Running needs nothing.

References
    https://pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.toolkit import nvcc_of_a_build
from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.matrix import numbers
from cudadoctor.model import known
from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD202",
    name="nvcc-differs-from-torch",
    title="nvcc and torch are of different CUDA majors",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=56,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    said = symptom(case, "cuda_version_mismatch")
    reported = said is not None
    if said is not None and said.get("toolkit") and said.get("torch"):
        outcome = _by_the_words(case, said)
        if outcome is not None:
            return outcome
    if build.kind != CUDA or build.cuda is None:
        if said is not None:
            return _words_alone(case, said)
        return case.skipped("no torch built with CUDA")
    version, evidence = case.derived(nvcc_of_a_build)
    if said is not None and not version.is_known and said.get("toolkit"):
        version, evidence = known(said.get("toolkit"), said.fact), (said.fact,)
    if version.is_absent:
        return case.skipped("no nvcc on PATH: not needed to run")
    if not version.is_known:
        if said is not None:
            return _words_alone(case, said)
        return case.undecided(f"cannot tell nvcc's version: {version.reason}", evidence)
    nvcc = str(version.get())
    evidence = (*evidence, "torch.cuda")
    if _major(nvcc) == _major(build.cuda):
        if reported:
            return _isolated(case, nvcc, build.cuda, evidence)
        return case.passed(f"nvcc {nvcc} can build extensions for torch's CUDA {build.cuda}", evidence)
    effect: dict[str, Any] = {
        "toolkit.nvcc_on_path_version": build.cuda,
        "toolkit.cuda_home": None,
        "symptom.cuda_version_mismatch": None,
    }
    remedy = Remedy("install-toolkit", {"version": build.cuda, "effect": effect})
    fitting = [
        entry
        for entry in case.value("toolkit.found", [])
        if entry.get("nvcc") and entry.get("root") and _major(str(entry.get("version") or "")) == _major(build.cuda)
    ]
    if fitting:
        home = {"variable": "CUDA_HOME", "path": fitting[0]["root"], "exists": True, "has_nvcc": True}
        effect = {"toolkit.cuda_home": home, "symptom.cuda_version_mismatch": None}
        remedy = Remedy("change-variable", {"name": "CUDA_HOME", "value": fitting[0]["root"], "effect": effect})
        evidence = (*evidence, "toolkit.found")
    return case.failed(
        f"nvcc {nvcc} cannot build extensions for torch's CUDA {build.cuda}"
        + ("" if reported else "; running is not affected"),
        (*evidence, "symptom.cuda_version_mismatch") if reported else evidence,
        severity=ERROR if reported else None,
        fixes=(remedy,),
        not_helping=_NOT_HELPING,
    )


def _by_the_words(case: Case, said: Symptom) -> Optional[Outcome]:
    """The build's own words name both numbers. None where the rest of the facts says as much or more."""
    nvcc, cuda = said.get("toolkit"), said.get("torch").rstrip(".")
    build = case.derived(torch_build)
    if build.kind == CUDA and build.cuda is not None:
        if _major(build.cuda) != _major(cuda):
            # The torch that is installed is not the one that the build saw.
            if _major(build.cuda) == _major(nvcc):
                return _isolated(case, nvcc, build.cuda, (said.fact, "torch.cuda"))
            return None
        if case.derived(nvcc_of_a_build).version.is_known:
            return None
    if _major(nvcc) == _major(cuda):
        return None
    return case.failed(
        f"nvcc {nvcc} cannot build extensions for a torch of CUDA {cuda}",
        (said.fact, "torch.cuda") if build.cuda is not None else (said.fact,),
        severity=ERROR,
        fixes=(
            Remedy(
                "install-toolkit",
                {"version": cuda, "why": _other_ways(case, nvcc), "effect": {said.fact: None}},
            ),
        ),
        not_helping=_NOT_HELPING,
    )


def _words_alone(case: Case, said: Symptom) -> Outcome:
    numbers = " and ".join(text for text in (said.get("toolkit"), said.get("torch")) if text)
    return case.failed(
        "nvcc is of another CUDA than the torch that a build saw" + (f" ({numbers})" if numbers else ""),
        (said.fact,),
        severity=ERROR,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Bring nvcc and torch to one CUDA major",
                    "text": _other_ways(case, said.get("toolkit"))
                    + " Or install a toolkit of torch's CUDA major and set CUDA_HOME to it.",
                    "kind": "install",
                    "effect": {said.fact: None},
                },
            ),
        ),
        not_helping=_NOT_HELPING,
    )


_OTHER_WAYS = (
    "The build may have seen another torch than yours: pip builds in an environment of its own, unless it is told "
    "--no-build-isolation. The other way is a torch for the CUDA of this nvcc"
)
_NOT_HELPING = ("a driver update: the driver's CUDA number has no part in building",)


def _other_ways(case: Case, nvcc: str) -> str:
    """With the index whose torch this nvcc builds for, where there is one."""
    variant = _variant(case, nvcc)
    return f"{_OTHER_WAYS}, from the index {variant}." if variant else f"{_OTHER_WAYS}."


def _variant(case: Case, nvcc: str) -> Optional[str]:
    """The variant of torch for the same CUDA, else the nearest of its major: the majors have to agree. None: torch was
    never built for it."""
    have = numbers(nvcc) or ()
    known_ones = {
        number: variant.name
        for release in case.matrix.torch_releases()
        for variant in release.variants
        if (number := numbers(variant.cuda or "")) and number[:1] == have[:1]
    }
    if len(have) < 2 or not known_ones:
        return None
    below = [number for number in known_ones if number[:2] <= have[:2]]
    return known_ones[max(below) if below else min(known_ones)]


def _isolated(case: Case, nvcc: str, cuda: str, evidence: tuple[str, ...]) -> Outcome:
    return case.failed(
        f"nvcc {nvcc} fits torch's CUDA {cuda}: the build took another torch, as pip's build isolation does",
        tuple(dict.fromkeys((*evidence, "symptom.cuda_version_mismatch"))),
        severity=ERROR,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Build against the installed torch",
                    "text": "Repeat the installation with: python -m pip install --no-build-isolation PACKAGE. By "
                    "default pip builds in an environment of its own, into which it fetches the newest torch.",
                    "kind": "install",
                    "effect": {"symptom.cuda_version_mismatch": None},
                },
            ),
        ),
        not_helping=("another toolkit or driver: nvcc and the installed torch fit each other",),
    )


def _major(version: str) -> str:
    return version.partition(".")[0]
