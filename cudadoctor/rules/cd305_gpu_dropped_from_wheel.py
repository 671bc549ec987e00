"""The torch build has dropped this GPU

What it checks
    Whether torch's libraries still hold code for each visible GPU. Newer CUDA variants leave out old GPUs: the same
    torch version may run on a card from one index and not from another.

Why it matters
    torch.cuda.is_available() is True all the same, and the first kernel ends in "no kernel image is available for
    execution on the device". There is no PTX in most wheels that the driver could compile instead.

How to fix
    Install a build that still has the card: an older CUDA variant of the same torch, else the last torch that has one.
    A newer driver does not help, and for old cards there is a last driver branch.

References
    https://developer.nvidia.com/cuda-gpus
    https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from __future__ import annotations

from cudadoctor.derive.coverage import BETWEEN, OLDER
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Rule
from cudadoctor.rules.gpu_code import judge_gap

RULE = Rule(
    id="CD305",
    name="gpu-dropped-from-wheel",
    title="The torch build has dropped this GPU",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    blocked_by=("CD501",),
    precedence=30,
)


def judge(case: Case) -> Outcome:
    return judge_gap(case, (OLDER, BETWEEN))
