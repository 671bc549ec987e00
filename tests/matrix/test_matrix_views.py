"""The tables both ways: what a driver serves, which builds have code for a GPU, what a torch and a CUDA need."""

from __future__ import annotations

from typing import Optional

import pytest

from cudadoctor.matrix import Branch, Matrix, numbers
from cudadoctor.matrix.compile import SECTIONS
from cudadoctor.matrix.holdings import data_of, holdings
from cudadoctor.matrix.look_up import covers, is_over, look_up, platforms_of
from cudadoctor.matrix.views import Answer, Line, Question, UnknownVersion
from cudadoctor.resolve import Gpu, Need, resolve

LINUX = ("linux-x86_64",)
ARM = ("linux-aarch64",)
WINDOWS = ("windows-x86_64",)
PLATFORMS = {"linux": LINUX, "windows": WINDOWS, "wsl": LINUX, "arm": ARM}


def ask(
    matrix: Matrix,
    *gpus: str,
    driver: Optional[str] = None,
    on: str = "linux",
    torch: Optional[str] = None,
    cuda: Optional[str] = None,
    python: Optional[str] = None,
) -> Answer:
    system = "linux" if on == "arm" else on
    found = tuple(matrix.gpu(name) for name in gpus)
    return look_up(Question(found, driver, torch, cuda, python, system, PLATFORMS[on]), matrix)


def names(lines: tuple[Line, ...]) -> dict[str, str]:
    """Variant -> torch."""
    return {line.build.variant: line.build.torch for line in lines}


# -- a driver

# The driver and its system, its branch, what it runs, what it does not and the driver that would.
DRIVERS = [
    ("535.104", "linux", "R535", ["12.x", "11.x", "10.x", "9.x", "8.x"], {"13.x": "580.65.06"}),
    ("525", "linux", "R525", ["12.x", "11.x", "10.x", "9.x", "8.x"], {"13.x": "580.65.06"}),
    ("470.256.02", "linux", "R470", ["11.x", "10.x", "9.x", "8.x"], {"13.x": "580.65.06", "12.x": "525.60.13"}),
    ("580.95.05", "linux", "R580", ["13.x", "12.x", "11.x", "10.x", "9.x", "8.x"], {}),
    ("566.36", "windows", "R565", ["12.x", "11.x", "10.x", "9.x", "8.x"], {"13.x": "580"}),
    ("581.57", "wsl", "R580", ["13.x", "12.x", "11.x", "10.x", "9.x", "8.x"], {}),
    # Before CUDA 11 each minor has its own driver: the newest that it runs.
    ("418.87.00", "linux", "R418", ["10.1", "9.x", "8.x"], {"11.x": "450.80.02"}),
    ("390.46", "linux", "R390", ["9.1", "8.x"], {"11.x": "450.80.02", "10.x": "410.48"}),
    # A branch that nobody knows yet: by the floors it runs everything that is known.
    ("700.1", "linux", None, ["13.x", "12.x", "11.x", "10.x", "9.x", "8.x"], {}),
]


@pytest.mark.parametrize(("driver", "system", "branch", "runs", "needs"), DRIVERS, ids=[row[0] for row in DRIVERS])
def test_what_a_driver_serves(
    matrix: Matrix, driver: str, system: str, branch: Optional[str], runs: list[str], needs: dict[str, str]
) -> None:
    view = ask(matrix, driver=driver, on=system).driver
    assert view is not None
    assert (view.branch.name if view.branch else None) == branch
    assert [item.cuda for item in view.serves if item.verdict.answer == "yes"] == runs
    refused = {item.cuda: item.verdict.needed for item in view.serves if item.verdict.answer == "no"}
    assert needs.items() <= refused.items()
    assert all(item.verdict.source for item in view.serves if item.verdict.answer != "unknown")


def test_too_short_a_number_decides_nothing(matrix: Matrix) -> None:
    view = ask(matrix, driver="528", on="windows").driver
    assert view is not None
    assert {item.cuda: item.verdict.answer for item in view.serves}["12.x"] == "unknown"


