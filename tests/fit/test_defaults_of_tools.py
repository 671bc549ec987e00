"""What nobody said is what the tools do unless told: Ollama's and llama.cpp's types, Trainer's and PEFT's settings."""

from __future__ import annotations

from typing import Any

import pytest

import cudadoctor

pytestmark = pytest.mark.once


def workload(model: str, **question: Any) -> Any:
    return cudadoctor.will_it_fit(model, **question).answer.workload


@pytest.mark.parametrize(
    ("name", "question", "weights", "engine"),
    [
        ("llama3.1:8b", {}, "Q4_K_M", "llama.cpp"),
        ("someone/llama3.1:8b", {}, "Q4_K_M", "llama.cpp"),
        ("qwen2.5:7b-instruct-q8_0", {}, "Q8_0", "llama.cpp"),
        ("llama3.1:8b-instruct-fp16", {"framework": "llama.cpp"}, "fp16", "llama.cpp"),
        ("llama3.1:8b", {"framework": "transformers"}, "bf16", "transformers"),
        ("llama3.1:8b", {"quant": "bf16", "framework": "llama.cpp"}, "bf16", "llama.cpp"),
        ("llama-3.1-8b", {}, "bf16", "transformers"),
        ("llama-3.1-8b", {"framework": "llama.cpp"}, "Q4_K_M", "llama.cpp"),
        ("8b", {"framework": "llama.cpp"}, "Q4_K_M", "llama.cpp"),
        ("gpt-oss:20b", {}, "mxfp4", "llama.cpp"),  # so it is published, and kept
        ("llama3.1:8b-instruct-fp16", {}, "fp16", "llama.cpp"),
        ("deepseek-r1:671b", {}, "Q4_K_M", "llama.cpp"),  # published in FP8, which GGUF files do not know
        ("llama-3.1-8b", {"framework": "ollama"}, "Q4_K_M", "llama.cpp"),
        ("llama-3.1-8b", {"framework": "vllm"}, "bf16", "vllm"),
        ("llama3.1:8b", {"method": "lora"}, "bf16", "transformers"),
    ],
)
def test_of_which_type_the_weights_are(name: str, question: dict[str, Any], weights: str, engine: str) -> None:
    found = cudadoctor.will_it_fit(name, vram=24, **question).answer
    assert (found.model.weights, found.workload.engine) == (weights, engine)
    said = any("where no other type is named" in note for note in found.model.notes)
    assert said == (weights == "Q4_K_M")


@pytest.mark.parametrize(
    ("model", "question", "settings"),
    [
        ("qwen2.5-7b", {"method": "qlora"}, {"checkpointing": "full", "precision": "bf16", "fused_optimizer": True}),
        ("qwen2.5-7b", {"method": "qlora", "ckpt": "none"}, {"checkpointing": "none"}),
        ("qwen2.5-7b", {"method": "lora"}, {"checkpointing": "none", "precision": "bf16", "fused_optimizer": True}),
        ("qwen2.5-7b", {"method": "qlora", "gpu": "T4"}, {"precision": "fp16", "checkpointing": "full"}),
        ("qwen2.5-7b", {"method": "lora", "gpu": "T4", "precision": "bf16"}, {"precision": "bf16"}),
        ("bert-base-uncased", {"method": "full", "gpu": "T4"}, {"precision": "fp16"}),
        ("bert-base-uncased", {"method": "full", "gpu": "A100"}, {"precision": "mixed"}),
        ("llama-3.2-1b", {"method": "full", "gpu": "A100"}, {"precision": "bf16", "checkpointing": "none"}),
        ("llama-3.2-1b", {"method": "full", "optimizer": "adamw", "gpu": "A100"}, {"fused_optimizer": False}),
        ("llama-3.2-1b", {"method": "full", "parallel": "fsdp", "n_gpus": 8}, {"precision": "mixed"}),
        ("llama-3.2-1b", {"method": "lora", "parallel": "fsdp", "n_gpus": 8}, {"precision": "bf16"}),
        ("llama-3.2-1b", {"method": "full", "parallel": "zero3", "n_gpus": 8}, {"fused_optimizer": False}),
        # A measurement says what it was, or it was as its framework does it.
        ("qwen2.5-7b", {"method": "qlora", "framework": "litgpt"}, {"checkpointing": "none", "fused_optimizer": False}),
        ("qwen2.5-7b", {"method": "qlora", "id": "x"}, {"checkpointing": "none", "fused_optimizer": False}),
    ],
)
def test_how_it_is_trained(model: str, question: dict[str, Any], settings: dict[str, Any]) -> None:
    found = workload(model, **({} if "gpu" in question else {"vram": 80}), **question)
    assert {name: getattr(found, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("tag", "model"),
    [
        ("deepseek-r1:1.5b", "deepseek-r1-distill-qwen-1.5b"),
        ("deepseek-r1:7b", "qwen2.5-7b"),
        ("deepseek-r1:8b", "qwen3-8b"),
        ("deepseek-r1:14b", "qwen2.5-14b"),
        ("deepseek-r1:32b", "qwen2.5-32b"),
        ("deepseek-r1:70b", "llama-3.3-70b"),
        ("deepseek-r1:671b", "deepseek-v3"),
        ("deepseek-coder-v2:16b", "deepseek-v2-lite"),
        ("qwen3:30b", "qwen3-30b-a3b"),
        ("qwen3-coder:30b", "qwen3-coder-30b-a3b"),
        ("devstral:24b", "mistral-small-24b"),
        ("dolphin3:8b", "llama-3.1-8b"),
        ("gemma3:12b-it-q4_K_M", "gemma-3-12b"),
        ("gemma3:12b-it-qat", "gemma-3-12b"),
        ("qwen3-next", "qwen3-next-80b-a3b"),  # there is one only
    ],
)
def test_what_ollama_calls_models(tag: str, model: str) -> None:
    assert cudadoctor.will_it_fit(tag, vram=24).answer.model.architecture.name == model


def test_what_helps_is_said_in_ollamas_words() -> None:
    lines = {line for change in cudadoctor.will_it_fit("llama3.1:8b", seq=65536, vram=8).answer.changes
             for line in change.lines}  # fmt: skip
    assert "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve" in lines
    assert any("ollama ps" in line for line in lines)
    assert not any("-ngl" in line or "-ctk" in line for line in lines)
