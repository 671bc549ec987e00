"""Version numbers: compared as numbers, kept as strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudadoctor.parse import versions
from cudadoctor.parse.errors import ParseError

COMPARED = [
    # left, right, result
    ("525.147.05", "525.147.5", 0),
    ("525.147.05", "525.60.13", 1),
    ("525.60.13", "525.147.05", -1),
    ("560.94", "560.9", 1),
    ("12", "12.0", 0),
    ("12.2", "12.10", -1),
    ("580", "579.99.99", 1),
    (" 535.1 \n", "535.1", 0),
]


@pytest.mark.parametrize(("left", "right", "result"), COMPARED)
def test_compare(left: str, right: str, result: int) -> None:
    assert versions.compare(left, right) == result
    assert versions.compare(right, left) == -result
    assert versions.at_least(left, right) == (result >= 0)


@pytest.mark.parametrize("text", ["", ".", "535.", ".5", "535..1", "535.xx", "535-1", "٣.1", "1" * 10, "-1", "1.2a"])
def test_what_is_no_plain_version(text: str) -> None:
    assert not versions.is_plain(text)
    with pytest.raises(ParseError, match="plain dotted version"):
        versions.numbers(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("535.183.01", True),
        ("560.94", True),
        ("90.1", True),
        ("540.4.0", True),
        ("535", False),
        ("5.1", False),
        ("535.xx", False),
        ("2.14.1+cu126", False),
        ("53500.1", False),
        ("", False),
    ],
)
def test_shape_of_a_driver_version(text: str, verdict: bool) -> None:
    assert versions.is_driver_version(text) is verdict


@pytest.mark.parametrize(
    ("number", "text"),
    [(12020, "12.2"), (11040, "11.4"), (13000, "13.0"), (9020, "9.2"), (6050, "6.5"), (12100, "12.10"), (1000, "1.0")],
)
def test_cuda_number(number: int, text: str) -> None:
    assert versions.cuda_from_int(number) == text
    assert versions.cuda_to_int(text) == number


@pytest.mark.parametrize("number", [0, -1, 999, 10**6, 10**30])
def test_cuda_number_of_no_driver(number: int) -> None:
    with pytest.raises(ParseError):
        versions.cuda_from_int(number)


TAGS = [
    ("cu126", "12.6"),
    ("cu130", "13.0"),
    ("cu118", "11.8"),
    ("cu102", "10.2"),
    ("cu92", "9.2"),
    ("cu80", "8.0"),
    ("CU121", "12.1"),
    ("cu1210", "12.10"),
    ("cu124.post1", "12.4"),
    ("cu118_pyt201", "11.8"),
    ("cpu", None),
    ("rocm6.2", None),
    ("cu", None),
    ("cu1", None),
    ("cu12345", None),
    ("cuda", None),
    ("", None),
]


@pytest.mark.parametrize(("tag", "cuda"), TAGS)
def test_cuda_tag(tag: str, cuda: str | None) -> None:
    assert versions.cuda_from_tag(tag) == cuda


@pytest.mark.parametrize(("cuda", "tag"), [("12.6", "cu126"), ("12.6.3", "cu126"), ("13.0", "cu130"), ("9.2", "cu92")])
def test_tag_of_cuda(cuda: str, tag: str) -> None:
    assert versions.tag_from_cuda(cuda) == tag


@pytest.mark.parametrize(
    ("version", "public", "local", "variant"),
    [
        ("2.14.1+cu126", "2.14.1", "cu126", "cu126"),
        ("2.14.1+cpu", "2.14.1", "cpu", "cpu"),
        ("2.14.1", "2.14.1", None, None),
        ("2.14.1+", "2.14.1", None, None),
        ("2.5.0+rocm6.2", "2.5.0", "rocm6.2", "rocm6.2"),
        ("2.6.0+rocm6.2.4", "2.6.0", "rocm6.2.4", "rocm6.2.4"),
        ("2.5.0+rocm", "2.5.0", "rocm", "rocm"),
        ("2.7.0+xpu", "2.7.0", "xpu", "xpu"),
        ("2.9.0a0+git0123abc", "2.9.0a0", "git0123abc", None),
        ("2.7.0a0+ecf3bae40a.nv25.02", "2.7.0a0", "ecf3bae40a.nv25.02", None),
        ("0.12.0+cpu.cxx11.abi", "0.12.0", "cpu.cxx11.abi", "cpu"),
        ("1.0+cpufast", "1.0", "cpufast", None),
    ],
)
def test_local_version(version: str, public: str, local: str | None, variant: str | None) -> None:
    assert versions.split_local(version) == (public, local)
    assert versions.variant(local) == variant


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("2.9.0a0+git1", (2, 9, 0)), ("v12.4", (12, 4)), ("2.14.1+cu126", (2, 14, 1)), ("13", (13,)), ("1..2", (1,))],
)
def test_release(version: str, numbers: tuple[int, ...]) -> None:
    assert versions.release(version) == numbers
    assert versions.major(version) == numbers[0]


@pytest.mark.parametrize("text", ["", "v", "a1", ".1", "+cu126"])
def test_no_release(text: str) -> None:
    with pytest.raises(ParseError):
        versions.release(text)


@pytest.mark.parametrize(("text", "short"), [("12.6.85", "12.6"), ("13", "13.0"), ("11.08.1", "11.08")])
def test_major_minor(text: str, short: str) -> None:
    assert versions.major_minor(text) == short


RANGES = [
    # version, range, verdict
    ("535.183.01", ">=535,<600", True),
    ("610.1", ">=535,<600", False),
    ("2.6.0+cpu", "==2.6.0", True),
    ("2.6.0+cpu", "==2.6.0+cu124", False),
    ("2.6.0+CU124", "== 2.6.0+cu124", True),
    ("2.6.0", "==2.6.0+cu124", False),
    ("2.6.1", "~=2.6.0", True),
    ("2.7.0", "~=2.6.0", False),
    ("2.7.3", "2.7.*", True),
    ("2.7", "==2.7.0", True),
    ("2.70.0", "2.7.*", False),
    ("2.7.3", "2.7.3", True),
    ("2.7.3+cu126", "<=2.7.3", True),
    ("2.7.3+cu126", ">2.7.3", False),
    ("2.7.3", "!=2.7.*", False),
    ("2.7.3", "", True),
    ("2.9.0a0", ">=2.8", True),
    ("2.9.0rc1", ">=2.9.0", False),
    ("2.9.0", ">=2.9.0rc1", True),
    ("not a version", ">=1", None),
    ("1.0", "newest", None),
    ("1.0", ">>1", None),
    ("1.0", ">=", None),
]


@pytest.mark.parametrize(("version", "specifier", "verdict"), RANGES)
def test_range(version: str, specifier: str, verdict: bool | None) -> None:
    assert versions.satisfies(version, specifier) is verdict


numbers = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
locals_ = st.sampled_from(["", "", "+cu126", "+cpu"])
clauses = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["==", "!=", "<=", ">=", "<", ">"]), numbers),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), numbers),
    st.builds("~={}.{}".format, numbers, st.integers(0, 9)),
    st.builds("{}{}+cu126".format, st.sampled_from(["==", "!="]), numbers),
)


@given(numbers, locals_, st.lists(clauses, min_size=1, max_size=3))
def test_ranges_mean_what_packaging_says(version: str, local: str, parts: list[str]) -> None:
    specifier = ",".join(parts)
    expected = SpecifierSet(specifier).contains(Version(version + local), prereleases=True)
    assert versions.satisfies(version + local, specifier) is expected


@given(numbers, numbers)
def test_order_is_that_of_packaging(left: str, right: str) -> None:
    a, b = Version(left), Version(right)
    assert versions.compare(left, right) == (a > b) - (a < b)
