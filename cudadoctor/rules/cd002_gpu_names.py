"""A GPU is another product than the job needs

What it checks
    Whether each GPU that the job sees is one of the products in gpu.names of the policy. Names are taken as people
    write them: "H100" is every H100, "A100 80GB" those of that size; an A100X is no A100, an RTX 4070 Ti no RTX 4070.

Why it matters
    Batch sizes, kernels and timetables are made for one kind of card. In a partition of mixed nodes a job lands on
    another kind and runs out of memory, or holds up all other nodes.

How to fix
    Ask the scheduler for the kind of card: --gres=gpu:h100:8 or --constraint with Slurm, a node selector on
    nvidia.com/gpu.product in Kubernetes. Or widen gpu.names.

References
    https://slurm.schedmd.com/gres.html
    https://developer.nvidia.com/cuda-gpus
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.policy import NOT_ASKED, each_gpu, gpu_name
from cudadoctor.matrix.names import contains, words
from cudadoctor.rules.api import ALLOCATION, ERROR, Case, Outcome, Rule
from cudadoctor.rules.cards import another_card
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD002",
    name="gpu-names",
    title="A GPU is another product than the job needs",
    severity=ERROR,
    blame=ALLOCATION,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=12,
)

_ASKED = "policy.gpu.names"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    names: list[str] = asked.get()
    judged = each_gpu(case, "name", lambda name: _is_one_of(case, name, names))
    facts = (_ASKED, *judged.facts)
    wanted = " or ".join(names)
    if judged.ok is None:
        return case.undecided(f"cannot tell whether each GPU is {wanted}: {judged.reason}", facts)
    if judged.ok:
        return case.passed(f"each GPU is {wanted}, as asked for", facts)
    return case.failed(
        f"{gpu_name(case, judged.worst)} is not {wanted}, as asked for",
        facts,
        data={"gpu": judged.worst, "name": judged.value, "wanted": names},
        fixes=(
            another_card(
                "Ask for the kind of card",
                "Otherwise take another machine, or widen gpu.names of the policy.",
            ),
        ),
    )


def _is_one_of(case: Case, name: Optional[str], names: list[str]) -> Optional[bool]:
    if not name:
        return None
    verdicts = [_is(case, name, wanted) for wanted in names]
    return True if True in verdicts else None if None in verdicts else False


def _is(case: Case, name: str, wanted: str) -> Optional[bool]:
    """Whether a card of this name is what is meant by `wanted`; None where the name fits several products."""
    have, meant = case.matrix.gpu(name), case.matrix.gpu(wanted)
    if have.kind == "name" and meant.kind == "name":
        mine, theirs = {row.name for row in have.rows}, {row.name for row in meant.rows}
        return True if mine <= theirs else None if mine & theirs else False
    # Products that no table knows: a name that has all the words.
    return contains(words(name), words(wanted))
