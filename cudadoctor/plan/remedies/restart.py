"""The one reboot of a plan, and what has to be written before it."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import INITRAMFS, REBOOT, Draft, draft


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


def initramfs(context: Context) -> list[Draft]:
    distribution = context.distribution
    if context.is_image:
        text = (
            "The early boot image belongs to the system's image here. Keep nouveau out on the kernel command line:\n"
            "    sudo rpm-ostree kargs --append=rd.driver.blacklist=nouveau --append=modprobe.blacklist=nouveau"
        )
        return [
            draft(
                INITRAMFS,
                "initramfs",
                "Say it on the kernel command line as well",
                "kernel",
                needs=("root",),
                instructions=text,
            )
        ]
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