@pytest.mark.parametrize(
    ("driver", "drives", "not_any_more", "not_yet"),
    [
        ("535.104", ["5.0", "7.0", "8.9", "9.0"], ["1.0", "2.0", "3.7"], ["10.0", "12.0", "10.7"]),
        ("580.95.05", ["5.0", "7.0", "12.0"], ["3.7"], ["10.7"]),
        ("610.43.02", ["7.5", "12.0"], ["5.0", "6.1", "7.0"], ["10.7"]),
        ("615.71.09", ["7.5", "10.7"], ["7.0"], []),
        ("450.80.02", ["3.7", "8.0"], ["2.0"], ["8.6"]),
    ],
)
def test_which_gpus_a_driver_drives(
    matrix: Matrix, driver: str, drives: list[str], not_any_more: list[str], not_yet: list[str]
) -> None:
    view = ask(matrix, driver=driver).driver
    assert view is not None
    found = {capability: item.verdict for item in view.drives for capability in item.architecture.capability}
    assert {found[item].answer for item in drives} == {"yes"}
    assert all("is the last branch" in found[item].reason for item in not_any_more)
    assert all("it needs R" in found[item].reason for item in not_yet)
    assert not any(item.architecture.tegra for item in view.drives), "Jetson's driver comes with JetPack"


def test_an_unknown_branch_drives_nothing_for_sure(matrix: Matrix) -> None:
    view = ask(matrix, driver="700.1").driver
    assert view is not None and view.is_newer
    assert {item.verdict.answer for item in view.drives} == {"unknown"}
    between = ask(matrix, driver="527.1").driver
    assert between is not None and between.branch is None and not between.is_newer


@pytest.mark.parametrize(
    ("ends", "day", "over"),
    [
        ((None, None), "2026-11-30", None),
        (("2026-06", None), "2026-06-30", False),
        (("2026-06", None), "2026-07-01", True),
        (("2026-08", "2027-08-03"), "2026-11-30", False),  # where sources differ, the later one counts
        (("2026-12-22", None), "2026-12-22", False),
        (("2026-12-22", None), "2026-12-23", True),
    ],
)
def test_when_support_is_over(
    matrix: Matrix, ends: tuple[Optional[str], Optional[str]], day: str, over: Optional[bool]
) -> None:
    branch: Branch = matrix.branches()[0]._replace(end_of_life=ends[0], end_of_life_other=ends[1])
    assert is_over(branch, day) is over


def test_the_newest_build_of_each_cuda_that_a_driver_runs(matrix: Matrix) -> None:
    answer = ask(matrix, driver="535.104")
    found = names(answer.lines)
    assert {"cu129": "2.13.0", "cu128": "2.11.0", "cu124": "2.6.0", "cu118": "2.7.1"}.items() <= found.items()
    cudas = [numbers(line.build.cuda or "") or () for line in answer.lines]
    assert cudas == sorted(cudas, reverse=True)
    assert {"cu130", "cu132"} <= {item.variant for item in answer.refused}
    assert all("needs driver 580.65.06" in item.line.reason for item in answer.refused)
    # What a plain pip install gives is shown with what becomes of it here.
    assert [line.build.default_index for line in answer.default] == [True]
    assert answer.default[0].answer == "no"


# -- a GPU

# The GPU and where, the first and the last build with code for it.
GPUS = [
    ("GTX 1080 Ti", "linux", "1.7.0", "2.14.1 cu126"),
    ("V100", "linux", "1.7.0", "2.14.1 cu126"),
    ("K80", "linux", "1.7.0", "2.7.1 cu118"),
    ("H100", "linux", None, None),
    ("RTX 5090", "linux", "2.7.0", None),
    ("RTX 5090", "windows", "2.7.0", None),
    ("GB10", "arm", "2.9.0", None),
    ("T5000", "arm", "2.11.0", None),
]


