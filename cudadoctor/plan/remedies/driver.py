"""Driver and kernel: packages of the distribution, kernel modules, Secure Boot, device nodes, the reboot.

Nothing here is ever run by cudadoctor itself: a driver is for a person to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.matrix import Branch, Distribution, numbers
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, INITRAMFS, KERNEL, REBOOT, SETTING, SIGNING, Draft, draft
from cudadoctor.plan.remedies import windows
from cudadoctor.resolve import Gpu as NeedGpu
from cudadoctor.resolve import bounds, fitting_branch

OPEN = "open"
PROPRIETARY = "proprietary"

NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"
DOWNLOADS = "https://www.nvidia.com/drivers"
REPOSITORIES = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"

# Modules of the driver, those that use others first.
MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")


# -- which driver ------------------------------------------------------------


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


def working_effect(
    context: Context, version: Optional[str], flavour: Optional[str], cuda: Optional[str]
) -> dict[str, Any]:
    """The facts of a machine whose driver works: module loaded, library of the same version, NVML and nvidia-smi
    answering, every GPU bound to it. Only sources that this machine has are spoken of."""
    facts = context.facts
    effect = answering_effect(context, version, cuda)
    if context.os != "linux" or context.is_wsl:
        return effect
    gone = {*MODULES, *context.matrix.kernel_modules("nouveau")}
    modules = [module for module in facts.value("kernel.modules", []) if module not in gone]
    kernel = facts.value("system.kernel_release", "")
    effect.update(
        {
            "driver.module_loaded": True,
            "kernel.modules": [*MODULES, *modules],
            "kernel.nvidia_blacklisted_by": [],
            "kernel.log_events": [],
            "pci.gpus": [dict(entry, driver="nvidia") for entry in facts.value("pci.gpus", [])],
            "device.nodes": nodes_effect(context),
        }
    )
    if version is not None:
        effect["driver.module_version"] = version
        effect["driver.procfs_version"] = version
        effect["driver.libcuda"] = [
            {
                "path": "/usr/lib/libcuda.so.1",
                "real_path": f"/usr/lib/libcuda.so.{version}",
                "found_by": "ld.so.cache",
                "kind": "driver",
                "version": version,
            }
        ]
        effect["kernel.nvidia_module_files"] = [
            {
                "kernel": kernel,
                "path": f"/lib/modules/{kernel}/updates/nvidia.ko",
                "version": version,
                "flavour": flavour,
            }
        ]
        effect["kernel.dkms"] = (
            [{"version": version, "kernel": kernel, "arch": facts.value("system.arch", ""), "status": "installed"}]
            if facts.value("kernel.dkms")
            else facts.value("kernel.dkms", [])
        )
    if flavour is not None:
        effect["driver.module_flavour"] = flavour
    return effect


def answering_effect(context: Context, version: Optional[str], cuda: Optional[str] = None) -> dict[str, Any]:
    """NVML and nvidia-smi answer, with this version where it is known."""
    facts = context.facts
    effect: dict[str, Any] = {
        "driver.nvml_error": None,
        "driver.nvml_error_text": None,
        "driver.nvml_unresponsive": False,
        "driver.smi_failure": None,
        "driver.smi_failure_text": None,
        "driver.smi_exit": 0,
    }
    if version is not None:
        for name in ("nvml_version", "nvml_library_version", "smi_version", "smi_tool_version", "library_version"):
            effect[f"driver.{name}"] = version
        effect["driver.smi_library_version"] = None
        effect["driver.nvml_library"] = "libnvidia-ml.so.1"
        effect["driver.smi_path"] = facts.value("driver.smi_path", "/usr/bin/nvidia-smi")
    if cuda is not None:
        effect["driver.nvml_cuda"] = cuda
        effect["driver.smi_cuda"] = cuda
    effect.update(_gpus_effect(context))
    return effect


def _gpus_effect(context: Context) -> dict[str, Any]:
    """NVML lists what the PCI bus shows."""
    effect: dict[str, Any] = {}
    found = context.gpus
    if context.facts["gpu.count"].is_known or not found:
        return {}
    effect["gpu.count"] = len(found)
    for index, gpu in enumerate(found):
        effect[f"gpu.{index}.name"] = gpu.label
        effect[f"gpu.{index}.lost"] = False
        if gpu.pci_address:
            effect[f"gpu.{index}.pci_address"] = gpu.pci_address
        if gpu.pci_device_id:
            effect[f"gpu.{index}.pci_device_id"] = gpu.pci_device_id
        if gpu.compute_capability.is_known:
            effect[f"gpu.{index}.compute_capability"] = gpu.compute_capability.get()
    return effect


def nodes_effect(context: Context) -> list[dict[str, Any]]:
    """The device nodes as they are where everything works: there and usable."""
    nodes = [dict(node, usable=True) for node in context.facts.value("device.nodes", [])]
    have = {node.get("path") for node in nodes}
    count = max(1, len(context.gpus))
    wanted = ["/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{index}" for index in range(count))]
    for path in wanted:
        if path not in have:
            node = {"path": path, "mode": "666", "uid": 0, "gid": 0, "group": "root", "usable": True, "device": "195:0"}
            nodes.append(node)
    return nodes


def _elsewhere(context: Context, what: str) -> Optional[list[Draft]]:
    """Where the driver is not this system's own, the step for whoever owns it."""
    if context.is_jetson:
        text = "The driver of a Jetson is part of its JetPack release: install or update JetPack (https://developer.nvidia.com/jetpack)."
        return [draft(BY_HAND, "jetpack", f"{what} with JetPack", "driver", instructions=text)]
    if context.container is not None:
        text = (
            "A container has no driver of its own: it uses that of its host. On the host: `cudadoctor fix --print`. "
            "Driver packages inside the image do harm."
        )
        return [draft(BY_HAND, "driver-on-host", f"{what} on the container's host", "driver", instructions=text)]
    return None


