"""CD008: torch is the build that the policy asks for."""

from __future__ import annotations

from cudadoctor.testing import fails, linux, passes, skips, unknown_when

RULE = "CD008"

VERSION = {"torch.version": ">=2.6,<2.8"}
CUDA = {"torch.cuda": "==12.6"}

CASES = [
    skips("nobody asks", linux()),
    passes(
        "version and CUDA",
        linux().torch("2.7.1+cu126").asks({**VERSION, **CUDA}),
        says="torch 2.7.1+cu126 with CUDA 12.6",
    ),
    passes("a release without a local version", linux().torch("2.7.1", "12.6").asks(VERSION)),
    passes("any CUDA 12", linux().torch("2.7.1+cu128").asks({"torch.cuda": "==12.*"})),
    fails(
        "a newer one",
        linux().torch("2.9.1+cu128").asks(VERSION),
        says="torch is 2.9.1+cu128, >=2.6,<2.8 is asked for",
        blame="environment",
        fix="install-torch",
    ),
    fails(
        "another CUDA",
        linux().torch("2.7.1+cu118").asks(CUDA),
        says="the CUDA of this torch is 11.8, 12.6 is asked for",
        fix="install-torch",
    ),
    fails("no CUDA", linux().torch("2.7.1+cpu").asks(CUDA), says="torch 2.7.1+cpu is built without CUDA"),
    fails(
        "no torch", linux().no_torch().asks(VERSION), says="there is no torch in this environment", blame="environment"
    ),
    unknown_when("it cannot be read", linux().unknown("torch.version").asks(VERSION)),
    unknown_when("its CUDA cannot be read", linux().torch("2.7.1+cu126").unknown("torch.cuda").asks(CUDA)),
    unknown_when("a version that is none", linux().torch("master").asks(VERSION)),
]