@pytest.mark.parametrize(("gpu", "on", "first", "last"), GPUS, ids=[" ".join(row[:2]) for row in GPUS])
def test_first_and_last_build_with_code_for_a_gpu(
    matrix: Matrix, gpu: str, on: str, first: Optional[str], last: Optional[str]
) -> None:
    view = ask(matrix, gpu, on=on).gpus[0]
    assert view.first is not None and view.last is not None
    assert first is None or view.first.build.torch == first
    if last is None:  # code for it is in the newest release that was seen there
        seen = [r for r in matrix.torch_releases() if any(b.seen and b.cuda for b in r.builds(PLATFORMS[on][0]))]
        assert view.last.build.torch == seen[0].version
    else:
        assert f"{view.last.build.torch} {view.last.build.variant}" == last


def test_variants_without_code_for_a_gpu_are_refused_with_the_reason(matrix: Matrix) -> None:
    answer = ask(matrix, "GTX 1080 Ti")
    assert {"cu126": "2.14.1", "cu118": "2.7.1", "cu121": "2.5.1"}.items() <= names(answer.lines).items()
    assert {"cu128", "cu129", "cu130", "cu132"} <= {item.variant for item in answer.refused}
    assert all("it has no code for sm_61" in item.line.reason for item in answer.refused)
    assert [verdict.via for verdict in answer.lines[0].gpus] == ["sm_60"]
    assert "cu126" not in names(ask(matrix, "RTX 5090").lines)


def test_ptx_is_only_likely_and_comes_after_machine_code(matrix: Matrix) -> None:
    answer = ask(matrix, "RTX 5090", driver="572.60", on="windows")
    likely = {line.build.variant for line in answer.lines if line.answer == "likely"}
    assert "cu118" in likely
    assert answer.best is not None and answer.best.answer == "yes" and answer.best.build.variant == "cu128"


def test_a_driver_branch_later_than_cudas_floor(matrix: Matrix) -> None:
    """A cu128 build runs on any 525; its GPU does not."""
    lines = {line.build.variant: line for line in ask(matrix, "RTX 5090").lines}
    assert (lines["cu128"].floor, lines["cu128"].branch) == ("525.60.13", "R570")
    assert lines["cu130"].branch is None


def test_guessed_gpu_lists_decide_nothing(matrix: Matrix) -> None:
    for on in ("linux", "arm", "windows"):
        for gpu in ("T4", "A100", "H100", "RTX 4090", "GB10"):
            answer = ask(matrix, gpu, on=on)
            assert not [line for line in answer.lines if line.build.archs_guessed or line.build.guessed]
            assert not [line for line in answer.lines if not line.build.seen]


def test_a_jetson_is_not_promised_anything(matrix: Matrix) -> None:
    answer = ask(matrix, "AGX Orin", on="arm")
    assert answer.lines == () and answer.best is None
    assert {line.answer for line in answer.unsure} == {"unknown"}


@pytest.mark.parametrize(
    ("gpu", "first", "bound", "seen", "last"),
    [
        ("RTX 5090", "R570", "exact", None, None),
        ("GTX 1080 Ti", "R367", "at-least", None, "R580"),
        ("RTX 4070 SUPER", "R520", "at-least", "R550", None),
        ("K80", "R340", "guessed", None, "R470"),
    ],
)
def test_first_and_last_driver_branch(
    matrix: Matrix, gpu: str, first: str, bound: str, seen: Optional[str], last: Optional[str]
) -> None:
    view = ask(matrix, gpu).gpus[0]
    assert view.first_branch is not None
    assert (view.first_branch.branch, view.first_branch.bound) == (first, bound)
    assert (view.seen_branch.branch if view.seen_branch else None) == seen
    assert (view.last_branch.branch if view.last_branch else None) == last


