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

from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD201",
    name="nvcc-missing",
    title="No CUDA toolkit (nvcc)",
    severity=INFO,
    blame=ENVIRONMENT,
    precedence=55,
)


def judge(case: Case) -> Outcome:
    found = case.fact("toolkit.found")
    on_path = case.fact("toolkit.nvcc_on_path")
    with_nvcc = [entry for entry in case.value("toolkit.found", []) if entry.get("nvcc")]
    if on_path.is_known or with_nvcc:
        version = case.value("toolkit.nvcc_on_path_version") or (with_nvcc[0].get("version") if with_nvcc else None)
        return case.passed(f"nvcc {version or 'is installed'}", ("toolkit.nvcc_on_path", "toolkit.found"))
    reported = case.fact("symptom.nvcc_missing")
    if reported.is_known:
        return case.failed(
            "a build needs the CUDA toolkit's nvcc, and there is none",
            ("symptom.nvcc_missing", "toolkit.found"),
            severity=ERROR,
            fixes=(
                Remedy(
                    "install-toolkit",
                    {"effect": {"symptom.nvcc_missing": None, "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc"}},
                ),
            ),
        )
    if found.is_unknown and on_path.is_unknown:
        return case.undecided("cannot tell whether there is a CUDA toolkit", ("toolkit.found", "toolkit.nvcc_on_path"))
    return case.skipped("no nvcc: not needed, torch's wheels bring their own CUDA runtime")
