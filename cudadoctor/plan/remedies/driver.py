"""Which driver, and the packages of the distribution that bring it.

Nothing here is ever run by cudadoctor itself: a driver is for a person to change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

from cudadoctor.matrix import Branch, Distribution
from cudadoctor.plan import validate
from cudadoctor.plan.context import OPEN, PROPRIETARY, Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, Draft, draft
from cudadoctor.plan.remedies import windows
from cudadoctor.plan.remedies.driver_effect import working_effect
from cudadoctor.plan.remedies.kernel import header_steps
from cudadoctor.plan.remedies.owner import VGPU, elsewhere, guest, is_guest
from cudadoctor.plan.remedies.restart import reboot
from cudadoctor.resolve import DriverRange, bounds, fitting_branch
from cudadoctor.resolve import Gpu as NeedGpu
from cudadoctor.resolve.drivers import modules_clash

DOWNLOADS = "https://www.nvidia.com/drivers"
# Descendants of Fedora that are images, and come with the driver in one of them.
_IMAGES_WITH_DRIVER = ("bazzite", "bluefin", "aurora")
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


def in_words(context: Context, drivers: DriverRange) -> tuple[str, ...]:
    """Which branches drive the machine's GPUs and which one to install, for a machine whose driver is not in question
    yet: sentences, and on Linux the command."""
    if drivers.fitting is None:
        return ()
    if is_guest(context):
        return (VGPU,)
    parts = []
    number = context.present.driver
    present = context.matrix.branch_of(number, context.numbering) if number is not None else None
    cards = "these GPUs" if len(context.present.gpus) > 1 else "this GPU"
    if drivers.first is not None and (present is None or present.linux < drivers.first.linux):
        parts.append(f"{_named(context, drivers.first)} is the first branch for {cards}")
    fitting = _named(context, drivers.fitting)
    if drivers.last == drivers.fitting:
        fitting += f", the last branch for {cards},"
    elif drivers.last is not None:
        parts.append(f"{_named(context, drivers.last)} is the last branch for {cards}")
    if context.os == "windows" or context.is_wsl:
        where = " on Windows" if context.is_wsl else ""
        return ("; ".join([*parts, f"{fitting} is the one to install{where}, from {DOWNLOADS}"]),)
    if modules_clash(context.present, context.matrix) is not None:
        parts.append(f"{fitting} is the one to install, with the kernel modules of the card that is to work")
        return ("; ".join(parts),)
    flavour = flavour_for(context, drivers.fitting)
    parts.append(f"{fitting} is the one to install, with the {flavour} kernel modules")
    packages, note = _driver_packages(context, context.distribution, drivers.fitting, flavour)
    needs = f". {note.rstrip('.')}" if note else ""
    if context.distribution is None or not packages:
        return ("; ".join(parts) + needs,)
    command = context.text(context.install(context.distribution, packages))
    return ("; ".join(parts) + needs + (f". {_here(context)}" if context.planned else "") + ":", "    " + command)


def _here(context: Context) -> str:
    """Whose packages are named: a plan for another machine takes the distribution of the one that it is made on."""
    distribution = context.distribution
    if context.planned is None or distribution is None:
        return ""
    version = context.facts.value("system.distribution_version")
    number = f" {version[:20]}" if isinstance(version, str) and version.isprintable() else ""
    return f"The packages are those of {distribution.title}{number}, on which this runs; other systems have other names"


def _named(context: Context, branch: Branch) -> str:
    if context.numbering == "linux" or not branch.windows:
        return branch.name
    numbers = "-".join(dict.fromkeys((str(branch.windows[0]), str(branch.windows[-1]))))
    return f"{branch.name} (Windows: {numbers})"


def install_driver(
    context: Context, branch: Optional[int] = None, flavour: str = "", minimum_branch: Optional[int] = None
) -> list[Draft]:
    """A driver for these GPUs, by the distribution's own packages, and the reboot that starts it."""
    if context.os == "windows" or context.is_wsl:
        return guest(context, "Install the driver") or windows.install_windows_driver(
            context, minimum_branch=minimum_branch
        )
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
        return guest(context, "Update the driver") or windows.update_windows_driver(
            context, minimum_branch=needed or None
        )
    other = elsewhere(context, "Update the driver")
    if other is not None:
        return other
    branch = _own_branch(context, needed) or _branch(context, None, needed)
    if branch is None:
        return [_no_branch(context, needed)]
    return _driver_steps(context, branch, flavour_for(context, branch), "Update", floor)


def newer_in_words(context: Context, cuda_major: int) -> str:
    """Which driver the builds of a CUDA major take, for a machine whose GPU is not known: which branches drive it is
    then not known either."""
    floor = context.matrix.floor(cuda_major, context.numbering)
    serves = f": {floor} or later serves CUDA {cuda_major}" if floor else ""
    where = " on Windows" if context.is_wsl else ""
    return f"A newer driver{where}{serves}. {DOWNLOADS} names the newest for the card; an old card may have none."


