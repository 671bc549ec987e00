"""The driver does not serve the CUDA that the job needs

What it checks
    Whether the driver runs programs that were built with the CUDA of driver.cuda in the policy ("12.6"). What counts is
    the major number: a driver that shows "CUDA Version: 12.2" runs programs of every 12.x.

Why it matters
    A program built with a newer CUDA major ends with "CUDA driver version is insufficient for CUDA runtime version".

How to fix
    Update the driver, or use a build with the older CUDA.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from __future__ import annotations

from cudadoctor.derive.driver import numbering, version, version_fact
from cudadoctor.derive.policy import NOT_ASKED
from cudadoctor.rules.api import ERROR, MACHINE, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD007",
    name="driver-serves-cuda",
    title="The driver does not serve the CUDA that the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    blocked_by=NO_ANSWERING_DRIVER,
    follows_from=("CD006",),
    precedence=21,
)

_ASKED = "policy.driver.cuda"


def judge(case: Case) -> Outcome:
    asked = case.fact(_ASKED)
    if not asked.is_known:
        return case.skipped(NOT_ASKED)
    wanted = str(asked.get())
    driver = case.derived(version)
    facts = (_ASKED, version_fact(case))
    if not driver.is_known:
        return case.undecided(f"cannot tell the driver's version: {driver.reason or 'no driver is seen'}", facts)
    verdict = case.matrix.driver_serves(driver.get(), numbering(case), wanted)
    if verdict.answer == "no":
        needed = f"; it takes {verdict.needed} or newer" if verdict.needed else ""
        return case.failed(
            f"driver {driver.get()} does not serve CUDA {wanted}, which is asked for{needed}",
            facts,
            data={"driver": driver.get(), "wanted": wanted, "needed": verdict.needed},
            fixes=(Remedy("update-driver", {"minimum_cuda_major": int(wanted.partition(".")[0])}),),
        )
    if verdict.answer == "unknown":
        return case.undecided(f"cannot tell whether the driver serves CUDA {wanted}: {verdict.reason}", facts)
    return case.passed(f"driver {driver.get()} serves CUDA {wanted}, as asked for", facts)
