"""CD704: a WSL that has no GPU to lend."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when, windows, wsl

RULE = "CD704"

REPORT = linux().only("system.os").set({"examination.kind": "report"})
NO_ADAPTER = {"symptom.wsl_no_adapter": {"text": "WSL environment detected but no adapters were found"}}

CASES = [
    passes("WSL 2", wsl()),
    skips("no WSL", linux()),
    skips("Windows itself", windows()),
    fails(
        "WSL 1",
        wsl().set({"system.wsl": 1, "system.kernel_release": "4.4.0-19041-Microsoft"}),
        says="WSL 1",
        certainty="certain",
        severity="error",
        fix="update-wsl",
    ),
    fails(
        "the first kernels of WSL 2",
        wsl().set({"system.kernel_release": "4.19.104-microsoft-standard"}),
        says=["4.19.104", "5.10"],
        certainty="likely",
        fix="update-wsl",
    ),
    fails("Windows 10 of 2020", wsl().set({"system.windows_build": 19042}), says="19042", certainty="certain"),
    passes("Windows 11", wsl().set({"system.windows_build": 22631})),
    fails("the container toolkit finds no adapter", REPORT.set(NO_ADAPTER), certainty="likely", fix="update-wsl"),
    fails(
        "Windows lets nobody in",
        REPORT.set({"system.wsl": 2, "symptom.wsl_no_adapter": {"text": "GPU access blocked by the operating system"}}),
        certainty="possible",
    ),
    unknown_when("a Linux whose kernel nobody saw", REPORT),
    fails(
        "WSL is spoken of, and Windows is of before it lent GPUs",
        REPORT.set({"symptom.wsl_named": {"text": "my WSL"}, "system.windows_build": 17763}),
        says="17763",
        certainty="likely",
        fix="update-wsl",
    ),
    unknown_when(
        "WSL is spoken of, and Windows is new enough",
        REPORT.set({"symptom.wsl_named": {"text": "my WSL"}, "system.windows_build": 22631}),
    ),
]
