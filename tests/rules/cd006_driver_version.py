"""CD006: the driver is of the version that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when, wsl

RULE = "CD006"

ASKED = {"driver.version": ">=535,<600"}

CASES = [
    skips("nobody asks", node(8)),
    passes("within the range", node(8).asks(ASKED), says="driver 580.95.05 is >=535,<600"),
    passes("05 is 5", node(1).driver("525.147.05", "12.0").asks({"driver.version": "==525.147.05"}), says="525.147.05"),
    passes("a branch", node(1).asks({"driver.version": "==580.*"})),
    passes("WSL counts as Windows does", wsl().asks({"driver.version": ">=581"})),
    fails(
        "left behind by an update",
        node(8).driver("525.147.05", "12.0").asks(ASKED),
        says="the driver is 525.147.05, >=535,<600 is asked for",
        blame="machine",
    ),
    fails("too new", node(8).driver("610.20", "14.0").asks(ASKED)),
    fails("no answer, but the loaded module tells", linux().hangs().asks({"driver.version": "<580"}), says="580.95.05"),
    unknown_when("no driver", linux().no_driver().asks(ASKED), says="no driver is seen"),
]
