"""No CUDA toolkit (nvcc)

What it checks
    Whether a CUDA toolkit is installed, where a build asked for one.

Why it matters
    torch's wheels bring their own CUDA runtime: running needs no toolkit, and a missing nvcc is no fault. Only building
    CUDA extensions from source (flash-attn, apex, custom operators) needs nvcc.

How to fix
    Install a toolkit of the CUDA major that torch was built with, and set CUDA_HOME to it. Where a ready wheel of the
    extension exists for this torch, that is the shorter way.

References
    https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
    https://pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

from typing import Any

from cudadoctor.derive.symptoms import Symptom, symptom
from cudadoctor.derive.wheel import torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, INFO, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD201",
    name="nvcc-missing",
    title="No CUDA toolkit (nvcc)",
    severity=INFO,
    blame=ENVIRONMENT,
    follows_from=("CD203",),
    precedence=55,
)


def judge(case: Case) -> Outcome:
    found = case.fact("toolkit.found")
    on_path = case.fact("toolkit.nvcc_on_path")
    version = case.value("toolkit.nvcc_on_path_version")
    with_nvcc = [entry for entry in case.value("toolkit.found", []) if entry.get("nvcc")]
    said = symptom(case, "nvcc_missing")
    if on_path.is_known:
        shown = f"nvcc {version}" if version else "nvcc is installed"
        return case.passed(shown, ("toolkit.nvcc_on_path", "toolkit.nvcc_on_path_version"))
    if with_nvcc and said is not None:
        return _not_found_by_the_build(case, with_nvcc)
    if said is not None and version:
        return _on_path_alone(case, said, version)
    if with_nvcc:
        entry = with_nvcc[0]
        shown = f"nvcc {entry['version']}" if entry.get("version") else "nvcc is installed"
        return case.passed(f"{shown} in {entry.get('root')}, not on PATH", ("toolkit.found",))
    if version:
        return case.passed(f"nvcc {version}", ("toolkit.nvcc_on_path_version",))
    if said is not None:
        return case.failed(
            "a build needs the CUDA toolkit's nvcc, and there is none",
            ("symptom.nvcc_missing", "toolkit.found"),
            severity=ERROR,
            certainty=LIKELY if found.is_unknown else CERTAIN,
            fixes=(
                Remedy(
                    "install-toolkit",
                    {"effect": {"symptom.nvcc_missing": None, "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc"}},
                ),
            ),
            not_helping=(
                "another torch build: wheels bring the CUDA runtime and never nvcc",
                "a newer driver: nvcc does not come with it",
            ),
        )
    if symptom(case, "shell_without_nvcc") is not None:
        return case.skipped("no nvcc: not needed, torch's wheels bring their own CUDA runtime")
    if found.is_unknown and on_path.is_unknown:
        return case.undecided("cannot tell whether there is a CUDA toolkit", ("toolkit.found", "toolkit.nvcc_on_path"))
    return case.skipped("no nvcc: not needed, torch's wheels bring their own CUDA runtime")


def _on_path_alone(case: Case, said: Symptom, version: str) -> Outcome:
    """A report that shows an nvcc, and a build that did not find it: nobody knows where it lies."""
    return case.failed(
        f"a build did not find nvcc, though nvcc {version} is on PATH: CUDA_HOME does not lead to its toolkit",
        (said.fact, "toolkit.nvcc_on_path_version"),
        severity=ERROR,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Tell the build where the toolkit is",
                    "text": 'In the shell that builds: export CUDA_HOME="$(dirname "$(dirname "$(readlink -f "$('
                    'command -v nvcc)")")")", and repeat it with pip install --no-build-isolation.',
                    "kind": "setting",
                    "effect": {said.fact: None},
                },
            ),
        ),
        not_helping=("installing another toolkit: this one is there, the build only has to find it",),
    )


def _not_found_by_the_build(case: Case, with_nvcc: list[dict[str, Any]]) -> Outcome:
    """A toolkit is there, and the build that failed looked elsewhere: the one of torch's CUDA major is the one to
    name."""
    cuda = case.derived(torch_build).cuda or ""
    fitting = [e for e in with_nvcc if str(e.get("version") or "").partition(".")[0] == cuda.partition(".")[0]]
    entry = (fitting or with_nvcc)[0]
    home = {"variable": "CUDA_HOME", "path": entry["root"], "exists": True, "has_nvcc": True}
    return case.failed(
        f"a build did not find nvcc: it is in {entry['root']}, and neither PATH nor CUDA_HOME leads there",
        ("symptom.nvcc_missing", "toolkit.found", "toolkit.nvcc_on_path"),
        severity=ERROR,
        certainty=LIKELY,
        fixes=(
            Remedy(
                "change-variable",
                {
                    "name": "CUDA_HOME",
                    "value": entry["root"],
                    "effect": {"symptom.nvcc_missing": None, "toolkit.cuda_home": home},
                },
            ),
        ),
        not_helping=("installing another toolkit: this one is whole, the build only has to find it",),
    )
