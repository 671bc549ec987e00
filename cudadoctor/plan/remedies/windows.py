"""Windows and the Windows half of WSL: driver, power plan, page file."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.plan import validate
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import CAREFUL, DRIVER, JOB, MEMORY, REMOVE, SAFE, SETTING, Draft, draft
from cudadoctor.plan.remedies.driver_effect import working_effect
from cudadoctor.resolve import fitting_branch

DOWNLOADS = "https://www.nvidia.com/drivers"

PERFORMANCE = "performance"


def install_windows_driver(context: Context, minimum_branch: Optional[int] = None) -> list[Draft]:
    return _driver(context, "Install", minimum_branch)


def update_windows_driver(context: Context, minimum_branch: Optional[int] = None) -> list[Draft]:
    return _driver(context, "Update", minimum_branch)


def _driver(context: Context, verb: str, minimum_branch: Optional[int]) -> list[Draft]:
    gpus = context.present.gpus
    branch = fitting_branch(gpus, context.matrix, minimum_branch or 0)
    where = "the Windows host" if context.is_wsl else "this PC"
    version: Optional[str] = None
    number = ""
    if branch is not None and branch.windows:
        version = branch.latest_windows or f"{branch.windows[-1]}.00"
        number = f" {branch.windows[0]} or newer ({branch.name} in Windows' numbers)"
    effect = working_effect(context, version, None, branch.cuda if branch is not None else None)
    if context.os == "windows" and version is not None:
        effect["driver.windows_version"] = version
        effect["windows.gpus"] = [dict(row, driver_version=version) for row in context.facts.value("windows.gpus", [])]
    if context.is_wsl:
        effect["driver.libcuda"] = [
            {
                "path": "/usr/lib/wsl/lib/libcuda.so.1",
                "real_path": "/usr/lib/wsl/drivers/libcuda.so.1",
                "found_by": "wsl",
                "kind": "wsl",
                "version": None,
            }
        ]
    after = " Then, in PowerShell: wsl --shutdown. Install no Linux driver inside WSL." if context.is_wsl else ""
    names = ", ".join(dict.fromkeys(gpu.label for gpu in gpus)) or "your card"
    return [
        draft(
            DRIVER,
            "install-windows-driver",
            f"{verb} the NVIDIA driver on {where}{':' + number if number else ''}",
            "driver",
            needs=("admin", "network", "reboot"),
            effect=effect,
            changes="replaces the display driver",
            undo="Device Manager, Display adapters, the card's Properties, Driver, Roll Back Driver",
            instructions=f"Get it from {DOWNLOADS} for {names}, or with the NVIDIA app, and install it.{after}",
        )
    ]


def remove_linux_driver_from_wsl(context: Context, packages: Any = ()) -> list[Draft]:
    """Inside WSL the driver is Windows': a Linux one hides it."""
    names = list(packages) or [str(row.get("name")) for row in context.facts.value("driver.packages", [])]
    names = [validate.system_package(name) for name in names]
    kept = [row for row in context.facts.value("driver.libcuda", []) if row.get("kind") == "wsl"]
    effect: dict[str, Any] = {"driver.packages": []}
    if kept:
        effect["driver.libcuda"] = kept
    distribution = context.distribution
    if not names or distribution is None:
        text = (
            "Remove the NVIDIA driver packages that were installed inside WSL (their libcuda.so.1 hides the one in "
            "/usr/lib/wsl/lib); a driver of a .run file goes with `sudo nvidia-uninstall`."
        )
        return [
            draft(
                REMOVE,
                "remove-linux-driver",
                "Remove the Linux driver from WSL",
                "driver",
                needs=("root",),
                effect=effect,
                instructions=text,
            )
        ]
    return [
        draft(
            DRIVER,
            "remove-linux-driver",
            "Remove the Linux driver from WSL, where the driver is Windows'",
            "driver",
            context.remove(distribution, names),
            needs=("root",),
            safety=CAREFUL,
            effect=effect,
            changes=f"removes {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}",
            undo=context.text(context.install(distribution, names)),
        )
    ]


