"""The container image asks for a newer driver

What it checks
    Whether the container toolkit refused to start an image because the driver does not serve the CUDA version that the
    image asks for (NVIDIA_REQUIRE_CUDA), or an image of NVIDIA's said that it was built for a newer driver.

Why it matters
    It is a gate and no proof: an image asks for the CUDA that it was built with. Within one CUDA major an older driver
    mostly runs it (minor-version compatibility); with another major it does not.

How to fix
    Update the host's driver, or take an image with an older CUDA. Within the same CUDA major, -e
    NVIDIA_DISABLE_REQUIRE=1 starts it all the same. A driver inside the container changes nothing: it uses the host's.

References
    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from __future__ import annotations

import re
from typing import Optional

from cudadoctor.derive.driver import cuda_ceiling, version, version_fact
from cudadoctor.parse.versions import at_least, is_plain, major
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD711",
    name="image-requires-newer-cuda",
    title="The container image asks for a newer driver",
    severity=ERROR,
    blame=MACHINE,
    precedence=5,
)

_CUDA, _DRIVER = "symptom.container_requires_cuda", "symptom.container_requires_driver"


def judge(case: Case) -> Outcome:
    if case.fact(_CUDA).is_known:
        return _by_cuda(case, _wanted(case.value(_CUDA)))
    if case.fact(_DRIVER).is_known:
        return _by_driver(case, case.value(_DRIVER))
    return case.skipped("no container image was refused for the driver's age")


def _wanted(told: dict[str, str]) -> str:
    """The CUDA version of "unsatisfied condition: cuda>=12.8"."""
    found = re.search(r"cuda ?>= ?(\d{1,2}\.\d{1,2})", f"{told.get('condition', '')} {told.get('text', '')}")
    return told.get("wanted") or (found.group(1) if found else "")


def _by_cuda(case: Case, wanted: str) -> Outcome:
    serves = case.derived(cuda_ceiling)
    have: Optional[str] = serves.value if serves.is_known and is_plain(serves.get()) else None
    wanted = wanted if is_plain(wanted) else ""
    evidence = [_CUDA, *(name for name in (version_fact(case), "driver.smi_cuda") if case.fact(name).is_known)]
    same_major = bool(have and wanted) and major(have or "") == major(wanted)
    shown = f", and the driver serves CUDA up to {have}" if have else ""
    if have and wanted and at_least(have, wanted):
        return case.failed(
            f"the image asks for CUDA {wanted}, which this driver serves ({have}): the text is of another driver or "
            "host",
            evidence,
            certainty=POSSIBLE,
            fixes=(_update(case, wanted),),
        )
    fixes = [_update(case, wanted), Remedy("use-older-image", {"cuda": have} if have else {})]
    if same_major or not have:
        fixes.insert(1, Remedy("run-image-all-the-same", {"wanted": wanted}))
    return case.failed(
        f"the container was not started: its image asks for CUDA {wanted or 'newer than this driver'}{shown}"
        + (" (it would mostly run all the same: the CUDA major is equal)" if same_major else ""),
        evidence,
        # The toolkit's own refusal.
        certainty=CERTAIN,
        data={"wanted": wanted, "serves": have},
        fixes=fixes,
        not_helping=(
            "installing a driver or CUDA inside the container: it uses the host's driver",
            "another torch build: the container does not even start",
        ),
    )


def _by_driver(case: Case, told: dict[str, str]) -> Outcome:
    wanted, found = str(told.get("wanted", "")), told.get("found") or told.get("driver")
    driver = case.derived(version)
    have = found or (driver.get() if driver.is_known else None)
    evidence = [_DRIVER, *(name for name in (version_fact(case),) if case.fact(name).is_known)]
    if have and is_plain(have) and is_plain(wanted) and at_least(have, wanted):
        return case.passed(f"the image was built for driver {wanted} or newer, and this is {have}", evidence)
    return case.failed(
        f"the image was built for driver {wanted or 'of a newer branch'} or newer"
        + (f", and the host has {have}" if have else ""),
        evidence,
        certainty=CERTAIN if have else LIKELY,
        fixes=(Remedy("update-driver"), Remedy("use-older-image")),
        not_helping=("installing a driver inside the container: it uses the host's",),
    )


def _update(case: Case, wanted: str) -> Remedy:
    """To the branch that serves this CUDA."""
    rows = [row for row in case.matrix.branches() if not row.guessed and row.cuda == wanted]
    return Remedy("update-driver", {"minimum_branch": rows[0].linux} if rows else {})
