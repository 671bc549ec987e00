"""A Linux driver is installed inside WSL

What it checks
    Whether packages of a Linux NVIDIA driver are installed in a WSL system, and whether their libcuda comes before the
    one that Windows lends (/usr/lib/wsl/lib). Packages whose library comes second do no harm yet.

Why it matters
    WSL has no NVIDIA kernel module: the driver is Windows' own. A Linux libcuda in front of it finds no device, or
    fails with CUDA error 803.

How to fix
    Remove the driver packages inside WSL, and keep or install only the toolkit (cuda-toolkit, not cuda or
    cuda-drivers) where it is needed. Update the driver in Windows.

References
    https://docs.nvidia.com/cuda/wsl-user-guide/
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.driver import YES, answer
from cudadoctor.derive.surroundings import in_container, in_wsl
from cudadoctor.rules.api import CERTAIN, ERROR, LIKELY, MACHINE, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD703",
    name="linux-driver-inside-wsl",
    title="A Linux driver is installed inside WSL",
    severity=ERROR,
    blame=MACHINE,
    precedence=3,
)


_BY_HAND = "symptom.linux_driver_installed_by_hand"
# What is seen where a Linux driver stands before Windows'.
_TROUBLE = (
    "symptom.gpu_access_blocked",
    "symptom.smi_no_driver",
    "symptom.nvml_unknown_error",
    "symptom.nvml_mismatch",
    "symptom.nvml_driver_not_loaded",
    "symptom.no_cuda_device",
    "symptom.cuda_init_failed",
)


def judge(case: Case) -> Outcome:
    told = _told(case)
    if told is not None:
        return told
    if not in_wsl(case):
        if case.fact("system.wsl").is_unknown and case.value("system.os") == "linux":
            return case.undecided("cannot tell whether this is WSL", ("system.wsl",))
        return case.skipped("not in WSL")
    works = case.derived(answer).state == YES
    if in_container(case) and works:
        # The engine mounts the libraries that Windows lends at places of its own.
        return case.passed("the container has the driver that Windows lends", case.derived(answer).evidence)
    if in_container(case) and all(node.get("path") != "/dev/dxg" for node in case.value("device.nodes", [])):
        return case.skipped("the container was given no GPU")
    libraries = [entry for entry in case.value("driver.libcuda", []) if entry.get("kind") in ("driver", "wsl")]
    packages = case.value("driver.packages", [])
    data = {"packages": [package.get("name") for package in packages]}
    kept = [entry for entry in case.value("driver.libcuda", []) if entry.get("kind") != "driver"]
    fix = Remedy("remove-linux-driver-from-wsl", {"effect": {"driver.libcuda": kept}})
    if libraries and libraries[0].get("kind") == "driver":
        path = str(libraries[0].get("path"))
        if libraries[0].get("found_by") == "LD_LIBRARY_PATH":
            # Only the variable brings it: nothing has to be removed.
            folder = path.rpartition("/")[0]
            fix = Remedy(
                "change-variable",
                {"name": "LD_LIBRARY_PATH", "without": [folder], "effect": {"driver.libcuda": kept}},
            )
        # nvidia-smi comes from Windows and answers all the same.
        return case.failed(
            f"a Linux driver inside WSL: {path} is found before Windows' libcuda",
            ("driver.libcuda", "driver.packages", "system.wsl"),
            certainty=LIKELY if works else CERTAIN,
            data=data,
            fixes=(fix,),
            not_helping=("a newer Linux driver inside WSL: there is no NVIDIA module that it could talk to",),
        )
    if packages:
        # Windows' library comes first, so these do no harm as long as nothing changes that.
        harmless = works and bool(libraries)
        return case.failed(
            f"a Linux driver package is installed inside WSL ({packages[0].get('name')})",
            ("driver.packages", "driver.libcuda", "system.wsl"),
            certainty=POSSIBLE if harmless else LIKELY,
            severity=WARNING if works else ERROR,
            data=data,
            fixes=(fix,),
        )
    if case.fact("driver.libcuda").is_unknown:
        return case.undecided("cannot tell which driver libraries are installed", ("driver.libcuda", "driver.packages"))
    return case.passed("no Linux driver is in the way of Windows'", ("driver.libcuda",))


def _told(case: Case) -> Optional[Outcome]:
    """Somebody tells of WSL, of the command by which a Linux driver came into it, and of a GPU that does not work."""
    trouble = [name for name in _TROUBLE if case.fact(name).is_known]
    wsl = next((name for name in ("system.wsl", "symptom.wsl_named") if case.fact(name).is_known), None)
    if wsl is None or not trouble or not case.fact(_BY_HAND).is_known:
        return None
    package = str(case.value(_BY_HAND).get("package", ""))
    named = f" ({package})" if package else ""
    return case.failed(
        f"a Linux driver was installed inside WSL{named}: it stands before Windows' own",
        (_BY_HAND, wsl, *trouble),
        certainty=LIKELY,
        data={"packages": [package]},
        fixes=(Remedy("remove-linux-driver-from-wsl", {"effect": dict.fromkeys((_BY_HAND, *trouble))}),),
        not_helping=("a newer Linux driver inside WSL: there is no NVIDIA module that it could talk to",),
    )
