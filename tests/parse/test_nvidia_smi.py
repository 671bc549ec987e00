"""nvidia-smi's table, failures, -L and CSV. The sample tables are beside this file, with invented values."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadoctor.parse import nvidia_smi as smi
from cudadoctor.parse.errors import ParseError

SAMPLES = Path(__file__).parent / "samples" / "nvidia_smi"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


def shown(cell: smi.Cell) -> str:
    """A cell in a table of expectations: its value, "-" for absent, "?" for unknown."""
    return cell.text if cell.state == smi.KNOWN else "-" if cell.state == smi.ABSENT else "?"


def line(gpu: smi.SmiGpu) -> str:
    cut = " (cut)" if gpu.name_is_cut else ""
    pending = "*" if gpu.mig_change_pending else ""
    cells = [
        f"{gpu.gpu} {shown(gpu.name)}{cut}",
        f"{shown(gpu.persistence)} {shown(gpu.driver_model)}",
        f"{shown(gpu.bus_id)} {shown(gpu.display_active)}",
        f"ecc {shown(gpu.ecc_errors)}",
        f"fan {shown(gpu.fan_percent)} {shown(gpu.temperature)} C {shown(gpu.performance_state)}",
        f"{shown(gpu.power_watts)} of {shown(gpu.power_limit_watts)} W",
        f"{shown(gpu.memory_used_mib)} of {shown(gpu.memory_total_mib)} MiB",
        f"{shown(gpu.utilization_percent)} % {shown(gpu.compute_mode)}",
        f"mig {shown(gpu.mig_mode)}{pending}",
    ]
    return " | ".join(cells)


TABLES = {
    # sample: (nvidia-smi's own number, driver, CUDA, layout, GPUs)
    # name (cut) | persistence, driver model | bus id, display | ecc | fan, temperature, state
    # | power | memory | use, mode | mig
    "r390_two_gpus": (
        "390.157 390.157 - classic",
        [
            "0 GeForce GTX 1070 | Off - | 00000000:02:00.0 On | ecc - | fan 100 83 C P2 | 148 of 151 W"
            " | 7811 of 8116 MiB | 99 % Default | mig -",
            "1 Tesla P100-PCIE... (cut) | Off - | 00000000:83:00.0 Off | ecc 0 | fan - 36 C P0 | 27 of 250 W"
            " | 0 of 16280 MiB | 0 % E. Process | mig -",
        ],
    ),
    "r442_windows_tcc": (
        "442.19 442.19 10.2 classic",
        [
            "0 Tesla V100-PCIE... (cut) | - TCC | 00000001:00:00.0 Off | ecc Off | fan - 31 C P0 | 25 of 250 W"
            " | 11 of 16258 MiB | 0 % Default | mig -"
        ],
    ),
    "r470_one_lost": (
        "470.223.02 470.223.02 11.4 classic",
        [
            "0 NVIDIA GeForce ... (cut) | Off - | 00000000:17:00.0 Off | ecc - | fan 41 62 C P2 | 201 of 350 W"
            " | 11002 of 24268 MiB | 88 % Default | mig -",
            "1 ? | ? - | 00000000:65:00.0 ? | ecc ? | fan ? ? C ? | ? of ? W | ? of ? MiB | ? % ? | mig ?",
        ],
    ),
    "r535_mig": (
        "535.154.05 535.154.05 12.2 classic",
        [
            "0 NVIDIA A30 | On - | 00000000:1B:00.0 Off | ecc On | fan - 29 C P0 | 31 of 165 W"
            " | 50 of 24576 MiB | - % Default | mig Enabled",
            "3 NVIDIA A30 | On - | 00000000:CA:00.0 Off | ecc 2 | fan - 30 C P0 | 30 of 165 W"
            " | 4 of 24576 MiB | 0 % Prohibited | mig Enabled*",
        ],
    ),
    "r540_jetson_no_driver_number": (
        "540.3.0 - 12.2 classic",
        ["0 Orin (nvgpu) | - - | - - | ecc - | fan - - C - | - of - W | - of - MiB | - % - | mig -"],
    ),
    "r580_unified_memory": (
        "580.82.09 580.82.09 13.0 classic",
        [
            "0 NVIDIA GB10 | On - | 0000000F:01:00.0 Off | ecc - | fan - 51 C P0 | 18 of - W"
            " | - of - MiB | 42 % Default | mig -"
        ],
    ),
    # WSL: the tool's number and the Windows driver's differ, and that is no fault.
    "r580_wsl": (
        "580.88.01 581.29 13.0 classic",
        [
            "0 NVIDIA GeForce RTX 3060 | On - | 00000000:0A:00.0 On | ecc - | fan 0 35 C P8 | 11 of 170 W"
            " | 640 of 12288 MiB | 1 % Default | mig -"
        ],
    ),
    "r581_windows_laptop": (
        "581.29 581.29 13.0 classic",
        [
            "0 NVIDIA GeForce RTX 4070 ... (cut) | - WDDM | 00000000:01:00.0 On | ecc - | fan - 48 C P5 | 7 of - W"
            " | 911 of 8188 MiB | 6 % Default | mig -"
        ],
    ),
    "r610_container": (
        "610.33.01 610.33.01 - kmd",
        [
            "0 NVIDIA RTX PRO 6000 Blac... (cut) | On - | 00000000:C1:00.0 Off | ecc Off | fan 30 27 C P8 | 14 of 600 W"
            " | - of - MiB | - % Default | mig Enabled"
        ],
    ),
}


def test_every_sample_has_its_expectations() -> None:
    assert sorted(path.stem for path in SAMPLES.glob("*.txt")) == sorted(TABLES)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_table(name: str) -> None:
    numbers, gpus = TABLES[name]
    table = smi.parse_table(sample(name))
    head = f"{table.smi_version} {shown(table.driver_version)} {shown(table.cuda_version)} {table.layout}"
    assert (head, [line(gpu) for gpu in table.gpus]) == (numbers, gpus)


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n".join(line.rstrip() for line in text.splitlines()),
        lambda text: "\n".join(" ".join(line.split()) for line in text.splitlines()),
        lambda text: "\n".join("\t" + line for line in text.splitlines()),
        lambda text: "node-1: starting\n" + text + "\nnode-1: done | 3 jobs | ok\n",
    ],
    ids=["CR LF", "no trailing blanks", "blanks collapsed", "indented", "other lines around it"],
)
def test_what_pasting_does_to_a_table_changes_nothing(name: str, damage: object) -> None:
    assert callable(damage)
    assert smi.parse_table(damage(sample(name))) == smi.parse_table(sample(name))


def test_only_a_gpu_that_the_driver_cannot_answer_for_is_unreadable() -> None:
    unreadable = {
        name: [gpu.gpu for gpu in smi.parse_table(sample(name)).gpus if gpu.is_unreadable] for name in sorted(TABLES)
    }
    assert {name: gpus for name, gpus in unreadable.items() if gpus} == {"r470_one_lost": [1]}


PROCESSES = {
    # GPU, GPU instance, compute instance, PID, kind, name, memory in MiB
    "r390_two_gpus": [
        (0, None, None, 911, "G", "/usr/lib/xorg/Xorg", "45"),
        (0, None, None, 5150, "C", "/opt/my env/bin/python", "7755"),
    ],
    "r442_windows_tcc": [(0, None, None, 2468, "C+G", "Insufficient Permissions", "-")],
    "r470_one_lost": None,  # the table ends before its process list
    "r535_mig": [(0, 3, 0, 7007, "C", "python", "14")],
    "r540_jetson_no_driver_number": [],
    "r580_unified_memory": [(0, None, None, 220011, "C", "python3", "20480")],
    "r580_wsl": [(0, None, None, 31, "G", "/Xwayland", "-")],
    "r581_windows_laptop": [
        (0, None, None, 4100, "C+G", "...yb3d8bbwe\\WindowsTerminal.exe", "-"),
        (0, None, None, 12004, "C", "C:\\Program Files\\py\\python.exe", "-"),
    ],
    "r610_container": [],
}


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_processes(name: str) -> None:
    processes = smi.parse_table(sample(name)).processes
    rows = None if processes is None else [(*tuple(one)[:-1], shown(one.memory_mib)) for one in processes]
    assert rows == PROCESSES[name]


def test_mig_devices() -> None:
    devices = smi.parse_table(sample("r535_mig")).mig_devices
    assert [(*tuple(one)[:4], one.memory_used_mib.integer, one.memory_total_mib.integer) for one in devices] == [
        (0, 3, 0, 0, 20, 5952),
        (0, 4, 0, 1, 20, 5952),
    ]
    assert smi.parse_table(sample("r610_container")).mig_devices == ()


def test_of_several_tables_the_last_counts() -> None:
    text = sample("r390_two_gpus") + sample("r580_wsl")
    assert [table.smi_version for table in smi.parse_tables(text)] == ["390.157", "580.88.01"]
    assert smi.parse_table(text).smi_version == "580.88.01"


def test_a_made_up_number_is_no_driver_version() -> None:
    table = smi.parse_table("| NVIDIA-SMI 535.10   Driver Version: 535.xx   CUDA Version: 12.x |")
    assert table.driver_version == smi.Cell(smi.UNKNOWN, "535.xx")
    assert table.cuda_version == smi.Cell(smi.UNKNOWN, "12.x")
    assert table.gpus == ()


@pytest.mark.parametrize(
    "text", ["", "no table", "NVIDIA-SMI has failed because it couldn't communicate", "NVIDIA-SMI 5"]
)
def test_what_is_no_table(text: str) -> None:
    assert smi.parse_tables(text) == []
    with pytest.raises(ParseError, match="nvidia-smi's table"):
        smi.parse_table(text)


CELLS = [
    # printed, state, text, unit, number
    ("81920 MiB", "known", "81920", "MiB", 81920.0),
    ("81920MiB", "known", "81920", "MiB", 81920.0),
    ("61.50 W", "known", "61.50", "W", 61.5),
    ("45C", "known", "45", "C", 45.0),
    ("97%", "known", "97", "%", 97.0),
    ("45", "known", "45", "", 45.0),
    ("8.9", "known", "8.9", "", 8.9),
    ("P8", "known", "P8", "", None),
    ("Default", "known", "Default", "", None),
    ("NVIDIA GeForce GTX 1650 C", "known", "NVIDIA GeForce GTX 1650 C", "", None),
    ("0x0000000000000004", "known", "0x0000000000000004", "", None),
    ("N/A", "absent", "N/A", "", None),
    ("[N/A]", "absent", "N/A", "", None),
    ("[Not Supported]", "absent", "Not Supported", "", None),
    ("Not Supported", "absent", "Not Supported", "", None),
    ("ERR!", "unknown", "ERR!", "", None),
    ("[GPU is lost]", "unknown", "GPU is lost", "", None),
    ("[Unknown Error]", "unknown", "Unknown Error", "", None),
    ("Unknown Error", "unknown", "Unknown Error", "", None),
    ("[Insufficient Permissions]", "unknown", "Insufficient Permissions", "", None),
    ("[GPU requires reset]", "unknown", "GPU requires reset", "", None),
    ("[Something new]", "unknown", "Something new", "", None),
    ("", "unknown", "", "", None),
]


@pytest.mark.parametrize(("printed", "state", "text", "unit", "number"), CELLS)
def test_cell(printed: str, state: str, text: str, unit: str, number: float | None) -> None:
    cell = smi.cell(printed)
    assert (cell.state, cell.text, cell.unit, cell.number) == (state, text, unit, number)
    assert cell.value == (text if state == "known" else None)


FAILURES = [
    # text, kind, GPU, NVML's version
    (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ...\n\n",
        smi.DRIVER_NOT_LOADED,
        None,
        None,
    ),
    ("Failed to initialize NVML: Driver Not Loaded\n", smi.DRIVER_NOT_LOADED, None, None),
    (
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure ...\nPlease also try ...\n",
        smi.LIBRARY_NOT_FOUND,
        None,
        None,
    ),
    ("Failed to initialize NVML: could not load NVML library\n", smi.LIBRARY_NOT_FOUND, None, None),
    ("Failed to initialize NVML: Driver/library version mismatch\n", smi.VERSION_MISMATCH, None, None),
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n",
        smi.VERSION_MISMATCH,
        None,
        "550.54",
    ),
    ("Failed to initialize NVML: Insufficient Permissions\n", smi.NO_PERMISSION, None, None),
    ("Failed to initialize NVML: GPU is lost\n", smi.GPU_LOST, None, None),
    ("Failed to initialize NVML: Unknown Error\n", smi.UNKNOWN_ERROR, None, None),
    ("Failed to initialize NVML: Something else\n", smi.OTHER_NVML_ERROR, None, None),
    ("No devices were found\n", smi.NO_DEVICES, None, None),
    ("No devices found.\n", smi.NO_DEVICES, None, None),
    (
        "Unable to determine the device handle for GPU1: GPU is lost.  Reboot the system to recover this GPU\n",
        smi.GPU_LOST,
        "1",
        None,
    ),
    (
        "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n",
        smi.DEVICE_HANDLE,
        "0000:41:00.0",
        None,
    ),
    (
        "Unable to determine the device handle for gpu 0000:41:00.0: Not Found\n",
        smi.DEVICE_HANDLE,
        "0000:41:00.0",
        None,
    ),
    ("Unable to determine the product name for gpu 3: GPU is lost\n", smi.GPU_LOST, "3", None),
    ('Field "cuda_version" is not a valid field to query.\n\n', smi.BAD_FIELD, None, None),
    ("ERROR: Option --version is not recognized. Please run 'nvidia-smi -h'.\n", smi.BAD_OPTION, None, None),
    ("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n", smi.BAD_OPTION, None, None),
    ("bash: line 1: nvidia-smi: command not found\n", smi.COMMAND_NOT_FOUND, None, None),
    ("zsh: command not found: nvidia-smi\n", smi.COMMAND_NOT_FOUND, None, None),
    ("sh: 1: nvidia-smi: not found\n", smi.COMMAND_NOT_FOUND, None, None),
    (
        "'nvidia-smi' is not recognized as an internal or external command,\noperable program or batch file.\n",
        smi.COMMAND_NOT_FOUND,
        None,
        None,
    ),
]


@pytest.mark.parametrize(("text", "kind", "gpu", "library"), FAILURES)
def test_failure(text: str, kind: str, gpu: str | None, library: str | None) -> None:
    failure = smi.find_failure("a line before\n" + text)
    assert failure is not None
    assert (failure.kind, failure.gpu, failure.library_version) == (kind, gpu, library)
    assert failure.text == text.splitlines()[0]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_no_failure(name: str) -> None:
    assert smi.find_failures(sample(name)) == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (0, None),
        (2, None),
        (4, smi.NO_PERMISSION),
        (6, smi.NO_DEVICES),
        (9, smi.DRIVER_NOT_LOADED),
        (12, smi.LIBRARY_NOT_FOUND),
        (15, smi.GPU_LOST),
        (18, smi.VERSION_MISMATCH),
        (124, None),
        (255, None),
    ],
)
def test_exit_code(code: int, kind: str | None) -> None:
    assert smi.kind_of_exit_code(code) == kind


def test_list() -> None:
    text = """\
