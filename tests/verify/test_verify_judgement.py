"""Tables: what a child said and how it ended, and what that means."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verify_bench import two_a100

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import CERTAIN, ENVIRONMENT, ERROR, FAIL, LIKELY, MACHINE, Evidence, Facts, Outcome, ParseError
from cudadoctor.model.report import Report
from cudadoctor.rules import rule_files
from cudadoctor.verify.judge import expectations, judged, last_line, seen_gpu, torch_of
from cudadoctor.verify.lines import Ending, read_lines
from cudadoctor.verify.meaning import SUSPECTS, explained, log_of
from cudadoctor.verify.plan import CHECKS, Device, chosen, devices, environment
from cudadoctor.verify.results import HOWS, Proof, Result, exit_status, worst

pytestmark = pytest.mark.once

MARK = "verify-0123"


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def output(*events: dict[str, Any], noise: str = "") -> bytes:
    return (noise + "".join(f"\n{MARK} {json.dumps(event)}\n" for event in events)).encode()


PYTHON = {"event": "python", "version": "3.12.3"}
END = {"event": "end"}
VERSIONS = {
    "event": "result", "check": "versions", "variant": "", "status": "done", "torch": "2.9.1+cu128", "cuda": "12.8",
    "cudnn": 91002, "nccl": "2.27.5", "count": 1, "warnings": [], "error": "",
}  # fmt: skip


def done(check: str, variant: str = "", **values: Any) -> dict[str, Any]:
    return {"event": "result", "check": check, "variant": variant, "status": "done", "seconds": 0.5, **values}


ABOUT = {
    "name": "NVIDIA A100-SXM4-80GB", "capability": "8.0", "total": 84_987_740_160, "free": 84_000_000_000,
    "allocated": 0, "reserved": 2097152, "pci": "0000:01:00.0",
}  # fmt: skip
ALLOCATION = done("allocation", value=268435456.0, unit="bytes", wrong=0, of=67108864, about=ABOUT)


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "checks", "at_hand", "ended"),
    [
        (b"", [], None, False),
        (output(PYTHON, VERSIONS, END), ["versions"], None, True),
        (output(PYTHON, {"event": "start", "check": "matmul", "variant": "fp16"}), [], ("matmul", "fp16"), False),
        (output(VERSIONS, noise="Welcome!\xff verify-0123 {}"), ["versions"], None, False),
        (b"\nverify-0124 " + json.dumps(VERSIONS).encode(), [], None, False),
        (f"\n{MARK} not json\n{MARK} [1]\n{MARK} ".encode() + b'{"event": "result", "check": 3}', [], None, False),
        (f'\n{MARK} {{"event": "result", "check": "cudnn", "value": NaN}}\n'.encode(), [], None, False),
        (output(VERSIONS)[:-20], [], None, False),
    ],
    ids=["silence", "a whole run", "broken off", "noise", "another mark", "no events", "no JSON number", "half a line"],
)  # fmt: skip
def test_lines_of_a_child(said: bytes, checks: list[str], at_hand: Optional[tuple[str, str]], ended: bool) -> None:
    read = read_lines(said, MARK)
    assert [event["check"] for event in read.results] == checks
    assert (read.at_hand, read.ended) == (at_hand, ended)


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", MARK.encode() + b" ", b'{"event":"result"', b"}"])))
def test_no_output_is_too_odd(pieces: list[bytes]) -> None:
    read = read_lines(b"".join(pieces), MARK)
    assert (read.python, read.results, read.ended) == ("", (), False)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["value", "wrong", "of", "about", "pairs", "torch", "cuda", "cudnn", "warnings", "archs", "kind"]
)


@given(
    st.sampled_from([*CHECKS, "other"]), st.sampled_from(["done", "skip", "error", ""]), st.dictionaries(_KEYS, _JSON)
)
def test_whatever_a_child_claims_is_judged(check: str, status: str, values: dict[str, Any]) -> None:
    event = {**values, "event": "result", "check": check, "status": status}
    for gpu in (None, 0):
        said = read_lines(output(PYTHON, event), MARK)
        results = judged(said, Ending(0), CHECKS, gpu)
        assert all(result.status in ("pass", "fail", "skip") and result.message for result in results)
        torch_of(said)
        seen_gpu(said, gpu)


# -- what a child claims ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "status", "how", "says"),
    [
        (done("matmul", "fp32", wrong=0, of=4, value=0.0), "pass", "", "all 4 values are those of the CPU"),
        # It says that it is done, and its own numbers say otherwise.
        (done("matmul", "fp32", wrong=3, of=4, value=0.0), "fail", "wrong", "3 of 4 values are wrong"),
        (done("matmul", "fp32"), "fail", "ended", "gave no result that can be read"),
        (done("matmul", "fp32", wrong=0, of=0), "fail", "ended", "gave no result that can be read"),
        (done("matmul", "fp32", wrong=-1, of=4), "fail", "ended", "gave no result that can be read"),
        (done("matmul", "fp32", wrong=True, of=4), "fail", "ended", "gave no result that can be read"),
        (done("bandwidth", "to-gpu", wrong=0, of=4, value=0), "fail", "ended", "gave no rate that can be read"),
        (done("bandwidth", "to-gpu", wrong=0, of=4, value=25), "pass", "", "25 GB/s to the GPU; no figure to compare"),
        (
            {"event": "result", "check": "compile", "status": "skip", "kind": "triton", "reason": "there is no Triton"},
            "skip", "", "there is no Triton",
        ),
        (
            {"event": "result", "check": "cudnn", "status": "error", "error": "RuntimeError: cuDNN error\nmore"},
            "fail", "error", "failed: RuntimeError: cuDNN error",
        ),
    ],
)  # fmt: skip
def test_numbers_decide_and_not_words(event: dict[str, Any], status: str, how: str, says: str) -> None:
    said = read_lines(output(PYTHON, VERSIONS, ALLOCATION, event, END), MARK)
    (found,) = [one for one in judged(said, Ending(0), (str(event["check"]),), 0) if one.check == event["check"]]
    assert (found.status, found.how) == (status, how) and found.message.startswith(says)


@pytest.mark.parametrize(
    ("changes", "how", "rule", "certainty", "says"),
    [
        ({"status": "unavailable", "torch": "2.13.0+cpu", "cuda": None}, "no-cuda", "CD302", CERTAIN,
         "torch 2.13.0+cpu was built without CUDA"),
        ({"cuda": None, "hip": "6.4"}, "no-cuda", "CD302", CERTAIN, "torch 2.9.1+cu128, ROCm 6.4 is for AMD's GPUs"),
        ({"status": "unavailable", "error": "RuntimeError: no"}, "unavailable", "CD112", "possible",
         "torch 2.9.1+cu128, CUDA 12.8: CUDA is not available (RuntimeError: no)"),
        ({"status": "missing"}, "missing", "CD301", "possible", "there is no torch in this environment"),
        ({"status": "error", "error": "ImportError: libcusparse.so.12: no"}, "error", "CD210", "possible",
         "torch cannot be imported: ImportError: libcusparse.so.12: no"),
        ({}, "", None, "possible", "torch 2.9.1+cu128, CUDA 12.8, cuDNN 9.10.2, NCCL 2.27.5"),
    ],
)  # fmt: skip
def test_versions(changes: dict[str, Any], how: str, rule: Optional[str], certainty: str, says: str) -> None:
    (found,) = judged(read_lines(output(PYTHON, {**VERSIONS, **changes}, END), MARK), Ending(0), ("versions",))
    assert (found.how, found.rule, found.certainty) == (how, rule, certainty) and found.message.startswith(says)


@pytest.mark.parametrize(
    ("number", "written"), [(91002, "9.10.2"), (90100, "9.1.0"), (8902, "8.9.2"), (7605, "7.6.5"), (5, None)]
)
def test_cudnn_counts_with_a_digit_more_since_its_ninth_release(number: int, written: Optional[str]) -> None:
    assert torch_of(read_lines(output({**VERSIONS, "cudnn": number}), MARK)).cudnn == written


# -- how a child ended ------------------------------------------------------------------------------------------------

BEGUN = {"event": "start", "check": "matmul", "variant": "fp16"}


@pytest.mark.parametrize(
    ("ending", "events", "name", "how", "says"),
    [
        (Ending(-11, "SIGSEGV"), (ALLOCATION, BEGUN), "matmul fp16", "crash", "the check crashed (SIGSEGV)"),
        (Ending(-11, "SIGSEGV"), (ALLOCATION,), "matmul", "crash", "the process crashed (SIGSEGV)"),
        (Ending(None, "", True, 120.0), (ALLOCATION, BEGUN), "matmul fp16", "hang", "did not end within 120 s"),
        (Ending(None, "", True, 0.5), (ALLOCATION, BEGUN), "matmul fp16", "hang", "did not end within 0.5 s"),
        (Ending(1, errors="Traceback\nOSError: [Errno 28] No space\n^^^"), (ALLOCATION, BEGUN), "matmul fp16", "ended",
         "the process ended with status 1: OSError: [Errno 28] No space"),
        (Ending(0), (ALLOCATION,), "matmul", "ended", "the process ended with status 0"),
    ],
)  # fmt: skip
def test_a_check_that_was_never_reported(
    ending: Ending, events: tuple[dict[str, Any], ...], name: str, how: str, says: str
) -> None:
    results = judged(read_lines(output(PYTHON, VERSIONS, *events), MARK), ending, ("allocation", "matmul", "cudnn"), 1)
    assert [(one.name, one.status) for one in results] == [
        ("allocation", "pass"), (name, "fail"), ("cudnn", "skip")
    ]  # fmt: skip
    assert (results[1].how, results[1].message, results[1].gpu) == (how, says, 1)
    assert results[2].message == f"not run: {name} failed"


def test_an_interpreter_that_does_not_even_start_in_time() -> None:
    (found,) = judged(read_lines(b"", MARK), Ending(None, "", True, 5.0), ("versions",))
    assert (found.how, found.message) == ("hang", "the interpreter did not start in time")
    assert (found.rule, found.suspects) == ("CD609", ("CD609",))  # nothing that has to do with a GPU


def test_what_was_proven_before_a_crash_at_the_end_stays_proven() -> None:
    results = judged(read_lines(output(PYTHON, VERSIONS, ALLOCATION), MARK), Ending(-6, "SIGABRT"), ("allocation",), 0)
    assert ("allocation", "pass") in [(one.name, one.status) for one in results]
    assert [one.how for one in results if one.failed] == ["crash"]


@pytest.mark.parametrize(
    ("errors", "line"),
    [
        ("", ""),
        ("a warning\nRuntimeError: bad\n  at frame 3", "RuntimeError: bad"),
        ("torch.cuda.OutOfMemoryError: x\nlast words", "torch.cuda.OutOfMemoryError: x"),
        ("only words", "only words"),
    ],
)
def test_the_line_of_a_traceback_that_counts(errors: str, line: str) -> None:
    assert last_line(errors) == line


# -- measurements -----------------------------------------------------------------------------------------------------


def gpu_said(**changes: Any) -> Any:
    return seen_gpu(read_lines(output({**ALLOCATION, "about": {**ABOUT, **changes}}), MARK), 0)


@pytest.mark.parametrize(
    ("title", "changes", "facts", "device", "link", "memory"),
    [
        ("by its place on the bus", {}, two_a100(), None, 31.504, 2039),
        ("the other one", {"pci": "0000:41:00.0"}, two_a100(), None, 15.752, 2039),
        ("a place that NVML does not know", {"pci": "0000:99:00.0"}, two_a100(), 0, None, 2039),
        ("a torch that does not tell the place: by its number", {"pci": None}, two_a100(), 1, 15.752, 2039),
        ("neither place nor number, and two of the name", {"pci": None}, two_a100(), None, None, 2039),
        ("a number of another name", {"pci": None, "name": "NVIDIA H100 PCIe"}, two_a100(), 0, None, 2000),
        ("no facts", {}, None, 0, None, 2039),
        ("NVML is silent", {}, Facts({}), 0, None, 2039),
        ("a card that nobody lists", {"name": "NVIDIA Z9000"}, two_a100(), None, 31.504, None),
        ("a MIG device", {"name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "pci": None}, None, None, None, None),
        ("a vGPU", {"name": "GRID A100D-10C", "pci": None}, None, None, None, None),
        ("40 GB of that name", {"name": "NVIDIA A100-SXM4-40GB", "total": 42_000_000_000}, None, None, None, 1555),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_link_and_memory_should_give(
    title: str, changes: dict[str, Any], facts: Optional[Facts], device: Optional[int],
    link: Optional[float], memory: Optional[float], matrix: Matrix,
) -> None:  # fmt: skip
    if memory == 2000:
        changes = {**changes, "total": 85_000_000_000}
    ask = expectations(facts, matrix, device)
    for check, most in (("bandwidth", link), ("memory-bandwidth", memory)):
        found = ask(gpu_said(**changes), check)
        if most is None:
            assert found is None
        else:
            assert found is not None and found.most == pytest.approx(most) and found.source
            assert found.least == pytest.approx(0.6 * most)
    assert ask(gpu_said(), "matmul") is None and ask(None, "bandwidth") is None


def test_a_card_in_mig_mode_is_held_against_no_figure(matrix: Matrix) -> None:
    facts = two_a100()
    mig = facts.updated({"gpu.0.mig_mode": facts["gpu.0.mig_mode"]._replace(value=True)})
    assert expectations(mig, matrix, 0)(gpu_said(), "memory-bandwidth") is None


@pytest.mark.parametrize(
    ("rate", "status", "severity"),
    [
        (31.0, "pass", ERROR),
        (18.95, "pass", ERROR),
        (18.85, FAIL, "warning"),
        (4.8, FAIL, "warning"),
        (4.6, FAIL, ERROR),
    ],
)
def test_slow_is_a_warning_and_far_too_slow_an_error(rate: float, status: str, severity: str, matrix: Matrix) -> None:
    event = done("bandwidth", "to-gpu", wrong=0, of=4, value=rate, unit="GB/s")
    said = read_lines(output(PYTHON, ALLOCATION, event, END), MARK)
    results = judged(said, Ending(0), ("bandwidth",), 0, expectations(two_a100(), matrix, 0), matrix)
    (found,) = [one for one in results if one.check == "bandwidth"]
    assert (found.status, found.severity) == (status, severity)
    assert found.rule == (None if status == "pass" else "CD504")


def test_the_data_is_what_it_should_be(matrix: Matrix) -> None:
    lanes = [matrix.pcie_rate(generation, 1) for generation in range(1, 7)]
    assert all(rate is not None and rate.source and rate.checked for rate in lanes)
    rates = [rate.gbs for rate in lanes if rate is not None]
    # Each generation carries about twice what the one before it does.
    assert all(1.8 < faster / slower < 2.1 for slower, faster in zip(rates, rates[1:]))
    assert matrix.pcie_rate(9, 16) is None and matrix.pcie_rate(4, 0) is None
    for check in ("bandwidth", "memory-bandwidth"):
        share = matrix.share(check)
        assert share is not None and 0 < share.least < share.good < 1
    assert matrix.share("matmul") is None


# -- what it means ----------------------------------------------------------------------------------------------------


def test_every_suspect_is_a_rule_and_every_failure_has_some() -> None:
    assert {rule for rules in SUSPECTS.values() for rule in rules} <= set(rule_files())
    assert {check for check, _ in SUSPECTS} == set(CHECKS) and {how for _, how in SUSPECTS} <= set(HOWS)
    for check in CHECKS:
        assert all(SUSPECTS.get((check, how)) for how in ("error", "crash", "hang")), check


def outcome(rule: str, message: str = "found", severity: str = ERROR, symptom: str = "", because: str = "") -> Outcome:
    evidence = (Evidence("symptom.x", {"text": symptom}, "verify"),) if symptom else ()
    return Outcome(
        rule, "name", FAIL, severity, LIKELY, MACHINE if rule[2] == "1" else ENVIRONMENT, message, evidence=evidence,
        because_of=because or None,
    )  # fmt: skip


def failure(check: str, how: str, error: str = "") -> Result:
    rules = SUSPECTS[check, how]
    return Result(check, FAIL, "failed", how=how, rule=rules[0], suspects=rules, error=error)


@pytest.mark.parametrize(
    ("title", "result", "found", "roots", "rule"),
    [
        ("no CUDA: the root cause", failure("versions", "unavailable"), ["CD103", "CD601"], ["CD103"], "CD103"),
        ("no CUDA: not all keeps it away", failure("versions", "unavailable"), ["CD306"], ["CD306"], "CD112"),
        ("no CUDA, and nothing found", failure("versions", "unavailable"), [], [], "CD112"),
        ("a crash: a suspect was found", failure("matmul", "crash"), ["CD309", "CD601"], ["CD601", "CD309"], "CD309"),
        ("a crash: what was found is none of them", failure("matmul", "crash"), ["CD306"], ["CD306"], "CD206"),
        ("a hang with a lost GPU", failure("matmul", "hang"), ["CD113"], ["CD113"], "CD113"),
        ("no torch", failure("versions", "missing"), ["CD301"], [], "CD301"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)  # fmt: skip
def test_what_is_found_on_the_machine_convicts(
    title: str, result: Result, found: list[str], roots: list[str], rule: str
) -> None:
    report = Report(Facts({}), tuple(outcome(one) for one in found), tuple(roots), "1")
    (told,) = explained([result], report)
    assert (told.rule, told.because) == (rule, "found" if rule in found else "")
    assert told.certainty == ("likely" if rule in found else "possible")


def test_what_a_check_said_convicts_it_and_no_other() -> None:
    said = "RuntimeError: NCCL error: unhandled system error, ncclSystemError"
    results = [failure("nccl", "error", said), failure("cudnn", "error", "RuntimeError: CUDNN_STATUS_INTERNAL_ERROR")]
    report = Report(Facts({}), (outcome("CD604", symptom="NCCL error: unhandled system error"),), ("CD604",), "1")
    assert [one.rule for one in explained(results, report)] == ["CD604", "CD209"]
    assert log_of(results) == [("verify", said), ("verify", results[1].error)]


# -- the verdict ------------------------------------------------------------------------------------------------------

PASSED = Result("versions", "pass", "torch", gpu=None)
SKIPPED = Result("nccl", "skip", "there is one GPU")
SLOW = failure("bandwidth", "slow")._replace(severity="warning")
BROKEN = failure("matmul", "crash")


@pytest.mark.parametrize(
    ("checks", "results", "fail_on", "status"),
    [
        (CHECKS, [PASSED, SKIPPED], ERROR, 0),
        (CHECKS, [PASSED, SLOW], ERROR, 0),
        (CHECKS, [PASSED, SLOW], "warning", 1),
        (CHECKS, [PASSED, SLOW, BROKEN], ERROR, 1),
        # What was asked for could not be looked at, whatever else was seen on the way.
        (("nccl",), [PASSED, SKIPPED], ERROR, 3),
        (CHECKS, [SKIPPED], ERROR, 3),
        (("nccl",), [failure("versions", "missing"), SKIPPED], ERROR, 1),
    ],
)
def test_exit_status(checks: tuple[str, ...], results: list[Result], fail_on: str, status: int) -> None:
    assert exit_status(Proof("python", tuple(checks), tuple(results)), fail_on) == status


def test_an_error_is_worse_than_what_is_slow() -> None:
    assert worst([PASSED, SLOW, BROKEN]) is BROKEN and worst([SLOW]) is SLOW and worst([PASSED, SKIPPED]) is None


# -- which GPUs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "count", "asked", "expected"),
    [
        (None, 2, (), [Device(0, "0"), Device(1, "1")]),
        (None, 2, (1,), [Device(1, "1")]),
        # One GPU, or a card in MIG mode: CUDA picks the instance itself.
        (None, 1, (), [Device(0, None)]),
        (None, None, (), []),
        ("", None, (), []),
        ("3,1", 2, (), [Device(0, "3"), Device(1, "1")]),
        ("3,1,9", 2, (), [Device(0, "3"), Device(1, "1")]),
        ("GPU-8f6d2c1e", 1, (), [Device(0, "GPU-8f6d2c1e")]),
        ("MIG-6a1c4c1e", 1, (0,), [Device(0, "MIG-6a1c4c1e")]),
        ("NoDevFiles", 0, (), []),
    ],
)
def test_devices(visible: Optional[str], count: Optional[int], asked: tuple[int, ...], expected: list[Device]) -> None:
    assert list(devices(visible, count, asked)) == expected


@pytest.mark.parametrize(("visible", "count"), [(None, 2), ("0,1", 2), ("0,1", None)])
def test_a_gpu_that_is_not_there(visible: Optional[str], count: Optional[int]) -> None:
    with pytest.raises(ParseError, match="there is no GPU 2"):
        devices(visible, count, (2,))


@pytest.mark.parametrize(
    ("visible", "entries", "expected"),
    [
        (None, (), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        (None, ("1",), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}),
        (None, (None,), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        # Somebody has chosen by number: the numbers keep their meaning.
        ("0,2", ("2",), {"CUDA_VISIBLE_DEVICES": "2"}),
        ("0,2", (), {}),
        ("", (), {}),
    ],
)
def test_environment(visible: Optional[str], entries: tuple[Optional[str], ...], expected: dict[str, str]) -> None:
    assert environment(visible, entries) == expected


def test_help_and_page_name_every_check() -> None:
    from cudadoctor.cli.verify import command
    from cudadoctor.explain import concept_page

    said = " ".join((command.help or "").split())
    assert f"Checks: {', '.join(CHECKS)}." in said
    for check in CHECKS:
        assert f"    - {check}: " in concept_page("verify")


def test_checks_run_in_their_own_order() -> None:
    assert chosen(("nccl,matmul", "matmul")) == ("matmul", "nccl") and chosen(()) == CHECKS
