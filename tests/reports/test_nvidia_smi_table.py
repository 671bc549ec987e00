"""nvidia-smi's table in what people paste: of every era, and after everything that pasting does to it.

The tables are those of the parser's tests (layout real, values invented).
"""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts
from cudadoctor.reports import Reading, read_report

SAMPLES = Path(__file__).resolve().parent.parent / "parse" / "samples" / "nvidia_smi"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.txt"))
MIB = 1 << 20


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


def stated(facts: Facts) -> dict[str, Any]:
    """What a report says, without where it says it; None is "there is none". Error wordings are others' matter."""
    names = (name for name in facts if not name.startswith(("symptom.", "examination.")))
    return {name: facts[name].value for name in names}


# What each table says, except of what every table says alike.
EXPECTED: dict[str, dict[str, Any]] = {
    "r390_two_gpus": {
        "driver.smi_version": "390.157",
        "driver.smi_cuda": None,  # there is no such field yet
        "system.os": "linux",
        "gpu.count": 2,
        "gpu.0.name": "GeForce GTX 1070",
        "gpu.0.temperature": 83,
        "gpu.0.ecc_mode": None,
        "gpu.1.ecc_uncorrected": 0,
        "gpu.1.compute_mode": "exclusive-process",
        "gpu.0.processes": [{"pid": 5150, "memory": 7755 * MIB, "name": "python"}],
    },
    "r442_windows_tcc": {
        "driver.smi_version": "442.19",
        "system.os": "windows",
        "gpu.0.driver_model": "TCC",
        "gpu.0.ecc_mode": False,
        "gpu.0.memory_total": 16258 * MIB,
    },
    "r470_one_lost": {
        "driver.smi_version": "470.223.02",
        "gpu.count": 2,
        "gpu.0.lost": False,
        "gpu.0.power_limit": 350.0,
        "gpu.1.lost": True,
        "gpu.1.pci_address": "0000:65:00.0",
    },
    "r535_mig": {
        "driver.smi_version": "535.154.05",
        "gpu.0.mig_mode": True,
        "gpu.0.mig_devices": 2,
        "gpu.3.mig_pending": True,
        "gpu.3.mig_devices": 0,
        "gpu.3.ecc_uncorrected": 2,
        "gpu.3.compute_mode": "prohibited",
        "gpu.0.processes": [{"pid": 7007, "memory": 14 * MIB, "name": "python"}],
    },
    "r540_jetson_no_driver_number": {
        "driver.smi_version": None,
        "driver.smi_cuda": "12.2",
        "system.os": "linux",
        "system.arch": "aarch64",
        "gpu.0.name": "Orin (nvgpu)",
    },
    "r580_unified_memory": {
        "driver.smi_version": "580.82.09",
        "gpu.0.name": "NVIDIA GB10",
        "gpu.0.pci_address": "000f:01:00.0",
        "gpu.0.processes": [{"pid": 220011, "memory": 20480 * MIB, "name": "python3"}],
    },
    "r580_wsl": {
        "driver.smi_tool_version": "580.88.01",
        "driver.smi_version": "581.29",
        "system.os": "linux",
        "system.wsl": 2,
        "gpu.0.processes": [],
    },
    "r581_windows_laptop": {
        "driver.smi_version": "581.29",
        "driver.smi_cuda": "13.0",
        "system.os": "windows",
        "gpu.0.driver_model": "WDDM",
        "gpu.0.performance_state": 5,
        "gpu.0.processes": [
            {"pid": 4100, "memory": None, "name": "WindowsTerminal.exe"},
            {"pid": 12004, "memory": None, "name": "python.exe"},
        ],
    },
    "r610_container": {
        "driver.smi_version": "610.33.01",
        "driver.smi_cuda": None,
        "gpu.0.mig_mode": True,
        "gpu.0.mig_devices": 0,
        "gpu.0.ecc_mode": False,
    },
}
UNSAID = {
    "r470_one_lost": ("gpu.0.name", "gpu.1.name", "gpu.0.processes"),
    "r535_mig": ("gpu.count",),  # GPUs 0 and 3 are shown: how many there are is not
    "r580_unified_memory": ("gpu.0.memory_total",),
    "r580_wsl": ("gpu.0.driver_model",),
    "r581_windows_laptop": ("gpu.0.name", "gpu.0.power_limit", "system.wsl"),
    "r610_container": ("gpu.0.memory_total",),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_table_becomes_facts(matrix: Matrix, name: str) -> None:
    facts = read_report([("r", sample(name))], matrix).facts
    said = stated(facts)
    assert {fact: said.get(fact, "nothing") for fact in EXPECTED[name]} == EXPECTED[name]
    assert not set(UNSAID.get(name, ())) & set(said)


def test_a_cut_name_is_no_name_and_is_marked(matrix: Matrix) -> None:
    facts = read_report([("r", sample("r581_windows_laptop"))], matrix).facts
    (gpu,) = facts["smi.gpus"].get()
    assert (gpu["name"], gpu["truncated"], gpu["memory_total"]) == ("NVIDIA GeForce RTX 4070 ...", True, 8188 * MIB)


def _lines(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.splitlines()) + "\n"


def _hard(width: int) -> Callable[[str], str]:
    return lambda text: "\n".join(
        line[start : start + width] for line in text.splitlines() for start in range(0, max(len(line), 1), width)
    )


def _at_words(text: str) -> str:
    """As a mail program wraps: at the last blank before the 72nd letter, rules stay whole."""
    lines: list[str] = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, 72, break_long_words=False, drop_whitespace=True) or [""]
    return "\n".join(lines)


