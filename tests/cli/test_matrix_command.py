"""`cudadoctor matrix` from the outside: first lines, exit statuses, documents, what a mistyped option is told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Run
from render.schema_validator import mistakes

import cudadoctor
from cudadoctor.matrix import load_matrix
from cudadoctor.matrix.holdings import Data
from cudadoctor.matrix.sections import Origin
from cudadoctor.render.matrix_data import show_verdict
from cudadoctor.render.schema import schema_of

ROOT = Path(cudadoctor.__file__).parent.parent
COMPAT = str(ROOT / "compat")


def document(run: Run, *arguments: str) -> dict[str, Any]:
    """What a command of `matrix` says as JSON, checked against the shipped schema."""
    result = run("matrix", *arguments, "--format", "json")
    found: dict[str, Any] = json.loads(result.out)
    schema = schema_of("cudadoctor.matrix/1")
    assert mistakes(schema, found, schema) == []
    assert (found["exit"], result.err) == (result.exit, "")
    return found


def first_line(text: str) -> str:
    """The verdict in one piece: it ends at the first empty line."""
    return " ".join(text.partition("\n\n")[0].split())


# -- query: what is asked, how it ends, how the answer begins

QUERIES = [
    (
        "--driver 535.104 --os linux",
        0,
        "driver 535.104 on Linux runs programs built with CUDA 12.x or older; CUDA 13.x needs driver 580.65.06 or "
        "newer",
    ),
    (
        "--driver 566.36 --os windows",
        0,
        "driver 566.36 on Windows runs programs built with CUDA 12.x or older; CUDA 13.x needs driver 580 or newer",
    ),
    ("--driver 581.57 --os wsl", 0, "the Windows driver 581.57 under WSL runs programs built with CUDA 13.x or older"),
    ("--driver 700.1 --os linux", 0, "driver 700.1 on Linux is newer than all that are known (up to R"),
    (
        "--gpu 1080Ti --os linux",
        0,
        "GeForce GTX 1080 Ti (sm_61) runs torch up to 2.14.1, built with CUDA 12.6 (cu126), on Linux x86_64",
    ),
    ("--gpu 8.9 --os linux", 0, "a GPU of compute capability 8.9 runs torch up to 2."),
    ("--gpu Orin", 1, "FAIL Orin (sm_87) takes torch from NVIDIA's index for its JetPack, not from PyTorch's"),
    (
        "--torch 2.6",
        0,
        "torch 2.6.0 is built for CUDA 12.6 and 12.4 (driver 525.60.13 or newer), CUDA 11.8 (driver 450.80.02 or "
        "newer) and the CPU alone",
    ),
    (
        "--cuda 12.4",
        0,
        "programs built with CUDA 12.4 run on driver 525.60.13 or newer (Windows: 528.33), as those of any CUDA 12.x",
    ),
    ("--cuda 12", 0, "programs built with any CUDA 12.x run on driver 525.60.13 or newer (Windows: 528.33)"),
    ("--cuda 10.2", 0, "programs built with CUDA 10.2 run on driver 440.33 or newer (Windows: 441.22)"),
    ("--cuda cu126", 0, "programs built with CUDA 12.6 run on driver 525.60.13 or newer"),
    ("--cuda 12.7", 0, "there is no CUDA 12.7 toolkit; 12.7 is what nvidia-smi shows with driver branch R565"),
    # Several together narrow each other.
    (
        "--gpu 4090 --driver 535.104 --os linux",
        0,
        "OK torch 2.14.1+cu126 is the newest that runs on GeForce RTX 4090 with driver 535.104",
    ),
    (
        "--gpu 5090 --driver 572.60 --os windows",
        0,
        "OK torch 2.11.0+cu128 is the newest that runs on GeForce RTX 5090 with driver 572.60",
    ),
    (
        "--gpu 1080 --driver 610.43.02 --os linux",
        1,
        "FAIL driver 610.43.02 (R610) does not drive GeForce GTX 1080 (sm_61): R580 is the last branch that drives it",
    ),
    (
        "--gpu 5090 --gpu 1080Ti --driver 570.86.15 --os linux",
        1,
        "FAIL no torch build that is known has code for all of GeForce RTX 5090 and GeForce GTX 1080 Ti with driver "
        "570.86.15: GeForce RTX 5090 (sm_120) takes up to 2.13.0+cu129; GeForce GTX 1080 Ti (sm_61) takes up to "
        "2.14.1+cu126",
    ),
    (
        "--torch 2.14 --gpu 4090 --driver 535.183.01 --os linux",
        0,
        "OK torch 2.14.1 runs on GeForce RTX 4090 with driver 535.183.01: take its build cu126",
    ),
    ("--torch 2.6 --gpu 5090 --os linux", 1, "FAIL no build of torch 2.6.0 runs on GeForce RTX 5090: it has no code"),
    ("--torch 2.6 --python 3.14", 1, "FAIL torch 2.6.0 has no wheel for Python 3.14"),
    ("--torch 2.6 --python 3.12", 0, "OK torch 2.6.0 has wheels for Python 3.12: cu126, cu124, cu118 and cpu"),
    ("--torch 2.6+cu124", 0, "OK torch 2.6.0+cu124 exists, on Linux x86_64 and Windows"),
    ("--torch 2.15.0+cu126", 1, "FAIL torch 2.15.0 has no build cu126: it has cu132 and cpu"),
    ("--torch 2.6 --cuda 12.8", 1, "FAIL torch 2.6.0 has no build for CUDA 12.8: it has cu126, cu124, cu118 and cpu"),
    ("--cuda 12.4 --gpu 5090 --os linux", 1, "FAIL CUDA 12.4 does not know GeForce RTX 5090 (sm_120): CUDA 12.8 is"),
    ("--cuda 13.0 --driver 550.54 --os linux", 1, "FAIL CUDA 13.x needs driver 580.65.06 or newer on Linux"),
    (
        "--gpu K80 --driver 470.256.02 --python 3.13 --os linux",
        0,
        "OK torch 2.7.1+cu118 is the newest that runs on Tesla K80 with driver 470.256.02 and Python 3.13",
    ),
    (
        "--gpu 6.1 --driver 390.157 --os linux --arch x86_64",
        1,
        "FAIL no torch build that is known runs on a GPU of compute capability 6.1 with driver 390.157: CUDA 12.x "
        "needs driver 525.60.13 or newer on Linux",
    ),
    ("--gpu 4090 --driver 418.87 --os linux", 1, "FAIL driver 418.87 (R418) does not drive GeForce RTX 4090 (sm_89)"),
    (
        "--driver 418.87 --python 3.12 --os linux",
        1,
        "FAIL no torch build that is known runs on a machine with driver 418.87 and Python 3.12",
    ),
]


@pytest.mark.parametrize(("asked", "status", "says"), QUERIES, ids=[row[0] for row in QUERIES])
def test_the_first_line_is_the_answer(run: Run, asked: str, status: int, says: str) -> None:
    result = run("matrix", "query", *asked.split())
    assert first_line(result.out).startswith(says), result.out
    assert (result.exit, result.err) == (status, "")
    told = document(run, "query", *asked.split())
    assert told["exit"] == status
    assert says.split(" ", 1)[1] in told["verdict"] if says[:4] in ("OK t", "FAIL") else says in told["verdict"]


@pytest.mark.parametrize("asked", [row[0] for row in QUERIES])
def test_answers_fit_a_plain_terminal(run: Run, asked: str) -> None:
    out = run("matrix", "query", *asked.split(), "-v").out
    assert out.isascii() and "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("more"))
    assert not any(line != line.rstrip() for line in out.splitlines())


def lines_of(run: Run, *arguments: str) -> list[str]:
    return [" ".join(line.split()) for line in run("matrix", "query", *arguments).out.splitlines()]


def test_what_a_driver_is_told_of(run: Run) -> None:
    lines = lines_of(run, "--driver", "535.104", "--os", "linux")
    text = " ".join(lines)
    assert "branch R535, a long-term branch" in text
    assert 'where nvidia-smi prints a "CUDA Version", it is this one: not what is installed' in text
    assert "not Blackwell (sm_100 120): they need R570 or newer" in text
    assert "cu126 2.14.1 sm_50 60 70 75 80 86 90 3.10-3.14 3.14t" in lines
    assert 'a plain "pip install torch" gives torch' in text
    assert "which does not run" in text
    assert "and older ones (-v shows them)" in text
    assert "cu101 1.8.1" not in text and "cu101 1.8.1" in " ".join(lines_of(run, "--driver", "535.104", "-v"))


def test_what_a_gpu_is_told_of(run: Run) -> None:
    text = " ".join(lines_of(run, "--gpu", "GTX 1080 Ti", "--os", "linux"))
    assert "from branch R367 on at the earliest, to R580, the last that drives it" in text
    assert "only with the proprietary kernel modules" in text
    assert "CUDA 8.0 to 12.9: their nvcc compiles for sm_61" in text
    assert "1.7.0+cu110 (the oldest in the data), the newest 2.14.1+cu126" in text
    assert "cu132, cu130, cu129, cu128: it has no code for sm_61" in text
    windows = " ".join(lines_of(run, "--gpu", "RTX 5090", "--os", "windows"))
    assert "kernel modules" not in windows and "for the CPU alone on Windows, which uses no GPU" in windows


def test_what_a_torch_is_told_of(run: Run) -> None:
    lines = lines_of(run, "--torch", "2.6")
    assert "with torchvision 0.21.0, torchaudio 2.6.0, triton ==3.2.0" in lines
    assert "cu126 525.60.13+ sm_90 (a guess) 3.10-3.13 3.9?" in lines
    assert "cu118 452.39+ sm_37 50 60 61 70 75 80 86 90 + PTX 37 3.9-3.13" in lines
    text = " ".join(lines)
    assert 'a plain "pip install torch==2.6.0" gives the build for CUDA 12.4 (cu124) on Linux x86_64' in text
    announced = " ".join(lines_of(run, "--torch", "2.15.0"))
    assert "announced, but not seen on an index: cu130 on Linux x86_64, Linux aarch64 and Windows" in announced


def test_what_a_cuda_is_told_of(run: Run) -> None:
    lines = lines_of(run, "--cuda", "13.0")
    assert "13.0.0 2025-08-04 580.65.06 not listed" in lines
    assert "PTX made with 13.0 needs driver branch R580 or newer" in lines
    text = " ".join(lines)
    assert "takes GCC up to 15, clang up to 20, or Visual Studio 2019-2022, as host compiler" in text
    assert "no longer in it: Maxwell (sm_50 52 53), Pascal (sm_60 61 62), Volta (sm_70 72)" in text
    assert "cu130: torch 2.9.0 to 2.14.1 on Linux x86_64, Linux aarch64 and Windows" in text


def test_the_next_command_plans_for_that_machine(run: Run) -> None:
    out = run("matrix", "query", "--gpu", "RTX 4090", "--driver", "535.104", "--os", "linux", "--python", "3.12").out
    assert out.splitlines()[-1].split(None, 1) == [
        "more",
        'cudadoctor fix --print --gpu "RTX 4090" --driver 535.104 --os linux --python 3.12',
    ]


def test_sources_are_shown_where_they_are_asked_for(run: Run) -> None:
    plain = run("matrix", "query", "--cuda", "12.4").out
    told = run("matrix", "query", "--cuda", "12.4", "-v").out
    assert "release notes" not in plain and "NVIDIA CUDA Toolkit release notes" in " ".join(told.split())


def test_several_products_of_one_name_are_listed(run: Run) -> None:
    text = " ".join(lines_of(run, "--gpu", "A100", "--os", "linux"))
    assert "A100 PCIe 40 GB, A100 SXM4 40 GB, A100 SXM4 80 GB" in text
    assert "a MIG slice (1g.10gb) runs the code" in " ".join(lines_of(run, "--gpu", "A100-SXM4-80GB MIG 1g.10gb"))
    assert "a vGPU (10C) runs the code of its board" in " ".join(lines_of(run, "--gpu", "GRID A100D-10C"))


def test_the_document_of_a_query(run: Run) -> None:
    told = document(run, "query", "--gpu", "RTX 4090", "--driver", "535.104", "--os", "linux")
    assert told["command"] == "query"
    assert told["question"]["gpus"] == ["RTX 4090"] and told["question"]["platforms"] == ["linux-x86_64"]
    assert told["best"] == {"torch": "2.14.1", "variant": "cu126", "platform": "linux-x86_64"}
    assert told["driver"]["branch"] == "R535" and told["driver"]["cuda"] == "12.2"
    assert told["gpus"][0]["capability"] == "8.9" and told["gpus"][0]["drives"]["answer"] == "yes"
    best = next(entry for entry in told["builds"] if entry["variant"] == "cu126")
    assert best["gpus"][0]["via"] == "sm_86" and best["driver"]["answer"] == "yes"
    assert best["index_url"] == "https://download.pytorch.org/whl/cu126"
    assert {"cu130", "cu132"} <= {entry["variant"] for entry in told["refused"]}
    assert all(entry["source"] and entry["checked"] for entry in told["builds"])


def test_a_query_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    result = run("matrix", "query", "--gpu", "A100", "--format", "json", "-o", str(path))
    assert (result.exit, result.out) == (0, "")
    assert json.loads(path.read_text())["schema"] == "cudadoctor.matrix/1"


def test_colour_is_only_where_it_is_asked_for(run: Run) -> None:
    asked = ["matrix", "query", "--gpu", "A100", "--driver", "610.43.02", "--os", "linux"]
    assert "\x1b[" in run(*asked, "--color", "always").out
    assert "\x1b[" not in run(*asked).out


MISTAKES = [
    ([], "what is the question? Name a --gpu, a --driver, a --torch or a --cuda"),
    (["--python", "3.12"], "what is the question?"),
    (["--gpu", "RTX 5909"], "did you mean GeForce RTX 5090"),
    (["--gpu", "RTX 4000"], "can be GPUs of different compute capability: Quadro RTX 4000 (7.5)"),
    (["--gpu", "4.2"], "no GPU of compute capability 4.2 is known"),
    (["--gpu", "A100", "--driver", "newest"], "--driver takes a driver number such as 580.95.05, not 'newest'"),
    (["--driver", "12.2"], "is no driver number"),
    (["--driver", ""], "--driver takes a driver number"),
    (["--driver", "566.36"], "is a Windows number (R565), and the question is for Linux; add --os windows or --os wsl"),
    (["--torch", "latest"], "--torch takes a version such as 2.6, 2.6.0 or 2.6.0+cu124, not 'latest'"),
    (["--torch", "2.6; reboot"], "--torch takes a version"),
    (["--torch", "9.9"], "torch 9.9 is not known; the compatibility data has "),
    (["--cuda", "twelve"], "--cuda takes a version such as 12.4 or 12, not 'twelve'"),
    (["--cuda", "99"], "CUDA 99 is not known; the compatibility data has "),
    (["--torch", "2.6", "--python", "2.7"], "--python takes a version such as 3.12 or 3.13t, not '2.7'"),
    (["--gpu", "\x1b[2J"], "'\\x1b[2J'"),
    (["--os", "beos", "--gpu", "A100"], "'beos' is not one of"),
]


@pytest.mark.parametrize(("options", "says"), MISTAKES, ids=[" ".join(row[0]) or "nothing" for row in MISTAKES])
def test_mistakes_are_told_in_one_sentence(run: Run, options: list[str], says: str) -> None:
    result = run("matrix", "query", *(options if "--os" in options else ["--os", "linux", *options]))
    assert (result.exit, result.out) == (2, "")
    assert says in result.err and result.err.count("\n") == 1 and "\x1b" not in result.err


def test_a_number_of_another_system_is_told_what_fix_tells(run: Run) -> None:
    query = run("matrix", "query", "--driver", "566.36", "--os", "linux").err
    fix = run("fix", "--print", "--gpu", "4090", "--driver", "566.36", "--os", "linux").err
    assert query.replace("the question", "the plan") == fix


# -- show


def test_show(run: Run) -> None:
    matrix = load_matrix()
    result = run("matrix", "show")
    assert (result.exit, result.err) == (0, "")
    assert first_line(result.out).startswith(
        (f"OK compatibility data {matrix.revision}, as shipped, checked ", "warn ")
    )
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert f"newest torch {matrix.torch_versions()[0]} ({matrix.torch_releases()[0].date})" in lines
    oldest = matrix.torch_versions()[-1]
    assert any(
        line.startswith(f"{len(matrix.torch_versions())} ") and f"torch releases {oldest}" in line for line in lines
    )
    assert all(len(line) <= 80 for line in result.out.splitlines())
    assert result.out.splitlines()[-1].endswith("cudadoctor matrix update")


def test_show_as_a_document(run: Run) -> None:
    told = document(run, "show")
    assert told["data"]["origin"] == "shipped" and told["data"]["age_days"] >= 0
    counted = {table["section"]: table["rows"] for table in told["holdings"]["tables"]}
    assert counted["gpus"] == len(load_matrix().gpus())
    assert told["question"] is None and told["builds"] == []


def test_old_data_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(date):
        @classmethod
        def today(cls) -> date:
            return date(2099, 1, 1)

    monkeypatch.setattr("datetime.date", Later)
    result = run("matrix", "show")
    assert result.exit == 0
    assert first_line(result.out).startswith("warn compatibility data")
    assert first_line(result.out).endswith("days ago: the newest releases are likely to be missing")
    assert "days old, the newest" in " ".join(run("matrix", "query", "--cuda", "12.4").out.split())


DAY = Data("2026.11.0", "2026-11-30", 0, False, Origin("shipped"))


@pytest.mark.parametrize(
    ("data", "word", "says"),
    [
        (DAY, "OK", "compatibility data 2026.11.0, as shipped, checked today"),
        (DAY._replace(age_days=1), "OK", "checked yesterday"),
        (DAY._replace(age_days=40), "OK", "checked 40 days ago"),
        (DAY._replace(age_days=200, stale=True), "warn", "200 days ago: the newest releases are likely to be missing"),
        (DAY._replace(origin=Origin("updated", "2026-12-05T10:00:00Z", "~/d")), "OK", "with your update of 2026-12-05"),
        (
            DAY._replace(origin=Origin("shipped", None, "~/d", "CUDADOCTOR_DATA is ignored: it names no folder")),
            "warn",
            "compatibility data 2026.11.0, as shipped, checked today; CUDADOCTOR_DATA is ignored: it names no folder",
        ),
        (
            DAY._replace(origin=Origin("shipped", None, "~/d", "torch.json is damaged")),
            "warn",
            "an update lies beside it and is not used: torch.json is damaged",
        ),
    ],
)
def test_where_the_data_comes_from(data: Data, word: str, says: str) -> None:
    found, sentence = show_verdict(data)
    assert found == word and says in sentence


# -- verify


def test_the_installed_data_is_sound(run: Run) -> None:
    result = run("matrix", "verify")
    assert (result.exit, result.err) == (0, "")
    assert first_line(result.out).startswith("OK the compatibility data of this installation: ")
    assert document(run, "verify")["findings"] == []


def test_the_data_as_people_edit_it_is_sound(run: Run) -> None:
    result = run("matrix", "verify", COMPAT)
    assert first_line(result.out).startswith(f"OK the compatibility data in {COMPAT}: ".split("/")[0])
    assert result.exit == 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COMPAT, tmp_path / "compat"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


# The file, what becomes what, the file and the row that are named, and the fault.
FAULTS = [
    ("gpus.toml", "tdp_w = 450", 'tdp_w = "much"', "gpus.toml", "GeForce RTX", "tdp_w = 'much' is not watts"),
    (
        "driver_branches.toml",
        "linux = 580,",
        'linux = "580",',
        "driver_branches.toml",
        "branch R580",
        "linux = '580' is not",
    ),
    ("torch/2.6.toml", "glibc = {", "glibcs = {", "torch/2.6.toml", "release 2.6.0", "unknown column 'glibcs'"),
    ("cuda_toolkits.toml", 'linux = "525.60.13"', 'linux = "5x"', "cuda_toolkits.toml", "12", "'5x' is not"),
    ("meta.toml", 'checked = "2026', 'checked = "26', "meta.toml", "checked", "is not what it should be"),
]


@pytest.mark.parametrize(("file", "old", "new", "named", "row", "fault"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_fault_is_told_with_its_file_and_row(
    run: Run, copy: Path, file: str, old: str, new: str, named: str, row: str, fault: str
) -> None:
    edit(copy / file, old, new)
    result = run("matrix", "verify", str(copy))
    assert (result.exit, result.err) == (1, "")
    assert first_line(result.out).startswith("FAIL ")
    told = document(run, "verify", str(copy))
    found = next(entry for entry in told["findings"] if fault in entry["message"])
    assert found["file"] == named and row in found["message"]


# Every value is one that could be; together they cannot.
CLASHES = [
    ("cuda_toolkits.toml", 'linux = "525.60.13", linux_table', 'linux = "425.60.13", linux_table', "CUDA 12"),
    ("architectures.toml", 'max_driver = "R470"', 'max_driver = "R340"', "architecture Kepler"),
    ("torch/2.6.toml", 'linux-x86_64 = "cu124"', 'linux-x86_64 = "cu130"', "torch 2.6.0"),
    ("gpus.toml", 'architecture = "Kepler"', 'architecture = "Maxwell"', "Tesla K"),
]


@pytest.mark.parametrize(("file", "old", "new", "row"), CLASHES, ids=[row[0] for row in CLASHES])
def test_what_must_hold_between_rows_is_checked_too(
    run: Run, copy: Path, file: str, old: str, new: str, row: str
) -> None:
    edit(copy / file, old, new)
    told = document(run, "verify", str(copy))
    assert told["exit"] == 1
    assert any(entry["file"] == file and row in entry["message"] for entry in told["findings"]), told["findings"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "gpus.toml").write_text("[[group]\n"), "gpus.toml' is not TOML: "),
        (lambda folder: (folder / "gpus.toml").write_bytes(b"\xff\xfe"), "gpus.toml' is not TOML: "),
        (lambda folder: (folder / "meta.toml").unlink(), "it has no meta.toml"),
        (lambda folder: shutil.rmtree(folder / "torch"), "cannot read '"),
        (lambda folder: shutil.rmtree(folder), "is no folder of compatibility data"),
    ],
    ids=["syntax", "encoding", "no meta", "no torch", "nothing"],
)
def test_what_cannot_be_read_is_unusable(run: Run, copy: Path, damage: Any, says: str) -> None:
    damage(copy)
    result = run("matrix", "verify", str(copy))
    assert (result.exit, result.out) == (2, "")
    assert says in result.err and result.err.count("\n") == 1


def test_a_missing_file_is_a_fault(run: Run, copy: Path) -> None:
    (copy / "libraries.toml").unlink()
    assert {"file": "libraries.toml", "message": "is missing"} in document(run, "verify", str(copy))["findings"]


# -- the group


def test_the_group_lists_its_commands(run: Run) -> None:
    result = run("matrix", "--help")
    assert result.exit == 0
    for name in ("query", "show", "update", "verify"):
        assert f"\n  {name} " in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())
    assert "matrix_" not in run("--help").out


def test_without_a_command_its_help_is_shown_as_an_error(run: Run) -> None:
    result = run("matrix")
    assert result.exit == 2 and result.out == "" and "Usage: cudadoctor matrix" in result.err


def test_an_unknown_command_gets_the_nearest(run: Run) -> None:
    result = run("matrix", "qery")
    assert result.exit == 2 and "did you mean query" in result.err


@pytest.mark.parametrize("name", ["query", "show", "verify"])
def test_every_part_has_help_in_80_columns(run: Run, name: str) -> None:
    result = run("matrix", name, "-h")
    assert result.exit == 0 and result.out.startswith(f"Usage: cudadoctor matrix {name} ")
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_each_part_is_imported_only_when_it_runs() -> None:
    script = """
import sys
from cudadoctor.cli import main
sys.argv[1:] = ["matrix", "show", "-o", sys.argv[1]]
try:
    main()
finally:
    print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "/dev/null" if sys.platform != "win32" else "nul"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "cudadoctor.cli.matrix_show" in loaded
    assert (
        not {"cudadoctor.cli.matrix_update", "cudadoctor.cli.matrix_query", "cudadoctor.cli.fix", "requests"} & loaded
    )
