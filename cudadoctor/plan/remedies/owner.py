"""Where the driver is not this system's own: whose it is, and what they do."""

from __future__ import annotations

from typing import Optional

from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, Draft, draft
from cudadoctor.resolve.drivers import product

VGPU = (
    "this is a virtual GPU (vGPU), which takes only the guest driver that matches its host's: the host's administrator "
    "provides it"
)


def is_guest(context: Context) -> bool:
    """Whether a GPU is a share of one that a hypervisor hands out."""
    return any(product(gpu.label, context.matrix).vgpu for gpu in context.present.gpus)


def guest(context: Context, what: str) -> Optional[list[Draft]]:
    """The step for the host's administrator, where the machine is a vGPU guest: no driver from anywhere else fits."""
    if not is_guest(context):
        return None
    text = f"{VGPU[0].upper()}{VGPU[1:]}. A newer one needs a newer driver on the host, too."
    return [draft(DRIVER, "vgpu-guest-driver", f"{what}: the vGPU guest driver", "driver", instructions=text)]


def elsewhere(context: Context, what: str) -> Optional[list[Draft]]:
    """Where the driver is not this system's own, the step for whoever owns it."""
    asked = guest(context, what)
    if asked is not None:
        return asked
    if context.is_jetson:
        text = (
            "The driver of a Jetson is part of its JetPack release: install or update JetPack "
            "(https://developer.nvidia.com/jetpack)."
        )
        return [draft(BY_HAND, "jetpack", f"{what} with JetPack", "driver", instructions=text)]
    if "asahi" in str(context.facts.value("system.kernel_release", "")):
        text = "NVIDIA makes no driver for Apple's computers: this GPU can be used from another machine only."
        return [draft(BY_HAND, "no-driver-for-apple", f"{what}: there is none", "driver", instructions=text)]
    if context.container is not None:
        text = (
            "A container has no driver of its own: it uses that of its host. On the host: `cudadoctor fix --print`. "
            "Driver packages inside the image do harm."
        )
        return [draft(BY_HAND, "driver-on-host", f"{what} on the container's host", "driver", instructions=text)]
    return None
