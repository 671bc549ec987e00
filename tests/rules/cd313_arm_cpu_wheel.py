"""CD313: the CPU wheel that the default index gave ARM machines."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, jetson, linux, passes, skips, unknown_when

RULE = "CD313"

GRACE = (
    linux()
    .set({"system.arch": "aarch64"})
    .gpu("NVIDIA GH200 480GB", "9.0", 96, device_id="2342")
    .driver("550.54.15", "12.4")
)


def cpu(version: str, machine: Machine = GRACE) -> Machine:
    return machine.torch(version)


CASES = [
    passes("a CUDA build", GRACE.torch("2.9.1+cu130"), says="is a CUDA build for ARM"),
    fails(
        "pip install torch, up to 2.10, gave this",
        cpu("2.2.2"),
        says="torch 2.2.2 is a CPU build: for ARM, the default index had no other at that release",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    skips("a later release: whoever has a CPU build of it asked for one", cpu("2.14.1+cpu")),
    skips("a release that the matrix does not know", cpu("2.16.0+cpu")),
    skips("x86_64", linux().torch("2.2.2+cpu")),
    skips("an ARM server without a GPU", cpu("2.2.2", GRACE.no_gpu())),
    skips("a Jetson has feeds of its own", cpu("2.2.2", jetson())),
    skips("no torch", GRACE.no_torch()),
    skips("a Mac", GRACE.set({"system.os": "darwin", "system.arch": "arm64"})),
    unknown_when("which processor it is", linux().unknown("system.arch")),
    unknown_when("whether there is a GPU", cpu("2.2.2", GRACE.no_driver().unknown("pci.gpus"))),
]