@pytest.mark.parametrize(
    ("gpu", "driver", "answer"),
    [
        ("GTX 1080", "610.43.02", "no"),
        ("GTX 1080", "580.95.05", "yes"),
        ("RTX 5090", "565.57.01", "no"),
        ("RTX 4070 SUPER", "545.23.06", "unknown"),  # its chips were known, the product was not
        ("RTX 4070 SUPER", "550.54.14", "yes"),
        ("RTX 4090", "700.1", "unknown"),
    ],
)
def test_whether_a_driver_drives_a_gpu(matrix: Matrix, gpu: str, driver: str, answer: str) -> None:
    found = ask(matrix, gpu, driver=driver)
    drives = found.gpus[0].drives
    assert drives is not None and drives.answer == answer
    if answer == "no":  # then no build helps, and none is shown as if it did
        assert found.misfits == found.gpus and found.lines == () and found.best is None


def test_unlike_gpus_have_a_best_build_each(matrix: Matrix) -> None:
    answer = ask(matrix, "RTX 5090", "GTX 1080 Ti", driver="570.86.15")
    assert answer.best is None and answer.lines == ()
    each = [f"{gpu.best.build.torch} {gpu.best.build.variant}" for gpu in answer.gpus if gpu.best]
    assert each == ["2.13.0 cu129", "2.14.1 cu126"]
    alike = ask(matrix, "RTX 3090", "RTX 4090", driver="570.86.15")
    assert alike.best is not None and all(len(line.gpus) == 2 for line in alike.lines)


# -- a torch


@pytest.mark.parametrize(
    ("asked", "version", "others"),
    [
        ("2.6", "2.6.0", ()),
        ("2.14", "2.14.1", ("2.14.0",)),
        ("2.14.0", "2.14.0", ()),
        ("2.6.0+cu124", "2.6.0", ()),
        ("1", "1.13.1", None),
    ],
)
def test_a_torch_by_its_name(matrix: Matrix, asked: str, version: str, others: Optional[tuple[str, ...]]) -> None:
    view = ask(matrix, torch=asked).torch
    assert view is not None and view.release.version == version
    assert others is None or view.others == others


def test_all_builds_of_a_release(matrix: Matrix) -> None:
    platforms = platforms_of(None, None, matrix)
    answer = look_up(Question(torch="2.6", platforms=platforms), matrix)
    release = matrix.torch_release("2.6.0")
    assert release is not None
    assert len(answer.lines) == sum(len(release.builds(platform)) for platform in platforms)
    floors = {(line.build.variant, line.build.platform): line.floor for line in answer.lines}
    assert floors["cu124", "linux-x86_64"] == "525.60.13"
    assert floors["cu124", "windows-x86_64"] == "528.33"
    assert floors["cu118", "linux-x86_64"] == "450.80.02"
    assert floors["cpu", "linux-x86_64"] is None
    given = {line.build.platform: line.build.variant for line in answer.default}
    assert given == dict(release.default)


def test_one_build_of_a_release(matrix: Matrix) -> None:
    assert names(ask(matrix, torch="2.6.0+cu124").lines) == {"cu124": "2.6.0"}
    assert names(ask(matrix, torch="2.6.0+cpu").lines) == {"cpu": "2.6.0"}
    assert names(ask(matrix, torch="2.6", cuda="12.4").lines) == {"cu124": "2.6.0"}
    assert names(ask(matrix, torch="2.6", cuda="12").lines) == {"cu124": "2.6.0", "cu126": "2.6.0"}
    assert ask(matrix, torch="2.15.0+cu126").lines == ()


def test_a_release_judged_by_gpu_driver_and_python(matrix: Matrix) -> None:
    answer = ask(matrix, "RTX 4090", driver="535.183.01", torch="2.14", python="3.12")
    assert {line.build.variant: line.answer for line in answer.lines if line.build.seen} == {
        "cu126": "yes",
        "cu130": "no",
        "cu132": "no",
    }
    assert {line.answer for line in ask(matrix, torch="2.6", python="3.14").lines} == {"no"}
    free_threaded = ask(matrix, "RTX 4090", driver="580.95.05", python="3.13t")
    assert free_threaded.best is not None and free_threaded.best.build.torch == "2.12.0"


