"""CD001: the job sees as many GPUs as it needs, and if not, who gave it too few."""

from __future__ import annotations

from cudadoctor.testing import GONE, container, fails, linux, node, passes, skips, unknown_when

RULE = "CD001"

EIGHT = {"gpu.count": "==8"}
MIG = {"mode": True, "devices": 7}
VISIBLE = "env.CUDA_VISIBLE_DEVICES"
# A card of the node that the driver could not start: the bus has eight, NVML seven.
SEVEN = node(7).display_card("2330", "nvidia")

SPLIT = node(2).set({f"gpu.{number}.mig_{key}": value for number in (0, 1) for key, value in MIG.items()})

CASES = [
    skips("nobody asks", node(8)),
    passes("eight of eight", node(8).asks(EIGHT), says="8 GPUs are seen, 8 asked for"),
    passes("a range", node(8).asks({"gpu.count": ">=4"}), says=">=4"),
    passes("Slurm names all of them", node(8).job(gpus=8).set({VISIBLE: "0,1,2,3,4,5,6,7"}).asks(EIGHT)),
    passes("named by UUIDs", node(2).set({VISIBLE: "GPU-0a1b,GPU-2c3d"}).asks({"gpu.count": "==2"})),
    fails(
        "the job was given four",
        node(4).job(gpus=4).asks(EIGHT),
        says="4 GPUs are seen, 8 asked for: the job was given 4",
        certainty="certain",
        blame="allocation",
        fix="request-gpu",
    ),
    fails(
        "a job, and nothing says what it was given: the node has more",
        node(4).display_card("2330", "nvidia").job().asks(EIGHT),
        says="the job was probably given no more",
        certainty="likely",
        blame="allocation",
    ),
    fails(
        "the bus has a card that the driver leaves out",
        SEVEN.asks(EIGHT),
        says="the PCI bus has 8, and the driver shows 7",
        certainty="certain",
        blame="machine",
    ),
    fails("the same in a job that was given eight", SEVEN.job(gpus=8).asks(EIGHT), says="PCI bus", blame="machine"),
    fails("the machine has no more", node(4).asks(EIGHT), says="the machine has no more", blame="machine"),
    fails(
        "a container that was given one of two",
        container().display_card("2684", "nvidia").set({"env.NVIDIA_VISIBLE_DEVICES": "0"}).asks({"gpu.count": "==2"}),
        says="the container was given no more",
        certainty="likely",
        blame="allocation",
    ),
    fails(
        "a container that was given all, and a card is missing",
        container().display_card("2684", "nvidia").asks({"gpu.count": "==2"}),
        says="the PCI bus has 2",
        blame="machine",
    ),
    fails(
        "a variable of the user's leaves two",
        node(8).set({VISIBLE: "0,1"}).asks(EIGHT),
        says="CUDA_VISIBLE_DEVICES leaves 2 of 8",
        blame="environment",
        fix="unset-variable",
    ),
    fails(
        "the job was given eight, and its script leaves two",
        node(8).job(gpus=8).set({VISIBLE: "0,1"}).asks(EIGHT),
        says="leaves 2 of 8",
        blame="environment",
    ),
    # Every card that is named is not the answer where some are asked for.
    fails(
        "a variable leaves one of eight, and two are asked for",
        node(8).set({VISIBLE: "0"}).asks({"gpu.count": "==2"}),
        says="CUDA_VISIBLE_DEVICES leaves 1 of 8",
        blame="environment",
        fix="manual",
    ),
    fails(
        "a variable leaves two, and without it there are not enough either",
        node(4).set({VISIBLE: "0,1"}).asks(EIGHT),
        says="the machine has no more",
        blame="machine",
    ),
    fails(
        "a lost card does not count",
        node(8).set({"gpu.3.lost": True}).asks(EIGHT),
        says="7 GPUs are seen, 8 asked for: GPU 3 has fallen off the bus",
        blame="machine",
    ),
    fails(
        "a lost card is not what the job was not given",
        node(8).job().set({"gpu.3.lost": True}).asks(EIGHT),
        says="GPU 3 has fallen off the bus",
        blame="machine",
    ),
    fails(
        "too many",
        node(8).asks({"gpu.count": "==4"}),
        says="8 GPUs are seen, 4 asked for",
        blame="environment",
        fix="manual",
    ),
    fails("no GPU at all", linux().no_gpu().asks({"gpu.count": ">=1"}), says="no GPU is seen, >=1 asked for"),
    passes("cards with MIG, as asked for", SPLIT.asks({"gpu.count": "==2", "gpu.mig": True}), says="2 GPUs"),
    passes("one MIG device will do", SPLIT.asks({"gpu.count": ">=1"})),
    passes("parts that the job was given", SPLIT.set({VISIBLE: "MIG-4b1c,MIG-5d2e"}).asks({"gpu.count": "==2"})),
    unknown_when("MIG is on, and nobody asks for it", SPLIT.asks({"gpu.count": "==2"}), says="a single MIG device"),
    unknown_when("the driver does not answer", linux().hangs().asks(EIGHT), says="does not answer"),
    unknown_when(
        "nobody counted them",
        linux().unknown("gpu.count", "smi.gpus").set({"driver.nvml_version": GONE}).asks(EIGHT),
    ),
]
