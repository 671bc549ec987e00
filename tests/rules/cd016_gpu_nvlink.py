"""CD016: each GPU's NVLinks are up, where the policy asks for it."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, node, passes, skips, unknown_when

RULE = "CD016"

ASKED = {"gpu.nvlink": True}
TWO = linux().gpu("NVIDIA GeForce RTX 4090", "8.9", index=1)


def joined(link: str) -> dict[str, object]:
    return {"smi.links": [{"first": 0, "second": 1, "link": link}]}


def links(up: int, down: int) -> dict[str, int]:
    return {f"gpu.{number}.nvlinks_{way}": count for number in (0, 1) for way, count in (("up", up), ("down", down))}


# A table of four cards: 0 and 1, 2 and 3 have a bridge.
PAIRS = {
    "smi.links": [
        {"first": first, "second": second, "link": "NV12" if second == first + 1 and first != 1 else "SYS"}
        for first in range(4)
        for second in range(first + 1, 4)
    ]
}
UNUSED = {f"gpu.{number}.nvlinks_down": 6 for number in range(8)}
UNTOLD = [f"gpu.{number}.nvlinks_{way}" for number in range(8) for way in ("up", "down")]

CASES = [
    skips("nobody asks", node(8)),
    passes("behind NVSwitches", node(8).asks(ASKED)),
    passes("a topology table", TWO.set(joined("NV12")).asks(ASKED)),
    passes("one GPU needs no link", linux().asks(ASKED)),
    passes(
        "bridges join pairs, and the job sees one pair",
        node(4).set(PAIRS).set({"env.CUDA_VISIBLE_DEVICES": "2,3"}).asks(ASKED),
    ),
    fails("bridges join pairs, and the job sees both", node(4).set(PAIRS).asks(ASKED), says="GPU 0 and GPU 2"),
    unknown_when(
        "it may be one pair that is seen",
        node(4).set(PAIRS).set({"env.CUDA_VISIBLE_DEVICES": "GPU-2c3d,GPU-4e5f"}).asks(ASKED),
    ),
    passes("one of them is seen", TWO.set(joined("PHB")).set({"env.CUDA_VISIBLE_DEVICES": "0"}).asks(ASKED)),
    passes(
        "one card does not tell its links, and the fabric does",
        node(8).set(UNUSED).unknown("gpu.5.nvlinks_down").asks(ASKED),
    ),
    fails("PCIe alone", TWO.set(joined("PHB")).asks(ASKED), says="GPU 0 and GPU 1 are joined by PHB"),
    fails(
        "a card that the fabric has not taken in",
        node(8).set({"gpu.3.fabric_state": "in-progress"}).asks(ASKED),
        says=["GPU 3", "in-progress"],
        blame="machine",
    ),
    fails(
        "one link of one card is down",
        node(8).set({"gpu.5.nvlinks_up": 17, "gpu.5.nvlinks_down": 1}).asks(ASKED),
        says=["GPU 5", "has 1 of its NVLinks down, other GPUs have 0"],
    ),
    fails("no link is up", TWO.set(links(0, 12)).asks(ASKED), says="has no NVLink that is up"),
    fails("cards without NVLink", TWO.asks(ASKED), says="has no NVLink"),
    passes("a bridge that uses some of the links", TWO.set(links(4, 8)).asks(ASKED)),
    passes("an older NVML, and the fabric tells", node(8).unknown(*UNTOLD).asks(ASKED)),
    unknown_when("nothing shows it", TWO.unknown(*UNTOLD).asks(ASKED)),
]
