"""CD016: NVLink joins the GPUs, where the policy asks for it."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD016"

ASKED = {"gpu.nvlink": True}
TWO = linux().gpu("NVIDIA GeForce RTX 4090", "8.9", index=1)


def joined(link: str) -> dict[str, object]:
    return {"smi.links": [{"first": 0, "second": 1, "link": link}]}


CASES = [
    skips("nobody asks", node(8)),
    passes("behind NVSwitches", node(8).asks(ASKED)),
    passes("a topology table", TWO.set(joined("NV12")).asks(ASKED)),
    passes("one GPU needs no link", linux().asks(ASKED)),
    fails("PCIe alone", TWO.set(joined("PHB")).asks(ASKED), says="GPU 0 and GPU 1 are joined by PHB"),
    fails(
        "a card that the fabric has not taken in",
        node(8).set({"gpu.3.fabric_state": "in-progress"}).asks(ASKED),
        says=["GPU 3", "in-progress"],
        blame="machine",
    ),
    unknown_when("nothing shows it", TWO.asks(ASKED)),
]
