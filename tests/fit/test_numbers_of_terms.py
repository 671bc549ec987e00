"""The numbers that --explain puts into a formula: worked out, they are the bytes of the term."""

from __future__ import annotations

import re
from typing import Any, Optional

import pytest

from cudadoctor.fit.catalogue import find
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.workload import Lora, Sharding, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.model.fact import ParseError

pytestmark = pytest.mark.once

MODELS = (
    *("llama-3.1-8b", "gemma-2-9b", "mixtral-8x7b", "gpt2", "gpt-oss-20b", "deepseek-v2-lite"),
    *("t5-base", "bert-base-uncased", "whisper-small", "sdxl"),
)
WEIGHTS = {"qlora": "nf4-dq", "llama.cpp": "q4_k_m"}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"method": "infer"},
    {"method": "infer", "attention": "eager", "batch": 4},
    {"method": "infer", "sharding": Sharding("pp", 2)},
    {"method": "infer", "framework": "transformers-4.40"},
    {"method": "infer", "framework": "litgpt"},
    {"method": "infer", "engine": "vllm", "batch": 4},
    {"method": "infer", "engine": "llama.cpp", "attention": "flash"},
    {"method": "infer", "engine": "llama.cpp", "attention": "eager", "context": 8192},
    {"method": "full"},
    {"method": "full", "precision": "mixed", "optimizer": "adafactor"},
    {"method": "full", "sharding": Sharding("zero2", 4)},
    {"method": "full", "sharding": Sharding("zero3", 4)},
    {"method": "full", "sharding": Sharding("fsdp", 4), "framework": "litgpt"},
    {"method": "full", "sharding": Sharding("tp", 4), "checkpointing": "selective"},
    {"method": "full", "offload": "all", "checkpointing": "full_offload"},
    {"method": "full", "variable_length": True, "optimizer_in_backward": True, "loss": "chunked"},
    {"method": "lora", "batch": 4, "lora": Lora(targets=("all",), dropout=0.1), "expandable_segments": True},
    {"method": "qlora"},
    {"method": "qlora", "framework": "litgpt"},
)


def worked_out(numbers: str) -> Optional[float]:
    """None for what is no sum: a range, or words."""
    text = numbers.replace(",", "")
    if not re.fullmatch(r"[0-9.x+/() -]+", text):
        return None
    return float(eval(text.replace("x", "*"), {"__builtins__": {}}))


@pytest.mark.parametrize("name", MODELS)
def test_numbers_come_to_the_bytes(matrix: Matrix, name: str) -> None:
    sums = 0
    for setting in SETTINGS:
        workload = Workload(**{"context": 2048, **setting})
        model = find(matrix, name)
        weights = WEIGHTS.get(workload.method) or WEIGHTS.get(workload.engine) or model.weights
        try:
            need = estimate(matrix, model._replace(weights=weights), workload)
        except ParseError:
            continue  # such a model does not run like this
        for term in need.terms:
            said = worked_out(term.numbers)
            if said is not None and term.bytes:
                sums += 1
                # Shares and widths are shown with three digits.
                assert said == pytest.approx(term.bytes, rel=0.006), (setting, term)
    assert sums > 3
