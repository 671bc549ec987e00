"""CD318: packages that require one torch."""

from __future__ import annotations

from typing import Any

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when

RULE = "CD318"


def vllm(torch: str, requires: Any = ("torch==2.8.0",), version: str = "0.11.0") -> Machine:
    more = {"requires": list(requires)} if requires is not None else {}
    return linux().torch(torch).package("vllm", version, **more)


def complaint(package: str, wants: str) -> dict[str, Any]:
    text = f"{package} 1.0.0 requires {wants}, but you have torch 2.9.1 which is incompatible."
    return {"symptom.requirement_conflict": {"text": text, "package": package, "version": "1.0.0", "wants": wants}}


CASES = [
    passes("the torch that it wants", vllm("2.8.0+cu128"), says="made for torch 2.8.0"),
    passes("a range", linux().torch("2.9.1+cu128").package("bitsandbytes", "0.50.0", requires=["torch>=2.4,<3"])),
    passes("by the matrix, where the metadata was not read", vllm("2.8.0+cu128", None)),
    fails(
        "torch was upgraded",
        vllm("2.9.1+cu128"),
        says=["vllm 0.11.0 wants torch==2.8.0", "torch 2.9.1+cu128 is installed"],
        severity="warning",
        certainty="certain",
        blame="environment",
        fix="install-torch",
    ),
    fails("a report names both versions", vllm("2.9.1+cu128", None), certainty="likely", fix="install-torch"),
    fails(
        "the GPU needs the newer torch: then the package moves",
        vllm("2.9.1+cu128", ["torch==2.5.1"], "0.7.3").gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85"),
        fix="reinstall-package",
    ),
    fails(
        "pip complains of a package that nobody knows",
        linux().torch("2.9.1+cu128").set(complaint("somebody-s-nodes", "torch==2.4.1")),
        says="somebody-s-nodes 1.0.0 wants torch==2.4.1",
        certainty="certain",
    ),
    skips(
        "pip complains of something else",
        linux().torch("2.9.1+cu128").set(complaint("somebody-s-nodes", "numpy<2")),
    ),
    skips("pip complains of a companion, which has its own rule", linux().set(complaint("torchaudio", "torch==2.4.1"))),
    skips("nothing is tied to torch", linux()),
    skips("no torch", vllm("2.8.0").no_torch()),
    skips(
        "an extension that says what it was built for has its own rule",
        linux().torch("2.9.1+cu128").package("xformers", "0.0.32", requires=["torch==2.8.0"], built_for_torch="2.8.0"),
    ),
    unknown_when("a release that nobody has looked at", vllm("2.8.0+cu128", None, "0.9.9")),
]
