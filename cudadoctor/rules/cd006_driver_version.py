"""The driver is not of the version that the job needs

What it checks
    The version of the driver at work, by the best source that tells it (NVML, nvidia-smi, the loaded module), against
    driver.version of the policy, a range such as >=535,<600.

Why it matters
    A site qualifies its jobs on some branches of the driver. A node that was left behind by an update, or went ahead,
    makes one run in a hundred fail where nobody looks for it.

How to fix
    Update the node's driver to the branch of the others; a job takes another node meanwhile. Where the branch does no
    harm, widen driver.version.

References
    https://docs.nvidia.com/datacenter/tesla/drivers/index.html
"""

from __future__ import annotations

from cudadoctor.derive.driver import version, version_fact
from cudadoctor.derive.policy import NOT_ASKED, in_range, plainly
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD006",
    name="driver-version",
    title="The driver is not of the version that the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=20,
)

_ASKED = "policy.driver.version"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted = str(asked.get())
    driver = case.derived(version)
    facts = (_ASKED, version_fact(case))
    if not driver.is_known:
        return case.undecided(f"cannot tell the driver's version: {driver.reason or 'no driver is seen'}", facts)
    fine = in_range(driver.get(), wanted)
    if fine is None:
        return case.undecided(f"cannot hold driver {driver.get()} against {wanted}", facts)
    if fine:
        return case.passed(f"driver {driver.get()} is {plainly(wanted)}, as asked for", facts)
    return case.failed(
        f"the driver is {driver.get()}, {plainly(wanted)} is asked for",
        facts,
        data={"value": driver.get(), "wanted": wanted},
        fixes=(
            Remedy(
                "manual",
                {
                    "title": "Bring the node's driver to the version that is asked for",
                    "text": f"The policy asks for {plainly(wanted)}. Install such a driver and reboot, or take a node "
                    "that has one. Where this one does no harm, widen driver.version of the policy.",
                    "kind": "driver",
                    "needs": ["root", "reboot"],
                },
            ),
        ),
    )
