"""How Windows treats its GPUs: the watchdog, the scheduler, what a full card does, and a clean driver."""

from __future__ import annotations

from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import BY_HAND, CAREFUL, DRIVER, SETTING, Draft, draft

_GRAPHICS = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers"


def raise_tdr_delay(context: Context, seconds: int = 60) -> list[Draft]:
    """Windows waits longer before it takes a GPU for hung."""
    delay = min(max(int(seconds), 2), 600)
    before = context.facts.value("windows.tdr_delay")
    undo: tuple[str, ...] = ("reg", "delete", _GRAPHICS, "/v", "TdrDelay", "/f")
    if isinstance(before, int):
        undo = ("reg", "add", _GRAPHICS, "/v", "TdrDelay", "/t", "REG_DWORD", "/d", str(before), "/f")
    return [
        _registry(
            "raise-tdr-delay",
            f"Let a kernel run for {delay} s before Windows resets the GPU",
            "TdrDelay",
            delay,
            {"windows.tdr_delay": delay},
            "how long the screen stands still where a GPU really hangs",
            context.text(undo),
            context,
            "A smaller batch or tile, or a card without a display, cures it without the registry.",
        )
    ]


def turn_off_gpu_scheduling(context: Context) -> list[Draft]:
    """Windows schedules the GPU itself again."""
    undo = context.text(("reg", "add", _GRAPHICS, "/v", "HwSchMode", "/t", "REG_DWORD", "/d", "2", "/f"))
    return [
        _registry(
            "turn-off-gpu-scheduling",
            "Turn hardware-accelerated GPU scheduling off, and compare",
            "HwSchMode",
            1,
            {"windows.hardware_scheduling": "off", "symptom.work_is_slow": None},
            "who decides what the GPU runs next",
            undo,
            context,
            "By hand: Settings, System, Display, Graphics, Default graphics settings.",
        )
    ]


def _registry(
    id: str,
    title: str,
    value: str,
    number: int,
    effect: dict[str, object],
    changes: str,
    undo: str,
    context: Context,
    more: str,
) -> Draft:
    argv = ("reg", "add", _GRAPHICS, "/v", value, "/t", "REG_DWORD", "/d", str(number), "/f")
    command = " ".join(argv)
    how = "In a terminal that runs as administrator, with a restart afterwards."
    if context.is_wsl:
        how = f"On Windows, in a terminal that runs as administrator, with a restart afterwards:\n    {command}\n"
    return draft(
        SETTING,
        id,
        title,
        "setting",
        # Inside WSL it is not this system's registry.
        None if context.is_wsl else argv,
        needs=("admin", "reboot"),
        safety=CAREFUL,
        effect=effect,
        changes=changes,
        undo=undo,
        instructions=f"{how} {more}" if not context.is_wsl else how + more,
    )


def refuse_sysmem_fallback(context: Context) -> list[Draft]:
    """The driver says no where the card is full, in place of using the machine's memory."""
    return [
        draft(
            SETTING,
            "refuse-sysmem-fallback",
            "Need less GPU memory, or let the driver refuse what does not fit",
            "setting",
            effect={"symptom.work_is_slow": None, "oom.allocated": None},
            changes="a full card gives an out-of-memory error in place of slow work",
            undo="the same setting: Driver Default",
            instructions=(
                "Take a smaller batch, model or picture, or quantised weights. To be told when the card is full: "
                "NVIDIA Control Panel, Manage 3D settings, Program Settings, the python.exe, CUDA - Sysmem Fallback "
                "Policy: Prefer No Sysmem Fallback."
            ),
        )
    ]


def clean_windows_driver(context: Context) -> list[Draft]:
    """The driver is removed with all its remains and installed again, without Windows Update in between."""
    return [
        draft(
            DRIVER,
            "clean-windows-driver",
            "Install the driver again from a clean state",
            "driver",
            needs=("admin", "network", "reboot"),
            effect={"symptom.driver_install_failed": None},
            changes="removes the driver with its remains and installs it again",
            undo="Device Manager, Display adapters, the card's Properties, Driver, Roll Back Driver",
            instructions=(
                "1. Download the whole driver from https://www.nvidia.com/drivers, and then disconnect the network, so "
                "that Windows Update installs none meanwhile. 2. Settings, Apps: uninstall NVIDIA's driver and app; "
                "where that fails too, run Display Driver Uninstaller in safe mode. 3. Restart, run the downloaded "
                "file as administrator: Custom, Perform a clean installation. 4. Connect again. An older driver that "
                "worked: Device Manager, Display adapters, Properties, Driver, Roll Back Driver. Should files of "
                "Windows itself be missing (0x80070002, 0x80070003): DISM /Online /Cleanup-Image /RestoreHealth, then "
                "sfc /scannow."
            ),
        )
    ]


def use_wddm(context: Context) -> list[Draft]:
    """The card is given the driver model that lends it to WSL and virtual machines."""
    return [
        draft(
            BY_HAND,
            "use-wddm",
            "Give the card the WDDM driver model on the Windows host",
            "driver",
            needs=("admin", "reboot"),
            changes="the card becomes a display adapter of Windows, and is lent to guests",
            undo="nvidia-smi -i N -dm TCC",
            instructions=(
                "On Windows, in a terminal that runs as administrator (N is the card's number in nvidia-smi):\n"
                "    nvidia-smi -i N -dm WDDM\n"
                "Then restart Windows. A driver for data centers may refuse it: take the driver for workstations (RTX, "
                "Quadro) or the GRID guest driver, which use WDDM by default."
            ),
        )
    ]
