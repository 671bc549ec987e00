"""Which driver, and the packages of the distribution that bring it.

Nothing here is ever run by cudadoctor itself: a driver is for a person to change.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.matrix import Branch, Distribution
from cudadoctor.plan import validate
from cudadoctor.plan.context import OPEN, PROPRIETARY, Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, Draft, draft
from cudadoctor.plan.remedies import windows
from cudadoctor.plan.remedies.driver_effect import working_effect
from cudadoctor.plan.remedies.kernel import header_steps
from cudadoctor.plan.remedies.owner import elsewhere
from cudadoctor.plan.remedies.restart import reboot
from cudadoctor.resolve import Gpu as NeedGpu
from cudadoctor.resolve import bounds, fitting_branch

DOWNLOADS = "https://www.nvidia.com/drivers"
REPOSITORIES = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"


def _gpus(context: Context) -> tuple[NeedGpu, ...]:
    return context.present.gpus


def flavour_for(context: Context, branch: Branch) -> str:
    """Open or proprietary kernel modules: what the GPUs demand, else what the branch has, else what is in use."""
    wanted = set()
    for gpu in _gpus(context):
        row = context.matrix.architecture(gpu.capability) if gpu.capability else None
        if row is not None and row.modules in (OPEN, PROPRIETARY):
            wanted.add(row.modules)
    if len(wanted) == 1:
        return wanted.pop()
    if branch.open_modules_only:
        return OPEN
    if OPEN not in branch.modules:
        return PROPRIETARY
    present = context.facts.value("driver.module_flavour")
    return present if present in (OPEN, PROPRIETARY) else OPEN


def _branch(context: Context, number: Optional[int], at_least: int = 0) -> Optional[Branch]:
    if number is not None:
        return context.matrix.branch(str(number))
    return fitting_branch(_gpus(context), context.matrix, at_least)


def install_driver(
    context: Context, branch: Optional[int] = None, flavour: str = "", minimum_branch: Optional[int] = None
) -> list[Draft]:
    """A driver for these GPUs, by the distribution's own packages, and the reboot that starts it."""
    if context.os == "windows" or context.is_wsl:
        return windows.install_windows_driver(context, minimum_branch=minimum_branch)
    other = elsewhere(context, "Install the driver")
    if other is not None:
        return other
    row = _branch(context, branch, minimum_branch or 0)
    if row is None:
        return [_no_branch(context)]
    return _driver_steps(context, row, flavour or flavour_for(context, row), "Install")


def update_driver(
    context: Context, minimum_cuda_major: Optional[int] = None, minimum_branch: Optional[int] = None, **_for: str
) -> list[Draft]:
    """The smallest branch that is new enough and still drives every GPU."""
    needed = minimum_branch or 0
    floor = context.matrix.floor(minimum_cuda_major, context.numbering) if minimum_cuda_major is not None else None
    if floor is not None:
        row = context.matrix.branch_of(floor, context.numbering)
        needed = max(needed, row.linux if row is not None else 0)
    if context.os == "windows" or context.is_wsl:
        return windows.update_windows_driver(context, minimum_branch=needed or None)
    other = elsewhere(context, "Update the driver")
    if other is not None:
        return other
    branch = _branch(context, None, needed)
    if branch is None:
        return [_no_branch(context, needed)]
    return _driver_steps(context, branch, flavour_for(context, branch), "Update", floor)


def _no_branch(context: Context, needed: int = 0) -> Draft:
    lowest, highest = bounds(_gpus(context), context.matrix)
    names = " and ".join(dict.fromkeys(gpu.label for gpu in _gpus(context))) or "this GPU"
    text = f"No driver branch that is known drives {names}"
    last = context.matrix.branch(str(highest))
    if last is not None and max(lowest, needed) > highest:
        text = f"{last.name} is the last driver branch for {names}: R{max(lowest, needed)} or newer does not drive it"
    return draft(BY_HAND, "no-driver-branch", "No newer driver can help", "driver", instructions=text + ".")


