"""The GPU is newer than the torch build

What it checks
    Whether torch's libraries hold code for each visible GPU. Code for sm_86 runs on every 8.x from 8.6 on (so on an
    8.9 too), never on another major; a wheel without PTX cannot make up for a missing list entry.

Why it matters
    torch.cuda.is_available() is True all the same, and the first kernel ends in "no kernel image is available for
    execution on the device".

How to fix
    Install a build whose list has the GPU: a newer CUDA variant, or a newer torch. That build may need a newer driver;
    the plan says so.

References
    https://developer.nvidia.com/cuda-gpus
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capability
"""

from __future__ import annotations

from cudadoctor.derive.coverage import NEWER
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Rule
from cudadoctor.rules.gpu_code import judge_gap

RULE = Rule(
    id="CD304",
    name="gpu-newer-than-wheel",
    title="The GPU is newer than the torch build",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    blocked_by=("CD501",),
    precedence=30,
)


def judge(case: Case) -> Outcome:
    return judge_gap(case, (NEWER,))