# -- driver packages ------------------------------------------------------------


def install_driver(
    context: Context, branch: Optional[int] = None, flavour: str = "", minimum_branch: Optional[int] = None
) -> list[Draft]:
    """A driver for these GPUs, by the distribution's own packages, and the reboot that starts it."""
    if context.os == "windows" or context.is_wsl:
        return windows.install_windows_driver(context, minimum_branch=minimum_branch)
    other = _elsewhere(context, "Install the driver")
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
    other = _elsewhere(context, "Update the driver")
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
    steps = _header_steps(context)
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


def _header_steps(context: Context) -> list[Draft]:
    """Headers of the running kernel, where a module has to be built and they are known to be missing."""
    headers = context.facts["kernel.headers"]
    distribution = context.distribution
    if distribution is None or not (headers.is_absent or headers.value is False):
        return []
    packages = distribution.headers(context.kernel)
    if not packages:
        return []
    return [
        draft(
            KERNEL,
            "install-kernel-headers",
            "Install the headers of the running kernel",
            "kernel",
            context.root(*distribution.install_command(packages)),
            needs=("root", "network"),
            changes=f"installs {', '.join(packages)}, without which no kernel module can be built",
            undo=context.text(context.root(*distribution.remove_command(packages))),
            effect={"kernel.headers": True},
        )
    ]


def install_open_kernel_module(context: Context) -> list[Draft]:
    return _change_flavour(context, OPEN)


def install_proprietary_kernel_module(context: Context) -> list[Draft]:
    return _change_flavour(context, PROPRIETARY)


def _change_flavour(context: Context, flavour: str) -> list[Draft]:
    """The same branch with the other kind of kernel modules; another branch where this one has none or does not fit."""
    other = _elsewhere(context, f"Install the {flavour} kernel modules")
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


# -- kernel ------------------------------------------------------------


def reboot(context: Context, why: str = "", effect: Optional[dict[str, Any]] = None) -> list[Draft]:
    """The one reboot of a plan; several are merged."""
    windows_here = context.os == "windows"
    argv = ("shutdown", "/r", "/t", "0") if windows_here else context.root("reboot")
    if context.is_wsl:
        argv = ("wsl.exe", "--shutdown")
    text = f"{why[0].upper()}{why[1:]}." if why else ""
    return [
        draft(
            REBOOT,
            "reboot",
            "Restart WSL" if context.is_wsl else "Reboot",
            "reboot",
            argv,
            needs=("reboot",) if windows_here or context.is_wsl else ("root", "reboot"),
            changes="ends everything that runs on this machine",
            undo="",
            effect=effect,
            instructions=text,
        )
    ]