WRAPPINGS: dict[str, Callable[[str], str | bytes]] = {
    "colours": lambda text: text.replace("NVIDIA-SMI", "\x1b[1;32mNVIDIA-SMI\x1b[0m").replace("0%", "\x1b[31m0%\x1b[m"),
    "colours without their escape": _lines(lambda line: f"[32m{line}[0m"),
    "a terminal of 80 letters": _hard(80),
    "a terminal of 72 letters, blanks lost": lambda text: "\n".join(
        line.rstrip() for line in _hard(72)(text).splitlines()
    ),
    "wrapped at words": _at_words,
    "one line": lambda text: " ".join(text.split()),
    "one line with prose around it": lambda text: f"I get {' '.join(text.split())} and it is slow | why?",
    "HTML": lambda text: f"<pre>{html.escape(text)}</pre>",
    "hard blanks": lambda text: text.replace(" ", "&nbsp;"),
    "a broken markdown table": lambda text: text.replace("|", "\\|"),
    "a quotation with its prompt": lambda text: _lines(lambda line: f"> {line}")(
        f"```\nuser@host:~$ nvidia-smi\n{text}```"
    ),
    "a tab and CR LF": lambda text: _lines(lambda line: f"\t{line}\r")(text),
    "a notebook": lambda text: "\n".join(f"  {json.dumps(line)}," for line in text.splitlines(keepends=True)),
    "a string of JSON": lambda text: json.dumps({"exit": 0, "stdout": text}),
    "Python's repr of bytes": lambda text: repr(text.encode()),
    "UTF-16 of PowerShell": lambda text: b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
    "UTF-16 read as UTF-8": lambda text: text.encode("utf-16-le").decode("utf-8"),
    "a UTF-8 mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "a CI log": _lines(lambda line: f"2026-03-10T09:15:02.1234567Z {line}"),
    "watch": lambda text: f"Every 1.0s: nvidia-smi    host: Tue Mar 10 09:15:02 2026\n\n{text}",
    "blanks collapsed": _lines(lambda line: " ".join(line.split())),
    "docker compose": _lines(lambda line: f"demo-1  | {line}"),
    "line numbers": lambda text: "\n".join(f"{number:5}\t{line}" for number, line in enumerate(text.splitlines(), 1)),
    "a name before each line": _lines(lambda line: f"[node-17] {line}"),
    "a diff": _lines(lambda line: f"+{line}"),
    "a fence that is closed too early": lambda text: "```\n" + text.replace("+\n", "+\n```\n", 1),
    "a word processor's dashes": lambda text: text.replace("---", "\u2014"),
    "in the middle of a log": lambda text: (
        f"step 1 | loss 2.3\n{text}\nstep 2 | loss 2.2\n| epoch | loss |\n| 1 | 2 |\n"
    ),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("name", NAMES)
def test_what_pasting_does_to_a_table_changes_no_fact(matrix: Matrix, name: str, wrapping: str) -> None:
    whole = stated(read_report([("r", sample(name))], matrix).facts)
    pasted = stated(read_report([("r", WRAPPINGS[wrapping](sample(name)))], matrix).facts)
    assert pasted == whole


def test_rows_without_head_and_tail(matrix: Matrix) -> None:
    lines = sample("r390_two_gpus").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|   1"))
    reading = read_report([("r", "\n".join(lines[first : first + 2]))], matrix)
    assert [block.kind for block in reading.recognised] == ["nvidia-smi table, cut off"]
    said = stated(reading.facts)
    assert said["gpu.1.memory_total"] == 16280 * MIB and said["smi.gpus"][0]["name"] == "Tesla P100-PCIE..."
    # How many GPUs there are and what drives them stood in what is cut off.
    assert not {"gpu.count", "driver.smi_version", "system.os"} & set(said)


def test_a_process_list_alone(matrix: Matrix) -> None:
    text = sample("r581_windows_laptop")
    facts = read_report([("r", text[text.index("| Processes:") :])], matrix).facts
    assert [row["pid"] for row in facts["gpu.0.processes"].get()] == [4100, 12004]
    assert facts["smi.gpus"].is_unknown


MADE_UP = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 550.xx       Driver Version: 550.xx       CUDA Version: 12.4     |
|-------------------------------+----------------------+----------------------+
|   0  NVIDIA GeForce RTX 3070  | 00000000:01:00.0  On |                  N/A |
| 30%   45C    P8    30W / 220W |   1234MiB /  8192MiB |      0%      Default |
+-----------------------------------------------------------------------------+
"""


@pytest.mark.parametrize("text", [MADE_UP, MADE_UP.replace("NVIDIA-SMI 550.xx", "NVIDIA-SMI 550.54")])
def test_placeholders_are_no_facts(matrix: Matrix, text: str) -> None:
    reading = read_report([("r", text)], matrix)
    assert stated(reading.facts) == {}
    assert any("placeholder" in note for note in reading.notes)


def of_machine(driver: str, gpu: str) -> str:
    return sample("r580_unified_memory").replace("580.82.09", driver).replace("NVIDIA GB10         ", f"{gpu:20}")


class TestSeveralTables:
    def test_of_a_loop_the_last_counts(self, matrix: Matrix) -> None:
        hot = sample("r580_wsl").replace(" 35C", " 93C")
        reading = read_report([("r", sample("r580_wsl") * 3 + hot)], matrix)
        assert reading.facts["gpu.0.temperature"].value == 93
        assert len(reading.recognised) == 1
        assert any("last of 4 tables" in note for note in reading.notes)

    def test_of_two_machines_the_last_is_meant(self, matrix: Matrix) -> None:
        text = f"{of_machine('580.65.06', 'NVIDIA L4')}\nand here it works:\n{of_machine('570.86.15', 'NVIDIA L40S')}"
        reading = read_report([("r", text)], matrix)
        assert reading.facts["gpu.0.name"].value == "NVIDIA L40S"
        assert [block.used for block in reading.recognised] == [False, True]
        assert any("more than one machine" in note for note in reading.notes)

    def test_a_container_with_fewer_gpus_than_its_host(self, matrix: Matrix) -> None:
        host = sample("r390_two_gpus")
        lines = host.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("|   1"))
        container = "\n".join(lines[:first] + lines[first + 3 :]).replace("GTX 1070", "GTX 1080")
        facts = read_report([("r", f"{host}\n$ docker run -it demo nvidia-smi\n{container}\n")], matrix).facts
        assert facts["gpu.count"].value == 1
        assert [gpu["name"] for gpu in facts["smi.gpus"].get()] == ["GeForce GTX 1080"]


def test_a_table_of_windows_beside_a_report_of_its_wsl(matrix: Matrix) -> None:
    """What a table only implies never goes over what a program says of the system that it runs on."""
    report = (
        "Collecting environment information...\nPyTorch version: 2.6.0+cu124\nOS: Ubuntu 22.04.4 LTS (x86_64)\n"
        "Python platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35\n"
    )
    facts = read_report([("r", report + "\nPS C:\\> nvidia-smi\n" + sample("r581_windows_laptop"))], matrix).facts
    assert (facts["system.os"].value, facts["system.wsl"].value) == ("linux", 2)
    assert facts["driver.smi_version"].value == "581.29"


def test_the_name_of_another_source_completes_a_cut_one_and_only_if_it_fits(matrix: Matrix) -> None:
    table = sample("r581_windows_laptop")

    def name(listed: str) -> Any:
        text = f"GPU 0: {listed} (UUID: GPU-00000000-0000-4000-8000-000000000000)\n{table}"
        return read_report([("r", text)], matrix).facts["smi.gpus"].get()[0]["name"]

    assert name("NVIDIA GeForce RTX 4070 Laptop GPU") == "NVIDIA GeForce RTX 4070 Laptop GPU"


def kinds(reading: Reading) -> list[str]:
    return [block.kind for block in reading.recognised]


@pytest.mark.parametrize(
    "text",
    [
        "Look at NVIDIA-SMI 550 and its docs",
        "I have 8000MiB / 24000MiB in use",
        "| a | 5MiB / 6MiB |",
        "NVIDIA-SMI is not installed",
        "+-----+\n| Processes: |\n+-----+",
    ],
)
def test_prose_and_other_tables_are_none(matrix: Matrix, text: str) -> None:
    reading = read_report([("r", text)], matrix)
    assert stated(reading.facts) == {} and not kinds(reading)
