"""CD306: torchvision, torchaudio and triton against the installed torch, by version."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, passes, skips, unknown_when, windows

RULE = "CD306"


def torch(version: str, cuda: str | None = None) -> Machine:
    return linux().torch(version, cuda)


OF_29 = torch("2.9.1+cu128")

CASES = [
    passes("the healthy workstation", linux(), says="torchvision 0.29.1+cu130: made for torch 2.14.1+cu130"),
    passes("by its own requirement", OF_29.package("torchvision", "0.24.1+cu128", requires=["torch==2.9.1"])),
    passes("by the matrix, where its metadata says nothing", OF_29.package("torchvision", "0.24.1+cu128", requires=[])),
    passes(
        "a requirement that names the build",
        OF_29.package("torchaudio", "2.9.1+cu128", requires=["torch==2.9.1+cu128"]),
    ),
    passes(
        "torchvision of PyPI, whose version has no local part",
        linux().package("torchvision", "0.29.1", requires=["torch>=2.14"]),
    ),
    passes(
        "torchaudio 2.11 serves every torch after it", linux().package("torchaudio", "2.11.0", requires=["torch>=2.11"])
    ),
    passes("the same by the matrix", linux().package("torchaudio", "2.11.0")),
    passes(
        "nightlies of one night",
        torch("2.16.0.dev20261101+cu132").package(
            "torchvision", "0.31.0.dev20261101+cu132", requires=["torch==2.16.0.dev20261101"]
        ),
    ),
    passes(
        "an alpha counts as its release",
        torch("2.14.0a0+145a3a7bda.nv26.9", "13.0").package(
            "torchvision", "0.29.1a0+7b9e1b1", requires=["torch>=2.14"]
        ),
    ),
    passes("a requirement in old spelling", OF_29.package("torchvision", "0.24.1", requires=["torch (==2.9.1)"])),
    passes(
        "a companion of somebody's own that asks for no torch in particular",
        OF_29.package("torchvision", "0.24.1", requires=["torch"]),
    ),
    passes(
        "triton as torch wants it",
        OF_29.set({"package.torch.requires": ["triton==3.5.1"]})
        .package("triton", "3.5.1")
        .package("torchvision", "0.24.1+cu128"),
    ),
    fails(
        "a package put torch back and left torchvision",
        torch("2.4.0+cu121").package("torchvision", "0.20.1+cu124", requires=["torch==2.5.1"]),
        says="torchvision 0.20.1+cu124 does not belong to torch 2.4.0+cu121: it requires torch==2.5.1",
        severity="error",
        certainty="certain",
        blame="environment",
        fix="reinstall-companions",
    ),
    fails(
        "the same by the matrix",
        torch("2.4.0+cu121").package("torchvision", "0.20.1+cu124"),
        says="does not belong to torch 2.4.0+cu121: it belongs to torch 2.5.1",
    ),
    fails(
        "torchaudio fell behind",
        OF_29.package("torchvision", "0.24.1+cu128").package("torchaudio", "2.6.0+cu124", requires=["torch==2.6.0"]),
        says="torchaudio 2.6.0+cu124 does not belong",
        severity="error",
    ),
    fails(
        "an open requirement that is not met",
        torch("2.13.0+cu130").package("torchvision", "0.29.1+cu130", requires=["torch>=2.14"]),
    ),
    fails(
        "another patch release: pip objects, and as a rule it works",
        torch("2.5.0+cu124").package("torchvision", "0.20.1+cu124", requires=["torch==2.5.1"]),
        severity="warning",
        certainty="likely",
    ),
    fails("the same by the matrix", torch("2.5.0+cu124").package("torchvision", "0.20.1+cu124"), severity="warning"),
    fails(
        "nightlies of two nights",
        torch("2.16.0.dev20261101+cu132").package(
            "torchvision", "0.31.0.dev20261030+cu132", requires=["torch==2.16.0.dev20261030"]
        ),
        severity="warning",
        certainty="likely",
        fix="manual",
    ),
    fails(
        "another triton, which some package brought",
        OF_29.set({"package.torch.requires": ["triton==3.5.1"]}).package("triton", "3.3.0"),
        says="triton 3.3.0 does not belong to torch 2.9.1+cu128, which requires triton==3.5.1",
        severity="warning",
        certainty="likely",
        fix="reinstall-package",
    ),
    fails(
        "a triton outside a range",
        linux().set({"package.torch.requires": ["triton~=3.8.0"]}).package("triton", "3.5.1"),
        fix="manual",
    ),
    fails(
        "CPU builds have to fit as well",
        torch("2.4.0+cpu").package("torchvision", "0.21.0+cpu", requires=["torch==2.6.0"]),
    ),
    fails("Windows", windows().torch("2.4.0+cu121").package("torchvision", "0.20.1+cu124")),
    skips("no companions", OF_29),
    skips("no torch", linux().no_torch()),
    skips(
        "NVIDIA's container pairs releases in its own way",
        torch("2.8.0a0+5228986c39.nv25.6", "12.9").package("torchvision", "0.22.0a0+95f10a4e", requires=["torch"]),
        says="its maker chooses torchvision",
    ),
    skips("Debian's torch", torch("2.6.0", None).set({"torch.origin": "system"}).package("torchvision", "0.20.0")),
    unknown_when("a torch newer than the matrix", torch("2.16.0+cu132").package("torchvision", "0.31.0+cu132")),
    unknown_when(
        "the environment is unreadable", OF_29.unknown("package.torchvision.version", "package.torchaudio.version")
    ),
    fails(
        "torchvision's operator is missing, and no version is told",
        linux()
        .only("system.arch")
        .set(
            {
                "examination.kind": "report",
                "symptom.companion_operator_missing": {"text": "operator torchvision::nms does not exist"},
            }
        ),
        says="torchvision's own operators are missing",
        certainty="likely",
        fix="manual",
    ),
]
