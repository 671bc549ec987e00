"""Pasted text: lines freed of their wrapping, blocks found, claims merged, and each fact with its line."""

from __future__ import annotations

import re

import pytest
from report_reading import reading_of

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model.catalogue import spec_of
from cudadoctor.reports import read_report
from cudadoctor.reports.text import Text, clean
from cudadoctor.reports.triggers import Triggers


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


BANNER = "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |"
WRAPPINGS = {
    "nothing": BANNER,
    "blanks at the end": BANNER + "   \t",
    "a quotation": "> " + BANNER,
    "a quotation of a quotation": ">> " + BANNER,
    "the time of a CI log": "2026-03-10T09:15:02.1234567Z " + BANNER,
    "the system log": "Mar 10 09:15:02 node7 trainer[4242]: " + BANNER,
    "docker compose": "trainer-1  | " + BANNER,
    "torchrun": "[rank0]: " + BANNER,
    "Ray": "(worker pid=4242) " + BANNER,
    "git": "remote: " + BANNER,
    "a comment": "# " + BANNER,
    "colours": "\x1b[32m" + BANNER + "\x1b[0m",
    "colours without their escape": "[32;1m" + BANNER + "[0m",
    "a notebook": '  "' + BANNER + '\\n",',
    "hard blanks": BANNER.replace(" ", "\u00a0"),
    "HTML tags": "<pre>" + BANNER + "</pre>",
    "escaped bars": BANNER.replace("|", "\\|"),
}


@pytest.mark.parametrize("line", WRAPPINGS.values(), ids=WRAPPINGS)
def test_a_line_is_freed_of_its_wrapping(line: str) -> None:
    assert clean(line).strip() == BANNER


KEPT = (
    ">>> import torch",
    "(demo) user@host:~$ nvidia-smi",
    "gpus[0] and masks[3]m stay",
    "a < b and c > d",
    "-V:3.13 *        Python 3.13 (64-bit)",
)


@pytest.mark.parametrize("line", KEPT)
def test_what_is_no_wrapping_stays(line: str) -> None:
    assert clean(line) == line


def test_html_entities_are_read() -> None:
    assert clean("&gt;&gt;&gt; torch.__version__ &amp; more") == ">>> torch.__version__ & more"


def test_bytes_of_a_windows_console_are_a_text() -> None:
    text = Text("out.txt", b"\xff\xfe" + "nvcc\r\nrelease 12.4\r\n".encode("utf-16-le"))
    assert [text[index] for index in range(2)] == ["nvcc", "release 12.4"]
    assert text.number(1) == 2


def test_triggers_of_several_readers_are_found_in_one_pass() -> None:
    triggers = Triggers({"one": ("driver version", "nvidia-smi"), "two": ("nvidia driver",), "none": ("xyz",)})
    text = Text("t", "The NVIDIA Driver Version is\nnothing here\nnvidia-smi\nNVIDIA DRIVER VERSION: 5\n")
    assert triggers.find(text) == {"one": [0, 2, 3], "two": [0, 3]}


