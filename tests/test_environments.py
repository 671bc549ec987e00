"""Is this environment all right? Whole machines through `diagnose`: what is named first, that nothing false stands
beside it, the exit status, and the build of torch that the resolver would keep or take.

The first table holds what other tools answer wrongly; the second what people reported, each with the trap in it; the
third what looks odd and is healthy.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import CRASH
from cudadoctor.model.report import exit_status
from cudadoctor.plan import make_plan
from cudadoctor.resolve import resolution
from cudadoctor.testing import GONE, Machine, container, jetson, linux, windows, wsl

MATRIX = load_matrix()

# What wheels of the index hold, as their libraries list it.
CU118 = ["sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU126 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU128 = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


def gtx_1080_ti(machine: Machine, index: int = 0) -> Machine:
    return machine.gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06", index=index)


def rtx_5090(machine: Machine) -> Machine:
    return machine.gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85")


def a100(machine: Machine) -> Machine:
    return machine.gpu("NVIDIA A100-SXM4-40GB", "8.0", 40, device_id="20b0")


def t4(machine: Machine) -> Machine:
    return machine.gpu("Tesla T4", "7.5", 16, device_id="1eb8")


def r470(machine: Machine) -> Machine:
    """A machine on R470, whose nvidia-smi has no compute_cap field."""
    machine = machine.driver("470.256.02", "11.4", flavour="proprietary")
    rows = [dict(row, compute_capability=None) for row in machine.facts.value("smi.gpus")]
    return machine.set({"smi.gpus": rows})


def r550(machine: Machine) -> Machine:
    return machine.driver("550.54.15", "12.4", flavour="proprietary")


def compat(machine: Machine, version: str) -> Machine:
    """NVIDIA's forward-compatibility libcuda of the image, found before the host's. What NVML shows as CUDA rises with
    it."""
    path = "/usr/local/cuda/compat/libcuda.so.1"
    entry = {"path": path, "real_path": path, "found_by": "LD_LIBRARY_PATH", "kind": "compat", "version": version}
    return machine.set(
        {
            "env.LD_LIBRARY_PATH": "/usr/local/cuda/compat",
            "driver.libcuda": [entry, *machine.facts.value("driver.libcuda")],
        }
    )


class Row(NamedTuple):
    """`causes`: the root causes in order, all of them. `torch`: what the resolver keeps ("kept"), takes
    ("2.8.0+cu126"), or does not find (""); None: it is not asked. `not_helping`: words of what would not help."""

    title: str
    machine: Machine
    causes: tuple[str, ...]
    torch: Optional[str] = None
    exit: Optional[int] = None
    not_helping: str = ""


OTHER_TOOLS = [
    Row(
        "GTX 1080 Ti, R580, cu130: no code for it, and the same torch of cu126 has",
        gtx_1080_ti(linux()).torch("2.14.1+cu130", sass=CU130),
        ("CD305",),
        "2.14.1+cu126",
        not_helping="R580 is the last branch for this card",
    ),
    Row("RTX 5090, cu118", rtx_5090(linux()).torch("2.6.0+cu118", sass=CU118), ("CD304",), "2.7.1+cu128"),
    Row("RTX 4090 with sm_86 code", linux().torch("2.14.1+cu130", sass=CU130), (), "kept"),
    Row(
        "A100 on R550 with cu128: minor version compatibility",
        a100(r550(linux())).torch("2.9.1+cu128", sass=CU128),
        (),
        "kept",
    ),
    Row("R470 with cu118", r470(t4(linux())).torch("2.6.0+cu118", sass=CU118), (), "kept"),
    Row("a CPU torch beside a driver that works", linux().torch("2.14.1+cpu"), ("CD302",), "2.14.1+cu132"),
    Row(
        "import torch is broken: a library is nowhere",
        linux().torch("2.14.1+cu130", sass=CU130).set({"torch.missing_libraries": ["libcudart.so.13"]}),
        ("CD309",),
        "2.14.1+cu130",
        not_helping="another driver",
    ),
    Row(
        "R470, GTX 1080 Ti, cu130: driver too old and no code for the card; a newer driver alone mends nothing",
        gtx_1080_ti(r470(linux())).torch("2.13.0+cu130", sass=CU130),
        ("CD305", "CD303"),
        "2.7.1+cu118",
        not_helping="a newer driver: R580 is the last branch for this card, and no driver brings code",
    ),
    Row("the driver is not loaded", linux().not_loaded(), ("CD106",)),
    Row("a healthy R470", r470(t4(linux())).torch("2.4.1+cu118", sass=CU118), (), "kept"),
]

REPORTED = [
    Row(
        "GH200: PyPI's wheel for ARM was a CPU build; nvcc, cuDNN and driver are innocent",
        linux()
        .set({"system.arch": "aarch64", "toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc"})
        .set({"toolkit.nvcc_on_path_version": "12.1.105"})
        .gpu("NVIDIA GH200 480GB", "9.0", 96, device_id="2342")
        .driver("550.54.15", "12.4")
        .torch("2.2.2"),
        ("CD313",),
        not_helping="a CUDA toolkit or a driver update",
    ),
    Row(
        "Windows: a package pulled PyPI's torch over the CUDA build; torchvision's mismatch follows from it",
        windows()
        .torch("2.6.0")
        .set({"torch.cuda": GONE})
        .package("torchvision", "0.21.0+cu124", built_for_cuda="12.4", requires=["torch==2.6.0"]),
        ("CD302",),
        "2.6.0+cu126",
    ),
    Row(
        "a CPU build, and an old card beside the new one that only drives the screen",
        linux().display_card("128b", "nouveau").torch("2.6.0+cpu"),
        ("CD302",),
        "2.6.0+cu126",
    ),
    Row(
        "a CPU build, and a card that the driver has dropped: it asks nothing of the wheel",
        linux().display_card("128b", None).torch("2.6.0+cpu"),
        ("CD302",),
        "2.6.0+cu126",
    ),
    Row(
        "conda's solver fell back to the CPU build, which shows in the build string alone",
        linux()
        .set({"python.environment": "conda"})
        .torch("2.3.1")
        .set({"torch.cuda": GONE, "torch.origin": "conda", "package.torch.installer": "conda"})
        .set({"package.torch.conda_build": "py3.12_cpu_0"}),
        ("CD302",),
    ),
    Row(
        "xformers complains about torch 2.2.0+cpu: torch is to be replaced, not xformers",
        linux().torch("2.2.0+cpu").package("xformers", "0.0.24", built_for_torch="2.2.0+cu121", built_for_cuda="12.1"),
        ("CD302",),
        "2.2.0+cu121",
    ),
    Row(
        "error 804: a GeForce under an image whose CUDA is newer than the driver",
        compat(container().driver("535.171.04", "12.4").torch("2.3.0+cu121"), "550.54.15"),
        ("CD208",),
        "kept",
    ),
    Row(
        "the same with a wheel that the driver cannot serve either: both are said, the library first",
        compat(container().driver("535.171.04", "13.0").torch("2.14.1+cu130", sass=CU130), "580.95.05"),
        ("CD208", "CD303"),
        "2.14.1+cu126",
    ),
    Row(
        "error 803: the node's driver is newer than the image's compatibility library",
        compat(a100(container().driver("575.57.08", "12.9")).torch("2.7.1+cu128", sass=CU128), "570.124.06"),
        ("CD208",),
        "kept",
        not_helping="a newer driver",
    ),
    Row(
        "R470 and a cu121 build on a laptop",
        linux()
        .driver("470.86", "11.4", flavour="proprietary")
        .gpu("GeForce RTX 3050 Laptop GPU", "8.6", 4, device_id="25a2")
        .torch("2.2.2+cu121", sass=CU126),
        ("CD303",),
        "2.2.2+cu118",
    ),
    Row(
        "a cluster on 535: cu130 is dead",
        a100(linux().job("slurm", 1).driver("535.104.05", "12.2")).torch("2.14.1+cu130", sass=CU130),
        ("CD303",),
        "2.14.1+cu126",
    ),
    Row(
        "the same cluster: cu129 is fine",
        a100(linux().job("slurm", 1).driver("535.104.05", "12.2")).torch("2.9.1+cu129", sass=CU128),
        (),
    ),
    Row(
        "xformers was built for a newer torch",
        linux().torch("2.2.0+cu121").package("xformers", "0.0.26.post1", built_for_torch="2.3.0+cu121"),
        ("CD308",),
    ),
    Row(
        "RTX 5070 in a portable build with an old torch",
        windows()
        .gpu("NVIDIA GeForce RTX 5070", "12.0", 12, device_id="2f04")
        .driver("572.83", "12.8")
        .torch("2.5.1+cu124"),
        ("CD304",),
        "2.7.1+cu128",
    ),
    Row(
        "GTX 1080 Ti in a container with 2.8.0 from cu128: a lower variant of the same torch, no other torch",
        gtx_1080_ti(container().driver("570.124.06", "12.8", flavour="proprietary")).torch("2.8.0+cu128", sass=CU128),
        ("CD305",),
        "2.8.0+cu126",
    ),
    Row(
        "GeForce GTX 670M: no build of torch serves it",
        windows()
        .gpu("GeForce GTX 670M", "2.1", 3, device_id="1213")
        .driver("391.35", "9.1")
        .torch("1.0.1", "8.0", sass=["sm_35", "sm_50", "sm_60", "sm_61"]),
        ("CD305",),
        "",
    ),
    Row(
        "nvJitLink of an old toolkit, by LD_LIBRARY_PATH",
        linux()
        .torch("2.9.1+cu128", sass=CU128)
        .set(
            {
                "package.torch.requires": ["nvidia-nvjitlink-cu12==12.8.93"],
                "package.nvidia-nvjitlink-cu12.version": "12.8.93",
            }
        )
        .set(
            {
                "env.LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64:",
                "libraries.search_path": ["/usr/local/cuda-12.1/lib64"],
                "libraries.on_search_path": [
                    {
                        "directory": "/usr/local/cuda-12.1/lib64",
                        "soname": "libnvJitLink.so.12",
                        "file": "libnvJitLink.so.12.1.105",
                        "version": "12.1.105",
                    }
                ],
                "symptom.library_symbol_missing": {"text": "undefined symbol: __nvJitLinkAddData_12_1"},
            }
        ),
        ("CD206",),
        not_helping="installing torch again",
    ),
    Row(
        "a build for which nvcc is missing",
        linux().torch("2.9.1+cu128", sass=CU128).set({"symptom.nvcc_missing": {"text": "nvcc was not found"}}),
        ("CD201",),
    ),
    Row(
        "nvcc 11.8 against torch 12.1: pip built against another torch than the one that is installed",
        linux()
        .torch("2.2.2+cu118", sass=CU118)
        .set({"toolkit.nvcc_on_path": "/usr/local/cuda/bin/nvcc", "toolkit.nvcc_on_path_version": "11.8.89"})
        .set({"symptom.cuda_version_mismatch": {"text": "The detected CUDA version (11.8) mismatches ..."}}),
        ("CD202",),
    ),
    Row(
        "torch was put back and torchvision was not; xformers, which did it, is innocent",
        windows()
        .torch("2.4.0+cu121")
        .package("torchvision", "0.20.1+cu124", built_for_cuda="12.4", requires=["torch==2.5.1"])
        .package("xformers", "0.0.27.post2", built_for_torch="2.4.0+cu121", requires=["torch==2.4.0"]),
        ("CD306",),
        "kept",
    ),
    Row(
        "WSL: a Linux driver's libcuda before Windows' own, while nvidia-smi works",
        wsl().set(
            {
                "driver.libcuda": [
                    {
                        "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                        "real_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15",
                        "found_by": "ld.so.cache",
                        "kind": "driver",
                        "version": "550.54.15",
                    },
                    *wsl().facts.value("driver.libcuda"),
                ]
            }
        ),
        ("CD703",),
    ),
    Row(
        "a 32-bit Python whose version alone looks right",
        windows().no_torch().set({"python.bits": 32, "python.version": "3.12.7"}),
        ("CD402",),
    ),
    Row("a Python that is newer than every wheel", windows().no_torch().python("3.16.0"), ("CD401",)),
    Row(
        "glibc too old for a mis-tagged wheel",
        linux()
        .set({"system.glibc": "2.31"})
        .torch("2.9.1+cu129", sass=CU128)
        .set({"symptom.glibc_version_missing": {"text": "version `GLIBC_2.34' not found", "needed": "2.34"}}),
        ("CD403",),
    ),
    Row(
        "CUDA_HOME written as a list, and a build that failed over it",
        linux()
        .torch("2.0.1+cu117", sass=CU118)
        .python("3.11.2")
        .set(
            {
                "toolkit.cuda_home": {
                    "variable": "CUDA_HOME",
                    "path": ":/usr/local/cuda-11.7",
                    "exists": False,
                    "has_nvcc": False,
                },
                "toolkit.found": [
                    {"root": "/usr/local/cuda-11.7", "version": "11.7.99", "nvcc": "/usr/local/cuda-11.7/bin/nvcc"}
                ],
                "symptom.nvcc_missing": {"text": "No such file or directory: ':/usr/local/cuda-11.7/bin/nvcc'"},
            }
        ),
        ("CD203",),
    ),
]

_NGC = "2.9.0a0+145a3a7bda.nv25.10"
_SYSTEM: dict[str, Any] = {
    "python.executable": "/usr/bin/python3",
    "python.prefix": "/usr",
    "python.environment": "system",
    "python.externally_managed": True,
    "torch.origin": "system",
}

HEALTHY = [
    Row("Windows", windows(), ()),
    Row("WSL", wsl(), ()),
    Row(
        "A10G on R550 with 2.8.0+cu128",
        r550(linux()).gpu("NVIDIA A10G", "8.6", 24, device_id="2237").torch("2.8.0+cu128"),
        (),
    ),
    Row(
        "P100 on a cu124 build (Triton alone would mind)",
        r550(linux()).gpu("Tesla P100-SXM2-16GB", "6.0", 16, device_id="15f9").torch("2.6.0+cu124"),
        (),
    ),
    Row(
        "NVIDIA's container with its own torch and torchvision",
        a100(container())
        .torch(_NGC, "13.0", sass=CU130, ptx=["compute_120"])
        .package("torchvision", "0.24.0a0+094e7af5"),
        (),
    ),
    Row(
        "the same on R535, by forward compatibility",
        compat(a100(container().driver("535.183.06", "13.0")).torch(_NGC, "13.0", sass=CU130), "580.95.05"),
        (),
    ),
    Row(
        "nightlies",
        linux()
        .torch("2.16.0.dev20261101+cu132", sass=CU130)
        .package(
            "torchvision", "0.31.0.dev20261101+cu132", built_for_cuda="13.2", requires=["torch==2.16.0.dev20261101"]
        ),
        (),
    ),
    Row("a source build for this card alone", linux().torch("2.14.0a0+git1a2b3c4", "13.0", sass=["sm_89"]), ()),
    Row(
        "a release that came after the matrix",
        linux().torch("2.16.0+cu134", sass=CU130).package("torchvision", "0.31.0+cu134", requires=["torch>=2.16"]),
        (),
    ),
    Row("the same, unread: that is not known, and said so", linux().torch("2.16.0+cu134"), (), exit=3),
    Row(
        "conda's torch and torchvision",
        linux()
        .set({"python.environment": "conda"})
        .torch("2.5.1", "12.4", sass=CU126)
        .set({"torch.origin": "conda", "package.torch.installer": "conda"})
        .set({"package.torch.conda_build": "py3.12_cuda12.4_cudnn9.1.0_0"})
        .package("torchvision", "0.20.1", installer="conda", conda_build="py312_cu124"),
        (),
    ),
    Row(
        "Debian's torch in Debian's Python",
        linux().set(_SYSTEM).torch("2.6.0+debian", "12.4", sass=CU126).set(_SYSTEM),
        (),
    ),
    Row("free-threaded 3.14", linux().python("3.14.0").set({"python.free_threaded": True}), (), "kept"),
    Row("Python 3.15 with 2.15", linux().python("3.15.0").torch("2.15.0+cu132", sass=CU130), (), "kept"),
    Row(
        "CentOS 7 with a torch that runs there", linux().set({"system.glibc": "2.17"}).torch("2.4.1+cu121"), (), "kept"
    ),
    Row("torchaudio 2.11, which serves every later torch", linux().package("torchaudio", "2.11.1"), ()),
    Row(
        "the CPU build beside a card that no build serves",
        linux().gpu("NVIDIA GeForce GT 710", "3.5", 2, device_id="128b").torch("2.9.1+cpu"),
        (),
    ),
    Row("a Jetson with NVIDIA's wheel", jetson().torch("2.5.0a0+872d972e41.nv24.8", "12.6", sass=["sm_87"]), ()),
    Row(
        "an RTX 5090 and a GTX 1080 Ti: a warning, since one of them is served",
        gtx_1080_ti(rtx_5090(linux()), 1),
        ("CD305",),
    ),
]


def _wanted_exit(row: Row) -> int:
    if row.exit is not None:
        return row.exit
    return 1 if row in OTHER_TOOLS + REPORTED and row.causes else 0


@pytest.mark.parametrize("row", [pytest.param(row, id=row.title) for row in OTHER_TOOLS + REPORTED + HEALTHY])
def test_the_cause_is_named_and_nothing_false_beside_it(row: Row) -> None:
    report = diagnose(row.machine.facts, MATRIX)
    said = [
        f"{o.rule} {o.status} {o.severity}: {o.message}" for o in report.outcomes if o.status not in ("pass", "skip")
    ]
    assert report.root_causes == row.causes, said
    assert exit_status(report.outcomes) == _wanted_exit(row), said
    assert not [o.message for o in report.outcomes if o.status == CRASH]
    assert row.not_helping in " ".join(text for o in report.outcomes for text in o.not_helping)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.title) for row in OTHER_TOOLS + REPORTED + HEALTHY if row.torch is not None]
)
def test_the_build_that_the_plan_would_leave_behind(row: Row) -> None:
    found = Case(row.machine.facts, MATRIX).derived(resolution)
    if row.torch == "":
        assert found.choice is None
    elif row.torch == "kept":
        assert found.nothing_to_do
    else:
        assert found.choice is not None and found.choice.version == row.torch
        # The printed command really brings it: the build is named, or what is there is taken away first.
        plan = make_plan(diagnose(row.machine.facts, MATRIX), MATRIX, strict=True)
        commands = [" ".join(step.argv) for step in plan.steps if step.argv]
        assert any(f"torch=={row.torch}" in command for command in commands), commands


@pytest.mark.parametrize("row", [pytest.param(row, id=row.title) for row in HEALTHY if not row.causes])
def test_a_healthy_machine_is_left_alone(row: Row) -> None:
    assert make_plan(diagnose(row.machine.facts, MATRIX), MATRIX, strict=True).steps == ()
