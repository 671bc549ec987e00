"""Names that people type and programs print, and the GPU that each means."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.matrix import Matrix
from cudadoctor.matrix.names import take_apart, words


@pytest.mark.parametrize(
    ("text", "name", "capability"),
    [
        # As typed.
        ("4090", "GeForce RTX 4090", "8.9"),
        ("RTX 4090", "GeForce RTX 4090", "8.9"),
        ("rtx4090", "GeForce RTX 4090", "8.9"),
        ("  Rtx  4090  ", "GeForce RTX 4090", "8.9"),
        ("1080ti", "GeForce GTX 1080 Ti", "6.1"),
        ("1080 Ti", "GeForce GTX 1080 Ti", "6.1"),
        ("GTX1080Ti", "GeForce GTX 1080 Ti", "6.1"),
        ("RTX 4060 Ti 16GB", "GeForce RTX 4060 Ti 16 GB", "8.9"),
        ("5090 D", "GeForce RTX 5090 D", "12.0"),
        ("RTX 4090D", "GeForce RTX 4090 D", "8.9"),
        ("5060 ti 16g", "GeForce RTX 5060 Ti 16 GB", "12.0"),
        ("Orin (nvgpu)", "Jetson AGX Orin 64 GB", "8.7"),
        ("NVIDIA Thor", "Jetson T5000", "11.0"),
        ("RTX 4090 laptop", "GeForce RTX 4090 Mobile", "8.9"),
        ("T4", "Tesla T4", "7.5"),
        ("K80", "Tesla K80", "3.7"),
        ("L4", "L4", "8.9"),
        ("A10G", "A10G", "8.6"),
        ("H100 PCIe", "H100 PCIe 80 GB", "9.0"),
        ("B200", "B200", "10.0"),
        ("RTX 6000 Ada", "RTX 6000 Ada Generation", "8.9"),
        ("RTX 3050", "GeForce RTX 3050 8 GB", "8.6"),
        # As NVML, nvidia-smi and torch print them, with the prefix and without.
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "8.9"),
        ("GeForce RTX 3090", "GeForce RTX 3090", "8.6"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80 GB", "8.0"),
        ("A100-SXM4-80GB", "A100 SXM4 80 GB", "8.0"),
        ("Tesla V100-SXM2-32GB", "Tesla V100 SXM2 32 GB", "7.0"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80 GB", "9.0"),
        ("NVIDIA GH200 480GB", "GH200 96GB HBM3", "9.0"),
        ("NVIDIA GB10", "GB10", "12.1"),
        ("Quadro RTX 4000", "Quadro RTX 4000", "7.5"),
        ("NVIDIA RTX 4000 Ada Generation", "RTX 4000 Ada Generation", "8.9"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell", "12.0"),
        ("NVIDIA GeForce RTX 3050 6GB Laptop GPU", "GeForce RTX 3050 Mobile", "8.6"),
        ("NVIDIA GeForce GTX 1070 with Max-Q Design", "GeForce GTX 1070 Max-Q", "6.1"),
        ("NVIDIA GeForce RTX 2050", "GeForce RTX 2050 Mobile", "8.6"),  # an Ampere card, despite its name
        ("NVIDIA GeForce 920M", "GeForce 920M", "3.5"),  # and this one is Kepler
        # As lspci prints them.
        ("NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)", "GeForce RTX 4090", "8.9"),
        ("GP102 [GeForce GTX 1080 Ti]", "GeForce GTX 1080 Ti", "6.1"),
        ("GA106M [GeForce RTX 3060 Mobile / Max-Q]", "GeForce RTX 3060 Mobile", "8.6"),
        # Parts and shares of one.
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "A100 SXM4 80 GB", "8.0"),
        ("NVIDIA A40-48Q", "A40 PCIe", "8.6"),
        ("GRID T4-16Q", "Tesla T4", "7.5"),
        ("GRID RTX6000-4Q", "Quadro RTX 6000", "7.5"),
    ],
)
def test_a_name_means_one_gpu(matrix: Matrix, text: str, name: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert match.capability == capability
    assert name in [row.name for row in match.rows]
    assert not match.ambiguous and match.kind == "name"


@pytest.mark.parametrize(
    ("text", "capability"),
    [("A100", "8.0"), ("H100", "9.0"), ("V100", "7.0"), ("GRID A100D-10C", "8.0"), ("GRID V100DX-8Q", "7.0")],
)
def test_a_family_name_means_several_that_agree(matrix: Matrix, text: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert match.capability == capability
    assert len(match.rows) > 1 and match.exact is None


@pytest.mark.parametrize("text", ["RTX 4000", "TITAN X", "RTX 5000"])
def test_a_name_that_means_different_gpus_says_so(matrix: Matrix, text: str) -> None:
    match = matrix.gpu(text)
    assert match.ambiguous and match.capability is None
    assert len({row.capability for row in match.rows}) > 1


@pytest.mark.parametrize(
    ("text", "capability"),
    [("sm_89", "8.9"), ("8.9", "8.9"), ("sm_120", "12.0"), ("12.1", "12.1"), ("compute_90a", "9.0"), ("SM_75", "7.5")],
)
def test_a_compute_capability_is_taken_as_it_is(matrix: Matrix, text: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert (match.kind, match.capability, match.rows) == ("capability", capability, ())


@pytest.mark.parametrize(
    ("text", "kind", "capability"), [("AD102", "chip", "8.9"), ("GK104", "chip", "3.0"), ("gp102", "chip", "6.1")]
)
def test_a_chip_name(matrix: Matrix, text: str, kind: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert (match.kind, match.capability) == (kind, capability)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("RTX 4095", "GeForce RTX 4090"),
        ("4095", "GeForce RTX 4090"),
        ("GTX 1085 Ti", "GeForce GTX 1080 Ti"),
        ("banana", None),
        ("", None),
        ("   ", None),
        ("AMD Radeon RX 7900 XTX", None),
        ("42", None),
        ("\x00\x1b[31m", None),
    ],
)
def test_what_is_no_gpu_is_not_taken_for_one(matrix: Matrix, text: str, nearest: Optional[str]) -> None:
    match = matrix.gpu(text)
    assert not match.found and match.capability is None and match.rows == ()
    if nearest is None:
        assert "GeForce RTX 4090" not in match.nearest
    else:
        assert nearest in match.nearest


@pytest.mark.parametrize(
    ("text", "names", "capability"),
    [
        ("NVIDIA GeForce RTX 4060 ...", {"GeForce RTX 4060 Mobile", "GeForce RTX 4060 Ti 8 GB"}, "8.9"),
        ("Tesla V100-SXM2...", {"Tesla V100 SXM2 16 GB", "Tesla V100 SXM2 32 GB"}, "7.0"),
        ("NVIDIA A100-SXM...", {"A100 SXM4 40 GB", "A100 SXM4 80 GB"}, "8.0"),
        ("NVIDIA RTX 4000...", {"RTX 4000 Ada Generation"}, "8.9"),
        ("NVIDIA ...", set(), None),
        ("Voodoo 2 ...", set(), None),
    ],
)
def test_a_name_that_was_cut_can_be_any_that_begins_so(
    matrix: Matrix, text: str, names: set[str], capability: Optional[str]
) -> None:
    match = matrix.gpu(text)
    assert match.capability == capability
    assert names <= {row.name for row in match.rows}
    assert match.found == bool(names)


def test_shares_are_told(matrix: Matrix) -> None:
    assert matrix.gpu("NVIDIA A100-SXM4-80GB MIG 1g.10gb").mig == "1g.10gb"
    assert matrix.gpu("GRID A100D-10C").vgpu == "10C"
    assert matrix.gpu("RTX 4090").mig is None and matrix.gpu("RTX 4090").vgpu is None


def test_every_product_is_found_by_its_own_names(matrix: Matrix) -> None:
    for gpu in matrix.gpus():
        for text in (gpu.name, *gpu.smi):
            match = matrix.gpu(text)
            assert gpu in match.rows, (text, [row.name for row in match.rows])


@pytest.mark.parametrize(
    ("device", "kind", "name", "capability"),
    [
        ("2684", "pci", "GeForce RTX 4090", "8.9"),
        ("0x2684", "pci", "GeForce RTX 4090", "8.9"),
        ("10de:2684", "pci", "GeForce RTX 4090", "8.9"),
        ("2b85", "pci", "GeForce RTX 5090", "12.0"),
        ("1b06", "pci", "GeForce GTX 1080 Ti", "6.1"),
        ("1183", "chip", None, "3.0"),  # a GTX 660 Ti: too old for the list of products, not for its chip
        ("0191", "chip", None, "1.0"),
        ("ffff", "none", None, None),
        ("", "none", None, None),
        ("26G4", "none", None, None),
        ("../..", "none", None, None),
    ],
)
def test_pci_ids(matrix: Matrix, device: str, kind: str, name: Optional[str], capability: Optional[str]) -> None:
    match = matrix.gpu_by_pci(device)
    assert (match.kind, match.capability) == (kind, capability)
    if name:
        assert name in [row.name for row in match.rows]


def test_words() -> None:
    assert words("NVIDIA GeForce RTX 4060 Ti") == words("rtx4060ti") == ("rtx", "4060", "ti")
    assert words("NVIDIA GeForce RTX 4090 Laptop GPU") == words("GeForce RTX 4090 Mobile")
    assert words("A100 SXM4 80 GB") == words("NVIDIA A100-SXM4-80GB")
    assert words("Quadro RTX 4000") != words("RTX 4000")
    assert take_apart("NVIDIA A40-48Q").words == ("a40",)