def _own_branch(context: Context, needed: int) -> Optional[Branch]:
    """The branch that the distribution itself packages, where NVIDIA maintains it and it drives every GPU: no
    repository of somebody else's is needed for it."""
    distribution = context.distribution
    gives = distribution.driver_branch() if distribution is not None else None
    given = context.matrix.branch(gives) if gives else None
    lowest, highest = bounds(_gpus(context), context.matrix)
    if given is None or not needed or not max(needed, lowest) <= given.linux <= highest:
        return None
    if max(given.end_of_life or "", given.end_of_life_other or "") <= context.matrix.checked[:7]:
        return None  # nobody mends its faults any more
    return given


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
    title = f"{_verb(context, branch, verb)} {branch.name} ({flavour} kernel modules)"
    after = reboot(context, "the new kernel module is loaded at the next start", effect)
    distribution = context.distribution
    needed = _which_will_do(context, floor)
    if context.is_image and context.facts.value("system.distribution") in _IMAGES_WITH_DRIVER:
        text = (
            f"{needed}This system comes in images with the driver and without it: take the one with nvidia in its "
            "name. `rpm-ostree status` shows yours, `rpm-ostree rebase` changes it."
        )
        return [_by_hand(title, text), *after]
    packages, note = _driver_packages(context, distribution, branch, flavour)
    if distribution is None or not (packages or (distribution.driver_tool and not note)):
        text = note or f"Install a driver of branch {branch.name} from your distribution, or from {DOWNLOADS}"
        return [*header_steps(context), _by_hand(title, f"{needed}{text}."), *after]
    steps = header_steps(context)
    stream = distribution.module_stream(branch.linux, flavour == OPEN)
    if stream and not context.is_image:
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
    if context.is_image:
        note = f"{note} The packages are layered onto the system's image, and are there after the reboot.".strip()
    elif context.planned is not None:
        note = f"{note} {_here(context)}.".strip()
    elif distribution.relative:
        note = f"{note} Names are those of {distribution.title}, from which this system descends.".strip()
    command = context.install(distribution, packages) if packages else context.root(*distribution.driver_tool)
    what = f"installs {', '.join(packages)}" if packages else "installs the driver that the distribution's tool chooses"
    steps.append(
        draft(
            DRIVER,
            "install-driver",
            title,
            "driver",
            command,
            needs=("root", "network", "reboot"),
            changes=f"{what}; another driver branch is replaced",
            undo=_back(context, verb),
            instructions=(needed + note).strip(),
        )
    )
    return [*steps, *after]


def _by_hand(title: str, text: str) -> Draft:
    return draft(DRIVER, "install-driver", title, "driver", needs=("root", "network", "reboot"), instructions=text)


def _verb(context: Context, branch: Branch, verb: str) -> str:
    """What becomes of the driver, said of the branch: to a newer one, or back to an older one."""
    number = context.present.driver
    present = context.matrix.branch_of(number, context.numbering) if number is not None else None
    if verb == "Install" or present is None or present.guessed:
        return f"{verb} the NVIDIA driver" + (" to" if verb == "Update" else "")
    return "Go back to the NVIDIA driver" if present.linux > branch.linux else "Update the NVIDIA driver to"


def _which_will_do(context: Context, floor: Optional[str]) -> str:
    if not floor:
        return ""
    _, highest = bounds(_gpus(context), context.matrix)
    if context.matrix.branch(str(highest)) is not None:
        return f"Any driver from {floor} to the end of R{highest} will do. "
    return f"Any driver from {floor} on will do. "


def _back(context: Context, verb: str) -> str:
    present = _packages_present(context)
    if present:
        return f"install {', '.join(present[:4])} again, and reboot"
    if verb == "Install":
        return "remove the packages again, and reboot"
    return "install the driver packages that were there before, and reboot"


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
    is_last = _is_last(context, branch)
    is_own = packages == distribution.legacy_packages(branch.linux)
    if given is not None and given.linux < branch.linux:
        # What has no branch in its name is the newest driver, whichever that is by then.
        theirs = tuple(f"{package}-{branch.linux}" for package in distribution.nvidia_packages(flavour == OPEN))
        text = f"{distribution.title} itself packages {given.name}: add NVIDIA's repository first ({REPOSITORIES})."
        return theirs, text
    if given is not None and given.linux > branch.linux and not is_own:
        return (), f"{distribution.title} has no package of {branch.name}: its own {given.name} has dropped this card"
    if any(":" in package for package in packages):
        names = ", ".join(package.partition(":")[2] or package for package in packages)
        return (), f"Build {names} from Arch's user repository (AUR), then reboot"
    is_named = _names_branch(distribution, branch, packages, flavour)
    if is_last and packages and not given and not is_named:
        if branch.end_of_life and branch.end_of_life <= context.matrix.checked[:7]:
            text = f"{distribution.title} has no package of {branch.name}, and its newest driver has dropped this card"
            return (), text
        text = (
            f"{', '.join(packages)} brings the newest driver, which has dropped this card: lock the packages to "
            f"{branch.name} before you install them ({REPOSITORIES}version-locking.html)"
        )
        return (), text
    if packages and given is None and not is_named:
        note = f"{note} It brings the newest branch, which serves as well.".strip()
    return packages, note


def _is_last(context: Context, branch: Branch) -> bool:
    """Whether no newer branch drives every GPU."""
    _, highest = bounds(_gpus(context), context.matrix)
    return branch.linux >= highest


def _names_branch(distribution: Distribution, branch: Branch, packages: Sequence[str], flavour: str) -> bool:
    """Whether these packages, or the stream that is chosen before them, stay in the branch."""
    number = str(branch.linux)
    series = re.compile(rf"{number}|-G0[0-9]|-nvidiaG0[0-9]")
    return bool(distribution.module_stream(branch.linux, flavour == OPEN)) or any(series.search(p) for p in packages)


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