def _initramfs(context: Context) -> list[Draft]:
    distribution = context.distribution
    if distribution is None or not distribution.initramfs:
        text = (
            "Write the early boot image (initramfs) anew with your distribution's own command: dracut, mkinitcpio, ..."
        )
        return [
            draft(
                INITRAMFS, "initramfs", "Write the early boot image anew", "kernel", needs=("root",), instructions=text
            )
        ]
    return [
        draft(
            INITRAMFS,
            "initramfs",
            "Write the early boot image anew, so that it keeps to the change",
            "kernel",
            context.root(*distribution.initramfs),
            needs=("root",),
            changes="writes the initramfs of the running kernel",
            undo="run the same command after undoing the change",
        )
    ]


def blacklist_nouveau(context: Context) -> list[Draft]:
    """Keeps nouveau from taking the GPU at the next start."""
    lines = ("blacklist nouveau", "options nouveau modeset=0")
    script = " && ".join(
        f"echo '{line}' {'>' if position == 0 else '>>'} {NOUVEAU_FILE}" for position, line in enumerate(lines)
    )
    facts = context.facts
    return [
        draft(
            KERNEL,
            "blacklist-nouveau",
            "Keep the nouveau driver from loading",
            "kernel",
            context.root("sh", "-c", script),
            needs=("root", "reboot"),
            effect={"kernel.nouveau_blacklisted_by": [*facts.value("kernel.nouveau_blacklisted_by", []), NOUVEAU_FILE]},
            changes=f"writes {NOUVEAU_FILE}",
            undo=context.text(context.root("rm", NOUVEAU_FILE)) + ", then the initramfs step and a reboot",
        ),
        *_initramfs(context),
        *reboot(context, "nouveau lets go of the GPU only at the next start", _after_nouveau(context)),
    ]


def _after_nouveau(context: Context) -> dict[str, Any]:
    """Without nouveau the card goes to NVIDIA's module, where that is there; a step that installs it says so itself."""
    facts = context.facts
    if "install-driver" in context.kinds:
        return {}
    files = facts.value("kernel.nvidia_module_files", [])
    version = facts.value("driver.library_version")
    if version is None:
        version = next((entry.get("version") for entry in files if entry.get("version")), None)
    if files or version is not None:
        flavour = next((entry.get("flavour") for entry in files if entry.get("flavour")), None)
        branch = context.matrix.branch_of(version, "linux") if version else None
        return working_effect(context, version, flavour, branch.cuda if branch else None)
    others = context.matrix.kernel_modules("nouveau")
    return {
        "kernel.modules": [module for module in facts.value("kernel.modules", []) if module not in others],
        "pci.gpus": [
            dict(entry, driver=None if entry.get("driver") in others else entry.get("driver"))
            for entry in facts.value("pci.gpus", [])
        ],
    }


def remove_module_blacklist(context: Context, files: Sequence[str]) -> list[Draft]:
    """Files that keep the nvidia module from loading are set aside."""
    steps = []
    for file in files:
        path = validate.path(file)
        if not path.startswith("/"):
            text = f"Take {path} off the kernel command line: edit your boot loader's settings and write them anew."
            steps.append(
                draft(
                    KERNEL,
                    "kernel-parameter",
                    f"Remove the kernel parameter {path}",
                    "kernel",
                    needs=("root", "reboot"),
                    instructions=text,
                )
            )
            continue
        steps.append(
            draft(
                KERNEL,
                "unblacklist-" + path.rpartition("/")[2][:40],
                f"Set {path} aside, which keeps the nvidia module from loading",
                "kernel",
                context.root("mv", path, path + ".disabled"),
                needs=("root",),
                changes=f"renames {path}",
                undo=context.text(context.root("mv", path + ".disabled", path)),
            )
        )
    version = context.facts.value("driver.library_version")
    effect = working_effect(context, version, None, None)
    effect["kernel.nvidia_blacklisted_by"] = []
    return [*steps, *_initramfs(context), *reboot(context, "the module is loaded at the next start", effect)]


