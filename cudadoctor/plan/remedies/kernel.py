"""What keeps the nvidia module from the kernel: nouveau, blacklists, a module that was not built or is not trusted.

Nothing here is ever run by cudadoctor itself: a kernel is for a person to change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cudadoctor.matrix import Distribution
from cudadoctor.plan import validate
from cudadoctor.plan.context import OPEN, PROPRIETARY, Context
from cudadoctor.plan.draft import DRIVER, KERNEL, SIGNING, Draft, draft
from cudadoctor.plan.remedies.driver_effect import working_effect
from cudadoctor.plan.remedies.modules import load_module
from cudadoctor.plan.remedies.owner import elsewhere
from cudadoctor.plan.remedies.restart import initramfs, reboot

# 6.8.0-79-generic, 6.1.0-28-cloud-amd64, 6.12.9+deb13-amd64; 6.17.4-200.fc43.x86_64, 5.14.0-503.el9.x86_64;
# 6.4.0-150600.23.25-default; 6.17.1-arch1-1, 6.12.50-1-lts.
_OWN_KERNELS = {
    "debian": r"\d-\d+-[a-z]|\+(?:deb|bpo)\d*",
    "redhat": r"\.(?:fc|el|amzn|azl|cm)\d",
    "suse": r"-(?:default|azure|rt|preempt|64kb|kvmsmall|longterm)\Z",
    "arch": r"-arch\d|-(?:lts|zen|hardened|rt|rt-lts)\Z",
}
# Proxmox's kernels and Ubuntu's builds of kernel.org's, whose headers are other packages or other repositories'.
_FOREIGN_KERNELS = {"debian": r"-pve\Z|-0[0-9]{5}(?:rc\d+)?-"}

NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"


def header_steps(context: Context) -> list[Draft]:
    """Headers of the running kernel, where a module has to be built and they are known to be missing."""
    headers = context.facts["kernel.headers"]
    distribution = context.distribution
    if distribution is None or context.is_image or not (headers.is_absent or headers.value is False):
        return []
    packages = _headers(distribution, context.kernel)
    if not packages:
        return []
    if not is_of_distribution(distribution, context.kernel):
        text = (
            f"The running kernel, {context.kernel}, is none of {distribution.title}'s own, so its package manager has "
            "no headers for it. They come from where the kernel came from: its own headers package, or its source "
            "(make modules_prepare)."
        )
        return [
            draft(
                KERNEL,
                "install-kernel-headers",
                "Get the headers of the running kernel",
                "kernel",
                needs=("root",),
                instructions=text,
                effect={"kernel.headers": True},
            )
        ]
    return [
        draft(
            KERNEL,
            "install-kernel-headers",
            "Install the headers of the running kernel",
            "kernel",
            context.install(distribution, packages),
            needs=("root", "network"),
            changes=f"installs {', '.join(packages)}, without which no kernel module can be built",
            undo=context.text(context.remove(distribution, packages)),
            effect={"kernel.headers": True},
        )
    ]


def is_of_distribution(distribution: Distribution, kernel: str) -> bool:
    """Whether the release of a kernel is one that the distribution gives its own. Unknown families: taken for one."""
    foreign = _FOREIGN_KERNELS.get(distribution.family)
    own = _OWN_KERNELS.get(distribution.family)
    return not (foreign and re.search(foreign, kernel)) and (own is None or re.search(own, kernel) is not None)


def _headers(distribution: Distribution, kernel: str) -> tuple[str, ...]:
    """Arch names its headers after the kernel's package, which the release ends in."""
    packages = distribution.headers(kernel)
    branch = re.search(r"-(lts|zen|hardened|rt|rt-lts)\Z", kernel)
    if distribution.family == "arch" and branch and packages:
        return (f"linux-{branch.group(1)}-headers",)
    return packages


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
        *initramfs(context),
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
    return [*steps, *initramfs(context), *reboot(context, "the module is loaded at the next start", effect)]


def build_module(context: Context, kernel: str = "") -> list[Draft]:
    """The module for the running kernel: headers, build, load."""
    other = elsewhere(context, "Build the kernel module")
    if other is not None:
        return other
    unnamed = not kernel and context.facts.value("system.kernel_release") is None
    if unnamed and context.facts.value("examination.kind") == "report":
        return [_build_by_whoever_does()]
    release = validate.kernel(kernel) if kernel else context.kernel
    distribution = context.distribution
    if distribution is None:
        return [
            _build_by_whoever_does(release),
            load_module(context, "nvidia")[0].with_effect({"driver.module_loaded": True}),
        ]
    steps = header_steps(context) if context.facts.value("system.kernel_release") is not None else []
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


def _build_by_whoever_does(release: str = "") -> Draft:
    """A text does not always name the kernel, or the distribution that would say who builds."""
    headers = (
        f"the headers of kernel {release}" if release else "the headers of the running kernel (`uname -r` names it)"
    )
    text = (
        f"Install {headers}, and build again: `sudo dkms autoinstall` where DKMS builds the module, "
        "`sudo akmods --force` on Fedora; where the packages bring built modules, install the one for this kernel. "
        "The log names what fails (/var/lib/dkms/nvidia/*/build/make.log): a compiler's error there means that this "
        "driver is too old for the kernel, so take a newer one, or boot the kernel that was used before."
    )
    effect = {f"symptom.{name}": None for name in ("module_build_failed", "module_not_found", "module_wrong_kernel")}
    return draft(
        DRIVER,
        "build-module",
        f"Build the nvidia module for {f'kernel {release}' if release else 'the running kernel'}",
        "kernel",
        needs=("root", "network"),
        instructions=text,
        effect={**effect, "driver.module_loaded": True},
    )


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