# -- a CUDA


def test_what_a_cuda_needs(matrix: Matrix) -> None:
    view = ask(matrix, cuda="12.4").cuda
    assert view is not None and view.floor is not None and view.ptx_branch is not None
    assert [row.release for row in view.toolkits] == ["12.4.1", "12.4.0"]
    assert (view.toolkits[1].linux, view.toolkits[1].windows) == ("550.54.14", "551.61")
    assert (view.floor.linux, view.floor.windows) == ("525.60.13", "528.33")
    assert view.ptx_branch.name == "R550"
    assert [(row.cuda, row.gcc_max) for row in view.compilers] == [("12.4", 13)]
    assert {"5.0", "8.9", "9.0"} <= set(covers(view.compiles_for))
    assert not {"3.7", "12.0"} & set(covers(view.compiles_for))
    assert (view.adds, view.drops) == ((), ())
    assert {line.build.variant for line in view.builds} == {"cu124"}


@pytest.mark.parametrize(
    ("cuda", "adds", "drops"),
    [
        ("13.0", {"11.0"}, {"5.0", "5.2", "6.0", "6.1", "7.0"}),
        ("12.0", set(), {"3.5", "3.7"}),
        ("12.8", {"10.0", "12.0"}, set()),
        ("11.8", {"8.9", "9.0"}, set()),
        ("13", {"11.0", "10.7"}, {"5.0", "6.1", "7.0"}),
        ("12", {"10.0", "12.0", "12.1"}, {"3.5", "3.7"}),
    ],
)
def test_what_a_cuda_adds_and_drops(matrix: Matrix, cuda: str, adds: set[str], drops: set[str]) -> None:
    view = ask(matrix, cuda=cuda).cuda
    assert view is not None
    assert adds <= set(covers(view.adds)) and drops <= set(covers(view.drops))
    assert bool(adds) == bool(view.adds) and bool(drops) == bool(view.drops)


def test_a_number_that_drivers_show_without_a_toolkit(matrix: Matrix) -> None:
    view = ask(matrix, cuda="12.7").cuda
    assert view is not None and view.toolkits == () and [row.name for row in view.shown_by] == ["R565"]


def test_a_cuda_and_a_driver_or_a_gpu(matrix: Matrix) -> None:
    view = ask(matrix, cuda="12.8", driver="535.104").cuda
    assert view is not None and view.served is not None and view.ptx is not None
    assert (view.served.answer, view.ptx.answer) == ("yes", "no")
    for cuda, gpu, answer in (("12.4", "RTX 5090", "no"), ("12.8", "RTX 5090", "yes"), ("13.0", "V100", "no")):
        compiles = ask(matrix, gpu, cuda=cuda).gpus[0].compiles
        assert compiles is not None and compiles.answer == answer, (cuda, gpu)


@pytest.mark.parametrize("asked", [{"torch": "9.9"}, {"torch": "2.6.7"}, {"cuda": "14.0"}, {"cuda": "12.10"}])
def test_versions_that_the_data_has_not(matrix: Matrix, asked: dict[str, str]) -> None:
    with pytest.raises(UnknownVersion, match="is not known"):
        ask(matrix, **asked)


# -- the answer as a whole


