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
        ("4070 ti super", "GeForce RTX 4070 Ti SUPER", "8.9"),
        ("4070TiSuper", "GeForce RTX 4070 Ti SUPER", "8.9"),
        ("4070 TiS", "GeForce RTX 4070 Ti SUPER", "8.9"),
        ("4080S", "GeForce RTX 4080 SUPER", "8.9"),
        ("2070s", "GeForce RTX 2070 SUPER", "7.5"),
        ("3060 12GB", "GeForce RTX 3060 12 GB", "8.6"),
        ("3060-12gb", "GeForce RTX 3060 12 GB", "8.6"),
        ("2080 Ti 22G", "GeForce RTX 2080 Ti", "7.5"),  # with more memory than it was sold with
        ("4090m", "GeForce RTX 4090 Mobile", "8.9"),
        ("geforce4090", "GeForce RTX 4090", "8.9"),
        ("geforce_rtx_3080", "GeForce RTX 3080", "8.6"),
        ("RTX A6000", "RTX A6000", "8.6"),
        ("RTXA6000", "RTX A6000", "8.6"),
        ("A6000", "RTX A6000", "8.6"),
        ("6000 Ada", "RTX 6000 Ada Generation", "8.9"),
        ("RTX6000 Ada", "RTX 6000 Ada Generation", "8.9"),
        ("RTX 4000 SFF Ada", "RTX 4000 SFF Ada Generation", "8.9"),
        ("RTX PRO 6000 Blackwell", "RTX PRO 6000 Blackwell", "12.0"),
        ("RTX 6000 Pro", "RTX PRO 6000 Blackwell", "12.0"),
        ("rtxpro6000", "RTX PRO 6000 Blackwell", "12.0"),
        ("RTX PRO 6000 Max-Q", "RTX PRO 6000 Blackwell Max-Q", "12.0"),
        ("A100-SXM-80GB", "A100 SXM4 80 GB", "8.0"),
        ("H100 SXM", "H100 SXM5 80 GB", "9.0"),
        ("H100 SXM5", "H100 SXM5 80 GB", "9.0"),
        ("H100 SXM5 80G", "H100 SXM5 80 GB", "9.0"),
        ("H200", "H200 SXM 141 GB", "9.0"),
        ("GH200 480GB", "GH200 96GB HBM3", "9.0"),
        ("GB200", "GB200 (per GPU)", "10.0"),
        ("GB200 NVL72", "GB200 (per GPU)", "10.0"),
        ("GB300", "GB300 (per GPU)", "10.3"),
        ("K20", "Tesla K20m", "3.5"),
        ("K40", "Tesla K40c", "3.5"),
        ("GTX 680", "GeForce GTX 680", "3.0"),
        ("GTX 580", "GeForce GTX 580", "2.0"),
        ("1060", "GeForce GTX 1060 6 GB", "6.1"),
        ("P106-100", "P106-100", "6.1"),
        ("CMP 170HX", "CMP 170HX 8 GB", "8.0"),
        ("MX250", "GeForce MX250", "6.1"),
        ("TX2", "Jetson TX2", "6.2"),
        ("Orin Nano", "Jetson Orin Nano 8 GB", "8.7"),
        # As the machine is called that it sits in.
        ("DGX Spark", "GB10", "12.1"),
        ("DGX A100", "A100 SXM4 40 GB", "8.0"),
        ("HGX H100", "H100 SXM5 80 GB", "9.0"),
        ("Jetson AGX Thor", "Jetson T5000", "11.0"),
        # As its box says, or a list of parts.
        ("ASUS TUF RTX 4090 OC", "GeForce RTX 4090", "8.9"),
        ("MSI GeForce RTX 3080 Gaming X Trio", "GeForce RTX 3080", "8.6"),
        ("ZOTAC 3060", "GeForce RTX 3060 12 GB", "8.6"),
        ("RTX 4090 Founders Edition", "GeForce RTX 4090", "8.9"),
        ("2x 4090", "GeForce RTX 4090", "8.9"),
        ("RTX 3090 x4", "GeForce RTX 3090", "8.6"),
        ("A10G 24GB", "A10G", "8.6"),
        # As labels of Kubernetes and of clouds have them.
        ("NVIDIA-A100-SXM4-80GB", "A100 SXM4 80 GB", "8.0"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.5gb", "A100 SXM4 80 GB", "8.0"),
        ("Tesla-V100-SXM2-32GB-LS", "Tesla V100 SXM2 32 GB", "7.0"),
        ("g5.xlarge A10G", "A10G", "8.6"),
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
        ("NVIDIA RTXA6000-48Q", "RTX A6000", "8.6"),
        ("NVIDIA RTX6000-Ada-48Q", "RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA L40S-48C", "L40S", "8.9"),
        ("NVIDIA A30-4-24C", "A30 PCIe", "8.0"),
        ("NVIDIA A100-3-20C", "A100 PCIe 40 GB", "8.0"),
        ("NVIDIA RTX Pro 6000 Blackwell DC-4-96Q", "RTX PRO 6000 Blackwell Server", "12.0"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "H100 SXM5 80 GB", "9.0"),
    ],
)
def test_a_name_means_one_gpu(matrix: Matrix, text: str, name: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert match.capability == capability
    assert name in [row.name for row in match.rows]
    assert not match.ambiguous and match.kind == "name"


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("A100", "8.0"),
        ("A100 80GB", "8.0"),
        ("H100", "9.0"),
        ("V100", "7.0"),
        ("GRID A100D-10C", "8.0"),
        ("GRID V100DX-8Q", "7.0"),
        ("NVIDIA A100D-7-80C", "8.0"),
        ("5060 Ti", "12.0"),
        ("Jetson Thor", "11.0"),
        ("Tegra X1", "5.3"),
    ],
)
def test_a_family_name_means_several_that_agree(matrix: Matrix, text: str, capability: str) -> None:
    match = matrix.gpu(text)
    assert match.capability == capability
    assert len(match.rows) > 1 and match.exact is None


