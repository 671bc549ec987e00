"""Public bug reports: the cause that is named first, what is not said beside it, and the command that mends it."""

# ruff: noqa: E501  (what people paste has no line limit)

from __future__ import annotations

import functools
import re

import pytest
from cases.judging import HERE, Case, Verdict, judge, load_cases, load_kinds, misses

from cudadoctor import diagnose_text
from cudadoctor.matrix import load_matrix
from cudadoctor.rules import rule_files

CASES = load_cases()

# Reports that are not yet read or judged right. A case leaves the list with the change that mends it.
OPEN: frozenset[str] = frozenset()


@functools.cache
def verdict_of(case: Case) -> Verdict:
    return judge(case)


def params(cases: list[Case]) -> list[object]:
    open_case = pytest.mark.xfail(reason="not yet judged right", strict=False)
    return [pytest.param(case, id=case.id, marks=[open_case] if case.id in OPEN else []) for case in cases]


@pytest.mark.parametrize("case", params([case for case in CASES if case.confirmed and case.expected]))
def test_the_cause_is_named_first(case: Case) -> None:
    verdict = verdict_of(case)
    assert verdict.first, misses(verdict)


@pytest.mark.parametrize("case", params([case for case in CASES if case.confirmed]))
def test_nothing_false_is_said_beside_it(case: Case) -> None:
    verdict = verdict_of(case)
    assert not verdict.false, misses(verdict)


@pytest.mark.parametrize("case", params([case for case in CASES if case.confirmed and case.command]))
def test_what_mends_it_is_offered(case: Case) -> None:
    verdict = verdict_of(case)
    assert verdict.command, misses(verdict)


@pytest.mark.parametrize("case", params([case for case in CASES if case.quiet]))
def test_where_nothing_is_wrong_nothing_is_called_an_error(case: Case) -> None:
    verdict = verdict_of(case)
    assert verdict.first, misses(verdict)


@pytest.mark.parametrize("case", params([case for case in CASES if not case.confirmed]))
def test_nothing_is_certain_where_no_cause_was_confirmed(case: Case) -> None:
    verdict = verdict_of(case)
    assert not verdict.certain, misses(verdict)


@pytest.mark.parametrize("case", params(list(CASES)))
def test_no_rule_crashes_on_it(case: Case) -> None:
    assert not verdict_of(case).crashed


VARIABLE = re.compile(r"\b(?:[A-Z]{2,}_[A-Z_]*(?:PATH|HOME|DEVICES|CUDA|CONF)|CUDA_[A-Z_]+)\b")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in (*CASES, *load_kinds())])
def test_a_variable_that_the_text_does_not_hold_is_not_said_to_be_set(case: Case) -> None:
    """It may be the likeliest way to what is seen; then the message says so, and that nobody knows."""
    pasted = case.text.decode("utf-16" if case.text[:2] == b"\xff\xfe" else "utf-8", "replace")
    for outcome in verdict_of(case).said:
        for variable in VARIABLE.findall(outcome.message):
            assert variable in pasted or "where that is set" in outcome.message, outcome.message


# What is nobody's fault of ours: bugs in a model, a wrong path, a version conflict without a CUDA side, plain talk.
QUIET = {
    "a wrong dtype": """RuntimeError: expected scalar type Half but found Float
torch 2.5.1+cu124, RTX 3090, driver 560.35.03""",
    "a label out of range": """RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
/pytorch/aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.""",
    "a tensor left on the CPU": """RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index in method wrapper_CUDA__index_select)""",
    "a missing file": """FileNotFoundError: [Errno 2] No such file or directory: 'data/train.json'
>>> torch.cuda.is_available()
True""",
    "numpy 2": """A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.1.2 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.""",
    "versions that exclude each other": """ERROR: Cannot install transformers==4.30.0 and tokenizers==0.19 because these package versions have conflicting dependencies.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/#dealing-with-dependency-conflicts""",
    "a crash without a reason": """$ python train.py
Segmentation fault (core dumped)
$ pip list | grep torch
torch                    2.4.0+cu121""",
    "a key that is not in the checkpoint": """>>> torch.cuda.is_available()
True
KeyError: 'lm_head.weight'""",
    "not a number": "my loss is nan after 100 steps with fp16 on a V100, torch 1.13.1+cu117, driver 515.65.01",
    "a network without names": "fatal: unable to access 'https://github.com/x/y.git/': Could not resolve host: github.com",
    "an interrupt": "^CTraceback (most recent call last):\nKeyboardInterrupt",
    "a question": "Is the RTX 5090 supported by PyTorch 2.7? I read about 'no kernel image is available' and 'driver version is "
    "insufficient' in other threads and want to avoid that.",
    "a manual": "To use GPUs run `docker run --gpus all image`; without it you get 'could not select device driver'. Set "
    "CUDA_VISIBLE_DEVICES=0 to choose the first. LD_LIBRARY_PATH should include /usr/local/cuda/lib64.",
    "a harmless warning (GB10)": """/usr/lib/python3.12/site-packages/torch/cuda/__init__.py:283: UserWarning:
    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.
    Minimum and Maximum cuda capability supported by this version of PyTorch is
    (8.0) - (12.0)

  warnings.warn(
34 tokens/s""",
}


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_what_is_not_ours_stays_quiet(text: str) -> None:
    assert diagnose_text(text).root_causes == ()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in load_kinds()])
def test_the_same_kind_is_recognised_in_other_words(case: Case) -> None:
    assert misses(judge(case)) == []


def test_each_text_has_its_row_and_each_row_its_text() -> None:
    assert sorted(path.stem for path in HERE.glob("*.txt")) == sorted(case.id for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_row_makes_sense(case: Case) -> None:
    assert case.confidence in ("high", "medium", "low")
    assert case.source.startswith("https://github.com/")
    assert not (case.quiet and (case.expected or case.command))
    assert not set(case.never) & (set(case.expected) | set(case.also))
    assert all(re.fullmatch(r"CD\d{3}", rule) for rule in (*case.expected, *case.also, *case.never))
    re.compile(case.command)


# Rules that texts and tables may name before they exist.
PLANNED = frozenset({"CD801"})


def test_rules_that_cases_and_messages_name_exist() -> None:
    named = {rule for case in (*CASES, *load_kinds()) for rule in (*case.expected, *case.also, *case.never)}
    named |= {rule for message in load_matrix().messages() for rule in message.causes}
    assert named - set(rule_files()) - PLANNED == set()


def test_open_cases_are_cases() -> None:
    assert {case.id for case in CASES} >= OPEN
