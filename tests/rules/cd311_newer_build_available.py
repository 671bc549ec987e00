"""CD311: old releases are spoken of, and never more than that."""

from __future__ import annotations

from cudadoctor.testing import fails, jetson, linux, passes, skips, unknown_when

RULE = "CD311"

RTX_5090 = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2B85")

CASES = [
    passes("the release before the newest", linux()),
    passes("a year old", linux().torch("2.9.1+cu128", sass=["sm_80", "sm_86", "sm_90"])),
    passes("two years old", linux().torch("2.5.1+cu124", sass=["sm_80", "sm_86", "sm_90"])),
    passes("a release that the data does not know", linux().torch("99.1.0+cu130", sass=["sm_86", "sm_90"])),
    passes(
        "three years old: told, and no finding",
        linux().torch("1.13.1+cu117", sass=["sm_80", "sm_86"]),
        says="torch 1.13.1+cu117 is 3 years old, and works",
    ),
    fails(
        "PTX alone",
        RTX_5090.torch("2.7.1+cu128", sass=["sm_80", "sm_90"], ptx=["compute_90"]),
        says="only PTX for the NVIDIA GeForce RTX 5090",
        severity="info",
        certainty="likely",
        fix="install-torch",
    ),
    skips("no torch", linux().no_torch()),
    skips("a CPU build", linux().torch("1.13.1+cpu")),
    skips("NVIDIA's container", linux().torch("2.1.0a0+32f93b1", "12.2")),
    skips("a Jetson", jetson().torch("2.0.0+nv23.5", "11.4")),
    unknown_when("the version is not known", linux().unknown("torch.version")),
]