@pytest.mark.parametrize("text", ["RTX 4000", "TITAN X", "RTX 5000", "RTX 6000", "GT 640", "GeForce GT 630", "GTX 750"])
def test_a_name_that_means_different_gpus_says_so(matrix: Matrix, text: str) -> None:
    match = matrix.gpu(text)
    assert match.ambiguous and match.capability is None
    assert len({row.capability for row in match.rows}) > 1


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("sm_89", "8.9"),
        ("sm89", "8.9"),
        ("8.9", "8.9"),
        ("cc 8.9", "8.9"),
        ("CC8.9", "8.9"),
        ("compute capability 12.0", "12.0"),
        ("SM 10.3", "10.3"),
        ("sm_120", "12.0"),
        ("12.1", "12.1"),
        ("compute_90a", "9.0"),
        ("SM_75", "7.5"),
    ],
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
        ("RTX 1080", "GeForce GTX 1080"),  # not an RTX: perhaps a 3080 was meant
        ("GTX 2080", "GeForce RTX 2080"),
        ("GTX 4090", "GeForce RTX 4090"),
        ("RTX A6000 Ada", "RTX A6000"),
        ("4O90", "GeForce RTX 4090"),
        ("rtx 490", "GeForce RTX 4090"),
        ("B100", "B200"),
        ("RTX 3080 3090", None),  # two of them
        ("AMD Radeon RX 7900 XTX", None),
        ("Radeon 4090", None),
        ("Intel Core i7-4090", None),
        ("Intel Arc A770", None),
        ("Apple M4 Max", None),  # there is a Tesla M4
        ("Apple M40", None),
        ("MI300X", None),
        ("89", None),
        ("cuda 8.9", None),
        ("8.9.0", None),
        ("MIG 1g.5gb", None),
        ("42", None),
        ("\x00\x1b[31m", None),
    ],
)
def test_what_is_no_gpu_is_not_taken_for_one(matrix: Matrix, text: str, nearest: Optional[str]) -> None:
    match = matrix.gpu(text)
    assert not match.found and match.capability is None and match.rows == ()
    if nearest is None:
        assert "GeForce RTX 4090" not in matrix.gpu_names_like(text)
    else:
        assert nearest in matrix.gpu_names_like(text)


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


def test_a_printed_name_is_taken_as_exact_and_a_typed_one_as_short(matrix: Matrix) -> None:
    """Only the laptop's GTX 1060 prints no size; a person who types it means the cards, too."""
    printed, typed = matrix.gpu("NVIDIA GeForce GTX 1060"), matrix.gpu("GTX 1060")
    assert [row.name for row in printed.rows] == ["GeForce GTX 1060 Mobile"]
    assert {"GeForce GTX 1060 6 GB", "GeForce GTX 1060 3 GB", "GeForce GTX 1060 Mobile"} <= {r.name for r in typed.rows}
    assert not typed.rows[0].laptop


@pytest.mark.parametrize("text", ["GeForce GT 710 PCIe x1", "Jetson TX2", "A100X", "Tesla K20X", "A30X"])
def test_an_x_in_a_name_is_no_count(matrix: Matrix, text: str) -> None:
    assert [row.name for row in matrix.gpu(text).rows] == [text]


def test_many_words_are_no_name(matrix: Matrix) -> None:
    assert not matrix.gpu("the quick brown fox has bought a new RTX 4090 card for itself").found


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