def build_module(context: Context, kernel: str = "") -> list[Draft]:
    """The module for the running kernel: headers, build, load."""
    other = _elsewhere(context, "Build the kernel module")
    if other is not None:
        return other
    release = validate.kernel(kernel) if kernel else context.kernel
    distribution = context.distribution
    steps = _header_steps(context)
    command = distribution.rebuild(release) if distribution is not None else ()
    version = context.facts.value("driver.library_version")
    built = [str(entry.get("version")) for entry in context.facts.value("kernel.dkms", []) if entry.get("version")]
    if version is None and built:
        version = built[-1]
    flavours = [entry.get("flavour") for entry in context.facts.value("kernel.nvidia_module_files", [])]
    flavour = next((text for text in flavours if text in (OPEN, PROPRIETARY)), None)
    branch = context.matrix.branch_of(version, "linux") if version else None
    effect = working_effect(context, version, flavour, branch.cuda if branch else None)
    if version is not None:
        effect["kernel.dkms"] = [
            *(entry for entry in context.facts.value("kernel.dkms", []) if entry.get("kernel") != release),
            {
                "version": version,
                "kernel": release,
                "arch": context.facts.value("system.arch", ""),
                "status": "installed",
            },
        ]
    if command:
        steps.append(
            draft(
                DRIVER,
                "build-module",
                f"Build the nvidia module for kernel {release}",
                "kernel",
                context.root(*command),
                needs=("root",),
                changes=f"builds and installs the kernel module for {release}",
                undo="boot the kernel that was used before",
                instructions="If the build fails, its log names the cause (/var/lib/dkms/nvidia/*/build/make.log).",
            )
        )
    else:
        text = (
            "The packages of this distribution bring built modules: install the driver's kernel module package for "
            f"{release}, or boot the kernel for which it is installed."
        )
        steps.append(
            draft(
                DRIVER,
                "build-module",
                f"Install the nvidia module for kernel {release}",
                "kernel",
                needs=("root", "network"),
                instructions=text,
            )
        )
    load = load_module(context, "nvidia")[0]
    steps.append(load.with_effect(effect))
    return steps


def enroll_mok(context: Context) -> list[Draft]:
    """The key that signs locally built modules is made known to the firmware."""
    version = context.facts.value("driver.library_version")
    if version is None:
        files = context.facts.value("kernel.nvidia_module_files", [])
        version = next((entry.get("version") for entry in files if entry.get("version")), None)
    effect = working_effect(context, version, None, None)
    distribution = context.distribution
    key = distribution.mok_key if distribution is not None else None
    title = "Enroll the key that signs the nvidia module"
    screen = (
        "Choose a password when asked. At the next start the firmware shows a blue screen (MOK management): choose "
        "Enroll MOK and type that password. Without access to that screen: turn Secure Boot off in the firmware."
    )
    missing = ""
    if distribution is not None and distribution.family == "debian":
        missing = " If there is no such file: sudo update-secureboot-policy --new-key, or build the module anew."
    if key is None or not key.endswith((".der", ".pub")):
        where = f" (on {distribution.title} in {key})" if distribution is not None and key else ""
        text = f"Find the certificate that signs the module{where}, and run `sudo mokutil --import FILE`. {screen}"
        first = draft(SIGNING, "enroll-mok", title, "kernel", needs=("root", "reboot"), instructions=text)
    else:
        first = draft(
            SIGNING,
            "enroll-mok",
            title,
            "kernel",
            context.root("mokutil", "--import", key),
            needs=("root", "reboot"),
            changes="asks the firmware to trust modules that this machine signs",
            undo=context.text(context.root("mokutil", "--delete", key)),
            instructions=screen + missing,
        )
    return [first, *reboot(context, "the key is enrolled on the screen before the system starts", effect)]