def _driver_steps(
    context: Context, branch: Branch, flavour: str, verb: str, floor: Optional[str] = None
) -> list[Draft]:
    version = branch.latest_linux or branch.first_linux or f"{branch.linux}"
    effect = working_effect(context, version, flavour, branch.cuda)
    title = f"{verb} the NVIDIA driver {branch.name} ({flavour} kernel modules)"
    back = "install the driver packages that were there before, and reboot"
    present = _packages_present(context)
    if present:
        back = f"install {', '.join(present[:4])} again, and reboot"
    elif verb == "Install":
        back = "remove the packages again, and reboot"
    steps = header_steps(context)
    distribution = context.distribution
    packages, note = _driver_packages(context, distribution, branch, flavour)
    needed = f"Any driver from {floor} on will do. " if floor else ""
    _, highest = bounds(_gpus(context), context.matrix)
    if floor and context.matrix.branch(str(highest)) is not None:
        needed = f"Any driver from {floor} to the end of R{highest} will do. "
    if distribution is None or not packages:
        text = (
            needed
            + (note or f"Install a driver of branch {branch.name} from your distribution, or from {DOWNLOADS}")
            + "."
        )
        steps.append(
            draft(DRIVER, "install-driver", title, "driver", needs=("root", "network", "reboot"), instructions=text)
        )
    else:
        stream = distribution.module_stream(branch.linux, flavour == OPEN)
        if stream:
            steps.append(
                draft(
                    DRIVER,
                    "driver-stream",
                    f"Choose the driver stream {branch.name}",
                    "driver",
                    context.root(*stream),
                    needs=("root", "network"),
                    changes="tells dnf which driver branch to install",
                    undo=context.text(context.root("dnf", "module", "reset", "nvidia-driver")),
                )
            )
        if distribution.relative:
            note = f"{note} Names are those of {distribution.title}, from which this system descends.".strip()
        steps.append(
            draft(
                DRIVER,
                "install-driver",
                title,
                "driver",
                context.root(*distribution.install_command(packages)),
                needs=("root", "network", "reboot"),
                changes=f"installs {', '.join(packages)}; another driver branch is replaced",
                undo=back,
                instructions=(needed + note).strip(),
            )
        )
    return [*steps, *reboot(context, "the new kernel module is loaded at the next start", effect)]


def _driver_packages(
    context: Context, distribution: Optional[Distribution], branch: Branch, flavour: str
) -> tuple[tuple[str, ...], str]:
    """The packages of a branch on this distribution, and what a person must know about them."""
    if distribution is None:
        return (), ""
    packages = distribution.driver_packages(branch.linux, flavour == OPEN)
    note = f"Needs {distribution.driver_needs}." if distribution.driver_needs else ""
    gives = distribution.driver_branch()
    given = context.matrix.branch(gives) if gives else None
    if given is not None and given.linux < branch.linux:
        theirs = distribution.nvidia_packages(flavour == OPEN)
        text = f"{distribution.title} itself packages {given.name}: add NVIDIA's repository first ({REPOSITORIES})."
        return theirs, text
    if any(":" in package for package in packages):
        names = ", ".join(package.partition(":")[2] or package for package in packages)
        return (), f"Build {names} from Arch's user repository (AUR), then reboot"
    return packages, note


def _packages_present(context: Context) -> list[str]:
    names = []
    for entry in context.facts.value("driver.packages", []):
        try:
            names.append(validate.system_package(entry.get("name")))
        except ValueError:
            continue
    return names


def install_open_kernel_module(context: Context) -> list[Draft]:
    return _change_flavour(context, OPEN)


def install_proprietary_kernel_module(context: Context) -> list[Draft]:
    return _change_flavour(context, PROPRIETARY)


def _change_flavour(context: Context, flavour: str) -> list[Draft]:
    """The same branch with the other kind of kernel modules; another branch where this one has none or does not fit."""
    other = elsewhere(context, f"Install the {flavour} kernel modules")
    if other is not None:
        return other
    version = context.facts.value("driver.module_version") or context.facts.value("driver.library_version")
    present = context.matrix.branch_of(version, "linux") if isinstance(version, str) else None
    lowest, highest = bounds(_gpus(context), context.matrix)
    if present is not None and flavour in present.modules and lowest <= present.linux <= highest:
        return _driver_steps(context, present, flavour, "Install")
    branch = _branch(context, None)
    if branch is None:
        return [_no_branch(context)]
    return _driver_steps(context, branch, flavour, "Install")
