"""The driver's kernel modules, device nodes and services, as they are loaded and made at run time."""

from __future__ import annotations

from typing import Any

from cudadoctor.matrix import numbers
from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, DRIVER, SETTING, Draft, draft
from cudadoctor.plan.remedies.driver_effect import MODULES, answering_effect, nodes_effect, working_effect
from cudadoctor.plan.remedies.job import run_container_with_gpu
from cudadoctor.plan.remedies.owner import elsewhere
from cudadoctor.plan.remedies.restart import reboot


def reload_module(context: Context) -> list[Draft]:
    """The loaded module gives way to the one that belongs to the library."""
    other = elsewhere(context, "Reload the kernel module")
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
    steps = load_module(context, "nvidia_uvm")
    steps[-1] = steps[-1].with_effect({"device.nodes": nodes_effect(context)})
    if not reload or context.container is not None:
        return steps
    unload = draft(
        SETTING - 1,
        "unload-nvidia-uvm",
        "Unload the kernel module nvidia_uvm",
        "kernel",
        context.root("modprobe", "-r", "nvidia_uvm"),
        needs=("root",),
        changes="unloads nvidia_uvm; programs that use CUDA must have ended",
        undo=context.text(context.root("modprobe", "nvidia_uvm")),
    )
    return [unload, *steps]


def disable_uvm_hmm(context: Context) -> list[Draft]:
    """nvidia-uvm without the kernel's HMM, from now on."""
    file = "/etc/modprobe.d/nvidia-uvm-hmm.conf"
    if context.container is not None:
        text = f"On the container's host: a line 'options nvidia_uvm uvm_disable_hmm=1' in {file}, then a reboot."
        return [
            draft(
                BY_HAND, "disable-uvm-hmm", "Switch HMM off on the host", "kernel", needs=("root",), instructions=text
            )
        ]
    option = draft(
        SETTING - 2,
        "disable-uvm-hmm",
        "Switch off nvidia-uvm's use of HMM",
        "kernel",
        context.root("sh", "-c", f"echo 'options nvidia_uvm uvm_disable_hmm=1' > {file}"),
        needs=("root",),
        changes=f"writes {file}",
        undo=context.text(context.root("rm", file)),
    )
    return [option, *load_uvm(context, reload=True)]


def create_device_nodes(context: Context) -> list[Draft]:
    """/dev/nvidia*, by the driver's own helper."""
    if context.container is not None:
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
