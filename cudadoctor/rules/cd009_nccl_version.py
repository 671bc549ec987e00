"""NCCL is not of the version that the job needs

What it checks
    The version of the NCCL package that lies beside torch in the environment, against nccl.version of the policy. A
    torch that was built from source may carry another one within itself.

Why it matters
    All nodes of a job have to use the same NCCL: with two versions the first collective call hangs or ends with
    "Mismatched NCCL version detected". Some versions are known to hang on some networks.

How to fix
    Install the version that is asked for, in the same environment on each node; better, one environment on a shared
    disk or in an image.

References
    https://docs.nvidia.com/deeplearning/nccl/release-notes/index.html
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED, in_range, plainly
from cudadoctor.rules.api import ENVIRONMENT, ERROR, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD009",
    name="nccl-version",
    title="NCCL is not of the version that the job needs",
    severity=ERROR,
    blame=ENVIRONMENT,
    chain=True,
    follows_from=("CD301", "CD302", "CD008"),
    precedence=32,
)

_ASKED = "policy.nccl.version"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted = str(asked.get())
    installed = {name: str(case.value(name)) for name in _packages(case) if case.fact(name).is_known}
    if not installed:
        return case.undecided(
            "cannot tell the version of NCCL: no package of it is seen beside torch", (_ASKED, "torch.version")
        )
    verdicts = {name: in_range(version, wanted) for name, version in installed.items()}
    facts = (_ASKED, *installed)
    wrong = next((name for name, fine in verdicts.items() if fine is False), None)
    if wrong is not None and len(installed) > 1 and True in verdicts.values():
        return case.undecided(f"several NCCL packages are installed ({', '.join(installed.values())})", facts)
    if wrong is not None:
        return case.failed(
            f"NCCL is {installed[wrong]}, {plainly(wanted)} is asked for",
            facts,
            data={"value": installed[wrong], "wanted": wanted},
            fixes=(
                Remedy(
                    "manual",
                    {
                        "title": "Install the NCCL that is asked for",
                        "text": f"The policy asks for NCCL {plainly(wanted)}: the package {wrong.split('.')[1]} in "
                        "this environment, on every node of the job. Each wheel of torch asks for one version of it; "
                        "another torch may bring the right one.",
                        "kind": "install",
                    },
                ),
            ),
        )
    if None in verdicts.values():
        return case.undecided(f"cannot hold NCCL {', '.join(installed.values())} against {wanted}", facts)
    return case.passed(f"NCCL {', '.join(installed.values())} is what is asked for", facts)


def _packages(case: Case) -> list[str]:
    return sorted(
        name
        for name in case.facts
        if name.startswith(("package.nvidia-nccl-", "package.nccl.")) and name.endswith(".version")
    )
