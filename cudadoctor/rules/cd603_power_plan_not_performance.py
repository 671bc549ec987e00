"""The Windows power plan holds the machine back

What it checks
    Whether the active power plan is one for performance: by its GUID, which is the same in every language, else by the
    plan's personality, since copies and makers' plans have GUIDs of their own. On a machine that has only the Balanced
    plan, the power mode laid over it counts. Also whether somebody reports that the work slows down when the screen
    goes off.

Why it matters
    Balanced and power-saver plans lower the processor's clock between short bursts of work and put the PCIe link to
    sleep, which starves a GPU that waits for its data.

How to fix
    Switch the plan: powercfg /setactive with the GUID of High performance. On a laptop do it on mains power; it costs
    battery. To go back, set the old GUID.

References
    https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options
"""

from __future__ import annotations

from cudadoctor.rules.api import CERTAIN, INFO, LIKELY, MACHINE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD603",
    name="power-plan-not-performance",
    title="The Windows power plan holds the machine back",
    severity=WARNING,
    blame=MACHINE,
    precedence=64,
)

_PERFORMANCE = "performance"
_PERSONALITIES = {"high-performance": _PERFORMANCE, "balanced": "balanced", "power-saver": "saver"}


_SCREEN = "symptom.slow_when_display_off"


def judge(case: Case) -> Outcome:
    if case.fact(_SCREEN).is_known and case.value("system.os", "windows") == "windows":
        return _screen(case)
    plan = case.fact("windows.power_plan")
    if case.value("system.os", "windows" if plan.is_known else "") != "windows":
        return case.skipped("power plans are Windows' own")
    if not plan.is_known:
        return case.undecided(f"cannot read the power plan: {plan.reason}", ("windows.power_plan",))
    row = case.matrix.power_plan(plan.get())
    kind = row.kind if row is not None else _PERSONALITIES.get(case.value("windows.power_plan_personality", ""))
    name = case.value("windows.power_plan_name") or (row.name if row is not None else plan.get())
    if kind is None:
        return case.undecided(f"the power plan {name!r} is the maker's own", ("windows.power_plan",))
    if kind == _PERFORMANCE:
        return case.passed(f"power plan {name}", ("windows.power_plan",))
    overlay = case.fact("windows.power_overlay")
    mode = case.matrix.power_plan(overlay.get()) if overlay.is_known else None
    if kind == "balanced" and mode is not None and mode.overlay and mode.kind == _PERFORMANCE:
        evidence = ("windows.power_plan", "windows.power_overlay")
        return case.passed(f"power plan {name}, power mode {mode.name}", evidence)
    return _failed(case, kind, name)


def _screen(case: Case) -> Outcome:
    return case.failed(
        "the work slows down when the screen goes off: Windows saves power then",
        [name for name in (_SCREEN, "windows.power_plan") if case.fact(name).is_known],
        certainty=LIKELY,
        fixes=(
            Remedy("set-power-plan", {"effect": {_SCREEN: None}}),
            Remedy(
                "manual",
                {
                    "title": "Leave the screen on while the GPU works",
                    "text": "Settings, System, Power: screen off never (a black screen saver instead); NVIDIA Control "
                    "Panel, Manage 3D settings, Power management mode: Prefer maximum performance.",
                    "kind": "setting",
                    "id": "screen-stays-on",
                },
            ),
        ),
        not_helping=("another driver or torch build: at full speed both are fine",),
    )


def _failed(case: Case, kind: str, name: str) -> Outcome:
    plans = case.fact("windows.power_plans")
    others = [case.matrix.power_plan(guid) for guid in (plans.value or ())]
    fast = [row for row in others if row is not None and row.kind == _PERFORMANCE and not row.overlay]
    # Modern Standby machines have the Balanced plan alone; there the mode laid over it is what can be changed.
    only_overlay = plans.is_known and not fast
    overlays = [row for row in case.matrix.power_plans() if row.overlay and row.kind == _PERFORMANCE]
    remedy = Remedy("set-power-plan", {"guid": fast[0].guid} if fast else {})
    if only_overlay and overlays:
        remedy = Remedy("set-power-overlay", {"guid": overlays[0].guid})
    on_battery = case.value("windows.on_battery", False)
    return case.failed(
        f"the power plan is {name}, which "
        + ("keeps the machine slow" if kind == "saver" else "slows the processor between bursts of work")
        + (" (it runs on battery now)" if on_battery else ""),
        ("windows.power_plan", "windows.power_plan_name"),
        certainty=CERTAIN if kind == "saver" else LIKELY,
        severity=INFO if only_overlay and kind != "saver" else WARNING,
        data={"kind": kind},
        fixes=(remedy,),
    )
