"""CD002: each GPU is one of the products that the policy names."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, node, passes, skips, unknown_when

RULE = "CD002"


def card(name: str, capability: str = "8.0") -> Machine:
    return linux().gpu(name, capability)


def wants(*names: str) -> dict[str, list[str]]:
    return {"gpu.names": list(names)}


# A workstation whose second card is of another kind, and a variable that leaves one: CUDA counts the fastest first.
MIXED = linux().gpu("NVIDIA RTX A2000", "8.6", 6, index=1)
VISIBLE = "env.CUDA_VISIBLE_DEVICES"

CASES = [
    skips("nobody asks", node(8)),
    passes("every H100 is an H100", node(8).asks(wants("H100"))),
    passes("one of several", node(8).asks(wants("A100", "H100"))),
    passes("as NVML writes it", card("NVIDIA A100-SXM4-80GB").asks(wants("NVIDIA A100-SXM4-80GB"))),
    passes("by its size", card("NVIDIA A100-SXM4-80GB").asks(wants("A100 80GB"))),
    passes("without the maker's words", linux().asks(wants("4090"))),
    passes("a product that no table knows", card("NVIDIA Z900").asks(wants("Z900"))),
    passes(
        "by NVML's number, where CUDA is told to count so",
        MIXED.set({VISIBLE: "0", "env.CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).asks(wants("RTX 4090")),
    ),
    fails(
        "another kind of node",
        node(8).asks(wants("A100")),
        says="GPU 0 (NVIDIA H100 80GB HBM3) is not A100, as asked for",
        blame="allocation",
    ),
    fails("an A100X is no A100", card("NVIDIA A100X").asks(wants("A100"))),
    fails("an A100 is no A100X", card("NVIDIA A100-SXM4-80GB").asks(wants("A100X"))),
    fails("an H1000 would be no H100", card("NVIDIA H1000").asks(wants("H100"))),
    fails("a Ti is another card", card("NVIDIA GeForce RTX 4070 Ti").asks(wants("RTX 4070"))),
    fails("the other size", card("NVIDIA A100-SXM4-40GB").asks(wants("A100 80GB"))),
    fails(
        "one odd card among eight",
        node(8).gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, index=5).asks(wants("H100")),
        says="GPU 5",
    ),
    unknown_when(
        "one of two unlike cards, and it cannot be told which", MIXED.set({VISIBLE: "0"}).asks(wants("RTX 4090"))
    ),
    unknown_when("the name cannot be read", node(1).unknown("gpu.0.name").asks(wants("H100"))),
    unknown_when("no driver answers", linux().hangs().asks(wants("H100"))),
]
