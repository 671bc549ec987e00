"""What was seen upstream, laid over a small matrix: what is taken, what waits, what is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import pytest

from cudadoctor.matrix.merge import Merged, lost_rows, merge
from cudadoctor.matrix.observed import (
    ListedWheel,
    Observed,
    ReleaseFacts,
    SeenBranch,
    new_releases,
    recent_variants,
    vanished,
)
from cudadoctor.parse.release_archs import BuildArchs
from cudadoctor.parse.wheel_name import parse_tagged_wheel

DAY = "2027-01-15"
LINUX, ARM, WINDOWS, MAC = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_14_0_arm64"

# One release with a build that was seen, one whose free-threaded wheels were inferred, and one that was announced.
TORCH: dict[str, Any] = {
    "9.1": {
        "checked": "2026-11-30",
        "release": [
            {
                "version": "9.1.0",
                "date": "2026-10-01",
                "requires_python": ">=3.11",
                "default": {"linux-x86_64": "cu130", "windows-x86_64": "cpu"},
                "glibc": {"linux-x86_64": "2.28", "linux-aarch64": "2.28"},
                "cxx11_abi": True,
                "companions": {"torchvision": "0.91.0", "torchaudio": "9.1.0", "triton": "~=3.8.0"},
                "nvidia": {"cudnn": "==9.1"},
                "source": "pypi",
                "builds": [
                    {"variant": "cpu", "platform": "linux-x86_64", "pythons": "3.11 3.12", "listed": "pypi"},
                    {"variant": "cpu", "platform": "windows-x86_64", "pythons": "3.11 3.12", "listed": "pypi"},
                    {
                        "variant": "cu130",
                        "platform": "linux-x86_64",
                        "pythons": "3.11 3.12 3.12t",
                        "pythons_inferred": "3.12t",
                        "sass": "75 80",
                        "listed": "pypi",
                        "archs": "scripts",
                        "download_mib": 2877,
                        "sizes": "sizes",
                    },
                    {
                        "variant": "cu130",
                        "platform": "windows-x86_64",
                        "pythons": "3.11 3.12",
                        "sass": "75 80 86",
                        "ptx": "86",
                        "listed": "pypi",
                        "archs": "scripts",
                    },
                    {
                        "variant": "cu134",
                        "platform": "linux-x86_64",
                        "pythons": "3.11 3.12",
                        "sass": "75 80",
                        "listed": "hints",
                        "archs": "scripts",
                        "seen": False,
                        "guessed": True,
                    },
                ],
            }
        ],
        "sources": {"pypi": "the list", "scripts": "build scripts", "hints": "a pull request", "sizes": "added up"},
    }
}
BRANCHES: dict[str, Any] = {
    "checked": "2026-11-30",
    "branch": [
        {
            "name": "R620",
            "linux": 620,
            "cuda": "13.5",
            "kind": "lts",
            "first_linux": "620.70.06",
            "first_date": "2026-11-04",
            "modules": ["open"],
            "source": ["redist"],
            "confidence": "derived",
        },
        {"name": "R615", "linux": 615, "cuda": "13.4", "modules": ["open"], "source": "redist"},
    ],
    "sources": {"redist": "NVIDIA's indexes"},
}
TOOLKITS: dict[str, Any] = {
    "checked": "2026-11-30",
    "floor": [{"cuda": 13, "linux": "580.65.06", "linux_table": "580", "windows": "580", "source": "table"}],
    "toolkit": [
        {"cuda": cuda, "release": f"{cuda}.1", "label": cuda, "linux": "620.70.06", "source": "table"}
        for cuda in ("13.5", "13.4", "13.2", "13.0")
    ],
    "sources": {"table": "NVIDIA's table"},
}
ARCHITECTURES: dict[str, Any] = {
    "architecture": [{"name": "Turing", "capability": ["7.5"]}, {"name": "Ampere", "capability": ["8.0", "8.6"]}]
}


def present(name: str) -> dict[str, Any]:
    sections = {"torch": TORCH, "driver_branches": BRANCHES, "cuda_toolkits": TOOLKITS, "architectures": ARCHITECTURES}
    return copy.deepcopy(sections[name])


def wheels(
    release: str,
    local: Optional[str],
    pythons: Iterable[str] = ("cp311", "cp312"),
    platforms: Iterable[str] = (LINUX,),
    *,
    day: Optional[str] = None,
    yanked: bool = False,
) -> list[ListedWheel]:
    version = f"{release}+{local}" if local else release
    names = [
        f"torch-{version}-{python.rstrip('t')}-{python}-{platform}.whl" for python in pythons for platform in platforms
    ]
    return [ListedWheel(parse_tagged_wheel(name), yanked, day, ">=3.11" if day else None) for name in names]


def facts(version: str, default: Mapping[str, str], **more: Any) -> ReleaseFacts:
    found: dict[str, Any] = {
        "companions": {"torchvision": "0.92.0", "torchaudio": "9.2.0", "triton": "~=3.9.0"},
        "companions_untagged": (),
        "nvidia": {"cudnn": "==9.2"},
        "archs": {},
        "read": {},
        **more,
    }
    return ReleaseFacts(version=version, default=default, **found)


# As upstream was when the matrix was made.
PAGES = {
    "cpu": wheels("9.1.0", "cpu", platforms=(LINUX, WINDOWS)),
    "cu130": wheels("9.1.0", "cu130", platforms=(LINUX, WINDOWS)),
    "cu134": [],
}
DEFAULT = wheels("9.1.0", None, platforms=(LINUX, WINDOWS), day="2026-10-01")


def observed(
    pages: Optional[Mapping[str, list[ListedWheel]]] = None,
    default: Iterable[ListedWheel] = (),
    releases: Iterable[ReleaseFacts] = (),
    toolkits: Iterable[tuple[str, Optional[str]]] = (),
    branches: Optional[list[SeenBranch]] = None,
) -> Observed:
    added = pages or {}
    joined = {variant: [*PAGES.get(variant, []), *added.get(variant, [])] for variant in {*PAGES, *added}}
    return Observed(
        DAY, "whl", joined, [*DEFAULT, *default], {one.version: one for one in releases}, list(toolkits), branches
    )


def merged(*arguments: Any, **named: Any) -> Merged:
    before = {name: present(name) for name in ("torch", "driver_branches", "cuda_toolkits")}
    found = merge(present, observed(*arguments, **named))
    assert before == {name: present(name) for name in before}, "what is there is left as it is"
    assert not lost_rows(present, lambda name: found.sections.get(name, present(name)))
    return found


def build(found: Merged, release: str, variant: str, platform: str) -> Optional[dict[str, Any]]:
    rows = [row for data in found.sections["torch"].values() for row in data["release"] if row["version"] == release]
    builds: list[dict[str, Any]] = rows[0]["builds"] if rows else []
    return next((item for item in builds if (item["variant"], item["platform"]) == (variant, platform)), None)


def told(found: Merged) -> list[tuple[str, str]]:
    return [(change.kind, change.subject) for change in found.changes]


# -- known releases


def test_what_is_known_is_no_news() -> None:
    found = merged()
    assert found == ({}, (), ())


def test_an_inferred_python_that_is_there_is_no_longer_inferred() -> None:
    found = merged({"cu130": wheels("9.1.0", "cu130", ["cp312t"])})
    row = build(found, "9.1.0", "cu130", "linux-x86_64")
    assert row is not None and row["pythons"] == "3.11 3.12 3.12t" and "pythons_inferred" not in row
    assert row["listed"] == ["pypi", f"index-{DAY}"] and row["checked"] == DAY
    assert told(found) == [("confirmed", "torch 9.1.0 cu130 linux-x86_64")]


def test_a_python_more_is_taken_in_its_order() -> None:
    found = merged({"cu130": wheels("9.1.0", "cu130", ["cp313", "cp39"])})
    row = build(found, "9.1.0", "cu130", "linux-x86_64")
    assert row is not None and row["pythons"] == "3.9 3.11 3.12 3.12t 3.13"
    assert told(found) == [("pythons", "torch 9.1.0 cu130 linux-x86_64")]


def test_a_python_of_the_default_build_that_only_pytorchs_index_has_is_told_apart() -> None:
    found = merged({"cu130": wheels("9.1.0", "cu130", ["cp313"])})
    row = build(found, "9.1.0", "cu130", "linux-x86_64")
    assert row is not None and row["pythons_index_only"] == "3.13"
    both = merged({"cu130": wheels("9.1.0", "cu130", ["cp313"])}, wheels("9.1.0", None, ["cp313"], day="2026-12-01"))
    row = build(both, "9.1.0", "cu130", "linux-x86_64")
    assert row is not None and "pythons_index_only" not in row

    def later(name: str) -> dict[str, Any]:
        return found.sections.get(name, present(name))

    arrived = merge(
        later,
        observed({"cu130": wheels("9.1.0", "cu130", ["cp313"])}, wheels("9.1.0", None, ["cp313"], day="2026-12-01")),
    )
    row = build(arrived, "9.1.0", "cu130", "linux-x86_64")
    assert row is not None and "pythons_index_only" not in row
    assert [change.text for change in arrived.changes] == ["Python 3.13 on the default index, too"]


def test_an_announced_build_that_is_there_is_one_like_others() -> None:
    found = merged({"cu134": wheels("9.1.0", "cu134", ["cp312", "cp313"])})
    row = build(found, "9.1.0", "cu134", "linux-x86_64")
    assert row is not None
    assert row["pythons"] == "3.12 3.13", "which Pythons it has was a part of the guess"
    assert not {"seen", "guessed", "pythons_inferred"} & set(row) and row["listed"] == f"index-{DAY}"
    assert told(found) == [("seen", "torch 9.1.0 cu134 linux-x86_64")]
    # Nobody refers to it any more; and the list of sources holds what is referred to.
    assert set(found.sections["torch"]["9.1"]["sources"]) == {"pypi", "scripts", "sizes", f"index-{DAY}"}


def test_a_new_build_of_a_known_release_takes_the_nearest_gpu_list_as_a_guess() -> None:
    found = merged({"cu134": wheels("9.1.0", "cu134", ["cp312"], [WINDOWS])})
    assert build(found, "9.1.0", "cu134", "windows-x86_64") == {
        "variant": "cu134",
        "platform": "windows-x86_64",
        "pythons": "3.12",
        "sass": "75 80 86",
        "ptx": "86",
        "listed": f"index-{DAY}",
        "archs": "carried-over",
        "archs_guessed": True,
        "checked": DAY,
    }


def test_a_build_without_any_list_to_guess_from_is_left_out() -> None:
    found = merged({"cu134": wheels("9.1.0", "cu134", ["cp312"], [ARM])})
    assert not found.sections
    assert found.notes == (
        "torch 9.1.0 cu134 linux-aarch64: left out, its GPU list is not known and none is to be carried over",
    )


STRANGERS = {
    "another variant's": wheels("9.1.0", "cu126", ["cp313"]),
    "a variation of the variant": wheels("9.1.0", "cu130.with.pypi.cudnn", ["cp313"]),
    "no variant's": wheels("9.1.0", None, ["cp313"]),
    "a candidate": wheels("9.2.0rc1", "cu130"),
    "a nightly": wheels("9.2.0.dev20270101", "cu130"),
    "withdrawn": wheels("9.1.0", "cu130", ["cp313"], yanked=True),
    "for Python 2": wheels("9.1.0", "cu130", ["cp27"]),
    "for another system": wheels("9.1.0", "cu130", ["cp313"], ["win_arm64", "linux_s390x"]),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_wheels_that_do_not_count(kind: str) -> None:
    assert merged({"cu130": STRANGERS[kind]}) == ({}, (), ())


def test_aarch64_wheels_without_the_variants_name_count_where_the_release_has_it() -> None:
    linux = facts("9.2.0", {"linux-x86_64": "cpu"}, archs={("cu130", "linux-aarch64"): BuildArchs(("80",), ())})
    cpu = wheels("9.2.0", "cpu")
    default = wheels("9.2.0", None, day="2027-01-10")
    tagged, plain = wheels("9.2.0", "cu130"), wheels("9.2.0", None, platforms=[ARM])
    found = merged({"cpu": cpu, "cu130": [*tagged, *plain]}, default, [linux])
    row = build(found, "9.2.0", "cu130", "linux-aarch64")
    assert row is not None and row["no_local_version"] is True
    without = merged({"cpu": cpu, "cu130": plain}, default, [linux])
    assert build(without, "9.2.0", "cu130", "linux-aarch64") is None


# -- new releases


def new_release(**more: Any) -> Merged:
    platforms = (LINUX, WINDOWS)
    found = facts(
        "9.2.0",
        {"linux-x86_64": "cu134", "windows-x86_64": "cpu"},
        archs={("cu134", "linux-x86_64"): BuildArchs(("75", "80", "86"), ())},
        **more,
    )
    return merged(
        {"cpu": wheels("9.2.0", "cpu", platforms=platforms), "cu134": wheels("9.2.0", "cu134", platforms=platforms)},
        wheels("9.2.0", None, platforms=platforms, day="2027-01-10"),
        [found],
    )


def test_a_new_release_with_what_its_wheels_say_and_what_is_carried_over() -> None:
    found = new_release()
    data = found.sections["torch"]["9.2"]
    assert data["checked"] == DAY and set(data["sources"]) == {
        f"index-{DAY}",
        f"default-{DAY}",
        "own-table",
        "carried-over",
    }
    (row,) = data["release"]
    assert {column: row[column] for column in row if column != "builds"} == {
        "version": "9.2.0",
        "date": "2027-01-10",
        "requires_python": ">=3.11",
        "default": {"linux-x86_64": "cu134", "windows-x86_64": "cpu"},
        "glibc": {"linux-x86_64": "2.28", "linux-aarch64": "2.28"},
        "cxx11_abi": True,  # of the release before
        "companions": {"torchvision": "0.92.0", "torchaudio": "9.2.0", "triton": "~=3.9.0"},
        "nvidia": {"cudnn": "==9.2"},
        "source": f"default-{DAY}",
    }
    assert [(item["variant"], item["platform"]) for item in row["builds"]] == [
        ("cpu", "linux-x86_64"),
        ("cpu", "windows-x86_64"),
        ("cu134", "linux-x86_64"),
        ("cu134", "windows-x86_64"),
    ]
    linux, windows = row["builds"][2:]
    assert (linux["sass"], linux["archs"], "archs_guessed" in linux) == ("75 80 86", "own-table", False)
    assert (windows["sass"], windows["archs"], windows["archs_guessed"]) == ("75 80 86", "carried-over", True)
    assert told(found) == [("release", "torch 9.2.0")] and found.changes[0].builds == 4


def test_the_binary_has_the_last_word() -> None:
    found = new_release(read={("cu134", "linux-x86_64"): BuildArchs(("75", "80"), ("80",))})
    row = build(found, "9.2.0", "cu134", "linux-x86_64")
    assert row is not None
    assert (row["sass"], row["ptx"], row["archs"], row["verified_in_binary"]) == ("75 80", "80", "binary", True)


def test_a_release_whose_default_build_cannot_be_taken_waits_as_a_whole() -> None:
    unknown = facts(
        "9.2.0", {"linux-x86_64": "cu134"}, archs={("cu134", "linux-x86_64"): BuildArchs(("75", "130"), ())}
    )
    found = merged(
        {"cpu": wheels("9.2.0", "cpu"), "cu134": wheels("9.2.0", "cu134")},
        wheels("9.2.0", None, day="2027-01-10"),
        [unknown],
    )
    assert not found.sections
    assert found.notes == (
        "torch 9.2.0 cu134 linux-x86_64: left out, the matrix does not know sm_130; a newer cudadoctor may",
        "torch 9.2.0: left out, its default build for linux-x86_64 cannot be taken",
    )


def test_a_variant_without_a_toolkit_is_left_out() -> None:
    release = facts("9.2.0", {"linux-x86_64": "cu130"}, archs={("cu136", "linux-x86_64"): BuildArchs(("80",), ())})
    found = merged(
        {
            "cpu": wheels("9.2.0", "cpu"),
            "cu130": wheels("9.2.0", "cu130"),
            "cu136": wheels("9.2.0", "cu136"),
        },
        wheels("9.2.0", None, day="2027-01-10"),
        [release],
    )
    assert build(found, "9.2.0", "cu130", "linux-x86_64") and not build(found, "9.2.0", "cu136", "linux-x86_64")
    assert found.notes == ("torch 9.2.0 cu136 linux-x86_64: left out, the matrix has no CUDA toolkit 13.6",)


def test_a_release_on_pytorchs_index_alone_waits() -> None:
    found = merged({"cu130": wheels("9.2.0", "cu130")})
    assert not found.sections and found.notes == (
        "torch 9.2.0: left out, it is on PyTorch's index and not yet on the default index",
    )


def test_a_release_that_was_withdrawn_keeps_its_rows_and_is_told() -> None:
    gone = [item._replace(yanked=True) for item in DEFAULT]
    found = merge(present, observed()._replace(default=gone))
    assert not found.sections
    assert found.notes == ("torch 9.1.0: is withdrawn (yanked) on the default index; its rows stay",)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ((), []),
        (wheels("9.1.0", None), []),
        (wheels("9.1.1", None), ["9.1.1"]),
        ([*wheels("9.10.0", None), *wheels("9.9.1", None)], ["9.9.1", "9.10.0"]),  # as versions, not as text
        (wheels("9.0.5", None), []),  # older than everything: left out on purpose
        (wheels("9.2.0", None, yanked=True), []),
        (wheels("9.2.0rc1", None), []),
        (wheels("9.2.0.post1", None), []),
        (wheels("9.2", None), []),
    ],
)
def test_which_releases_are_new(listed: Iterable[ListedWheel], expected: list[str]) -> None:
    assert new_releases(TORCH, [*DEFAULT, *listed]) == expected


def test_pages_of_ended_variants_are_not_asked_for() -> None:
    old = copy.deepcopy(TORCH["9.1"])
    torch = {}
    for number in range(10):
        data = copy.deepcopy(old)
        data["release"][0]["version"] = f"9.{number}.0"
        for item in data["release"][0]["builds"]:
            item["variant"] = "cu110" if number == 0 and item["variant"] != "cpu" else item["variant"]
        torch[f"9.{number}"] = data
    offered = ["cu92", "cu110", "cu130", "cu134", "cu150", "cpu"]
    assert recent_variants(torch, offered) == ["cpu", "cu130", "cu134", "cu150"]
    assert recent_variants(torch, offered, minors=10) == ["cpu", "cu110", "cu130", "cu134", "cu150"]


# -- pages that cannot be believed


def test_a_whole_page_is_believed_and_half_of_one_is_not() -> None:
    assert vanished(TORCH, observed()) == []
    half = dict(observed().pages or {})
    half["cu130"] = wheels("9.1.0", "cu130", platforms=(LINUX,))
    assert vanished(TORCH, observed()._replace(pages=half)) == [
        "the page of cu130 has 2 of the 4 torch wheels that are known to be there"
    ]
    assert vanished(TORCH, observed()._replace(default=[])) == [
        "the default index has 0 of the 2 builds of torch that are known to be there"
    ]


def test_a_page_that_is_not_there_says_nothing_about_its_wheels() -> None:
    pages = {name: page for name, page in (observed().pages or {}).items() if name != "cu130"}
    assert vanished(TORCH, observed()._replace(pages=pages)) == []


def test_rows_that_would_get_lost_are_found() -> None:
    def after(name: str) -> dict[str, Any]:
        data = present(name)
        if name == "torch":
            builds = data["9.1"]["release"][0]["builds"]
            builds[2]["pythons"] = "3.11"
            del builds[1]
        elif name == "driver_branches":
            del data["branch"][1]
        else:
            del data["toolkit"][0]
        return data

    assert lost_rows(present, present) == []
    assert lost_rows(present, after) == [
        "torch 9.1.0 cpu windows-x86_64 would be lost",
        "torch 9.1.0 cpu windows-x86_64 for Python 3.11 would be lost",
        "torch 9.1.0 cpu windows-x86_64 for Python 3.12 would be lost",
        "torch 9.1.0 cu130 linux-x86_64 for Python 3.12 would be lost",
        "torch 9.1.0 cu130 linux-x86_64 for Python 3.12t would be lost",
        "branch R615 would be lost",
        "toolkit 13.5.1 would be lost",
    ]


# -- drivers and toolkits


def test_a_newer_driver_of_a_known_branch() -> None:
    seen = SeenBranch(620, "lts branch", (("620.70.06", None), ("620.105.02", "2027-01-10")), "13.5")
    found = merged(branches=[seen])
    row = found.sections["driver_branches"]["branch"][0]
    assert list(row)[:7] == ["name", "linux", "cuda", "kind", "first_linux", "first_date", "latest_linux"]
    assert row["latest_linux"] == "620.105.02" and row["source"] == ["redist", f"drivers-{DAY}"]
    assert [change.text for change in found.changes] == ["newest Linux driver 620.105.02 (was 620.70.06)"]


def test_an_older_driver_is_no_news() -> None:
    # 620.70.06 is newer than 620.9.1: numbers, not letters.
    seen = SeenBranch(620, "lts branch", (("620.9.1", None),), None)
    assert merged(branches=[seen]) == ({}, (), ())


def test_a_new_branch() -> None:
    seen = SeenBranch(625, "new feature branch", (("625.20.01", "2027-01-05"), ("625.14.02", None)), "13.6")
    found = merged(branches=[seen])
    row = found.sections["driver_branches"]["branch"][0]
    assert row == {
        "name": "R625",
        "linux": 625,
        "cuda": "13.6",
        "kind": "new-feature",
        "first_linux": "625.14.02",
        "latest_linux": "625.20.01",
        "modules": ["open"],
        "source": [f"drivers-{DAY}"],
        "confidence": "derived",
        "note": "kernel module flavours as of R620; Windows numbers not known",
        "checked": DAY,
    }


@pytest.mark.parametrize(
    ("seen", "note"),
    [
        (
            SeenBranch(625, "", (("625.20.01", None),), None),
            "R625: left out, no source says which CUDA version it serves",
        ),
        (
            SeenBranch(620, "", (("620.70.06", None),), "13.6"),
            "R620: 620.70.06 is said to serve CUDA 13.6, the matrix has 13.5; left as it is",
        ),
    ],
)
def test_what_is_not_sure_about_a_branch_is_told_and_not_taken(seen: SeenBranch, note: str) -> None:
    assert merged(branches=[seen]) == ({}, (), (note,))


def test_an_old_branch_that_the_matrix_leaves_out_stays_out() -> None:
    assert merged(branches=[SeenBranch(352, "", (("352.99", None),), "7.5")]) == ({}, (), ())


def test_a_new_toolkit_goes_with_the_branch_that_shows_it() -> None:
    branch = SeenBranch(625, "", (("625.20.01", None),), "13.6")
    found = merged(toolkits=[("13.6.0", "2027-01-05"), ("13.5.1", None)], branches=[branch])
    row = found.sections["cuda_toolkits"]["toolkit"][0]
    assert (row["release"], row["cuda"], row["branch"], row["date"]) == ("13.6.0", "13.6", "R625", "2027-01-05")
    assert told(found) == [("branch", "R625"), ("toolkit", "CUDA 13.6.0")]


def test_a_toolkit_that_no_driver_is_known_for_waits() -> None:
    found = merged(toolkits=[("13.6.0", None)])
    assert found == ({}, (), ("CUDA toolkit 13.6.0: left out, no driver branch is known to show CUDA 13.6",))


def test_toolkits_stay_in_their_order() -> None:
    found = merged(toolkits=[("13.4.2", None), ("13.0.0", None)])
    releases = [row["release"] for row in found.sections["cuda_toolkits"]["toolkit"]]
    assert releases == ["13.5.1", "13.4.2", "13.4.1", "13.2.1", "13.0.1"]
    assert "driver_branches" not in found.sections
