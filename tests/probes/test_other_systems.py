from __future__ import annotations

from cudadoctor.probes.other_systems import PROBE

from .tables import ABSENT, check, machine, windows


def test_windows_has_no_kernel_modules() -> None:
    facts = check(PROBE, windows(), {"kernel.modules": ABSENT, "pci.gpus": ABSENT, "device.nodes": ABSENT})
    assert not any(name.startswith("windows.") for name in facts)
    assert facts["kernel.modules"].source == "windows has none"


def test_linux_has_no_page_file() -> None:
    facts = check(PROBE, machine(), {"memory.page_file": ABSENT, "windows.power_plan": ABSENT})
    assert not any(name.startswith("kernel.") for name in facts)


def test_no_fact_is_of_another_system_and_asked_for_there() -> None:
    """What this probe calls absent on a system must not be looked for there by another probe."""
    from importlib import import_module

    from cudadoctor.probes.registry import PROBES

    for system in (machine(), windows()):
        absent = set(PROBE.function(system))
        for name in PROBES:
            if name == "other_systems":
                continue
            probe = import_module(f"cudadoctor.probes.{name}").PROBE
            if system.platform in probe.platforms and len(probe.platforms) == 1:
                assert not absent & set(probe.facts), f"{name} on {system.platform}"
