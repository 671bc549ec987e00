"""This WSL cannot use the GPU

What it checks
    Whether the Linux system runs under WSL 1, which has no GPU; whether the kernel of WSL 2 or the build of Windows is
    older than GPU support; and whether a program says that WSL sees no adapter.

Why it matters
    WSL 2 lends the GPU of Windows to Linux. WSL 1 has no way to do that, and neither has an old Windows: no driver and
    no torch build inside changes it. The card must be one that Windows itself shows, with NVIDIA's driver in Windows.

How to fix
    In Windows, in a terminal: wsl --update, then wsl --shutdown. Turn a WSL 1 system into WSL 2: wsl --set-version NAME
    2 (wsl -l -v lists the names). Bring Windows up to date, and NVIDIA's driver in Windows too.

References
    https://docs.nvidia.com/cuda/wsl-user-guide/
    https://learn.microsoft.com/windows/wsl/install
"""

from __future__ import annotations

import re

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_wsl
from cudadoctor.matrix import numbers
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD704",
    name="wsl-too-old",
    title="This WSL cannot use the GPU",
    severity=ERROR,
    blame=MACHINE,
    precedence=4,
)

_NO_ADAPTER = "symptom.wsl_no_adapter"
_NOT_HELPING = ("a Linux driver or another torch build inside WSL: the GPU is lent by Windows",)


def judge(case: Case) -> Outcome:
    said = case.value(_NO_ADAPTER) or {}
    blocked = "access blocked" in str(said.get("text", ""))  # also of a card in TCC mode
    seen = bool(said) and not blocked
    if case.value("system.wsl") == 1:
        return _failed(case, "WSL 1 has no GPU: this system must run under WSL 2", ("system.wsl",), CERTAIN)
    build, named = case.fact("system.windows_build"), case.fact("symptom.wsl_named").is_known
    if named and not in_wsl(case) and build.is_known and build.get() < case.matrix.wsl_needs().windows_build:
        why = f"Windows build {build.get()} lends WSL no GPU: it takes {case.matrix.wsl_needs().windows_build} or newer"
        return _failed(case, why, ("system.windows_build", "symptom.wsl_named"), LIKELY)
    if not in_wsl(case) and not seen:
        if case.fact("system.wsl").is_unknown and case.value("system.os") == "linux":
            return case.undecided("cannot tell whether this is WSL", ("system.wsl",))
        return case.skipped("not in WSL")
    needs = case.matrix.wsl_needs()
    if build.is_known and build.get() < needs.windows_build:
        why = f"Windows build {build.get()} lends WSL no GPU: it takes {needs.windows_build} or newer"
        return _failed(case, why, ("system.windows_build",), CERTAIN)
    kernel = str(case.value("system.kernel_release", ""))
    match = re.match(r"(\d+\.\d+\.\d+)\S*microsoft", kernel, re.I)
    found = numbers(match.group(1)) if match else None
    if found is not None and found < (numbers(needs.kernel) or ()):
        # Preview builds of Windows lent GPUs to somewhat older kernels.
        why = (
            f"the WSL kernel {match.group(1) if match else ''} is too old for the GPU: it takes {needs.kernel} or newer"
        )
        return _failed(case, why, ("system.kernel_release",), LIKELY)
    if seen:
        known = in_wsl(case) and found is not None
        why = "WSL sees no GPU of Windows: WSL 1, an old WSL or Windows, or no NVIDIA driver in Windows"
        facts = (_NO_ADAPTER, *(("system.kernel_release",) if known else ()))
        return _failed(case, why, facts, LIKELY)
    if blocked and case.derived(answer).state != YES:
        why = "Windows does not let WSL use the GPU: WSL, Windows or its NVIDIA driver may be too old"
        return _failed(case, why, (_NO_ADAPTER, "system.wsl"), POSSIBLE)
    if found is None and build.is_unknown and case.derived(answer).state != YES:
        return case.undecided("how old WSL and Windows are is not known", ("system.kernel_release", "system.wsl"))
    return case.passed("this WSL is new enough to use the GPU", ("system.wsl", "system.kernel_release"))


def _failed(case: Case, message: str, evidence: tuple[str, ...], certainty: str) -> Outcome:
    effect: dict[str, object] = {name: None for name in evidence if name.startswith("symptom.")}
    needs = case.matrix.wsl_needs()
    if "system.windows_build" in evidence:
        effect["system.windows_build"] = needs.windows_build
    if case.value("system.wsl") == 1:
        effect["system.wsl"] = 2
    # WSL 1 has no kernel of its own, and shows a number that WSL 2 never had.
    if "system.kernel_release" in evidence or (case.value("system.wsl") == 1 and case.value("system.kernel_release")):
        effect["system.kernel_release"] = f"{needs.kernel}-microsoft-standard-WSL2"
    return case.failed(
        message,
        evidence,
        certainty=certainty,
        fixes=(Remedy("update-wsl", {"effect": effect}),),
        not_helping=_NOT_HELPING,
    )
