"""torch is not installed in this environment

What it checks
    Whether the Python environment that is looked at holds torch. It is read from the files, never imported. Which
    environment that is stands in the python line of the screen; --python names another one.

Why it matters
    Many a "torch does not see my GPU" is torch in another environment than the one that runs.

How to fix
    Install the build that fits GPU, driver and Python; cudadoctor fix prints the command. If you have torch already,
    it is in another environment: activate that one, or give its interpreter with --python.

References
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from cudadoctor.derive.wheel import MISSING, torch_build
from cudadoctor.rules.api import ENVIRONMENT, WARNING, Case, Outcome, Remedy, Rule

# What python.chosen_by says of cudadoctor's own interpreter, which nobody chose.
_OWN = "own"

RULE = Rule(
    id="CD301",
    name="torch-missing",
    title="torch is not installed in this environment",
    # No error: a node or an account without torch can be in perfect health.
    severity=WARNING,
    blame=ENVIRONMENT,
    chain=True,
    follows_from=("CD405", "CD401", "CD402", "CD403"),
    precedence=40,
)


def judge(case: Case) -> Outcome:
    build = case.derived(torch_build)
    if case.fact("torch.version").is_unknown:
        reason = case.fact("torch.version").reason
        return case.undecided(f"cannot tell whether torch is installed: {reason}", ("torch.version",))
    if build.kind != MISSING:
        return case.passed(f"torch {build.version}", ("torch.version",))
    if case.fact("python.executable").is_absent:
        return case.failed(
            "no Python was found whose environment could hold torch",
            ("python.executable", "torch.version"),
            fixes=(Remedy("install-torch", {}),),
        )
    where = case.value("python.environment_name") or case.value("python.executable") or "this environment"
    others = case.value("python.others_with_torch", [])
    elsewhere = ""
    if case.value("python.chosen_by") == _OWN:
        elsewhere = ", cudadoctor's own environment: activate yours, or name it with --python"
    if others:
        elsewhere = f"; {others[0].get('executable')} has torch {others[0].get('torch')}"
    return case.failed(
        f"torch is not installed in {where}{elsewhere}",
        ("torch.version", "python.executable"),
        data={"others": others},
        fixes=(Remedy("install-torch", {}),),
    )
