"""nvcc and torch are of different CUDA majors

What it checks
    Whether the CUDA major of the nvcc that a build would use is the one that torch was built with.

Why it matters
    It does not matter for running. Building an extension ends in "The detected CUDA version mismatches the version that
    was used to compile PyTorch" when the majors differ; another minor of the same major is accepted.

How to fix
    For building, point CUDA_HOME at a toolkit of torch's CUDA major, or install one. Running needs nothing.

References
    https://pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

from cudadoctor.derive.wheel import CUDA, torch_build
from cudadoctor.rules.api import ENVIRONMENT, ERROR, INFO, Case, Outcome, Remedy, Rule

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
    if build.kind != CUDA or build.cuda is None:
        return case.skipped("no torch built with CUDA")
    nvcc = case.fact("toolkit.nvcc_on_path_version")
    if nvcc.is_absent:
        return case.skipped("no nvcc on PATH: not needed to run")
    if not nvcc.is_known:
        return case.undecided(f"cannot tell nvcc's version: {nvcc.reason}", ("toolkit.nvcc_on_path_version",))
    major, wanted = nvcc.get().partition(".")[0], build.cuda.partition(".")[0]
    evidence = ("toolkit.nvcc_on_path_version", "torch.cuda")
    if major == wanted:
        return case.passed(f"nvcc {nvcc.get()} can build extensions for torch's CUDA {build.cuda}", evidence)
    reported = case.fact("symptom.cuda_version_mismatch").is_known
    return case.failed(
        f"nvcc {nvcc.get()} cannot build extensions for torch's CUDA {build.cuda}"
        + ("" if reported else "; running is not affected"),
        (*evidence, "symptom.cuda_version_mismatch") if reported else evidence,
        severity=ERROR if reported else None,
        fixes=(
            Remedy(
                "install-toolkit",
                {
                    "version": build.cuda,
                    "effect": {"toolkit.nvcc_on_path_version": build.cuda, "symptom.cuda_version_mismatch": None},
                },
            ),
        ),
        not_helping=("another torch, only because nvidia-smi or nvcc shows another number",),
    )
