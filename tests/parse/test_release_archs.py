"""torch's own table of the GPUs that its Linux builds are compiled for."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.release_archs import parse_release_archs, targets_of

# Out of torch/cuda/__init__.py of 2.14.1.
NESTED = """\
import torch

PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {
    "12.6": {
        "x86_64": {50, 60, 70, 75, 80, 86, 90},
        "aarch64": {80, 90},
    },
    "13.0": {
        "x86_64": {75, 80, 86, 90, 100, 120},
        "aarch64": {80, 90, 100, 110, 120},
    },
}


def _device_requirement(code_cc):
    return PYTORCH_RELEASES_CODE_CC["12.6"]
"""

# Of 2.12.0: the machines thrown together. 110 is in no x86_64 build of it.
FLAT = """\
PYTORCH_RELEASES_CODE_CC: dict[str, set[int]] = {
    "12.6": {50, 60, 70, 75, 80, 86, 90},
    "13.0": {75, 80, 86, 90, 100, 110, 120},
}
"""


def test_a_list_for_each_cuda_version_and_machine() -> None:
    assert parse_release_archs(NESTED) == {
        ("12.6", "x86_64"): (("50", "60", "70", "75", "80", "86", "90"), ()),
        ("12.6", "aarch64"): (("80", "90"), ()),
        ("13.0", "x86_64"): (("75", "80", "86", "90", "100", "120"), ()),
        ("13.0", "aarch64"): (("80", "90", "100", "110", "120"), ()),
    }


@pytest.mark.parametrize("text", [FLAT, "", "x = PYTORCH_RELEASES_CODE_CC\n", "# PYTORCH_RELEASES_CODE_CC = {}\n"])
def test_a_table_of_the_old_kind_or_none_gives_no_list(text: str) -> None:
    assert parse_release_archs(text) == {}


@pytest.mark.parametrize(
    "table", ['{\n    "13.0": _archs("13.0"),\n}', "{\n", '{\n    "13.0": {{"x86_64": {75}}: 1},\n}', "{" * 500 + "\n}"]
)
def test_a_table_that_is_code_is_an_error_and_is_not_run(table: str) -> None:
    with pytest.raises(ParseError, match="laid out in a way not known here"):
        parse_release_archs(f"PYTORCH_RELEASES_CODE_CC: dict = {table}")


@pytest.mark.parametrize("targets", ["{True}", '{"sm_75"}', "{}", "75", "{75.5}", "{8000}"])
def test_what_is_no_list_of_targets_is_passed_over(targets: str) -> None:
    text = f'PYTORCH_RELEASES_CODE_CC = {{\n    "13.0": {{"x86_64": {targets}, "aarch64": {{80, 90}}}},\n}}\n'
    assert parse_release_archs(text) == {("13.0", "aarch64"): (("80", "90"), ())}


def test_the_list_of_a_build_as_the_matrix_writes_it() -> None:
    assert targets_of(["sm_75", "sm_90a", "sm_120", "compute_120"]) == (("75", "90a", "120"), ("120",))
