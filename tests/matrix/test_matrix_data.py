"""What must hold of the data, whatever it says: no number of it is repeated here."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.matrix import Matrix, capability, cuda_of_variant, numbers, torch_key
from cudadoctor.matrix.compile import FOLDERS, SECTIONS, check, load_toml, toml_files
from cudadoctor.matrix.schema import TABLES, check_file
from cudadoctor.matrix.versions import target


def test_every_file_keeps_to_its_columns_and_names_its_sources(compat: str) -> None:
    assert check(compat) == []


def test_every_section_has_a_schema() -> None:
    assert set(TABLES) | {"meta"} == set(SECTIONS)
    assert set(FOLDERS) < set(SECTIONS)


def test_every_answer_carries_a_source_and_a_day(matrix: Matrix) -> None:
    rows: list[Any] = [
        *matrix.floors(),
        *matrix.toolkits(),
        *matrix.branches(),
        *matrix.architectures(),
        *matrix.gpus(),
        *matrix.torch_releases(),
        *(build for release in matrix.torch_releases() for variant in release.variants for build in variant.builds),
        *matrix.power_plans(),
        *matrix.pins("vllm"),
    ]
    assert len(rows) > 800
    for row in rows:
        assert row.source.strip(), row
        assert numbers(row.checked.replace("-", ".")), row
        assert "2020" <= row.checked <= matrix.checked, row


# -- drivers and toolkits


@pytest.mark.parametrize("system", ["linux", "windows"])
def test_a_newer_cuda_major_never_needs_an_older_driver(matrix: Matrix, system: str) -> None:
    floors = [numbers(matrix.floor(row.cuda, system) or "") or () for row in matrix.floors()]
    assert floors == sorted(floors, reverse=True)
    assert () not in floors


@pytest.mark.parametrize("column", ["linux", "windows"])
def test_driver_numbers_of_toolkits_never_fall(matrix: Matrix, column: str) -> None:
    listed = [numbers(getattr(row, column)) or () for row in matrix.toolkits() if getattr(row, column)]
    assert listed == sorted(listed, reverse=True)


@pytest.mark.parametrize("system", ["linux", "windows"])
def test_the_floor_is_at_most_what_later_toolkits_of_its_major_came_with(matrix: Matrix, system: str) -> None:
    for row in matrix.toolkits():
        major, minor = row.cuda.split(".")
        floor, own = matrix.floor(int(major), system), getattr(row, system)
        if floor and own and minor != "0":  # the very first toolkit of a major may have come with less
            assert (numbers(own) or ()) >= (numbers(floor) or ()), row.release


def test_the_table_number_of_a_floor_is_its_branch(matrix: Matrix) -> None:
    for row in matrix.floors():
        assert (numbers(row.linux) or ())[:1] == numbers(row.linux_table)


def test_a_newer_branch_never_shows_an_older_cuda(matrix: Matrix) -> None:
    shown = [numbers(row.cuda) for row in matrix.branches()]
    assert shown == sorted(shown, key=lambda item: item or (), reverse=True)


def test_a_branch_shows_at_least_the_toolkit_that_was_released_with_it(matrix: Matrix) -> None:
    for row in matrix.toolkits():
        if row.linux and matrix.branch_of(row.linux, "linux"):
            branch = matrix.branch_of(row.linux, "linux")
            assert branch is not None
            assert (numbers(branch.cuda) or ()) >= (numbers(row.cuda) or ()), row.release


def test_branch_names_and_numbers_agree_and_no_windows_number_has_two_branches(matrix: Matrix) -> None:
    taken: dict[int, str] = {}
    for row in matrix.branches():
        assert row.name == f"R{row.linux}"
        for number in (*row.windows, *row.windows_guessed):
            assert number not in taken, (number, row.name, taken.get(number))
            taken[number] = row.name
            assert number >= row.linux or row.guessed, "a Windows number never lies below its branch"


def test_releases_of_a_branch_belong_to_it(matrix: Matrix) -> None:
    for row in matrix.branches():
        for driver in (row.first_linux, row.latest_linux):
            found = matrix.branch_of(driver, "linux") if driver else row
            assert found is not None and found.name == row.name
        if row.latest_windows:
            found = matrix.branch_of(row.latest_windows, "windows")
            assert found is not None and found.name == row.name


def test_open_modules_once_alone_stay_alone(matrix: Matrix) -> None:
    seen_alone = False
    for row in reversed(matrix.branches()):
        seen_alone = seen_alone or row.open_modules_only
        assert row.open_modules_only == seen_alone, row.name


def test_an_architecture_is_last_served_by_the_branch_that_says_so(matrix: Matrix) -> None:
    ended = {(row.name, row.max_driver) for row in matrix.architectures() if row.max_driver}
    for name, branch_name in ended:
        branch = matrix.branch(branch_name or "")
        assert branch is not None, branch_name
        assert name in branch.last_for
    for branch in matrix.branches():
        for name in branch.last_for:
            assert (name, branch.name) in ended


def test_what_an_ended_architecture_lost_its_driver_lost_its_toolkit(matrix: Matrix) -> None:
    for row in matrix.architectures():
        if row.max_driver and row.last_cuda:
            branch = matrix.branch(row.max_driver)
            assert branch is not None
            assert (numbers(row.last_cuda) or ())[0] <= (numbers(branch.cuda) or ())[0], row.name
            assert row.first_cuda is None or (numbers(row.first_cuda) or ()) < (numbers(row.last_cuda) or ())


# -- torch


def test_releases_come_in_the_order_of_versions_once_each(matrix: Matrix) -> None:
    versions = [torch_key(row.version) for row in matrix.torch_releases()]
    assert versions == sorted(set(versions), key=lambda item: item or (), reverse=True)
    assert [row.version for row in matrix.torch_releases()] == list(matrix.torch_versions())


def test_a_file_holds_one_minor(compat: str) -> None:
    for name in toml_files(compat):
        if name.startswith("torch/"):
            for row in load_toml(f"{compat}/{name}.toml")["release"]:
                assert row["version"].rsplit(".", 1)[0] == name[len("torch/") :]


def test_every_variant_has_a_toolkit_and_code_for_known_gpus(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        for variant in release.variants:
            if variant.name == "cpu":
                assert all(not build.sass and not build.ptx for build in variant.builds)
                continue
            assert matrix.toolkit(variant.cuda or "") is not None, variant.name
            for build in variant.builds:
                assert build.sass, (release.version, variant.name, build.platform)
                for text in (*build.sass, *build.ptx, *build.disputed):
                    found = target(text)
                    assert found is not None
                    row = matrix.architecture(f"{found.major}.{found.minor}")
                    assert row is not None, (release.version, variant.name, text)
                    first, last = numbers(row.first_cuda or "0"), numbers(row.last_cuda or "999")
                    cuda = numbers(variant.cuda or "")
                    assert first is not None and last is not None and cuda is not None
                    assert first <= cuda <= last, (release.version, variant.name, text)


def test_a_build_stands_once_and_a_release_has_its_default(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        keys = [(build.variant, build.platform) for variant in release.variants for build in variant.builds]
        assert len(keys) == len(set(keys)), release.version
        for platform, name in release.default.items():
            build = release.build(name, platform)
            assert build is not None and build.seen and build.default_index, (release.version, platform)
        assert release.variant("cpu") is not None
        names = [variant.name for variant in release.variants]
        assert names == sorted(names, key=lambda name: numbers(cuda_of_variant(name) or "0") or ())


def test_builds_that_nobody_has_seen_are_never_the_default_and_guesses_are_never_called_read(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        for variant in release.variants:
            for build in variant.builds:
                assert not (build.default_index and not build.seen)
                assert not (build.verified and (build.archs_guessed or build.guessed or not build.seen))
                assert not (build.guessed and build.seen)
                assert set(build.pythons_inferred) <= set(build.pythons)
                assert (build.glibc is not None) == build.platform.startswith("linux")


def test_windows_and_macos_get_the_cpu_build_by_default(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        for platform, name in release.default.items():
            if platform.startswith(("windows", "macos")):
                assert name == "cpu", (release.version, platform)
            assert not platform.startswith("macos") or release.builds(platform) == release.builds(platform)[:1]


def test_each_release_has_its_companions(matrix: Matrix) -> None:
    for release in matrix.torch_releases():
        assert set(release.companions) == {"torchvision", "torchaudio", "triton"}, release.version
        for package in ("torchvision", "torchaudio"):
            version = release.companions[package]
            assert matrix.companion_ok(package, version, release.version).answer == "yes"


# -- GPUs


def test_gpus_belong_to_their_architecture(matrix: Matrix) -> None:
    for gpu in matrix.gpus():
        row = matrix.architecture(gpu.capability)
        assert row is not None, gpu.name
        assert row.name == gpu.architecture, gpu.name
        if not row.tegra:
            assert gpu.modules is not None, gpu.name
            if row.modules == "proprietary":
                assert gpu.modules == "proprietary", gpu.name
            if row.modules == "open":
                assert gpu.modules == "open", gpu.name


def test_no_gpu_is_said_to_need_a_driver_older_than_its_architecture_can(matrix: Matrix) -> None:
    for gpu in matrix.gpus():
        family = matrix.first_branch_for(gpu.capability)
        if family and gpu.min_driver and gpu.min_driver_bound == "exact" and "min_driver" not in gpu.guessed:
            assert int(gpu.min_driver[1:]) >= family.number, gpu.name


def test_guessed_columns_are_columns(matrix: Matrix) -> None:
    names = set(TABLES["gpus"]["group"]) | {"memory_gib", "bandwidth_gbs", "tdp_w", "smi"}
    for gpu in matrix.gpus():
        assert set(gpu.guessed) <= names, gpu.name


def test_pci_ids_are_of_the_chip_in_whose_range_they_lie(matrix: Matrix) -> None:
    ranges = matrix.raw("pci_chips")["chip"]
    for before, after in zip(ranges, ranges[1:]):
        assert before["first"] <= before["last"] < after["first"]
    listed = 0
    for gpu in matrix.gpus():
        for pci in gpu.pci:
            for row in ranges:
                if row["first"] <= pci <= row["last"]:
                    assert row["capability"] == gpu.capability, (gpu.name, pci)
                    listed += 1
    assert listed > 300
    for row in ranges:
        assert matrix.architecture(row["capability"]) is not None, row["chip"]
        assert capability(row["capability"]) is not None


# -- the schema itself refuses what would otherwise be lost without a word


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"checked": "yesterday"}, "is not a date"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"plan": []}, "plan has no rows"),
        ({"sources": {"microsoft": "x", "unused": "y"}}, "used by no row"),
        ({"sources": {}}, "is not in [sources]"),
        ({"source": None}, "has no source"),
        ({"plan": [{"guid": "not-a-guid", "name": "Balanced", "kind": "balanced"}]}, "is not a GUID"),
        ({"plan": [{"name": "Balanced", "kind": "balanced"}]}, "guid is missing"),
        (
            {"plan": [{"guid": "381b4222-f694-41f0-9685-ff5bb260df2e", "name": "x", "kind": "fast"}]},
            "is not performance",
        ),
        ({"plan": [{"guid": "381b4222-f694-41f0-9685-ff5bb260df2e", "name": "x", "knd": "x"}]}, "unknown column 'knd'"),
    ],
)
def test_a_slip_in_the_data_is_an_error(compat: str, change: dict[str, Any], says: str) -> None:
    data = {**load_toml(f"{compat}/power_plans.toml"), **change}
    if data.get("source") is None:
        del data["source"]
    problems = check_file("power_plans", data)
    assert any(says in problem for problem in problems), problems


def test_a_file_that_no_schema_knows_is_an_error() -> None:
    assert check_file("weather", {}) == ["weather: no such file is known"]


def test_a_future_schema_is_refused(compat: str) -> None:
    meta = {**load_toml(f"{compat}/meta.toml"), "schema": 2}
    assert any("schema" in problem for problem in check_file("meta", meta))