def update_wsl(context: Context) -> list[Draft]:
    text = "In PowerShell on Windows: wsl --update, wsl --set-version DISTRIBUTION 2, and then wsl --shutdown."
    build, needs = context.facts.value("system.windows_build"), context.matrix.wsl_needs().windows_build
    if isinstance(build, int) and build < needs:
        text = f"First Windows itself: Windows Update, until winver shows build {needs} or newer. Then in " + text[3:]
    return [
        draft(
            JOB,
            "update-wsl",
            "Update WSL and use version 2",
            "setting",
            needs=("admin", "network"),
            effect={"system.wsl": 2},
            instructions=text,
        )
    ]


def set_power_plan(context: Context, guid: str = "") -> list[Draft]:
    """The plan High performance, by its GUID, which is the same in every language."""
    rows = [row for row in context.matrix.power_plans() if row.kind == PERFORMANCE and not row.overlay]
    wanted = validate.guid(guid) if guid else rows[0].guid
    have = context.facts.value("windows.power_plans")
    if isinstance(have, list) and wanted not in [str(plan).lower() for plan in have] and not guid:
        # Laptops often have Balanced alone, with an overlay that does the same.
        return set_power_overlay(context)
    row = context.matrix.power_plan(wanted)
    name = row.name if row is not None else wanted
    before = context.facts.value("windows.power_plan")
    undo = "choose the former plan in Windows' power options"
    if isinstance(before, str):
        undo = context.text(("powercfg", "/setactive", validate.guid(before)))
    return [
        draft(
            SETTING,
            "set-power-plan",
            f"Set the power plan to {name}",
            "setting",
            ("powercfg", "/setactive", wanted),
            safety=SAFE,
            effect={
                "windows.power_plan": wanted,
                "windows.power_plan_name": None,
                "windows.power_plan_personality": "high-performance",
            },
            changes="makes Windows keep processor and PCIe awake; uses more power",
            undo=undo,
        )
    ]


def set_power_overlay(context: Context, guid: str = "") -> list[Draft]:
    """The power mode over the Balanced plan, where that is the only plan."""
    rows = [row for row in context.matrix.power_plans() if row.kind == PERFORMANCE and row.overlay]
    wanted = validate.guid(guid) if guid else rows[0].guid
    row = context.matrix.power_plan(wanted)
    before = context.facts.value("windows.power_overlay")
    undo = "Settings, System, Power & battery, Power mode"
    if isinstance(before, str):
        undo = context.text(("powercfg", "/overlaysetactive", validate.guid(before)))
    return [
        draft(
            SETTING,
            "set-power-overlay",
            f"Set the power mode to {row.name if row is not None else wanted}",
            "setting",
            ("powercfg", "/overlaysetactive", wanted),
            safety=SAFE,
            effect={"windows.power_overlay": wanted},
            changes="sets the power mode over the Balanced plan; uses more power",
            undo=undo,
            instructions="The same by hand: Settings, System, Power & battery, Power mode: Best performance.",
        )
    ]


def enlarge_page_file(context: Context, size: Optional[int] = None) -> list[Draft]:
    """Windows manages the page file itself again, and lets it grow."""
    wanted = validate.size(size) if size is not None else None
    total = context.facts.value("memory.total", 0)
    # Windows lets a page file that it manages grow to three times the memory, or an eighth of the volume.
    limit = total + max(wanted or 0, total, context.facts.value("memory.commit_limit", 0) - total)
    script = "Set-CimInstance -Query 'SELECT * FROM Win32_ComputerSystem' -Property @{AutomaticManagedPagefile=$true}"
    room = f" The disk needs some {max(1, wanted >> 30)} GiB of free room." if wanted else ""
    return [
        draft(
            MEMORY,
            "enlarge-page-file",
            "Let Windows manage the size of the page file",
            "setting",
            ("powershell", "-NoProfile", "-Command", script),
            needs=("admin", "reboot"),
            safety=CAREFUL,
            effect={
                "memory.page_file": [
                    {"path": "C:\\pagefile.sys", "mode": "system-managed", "initial": None, "maximum": None}
                ],
                "memory.commit_limit": limit,
                "memory.swap_total": limit - total,
            },
            changes="the page file on C: grows as programs ask for memory",
            undo="System Properties, Advanced, Performance, Advanced, Virtual memory: the former size",
            instructions=(
                "In a PowerShell that runs as administrator. By hand: System Properties, Advanced, Performance, "
                f"Advanced, Virtual memory, Automatically manage paging file size.{room}"
            ),
        )
    ]