@pytest.mark.parametrize("on", ["linux", "windows", "arm"])
@pytest.mark.parametrize("gpu", ["GTX 1080", "V100", "T4", "A100", "RTX 4090", "H100", "RTX 5090"])
def test_what_is_shown_is_the_newest_of_its_variant(matrix: Matrix, gpu: str, on: str) -> None:
    """Against the matrix's own questions, build by build: nothing newer of a variant that is shown runs."""
    system = "windows" if on == "windows" else "linux"
    driver = {"windows": "582.78", "linux": "580.95.05"}[system]
    answer = ask(matrix, gpu, driver=driver, on=on)
    match = matrix.gpu(gpu)
    runs: dict[str, str] = {}
    for release in matrix.torch_releases():
        for build in release.builds(PLATFORMS[on][0]):
            if build.cuda is None or not build.seen or build.variant in runs:
                continue
            served = matrix.driver_serves(driver, system, build.cuda).answer
            code = matrix.build_runs_on(build, match.capability or "", driver, system).answer
            if served == "yes" and code in ("yes", "likely"):
                runs[build.variant] = release.version
    assert names(answer.lines) == runs


@pytest.mark.parametrize(
    ("gpu", "driver", "on", "python"),
    [
        ("GTX 1080", "580.95.05", "linux", None),
        ("RTX 4090", "535.183.01", "linux", "3.12"),
        ("RTX 4090", "550.54.14", "linux", "3.9"),
        ("RTX 5090", "570.124.06", "linux", None),
        ("RTX 5090", "572.60", "windows", None),
        ("RTX 5090", "620.70.06", "linux", "3.13"),
        ("A100", "470.223.02", "linux", "3.10"),
        ("K80", "470.223.02", "linux", "3.9"),
        ("T4", "581.57", "wsl", "3.13t"),
        ("GH200", "580.95.05", "arm", None),
    ],
)
def test_the_best_build_is_the_one_that_fix_would_choose(
    matrix: Matrix, gpu: str, driver: str, on: str, python: Optional[str]
) -> None:
    answer = ask(matrix, gpu, driver=driver, on=on, python=python)
    plain, free_threaded = (python or "").rstrip("t") or None, bool(python and python.endswith("t"))
    need = Need(
        gpus=(Gpu(gpu, answer.gpus[0].capability),),
        gpu_state="present",
        driver=driver,
        numbering="windows" if on in ("windows", "wsl") else "linux",
        platform=PLATFORMS[on][0],
        python=plain,
        free_threaded=free_threaded,
        wsl=on == "wsl",
    )
    choice = resolve(need, matrix).choice
    assert choice is not None and answer.best is not None
    assert (answer.best.build.torch, answer.best.build.variant) == (choice.torch, choice.variant)


@pytest.mark.parametrize(
    ("system", "arch", "platforms"),
    [
        (None, None, {"linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64", "macos-x86_64"}),
        ("linux", None, {"linux-x86_64", "linux-aarch64"}),
        ("wsl", "x86_64", {"linux-x86_64"}),
        ("windows", None, {"windows-x86_64"}),
        (None, "aarch64", {"linux-aarch64"}),
    ],
)
def test_platforms(matrix: Matrix, system: Optional[str], arch: Optional[str], platforms: set[str]) -> None:
    assert set(platforms_of(system, arch, matrix)) == platforms


# -- what the data holds


def test_holdings_count_every_section(matrix: Matrix) -> None:
    held = holdings(matrix)
    assert {table.section for table in held.tables} == set(SECTIONS) - {"meta"}
    rows = {table.section: table.rows for table in held.tables}
    assert rows["gpus"] == len(matrix.gpus()) and rows["torch"] == len(matrix.torch_versions())
    assert rows["cuda_toolkits"] == len(matrix.toolkits()) and rows["driver_branches"] == len(matrix.branches())
    assert all(table.rows > 0 and table.guessed <= held.builds for table in held.tables)
    assert held.verified < held.seen < held.builds
    assert held.torch.version == matrix.torch_versions()[0] and held.branch == matrix.branches()[0]


def test_the_age_of_the_data(matrix: Matrix) -> None:
    assert data_of(matrix, matrix.checked).age_days == 0
    assert not data_of(matrix, matrix.checked).stale
    assert data_of(matrix, "2099-01-01").stale
    with pytest.raises(ValueError, match="day"):
        data_of(matrix, "day before yesterday")
