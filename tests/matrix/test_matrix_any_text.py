"""No text crashes a question, and no nonsense gets a confident answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.matrix.names import take_apart, words

MATRIX: Matrix = load_matrix()
TEXT = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"(NVIDIA |GeForce |Tesla |GRID )?[A-Z]{0,3} ?\d{1,5}[A-Za-z]{0,3}( Ti| SUPER| Laptop GPU|-\d+Q)?"),
    st.from_regex(r"\d{1,4}(\.\d{1,3}){0,4}"),
)
SYSTEMS = st.sampled_from(["linux", "windows", "wsl"])


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_a_gpu_name(text: str) -> None:
    match = MATRIX.gpu(text)
    assert match.found == (match.kind != "none")
    assert match.capability is None or match.found
    assert not match.rows or match.found
    if match.kind != "capability" and match.capability and match.rows:
        assert {row.capability for row in match.rows} == {match.capability}
    assert words(text) == words(text.upper()) or not text.isascii()
    take_apart(text)


@settings(max_examples=200, deadline=None)
@given(TEXT, SYSTEMS, TEXT)
def test_a_driver_number(driver: str, system: str, cuda: str) -> None:
    verdict = MATRIX.driver_serves(driver, system, cuda)
    assert verdict.answer in ("yes", "no", "unknown") and verdict.reason
    assert verdict.answer != "no" or verdict.needed
    assert MATRIX.ptx_ok(driver, system, cuda).answer in ("yes", "no", "unknown")
    branch = MATRIX.branch_of(driver, system)
    assert branch is None or branch.name.startswith("R")


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=2), TEXT)
def test_a_list_of_targets(sass: list[str], ptx: list[str], gpu: str) -> None:
    verdict = MATRIX.runs_on(sass, ptx, gpu)
    assert verdict.answer in ("yes", "likely", "no", "unknown") and verdict.reason
    assert (verdict.via is not None) == (verdict.answer in ("yes", "likely"))


@settings(max_examples=200, deadline=None)
@given(TEXT, TEXT, TEXT)
def test_everything_else(first: str, second: str, third: str) -> None:
    MATRIX.torch_release(first)
    MATRIX.toolkit(first)
    MATRIX.host_compiler(first)
    MATRIX.library(first)
    MATRIX.library(first + ".dll", 12)
    MATRIX.power_plan(first)
    MATRIX.pin(first, second)
    MATRIX.architecture(first)
    MATRIX.gpu_by_pci(first)
    MATRIX.distribution(first, second, third)
    assert MATRIX.companion_ok("torchvision", first, second).answer in ("yes", "no", "unknown")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([row.latest_linux for row in MATRIX.branches() if row.latest_linux]), st.integers(11, 13))
def test_a_newer_driver_never_serves_less(driver: str, major: int) -> None:
    newer = str(int(driver.split(".")[0]) + 1) + ".10.05"
    before = MATRIX.driver_serves(driver, "linux", f"{major}.0").answer
    after = MATRIX.driver_serves(newer, "linux", f"{major}.0").answer
    assert before != "yes" or after == "yes"
