"""Several CUDA toolkits are installed

What it checks
    How many toolkits there are, and whether PATH and CUDA_HOME lead to the same one.

Why it matters
    It is no fault: each program may use its own. A build that finds nvcc by PATH and headers by CUDA_HOME mixes two.

How to fix
    For building, let both lead to one toolkit. Running torch uses none of them.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
"""

from __future__ import annotations

from cudadoctor.derive.wheel import torch_build
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import ENVIRONMENT, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD204",
    name="several-toolkits",
    title="Several CUDA toolkits are installed",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=57,
)


def judge(case: Case) -> Outcome:
    found = case.fact("toolkit.found")
    if found.is_absent or found.value == []:
        return case.skipped("no toolkit is installed")
    if not found.is_known:
        return case.undecided(f"cannot tell which toolkits there are: {found.reason}", ("toolkit.found",))
    versions = sorted(
        {str(entry.get("version")) for entry in found.get() if entry.get("version")}, key=lambda v: numbers(v) or ()
    )
    home = case.value("toolkit.cuda_home") or {}
    home_version = next(
        (entry.get("version") for entry in found.get() if home and entry.get("root") == home.get("path")), None
    )
    on_path = case.value("toolkit.nvcc_on_path_version")
    if home_version and on_path and _release(home_version) != _release(on_path):
        variable = home.get("variable", "CUDA_HOME")
        return case.failed(
            f"PATH leads to nvcc {on_path} and {variable} to CUDA {home_version}: a build may mix the two",
            ("toolkit.nvcc_on_path_version", "toolkit.cuda_home", "toolkit.found"),
            certainty=LIKELY,
            data={"versions": versions},
            fixes=(_one_for_both(case, variable, str(home_version), str(on_path)),),
        )
    if len({_release(version) for version in versions}) > 1:
        several = ", ".join(versions)
        return case.passed(f"CUDA toolkits {several}: no fault, running uses none of them", ("toolkit.found",))
    return case.passed(f"one CUDA toolkit ({', '.join(versions) or 'version unknown'})", ("toolkit.found",))


def _release(version: str) -> tuple[str, ...]:
    """The release that makes two toolkits different: 12.4 of 12.4.131."""
    return tuple(version.split(".")[:2])


def _one_for_both(case: Case, variable: str, home_version: str, on_path: str) -> Remedy:
    """PATH follows the variable, unless only the nvcc on PATH is of torch's CUDA major."""
    wanted = (case.derived(torch_build).cuda or "").partition(".")[0]
    if on_path.partition(".")[0] == wanted != home_version.partition(".")[0]:
        return Remedy("unset-variable", {"name": variable, "effect": {"toolkit.cuda_home": None}})
    return Remedy(
        "manual",
        {
            "title": f"Put the nvcc of {variable} first on PATH",
            "text": f'In the shell that builds: export PATH="${variable}/bin:$PATH" (on Windows, move that folder up '
            "in Path). Only building is concerned.",
            "kind": "setting",
            "effect": {"toolkit.nvcc_on_path_version": home_version},
        },
    )
