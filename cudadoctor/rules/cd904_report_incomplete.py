"""The facts are incomplete

What it checks
    Whether facts that come from a file, a recording or a pasted report lack what would decide most: the driver, the
    GPU, torch's build.

Why it matters
    What was not said is unknown. A diagnosis without it stays open or is only likely.

How to fix
    Run cudadoctor facts on that machine, or paste what nvidia-smi and python -m torch.utils.collect_env print there.

References
    https://pytorch.org/docs/stable/index.html
"""

from __future__ import annotations

from cudadoctor.derive.driver import UNCLEAR, answer
from cudadoctor.derive.gpus import UNCLEAR as GPU_UNCLEAR
from cudadoctor.derive.gpus import presence
from cudadoctor.derive.wheel import UNCLEAR as TORCH_UNCLEAR
from cudadoctor.derive.wheel import UNTOLD, torch_build
from cudadoctor.rules.api import INFO, TOOL, Case, Outcome, Rule

RULE = Rule(
    id="CD904",
    name="report-incomplete",
    title="The facts are incomplete",
    severity=INFO,
    blame=TOOL,
    precedence=92,
)


def judge(case: Case) -> Outcome:
    if case.value("examination.kind") in (None, "live", "assumed"):
        return case.skipped("the machine itself was examined")
    missing = []
    if case.derived(presence).state == GPU_UNCLEAR:
        missing.append("the GPU (nvidia-smi -L, or lspci -nn)")
    if case.derived(answer).state == UNCLEAR:
        missing.append("the driver (nvidia-smi)")
    build = case.derived(torch_build)
    if build.kind == TORCH_UNCLEAR or build.version == UNTOLD:
        missing.append("torch's build (python -m torch.utils.collect_env)")
    if not case.fact("system.os").is_known:
        missing.append("the operating system")
    if not missing:
        return case.passed("the facts hold what decides most", ("examination.kind",))
    return case.failed(
        "not told: " + "; ".join(missing),
        ("examination.kind",),
        data={"missing": missing},
    )