REPORT = """\
It fails on my machine:
```
Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
Libc version: glibc-2.35

Python version: 3.10.12 (main) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-6.5.0-41-generic-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 12.4.131
GPU models and configuration:
GPU 0: NVIDIA A10G
GPU 1: NVIDIA A10G

Nvidia driver version: 550.90.07

Versions of relevant libraries:
[pip3] torch==2.6.0
[pip3] triton==3.2.0
[conda] Could not collect
```
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


def test_a_report_becomes_facts_with_their_lines(matrix: Matrix) -> None:
    reading = read_report([("report.txt", REPORT)], matrix)
    wanted = {
        "torch.version": ("2.6.0+cu124", 4),
        "torch.cuda": ("12.4", 6),
        "system.os": ("linux", 9),
        "system.glibc": ("2.35", 10),
        "python.version": ("3.10.12", 12),
        "toolkit.nvcc_on_path_version": ("12.4.131", 15),
        "driver.smi_version": ("550.90.07", 20),
        "package.triton.version": ("3.2.0", 24),
    }
    found = {name: (reading.facts[name].value, reading.facts[name].source) for name in wanted}
    assert found == {name: (value, f"line {line} (torch collect_env)") for name, (value, line) in wanted.items()}
    assert [gpu["name"] for gpu in reading.facts["smi.gpus"].get()] == ["NVIDIA A10G"] * 2
    assert reading.facts["symptom.no_kernel_image"].source == "line 27 (error message)"
    assert [(block.kind, block.first, block.last) for block in reading.recognised] == [
        ("torch collect_env", 3, 25),
        ("error message", 27, 27),
    ]
    # What the text does not say is not known, and never "no".
    assert reading.facts["kernel.secure_boot"].is_unknown


def test_a_report_that_ran_together_reads_the_same(matrix: Matrix) -> None:
    whole = read_report([("r", REPORT)], matrix).facts
    flat = read_report([("r", " ".join(REPORT.split()))], matrix).facts
    names = [name for name in whole if not name.startswith("symptom.")]
    assert {name: flat[name].value for name in names} == {name: whole[name].value for name in names}


@pytest.mark.parametrize(
    ("printed", "state", "value"),
    [("12.4", "known", "12.4"), ("None", "absent", None), ("Could not collect", "absent", None)],
)
def test_the_cuda_of_a_build(matrix: Matrix, printed: str, state: str, value: str | None) -> None:
    text = REPORT.replace("CUDA used to build PyTorch: 12.4", f"CUDA used to build PyTorch: {printed}")
    fact = read_report([("r", text)], matrix).facts["torch.cuda"]
    assert (fact.state, fact.value) == (state, value)


def test_of_a_torch_that_cannot_be_imported_pip_knows_the_version_alone(matrix: Matrix) -> None:
    text = re.sub(r"(PyTorch version|CUDA used to build PyTorch): \S+", r"\1: N/A", REPORT)
    facts = read_report([("r", text)], matrix).facts
    assert facts["torch.version"].value == "2.6.0"
    assert facts["torch.cuda"].is_unknown


def test_of_two_machines_the_last_counts(matrix: Matrix) -> None:
    other = REPORT.replace("550.90.07", "535.183.01").replace("2.6.0", "2.5.1")
    reading = read_report([("r", other + REPORT)], matrix)
    assert reading.facts["driver.smi_version"].value == "550.90.07"
    assert reading.facts["torch.version"].value == "2.6.0+cu124"
    assert [block.used for block in reading.recognised if block.kind == "torch collect_env"] == [False, True]
    assert any("more than one machine" in note for note in reading.notes)


SYMPTOMS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "UserWarning: The NVIDIA driver on your system is too old (found version 12040).",
        "driver_too_old",
        {"found": "12040"},
    ),
    (
        "The detected CUDA version (13.0) mismatches the version that was used to compile\nPyTorch (12.8).",
        "cuda_version_mismatch",
        {"toolkit": "13.0", "torch": "12.8"},
    ),
    (
        "OSError: libcudnn.so.9: cannot open shared object file: No such file or directory",
        "cuda_library_missing",
        {"library": "libcudnn.so.9"},
    ),
    (
        "/lib/libc.so.6: version `GLIBC_2.28' not found (required by x)",
        "glibc_version_missing",
        {"needed": "2.28"},
    ),
    ("OSError: [WinError 1455] 页面文件太小，无法完成操作。", "paging_file_too_small", {}),
)


@pytest.mark.parametrize(("text", "name", "caught"), SYMPTOMS, ids=[row[1] for row in SYMPTOMS])
def test_a_wording_is_a_symptom(matrix: Matrix, text: str, name: str, caught: dict[str, str]) -> None:
    fact = read_report([("r", f"some prose\n{text}\n")], matrix).facts[f"symptom.{name}"]
    assert fact.source == "line 2 (error message)"
    assert fact.get() == {"text": text.split("\n")[0], **caught}


@pytest.mark.parametrize("text", ["all is well", "", "nvidia nvidia nvidia", "the driver version is fine"])
def test_prose_says_nothing(matrix: Matrix, text: str) -> None:
    reading = read_report([("r", text)], matrix)
    assert list(reading.facts) == ["examination.kind"] and not reading.recognised


def test_every_wording_fits_a_fact_and_keeps_its_name_free_of_captures(matrix: Matrix) -> None:
    for message in matrix.messages():
        assert spec_of(f"symptom.{message.name}") is not None
        assert "text" not in re.compile(message.pattern).groupindex, message.name


def test_a_gpu_has_the_capability_of_its_name() -> None:
    text = "GPU 0: NVIDIA GeForce RTX 2070 (UUID: GPU-1)\n>>> torch.cuda.get_device_capability()\n(9, 0)\n"
    reading = reading_of(text)
    assert reading.facts["smi.gpus"].get()[0]["compute_capability"] == "7.5"
    assert any("it has 7.5, and that counts" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("available", "counts"),
    [("True", "neither"), ("False", "the former")],
    ids=["it finds a GPU, too", "it finds none"],
)
def test_a_cpu_build_with_cuda_is_two_environments(available: str, counts: str) -> None:
    asked = {"torch.__version__": "'2.8.0+cpu'", "torch.version.cuda": "'12.6'", "torch.cuda.is_available()": available}
    reading = reading_of("".join(f">>> {question}\n{said}\n" for question, said in asked.items()))
    assert not reading.facts["torch.cuda"].is_known
    assert reading.facts["torch.version"].is_known == (counts == "the former")
    assert any(f"of which {counts} counts" in note for note in reading.notes)


def test_the_lines_of_a_page_are_apart(matrix: Matrix) -> None:
    page = (
        "<p>It fails:</p><div>PyTorch version: 2.6.0+cu124<br/>CUDA used to build PyTorch: 12.4"
        "<br>OS: Ubuntu 22.04.4 LTS (x86_64)<br>Is CUDA available: False<br>Nvidia driver version: 470.239.06</div>"
        "<p>RuntimeError: No CUDA GPUs are available</p>"
    )
    facts = read_report([("r", "a page\n" + page)], matrix).facts
    assert facts["torch.version"].value == "2.6.0+cu124"
    assert facts["driver.smi_version"].value == "470.239.06"
    assert facts["symptom.no_cuda_gpus"].source == "line 2 (error message)"
