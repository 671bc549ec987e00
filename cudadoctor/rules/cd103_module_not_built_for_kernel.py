"""The NVIDIA module was not built for the running kernel

What it checks
    Whether a driver is installed while the running kernel has no NVIDIA module: there are module files or DKMS builds
    for other kernels, or only the user-space part.

Why it matters
    After a kernel update the module must be built again. Where that failed (no headers, a compiler that does not fit)
    or was skipped, the machine boots without a driver, and nvidia-smi cannot communicate with it.

How to fix
    Install the headers of the running kernel and let DKMS build the module; or boot the kernel that has one.

References
    https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    https://github.com/dell/dkms
"""

from __future__ import annotations

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.gpus import PRESENT, presence
from cudadoctor.derive.kernel_log import events
from cudadoctor.derive.surroundings import driver_software, on_own_linux
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD103",
    name="module-not-built-for-kernel",
    title="The NVIDIA module was not built for the running kernel",
    severity=ERROR,
    blame=MACHINE,
    precedence=13,
)


def judge(case: Case) -> Outcome:
    if not on_own_linux(case):
        return case.skipped("modules are built on Linux machines of their own")
    if case.derived(answer).state == YES or case.value("driver.module_loaded", False):
        return case.passed("the module is loaded", ("driver.module_loaded",))
    if case.derived(presence).state != PRESENT:
        return case.skipped("no NVIDIA GPU is known to be here")
    running = case.value("system.kernel_release")
    files = case.fact("kernel.nvidia_module_files")
    if running is None or not files.is_known:
        return case.undecided(
            "cannot tell for which kernels there is a module", ("kernel.nvidia_module_files", "system.kernel_release")
        )
    evidence = ("system.kernel_release", "kernel.nvidia_module_files", "kernel.dkms")
    wrong = events(case, "wrong-kernel")
    if any(entry.get("kernel") == running for entry in files.get()):
        if wrong:
            return _failed(case, running, "its file is of another kernel", CERTAIN, (*evidence, "kernel.log_events"))
        return case.passed(f"there is a module for {running}", evidence)
    others = sorted({str(entry.get("kernel")) for entry in files.get()})
    if others:
        return _failed(case, running, f"there is one for {', '.join(others)}", CERTAIN, evidence)
    if case.value("kernel.dkms"):
        version = case.value("kernel.dkms")[0].get("version")
        return _failed(case, running, f"DKMS has {version} and did not build it", CERTAIN, evidence)
    if driver_software(case):
        found = ("driver.packages", "driver.library_version")
        return _failed(case, running, "only the driver's programs and libraries are there", LIKELY, (*evidence, *found))
    return case.skipped("no driver is installed")


def _failed(case: Case, running: str, why: str, certainty: str, evidence: tuple[str, ...]) -> Outcome:
    headers = ""
    if case.fact("kernel.headers").is_known and not case.value("kernel.headers"):
        headers = "; its headers are missing, which a build needs"
        evidence = (*evidence, "kernel.headers")
    return case.failed(
        f"the running kernel {running} has no NVIDIA module: {why}{headers}",
        evidence,
        certainty=certainty,
        fixes=(Remedy("build-module", {}),),
        not_helping=("another torch build: nothing works before the module loads",),
    )
