"""CD603: the Windows power plan; GUIDs are the same in every language."""

from __future__ import annotations

from cudadoctor.testing import GONE, fails, linux, passes, skips, unknown_when, windows

RULE = "CD603"

BALANCED = "381b4222-f694-41f0-9685-ff5bb260df2e"
HIGH = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
SAVER = "a1841308-3541-4fab-bc81-f71556f20b4a"
ULTIMATE = "e9a42b02-d5df-448d-aa00-03f14749eb61"
BEST_PERFORMANCE = "ded574b5-45a0-4f42-8737-46345c09c238"
COPY = "0f0f0f0f-1111-2222-3333-444455556666"


def plan(guid: str, name: str, **more: object) -> dict[str, object]:
    facts: dict[str, object] = {"windows.power_plan": guid, "windows.power_plan_name": name}
    facts["windows.power_plan_personality"] = GONE
    return {**facts, **{f"windows.{key}": value for key, value in more.items()}}


LAPTOP = {"power_plans": [BALANCED], "battery": True}

CASES = [
    passes("High performance", windows()),
    passes("Ultimate performance", windows().set(plan(ULTIMATE, "Ultimate Performance"))),
    passes("High performance, in German", windows().set(plan(HIGH, "H\u00f6chstleistung"))),
    passes(
        "a copy of Ultimate, by its personality",
        windows().set(plan(COPY, "Ultimate Performance", power_plan_personality="high-performance")),
    ),
    passes(
        "a laptop that has Balanced alone, with its mode at best performance",
        windows().set(plan(BALANCED, "Balanced", power_overlay=BEST_PERFORMANCE, **LAPTOP)),
        says="Balanced",
    ),
    fails(
        "Balanced on a desktop",
        windows().set(plan(BALANCED, "Balanced")),
        says="the power plan is Balanced",
        certainty="likely",
        severity="warning",
        blame="machine",
        fix="set-power-plan",
    ),
    fails("Balanced, in Chinese", windows().set(plan(BALANCED, "\u5e73\u8861")), fix="set-power-plan"),
    fails("the name is not known", windows().set(plan(BALANCED, "")).set({"windows.power_plan_name": GONE})),
    fails("Power saver", windows().set(plan(SAVER, "Power saver")), says="keeps the machine slow", certainty="certain"),
    fails(
        "a maker's plan that is balanced at heart",
        windows().set(plan(COPY, "Maker's plan", power_plan_personality="balanced")),
        says="Maker's plan",
    ),
    fails("on battery now", windows().set(plan(BALANCED, "Balanced", on_battery=True)), says="runs on battery now"),
    fails(
        "a laptop that has Balanced alone: its mode can be changed",
        windows().set(plan(BALANCED, "Balanced", **LAPTOP)),
        severity="info",
        fix="set-power-overlay",
    ),
    skips("Linux", linux()),
    skips("neither system nor plan are known", linux().only("examination.kind")),
    unknown_when("Windows does not tell", windows().unknown("windows.power_plan")),
    unknown_when("a maker's plan of unknown kind", windows().set(plan(COPY, "Maker's plan"))),
    fails(
        "slow when the screen goes off",
        windows().only().set({"symptom.slow_when_display_off": {"text": "slow when the monitor turns off"}}),
        says="when the screen goes off",
        severity="warning",
        certainty="likely",
        fix=["set-power-plan", "manual"],
    ),
]
