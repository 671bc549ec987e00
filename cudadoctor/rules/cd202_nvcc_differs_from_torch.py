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

from typing import Any

from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.model import Fact, known
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
    reported = case.fact("symptom.cuda_version_mismatch").is_known
    if build.kind != CUDA or build.cuda is None:
        return case.skipped("no torch built with CUDA")
    version, evidence = _nvcc_of_a_build(case)
    if version.is_absent:
        return case.skipped("no nvcc on PATH: not needed to run")
    if not version.is_known:
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
        not_helping=("a driver update: the driver's CUDA number has no part in building",),
    )


def _nvcc_of_a_build(case: Case) -> tuple[Fact[Any], tuple[str, ...]]:
    """The version of the nvcc that torch's extension builder calls, with the facts that tell: that of CUDA_HOME, else
    that on PATH."""
    home = case.value("toolkit.cuda_home") or {}
    if home.get("has_nvcc"):
        for entry in case.value("toolkit.found", []):
            if entry.get("root") == home.get("path") and entry.get("version"):
                return known(entry["version"], str(home.get("variable"))), ("toolkit.cuda_home", "toolkit.found")
    return case.fact("toolkit.nvcc_on_path_version"), ("toolkit.nvcc_on_path_version",)


def _isolated(case: Case, nvcc: str, cuda: str, evidence: tuple[str, ...]) -> Outcome:
    return case.failed(
        f"nvcc {nvcc} fits torch's CUDA {cuda}: the build took another torch, as pip's build isolation does",
        (*evidence, "symptom.cuda_version_mismatch"),
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