def reload_module(context: Context) -> list[Draft]:
    """The loaded module gives way to the one that belongs to the library."""
    other = _elsewhere(context, "Reload the kernel module")
    if other is not None and not context.is_jetson:
        return other
    version = context.facts.value("driver.library_version") or context.facts.value("driver.smi_library_version")
    branch = (
        context.matrix.branch_of(version, context.numbering) if isinstance(version, str) and numbers(version) else None
    )
    effect = working_effect(context, version, None, branch.cuda if branch is not None else None)
    loaded = set(context.facts.value("kernel.modules", []))
    present = [module for module in MODULES if module in loaded] or list(MODULES)
    unload = context.text(context.root("modprobe", "-r", *present))
    load = context.text(context.root("modprobe", "nvidia"))
    without = f"\nWithout a reboot, where nothing uses the GPU (no desktop, no jobs):\n    {unload}\n    {load}"
    if context.os == "windows" or context.is_wsl:
        return reboot(context, "the driver starts anew", effect)
    step = reboot(context, "the module that belongs to the library is loaded at the next start", effect)[0]
    return [step.with_note(without)]


def load_module(context: Context, module: str) -> list[Draft]:
    name = validate.name(module)
    if context.container is not None:
        text = f"On the container's host: sudo modprobe {name}"
        return [
            draft(
                BY_HAND,
                f"load-{name}",
                f"Load the kernel module {name} on the host",
                "kernel",
                needs=("root",),
                instructions=text,
            )
        ]
    modules = [m for m in context.facts.value("kernel.modules", []) if m != name.replace("-", "_")]
    effect: dict[str, Any] = {"kernel.modules": [name.replace("-", "_"), *modules]}
    if name == "nvidia":
        effect["driver.module_loaded"] = True
    return [
        draft(
            SETTING if name != "nvidia" else DRIVER + 1,
            f"load-{name}",
            f"Load the kernel module {name}",
            "kernel",
            context.root("modprobe", name),
            needs=("root",),
            effect=effect,
            changes=f"loads {name} until the next reboot",
            undo=context.text(context.root("modprobe", "-r", name)),
        )
    ]


def load_uvm(context: Context, reload: bool = False) -> list[Draft]:
    """The module behind CUDA's memory; after a suspend it has to be loaded anew."""
    steps = load_module(context, "nvidia-uvm")
    steps[-1] = steps[-1].with_effect({"device.nodes": nodes_effect(context)})
    if not reload or context.container is not None:
        return steps
    unload = draft(
        SETTING - 1,
        "unload-nvidia-uvm",
        "Unload the kernel module nvidia-uvm",
        "kernel",
        context.root("modprobe", "-r", "nvidia-uvm"),
        needs=("root",),
        changes="unloads nvidia-uvm; programs that use CUDA must have ended",
        undo=context.text(context.root("modprobe", "nvidia-uvm")),
    )
    return [unload, *steps]


def create_device_nodes(context: Context) -> list[Draft]:
    """/dev/nvidia*, by the driver's own helper."""
    if context.container is not None:
        from cudadoctor.plan.remedies.job import run_container_with_gpu

        steps = run_container_with_gpu(context)
        steps[-1] = steps[-1].with_effect({"device.nodes": nodes_effect(context)})
        return steps
    return [
        draft(
            SETTING,
            "create-device-nodes",
            "Make the device nodes /dev/nvidia*",
            "driver",
            context.root("nvidia-modprobe", "-c", "0", "-u"),
            needs=("root",),
            effect={
                "device.nodes": nodes_effect(context),
                **answering_effect(context, context.facts.value("driver.module_version")),
            },
            changes="makes /dev/nvidiactl, /dev/nvidia0 and /dev/nvidia-uvm until the next reboot",
            undo="they are gone after a reboot",
        )
    ]


def restart_service(context: Context, service: str) -> list[Draft]:
    name = validate.name(service)
    effect: dict[str, Any] = {"driver.fabric_manager": "running"} if "fabric" in name else {}
    return [
        draft(
            SETTING,
            f"restart-{name}",
            f"Start the service {name}",
            "driver",
            context.root("systemctl", "restart", name),
            needs=("root",),
            effect=effect,
            changes=f"restarts {name}",
            undo=context.text(context.root("systemctl", "stop", name)),
        )
    ]
