"""`cudadoctor.will_it_fit`: the answer of `cudadoctor fit` for programs."""

from __future__ import annotations

from typing import Any

import pytest

import cudadoctor

GIB = 1 << 30


def test_it_fits() -> None:
    answer = cudadoctor.will_it_fit("llama-3.2-3b", gpu="RTX 4090")
    assert answer.verdict == "fits" and answer.changes == ()
    assert answer.low <= answer.expected <= answer.high < (answer.available or 0)
    assert answer.document["schema"] == "cudadoctor.fit/1" and answer.document["verdict"] == "fits"
    assert str(answer) == answer.message == answer.document["message"]


def test_it_does_not_fit_and_what_helps() -> None:
    answer = cudadoctor.will_it_fit("llama-3.1-8b", method="full", seq=2048, gpu="RTX 4090")
    assert answer.verdict == "does-not-fit"
    assert answer.low > (answer.available or 0)
    assert answer.answer.cure is not None and answer.changes


def test_a_size_is_enough() -> None:
    answer = cudadoctor.will_it_fit("7b", vram=24)
    assert answer.verdict in ("fits", "tight") and 13 * GIB < answer.expected < 20 * GIB


@pytest.mark.parametrize(
    ("model", "question", "says"),
    [
        ("llama-3.1-9b", {"vram": 24}, "no model"),
        ("llama-3.1-8b", {"vram": 24, "batsch": 2}, "batch"),
        ("llama-3.1-8b", {"vram": 24, "method": "dream"}, "method"),
        ("/nowhere/model.gguf", {"vram": 24}, "no file"),
        ("", {"vram": 24}, "model"),
    ],
)
def test_a_question_that_nobody_understands(model: str, question: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        cudadoctor.will_it_fit(model, **question)
