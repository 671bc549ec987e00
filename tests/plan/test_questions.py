"""What is still unexplained, and what to paste next."""

from __future__ import annotations

import pytest

from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.plan.questions import Unexplained, questions, unexplained
from cudadoctor.reports import read_report


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def left_open(text: str, matrix: Matrix) -> tuple[Unexplained, ...]:
    return unexplained(diagnose(read_report([("text", text)], matrix).facts, matrix), matrix)


def test_an_open_error_message_means_what_its_own_wording_means(matrix: Matrix) -> None:
    """Wordings of one symptom mean different things, and have different causes."""
    (found,) = left_open("RuntimeError: Can't initialize NVML", matrix)
    assert found.meaning == "torch or another program could not start NVML, the driver's management library"
    assert "CD106" in found.causes and "CD612" not in found.causes
    assertion = 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830'
    wording = matrix.message("nvml_broken", assertion)
    assert wording is not None
    assert wording.meaning.startswith("torch could not ask NVML about the GPU") and "CD612" in wording.causes


def test_of_a_text_that_is_cut_the_first_wording_counts(matrix: Matrix) -> None:
    wording = matrix.message("nvml_broken", "RuntimeErr")
    assert wording is not None and "initialize" in wording.pattern
    assert matrix.message("no_such_symptom", "RuntimeError: Can't initialize NVML") is None


@pytest.mark.parametrize(
    "text",
    [
        "I work in WSL2 on a laptop.",
        "Last night the laptop went to sleep.",
        "nvidia-smi works fine, by the way.",
        "bash: nvcc: command not found",
        "I tried it on my MacBook Pro with an M2, too.",
        "The GPU is a Radeon RX 7900.",
    ],
)
def test_what_somebody_tells_beside_is_no_error_message(matrix: Matrix, text: str) -> None:
    facts = read_report([("text", text)], matrix).facts
    assert any(name.startswith("symptom.") for name in facts)
    assert left_open(text, matrix) == ()


def test_what_is_asked_for_tells_what_the_suspects_lack(matrix: Matrix) -> None:
    report = diagnose(read_report([("text", "RuntimeError: No CUDA GPUs are available")], matrix).facts, matrix)
    asked = questions(report, matrix)
    assert "nvidia-smi" in [question.command for question in asked]
    assert len(asked) <= 3
    assert all(question.tells and question.rules for question in asked)