GPU 0: NVIDIA A30 (UUID: GPU-11111111-0000-4000-8000-000000000000)
  MIG 2g.12gb     Device  0: (UUID: MIG-22222222-0000-5000-8000-000000000000)
  MIG 1g.6gb+me   Device  1: (UUID: MIG-33333333-0000-5000-8000-000000000000)
GPU 1: NVIDIA GeForce RTX 4070 Laptop GPU (UUID: GPU-44444444-0000-4000-8000-000000000000)
GPU 2: A100-SXM4-40GB (UUID: GPU-55555555-0000-4000-8000-000000000000)
  MIG 1g.5gb Device 0: (UUID: MIG-GPU-55555555-0000-4000-8000-000000000000/7/0)
GPU 3: Orin (nvgpu) (UUID: 66666666-0000-4000-8000-000000000000)
Unable to determine the product name for gpu 4: GPU is lost
"""
    assert smi.parse_list(text) == [
        smi.ListedGpu(
            0,
            "NVIDIA A30",
            "GPU-11111111-0000-4000-8000-000000000000",
            (
                smi.ListedMig("2g.12gb", 0, "MIG-22222222-0000-5000-8000-000000000000"),
                smi.ListedMig("1g.6gb+me", 1, "MIG-33333333-0000-5000-8000-000000000000"),
            ),
        ),
        smi.ListedGpu(1, "NVIDIA GeForce RTX 4070 Laptop GPU", "GPU-44444444-0000-4000-8000-000000000000"),
        smi.ListedGpu(
            2,
            "A100-SXM4-40GB",
            "GPU-55555555-0000-4000-8000-000000000000",
            (smi.ListedMig("1g.5gb", 0, "MIG-GPU-55555555-0000-4000-8000-000000000000/7/0"),),
        ),
        smi.ListedGpu(3, "Orin (nvgpu)", "66666666-0000-4000-8000-000000000000"),
    ]
    assert [(one.kind, one.gpu) for one in smi.find_failures(text)] == [(smi.GPU_LOST, "4")]
    assert smi.parse_list("No devices found.\n") == []


COLUMNS = ("index", "name", "memory.total", "power.draw", "ecc.mode.current")


@pytest.mark.parametrize(
    "text",
    [
        "0, NVIDIA A30, 24576 MiB, 30.10 W, Enabled\n1, [GPU is lost], [Unknown Error], [N/A], [Not Supported]\n",
        "index, name, memory.total [MiB], power.draw [W], ecc.mode.current\n"
        "0, NVIDIA A30, 24576 MiB, 30.10 W, Enabled\n1, [GPU is lost], [Unknown Error], [N/A], [Not Supported]\n",
        "index, name, memory.total [MiB], power.draw [W], ecc.mode.current\r\n"
        "0, NVIDIA A30, 24576, 30.10, Enabled\r\n1, [GPU is lost], [Unknown Error], [N/A], [Not Supported]\r\n",
        "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n"
        "0,NVIDIA A30,24576,30.10,Enabled\n1,[GPU is lost],[Unknown Error],[N/A],[Not Supported]\n",
    ],
    ids=["bare", "header and units", "header, no units, CR LF", "a warning before it"],
)
def test_csv(text: str) -> None:
    first, second = smi.parse_csv(text, COLUMNS)
    assert {name: cell.value for name, cell in first.items()} == {
        "index": "0",
        "name": "NVIDIA A30",
        "memory.total": "24576",
        "power.draw": "30.10",
        "ecc.mode.current": "Enabled",
    }
    assert {name: cell.state for name, cell in second.items()} == {
        "index": "known",
        "name": "unknown",
        "memory.total": "unknown",
        "power.draw": "absent",
        "ecc.mode.current": "absent",
    }


def test_csv_renamed_header_is_still_a_header() -> None:
    text = "index, clocks_event_reasons.active\n0, 0x0000000000000001\n"
    rows = smi.parse_csv(text, ("index", "clocks_throttle_reasons.active"))
    assert [row["clocks_throttle_reasons.active"].text for row in rows] == ["0x0000000000000001"]


def test_csv_without_rows() -> None:
    assert smi.parse_csv("", COLUMNS) == []
    assert smi.parse_csv("index, name, memory.total [MiB], power.draw [W], ecc.mode.current\n", COLUMNS) == []
    with pytest.raises(ParseError, match="5 columns"):
        smi.parse_csv("No devices were found\n", COLUMNS)
