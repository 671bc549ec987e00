"""NVIDIA's lists of drivers for programs."""

from __future__ import annotations

import json

import pytest

from cudadoctor.parse.driver_redist import parse_driver_listing, parse_driver_redist, parse_driver_releases
from cudadoctor.parse.errors import ParseError

REDIST = {
    "release_date": "2026-11-04",
    "release_label": "620.70.06",
    "release_product": "nvidia-driver",
    "cuda_compat": {
        "name": "CUDA compat",
        "version": "620.70.06",
        "cuda_variant": ["13.5"],
        "linux-x86_64": {"cuda13.5": {"relative_path": "cuda_compat/linux-x86_64/x.tar.xz", "size": "1"}},
    },
    "nvidia_driver": {"version": "620.70.06"},
}

RELEASES = {
    "580": {
        "type": "lts branch",
        "driver_info": [
            {"release_version": "580.178.04", "release_date": "2026-10-06", "architectures": ["x86_64", "arm64"]},
            {"release_version": "580.65.06", "release_date": "2025-08-04"},
            {"release_version": "582.78", "release_date": "2026-10-06"},
            {"release_version": "580.x"},
        ],
    },
    "590": {"type": "New Feature Branch", "driver_info": [{"release_version": "590.48.01"}]},
    "latest": {"type": "", "driver_info": []},
}


def test_a_drivers_redistributables_name_its_cuda() -> None:
    assert parse_driver_redist(json.dumps(REDIST)) == ("620.70.06", "2026-11-04", ("13.5",))


def test_where_the_label_is_no_driver_the_parts_name_it() -> None:
    document = {**REDIST, "release_label": "R620 U1", "release_date": "soon", "cuda_compat": {"cuda_variant": "13"}}
    assert parse_driver_redist(json.dumps(document)) == ("620.70.06", None, ())


def test_releases_by_branch_without_the_windows_numbers_among_them() -> None:
    assert parse_driver_releases(json.dumps(RELEASES)) == [
        (580, "lts branch", (("580.178.04", "2026-10-06"), ("580.65.06", "2025-08-04"))),
        (590, "new feature branch", (("590.48.01", None),)),
    ]


def test_the_folder_lists_each_driver_once() -> None:
    listing = "<a href='../'>..</a><a href='redistrib_595.112.07.json'>redistrib_595.112.07.json</a> redistrib_x.json"
    assert parse_driver_listing(listing) == ["595.112.07"]


@pytest.mark.parametrize("parse", [parse_driver_redist, parse_driver_releases, parse_driver_listing])
@pytest.mark.parametrize("text", ["", "<html><form></form></html>", "[]", "{}", "[" * 100_000, '{"580": 7}'])
def test_anything_else_is_an_error(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ParseError, match="not "):
        parse(text)
