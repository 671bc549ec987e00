"""The nodes of a job are not alike

What it checks
    Whether the nodes of one job or cluster differ in what should be alike: the driver, torch, NCCL, CUDA or the GPUs;
    and whether NCCL says that its versions differ.

Why it matters
    Processes on several nodes speak to each other through NCCL, which wants the same version everywhere. A driver or an
    environment that differs on one node lets a job fail there only, now and then, depending on where it lands.

How to fix
    Install the same environment on all nodes (one image, one lock file), and the same driver. cudadoctor facts on each
    node and cudadoctor fleet show which node stands out.

References
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD707",
    name="nodes-disagree",
    title="The nodes of a job are not alike",
    severity=ERROR,
    blame=ENVIRONMENT,
    precedence=55,
)

_NCCL = "symptom.nccl_version_differs"
_DIFFERENCES = "nodes.differences"


def judge(case: Case) -> Outcome:
    told = case.fact(_DIFFERENCES)
    differing = [entry for entry in told.value or () if len(entry.get("values") or ()) > 1]
    if case.fact(_NCCL).is_known:
        facts = (_NCCL, _DIFFERENCES) if differing else (_NCCL,)
        return _failed(case, "the processes of one job run different versions of NCCL", facts, ERROR)
    if differing:
        first = differing[0]
        values = ", ".join(map(str, first["values"][:4]))
        more = f", and in {len(differing) - 1} more" if len(differing) > 1 else ""
        what = f"the nodes differ in {first.get('what')} ({values}){more}"
        return _failed(case, what, (_DIFFERENCES,), WARNING)
    if told.is_known:
        return case.passed("the nodes are alike", (_DIFFERENCES,))
    if case.fact("symptom.nccl_error").is_known and case.value("scheduler.kind") is not None:
        return case.undecided("communication failed; whether the nodes are alike is not known", (_DIFFERENCES,))
    return case.skipped("only one machine is known")


def _failed(case: Case, message: str, evidence: tuple[str, ...], severity: str) -> Outcome:
    effect: dict[str, object] = {_DIFFERENCES: []}
    if _NCCL in evidence:
        effect[_NCCL] = None
    text = (
        "Install the same environment on every node, from one image or one lock file. On each node:\n"
        '    python -c "import torch; print(torch.__version__, torch.cuda.nccl.version())"\n'
        "The answers must be the same everywhere."
    )
    return case.failed(
        message,
        evidence,
        certainty=LIKELY if severity == ERROR else CERTAIN,
        severity=severity,
        fixes=(Remedy("manual", {"title": "Make the nodes alike", "text": text, "kind": "setting", "effect": effect}),),
    )
