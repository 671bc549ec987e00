"""CD007: the driver serves the CUDA that the policy asks for, by its major number."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD007"

CASES = [
    skips("nobody asks", node(8)),
    passes("the same major, a newer minor", node(1).driver("535.183.01", "12.2").asks({"driver.cuda": "12.8"})),
    passes("an older one", node(1).asks({"driver.cuda": "11.8"})),
    fails(
        "the next major",
        node(1).driver("535.183.01", "12.2").asks({"driver.cuda": "13.0"}),
        says=["driver 535.183.01 does not serve CUDA 13.0", "580"],
        blame="machine",
        fix="update-driver",
    ),
    unknown_when("no driver", linux().no_driver().asks({"driver.cuda": "12.8"})),
]
