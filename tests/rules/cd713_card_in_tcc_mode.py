"""CD713: a card in TCC mode is lent to no guest."""

from __future__ import annotations

from typing import Optional

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD713"

BLOCKED = {"symptom.gpu_access_blocked": {"text": "GPU access blocked by the operating system"}}
REPORT = linux().only()


def card(machine: Machine, name: str, model: Optional[str] = None) -> Machine:
    entry = {"index": 0, "name": name, "truncated": False, "driver_model": model, "memory_total": None}
    return machine.set({"smi.gpus": [entry]})


CASES = [
    passes("WSL with its card", wsl()),
    fails(
        "a card for data centers that Windows blocks",
        card(REPORT, "Tesla P40").set(BLOCKED),
        says=["Tesla P40", "TCC"],
        severity="error",
        certainty="likely",
        blame="machine",
        fix="use-wddm",
    ),
    fails("the words alone", REPORT.set(BLOCKED), certainty="possible", fix="use-wddm"),
    fails("Windows' own table shows TCC", card(REPORT, "Tesla P40", "TCC").set(BLOCKED), certainty="certain"),
    fails(
        "WSL sees no adapter beside a card in TCC mode",
        card(REPORT, "NVIDIA RTX A6000", "TCC").set({"symptom.wsl_no_adapter": {"text": "no adapters were found"}}),
        certainty="certain",
    ),
    fails(
        "somebody says so, and WSL gets no answer of the cards",
        wsl()
        .only("system.wsl")
        .set(
            {
                "symptom.tcc_mode_named": {"text": "one card is in TCC mode"},
                "symptom.device_handle_unknown": {"text": "Unable to determine the device handle for GPU0"},
            }
        ),
        says="a card is in TCC mode",
        certainty="likely",
    ),
    skips("a card in TCC mode on Windows itself", card(windows(), "NVIDIA RTX A6000", "TCC")),
    skips("Linux", linux()),
    unknown_when("a GeForce, which knows no TCC", card(REPORT, "NVIDIA GeForce RTX 4070").set(BLOCKED)),
]
