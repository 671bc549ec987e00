"""What training needs, counted, beside what torch does when it runs the model's own class: tensors without memory, on
the CPU, by the child script of `fit --measure`. The peak of a step has to come out alike, family by family."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.parts import CACHE, clean_environ, missing_part

from cudadoctor.actions.measure_fit import request_of
from cudadoctor.fit import dry_run as script
from cudadoctor.fit.architecture import Model
from cudadoctor.fit.config import model_of_config
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.measured import DryRun, compared, run_of
from cudadoctor.fit.workload import Lora, Workload
from cudadoctor.matrix import Matrix

pytestmark = [pytest.mark.once, pytest.mark.real_part("transformers")]

_DECODER = {
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 12, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip
_BERT = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "vocab_size": 30522, "max_position_embeddings": 512,
}  # fmt: skip

CONFIGS: dict[str, Mapping[str, Any]] = {
    "llama": {"model_type": "llama", **_DECODER},
    "mistral": {"model_type": "mistral", **_DECODER, "sliding_window": None},
    "qwen2": {"model_type": "qwen2", **{key: value for key, value in _DECODER.items() if key != "head_dim"}},
    "qwen3": {"model_type": "qwen3", **_DECODER},
    "gemma": {"model_type": "gemma", **_DECODER, "tie_word_embeddings": True},
    "gemma2": {"model_type": "gemma2", **_DECODER, "tie_word_embeddings": True, "sliding_window": 4096},
    "phi3": {
        "model_type": "phi3", "pad_token_id": 0, **{k: v for k, v in _DECODER.items() if k != "head_dim"},
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
    },
    "gpt_neox": {
        "model_type": "gpt_neox", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 12,
        "num_attention_heads": 16, "vocab_size": 50304, "max_position_embeddings": 2048,
    },
    "opt": {
        "model_type": "opt", "hidden_size": 768, "word_embed_proj_dim": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 50272, "max_position_embeddings": 2048,
    },
    "mixtral": {"model_type": "mixtral", **_DECODER, "num_local_experts": 8, "num_experts_per_tok": 2},
}  # fmt: skip

_ALL = Lora(16, ("q", "k", "v", "o", "gate", "up", "down"), 0.0)
_DROPPED = _ALL._replace(dropout=0.05)


class Case(NamedTuple):
    config: str
    workload: Workload
    within: float = 0.02
    """How far the two may lie apart, as a share."""

    @property
    def name(self) -> str:
        said = {key: value for key, value in self.workload._asdict().items() if value != getattr(Workload(), key)}
        lora = said.pop("lora", None)
        words = [self.config, *(f"{value}" for value in said.values()), f"dropout {lora.dropout}" if lora else ""]
        return " ".join(word for word in words if word)


def full(**changes: Any) -> Workload:
    return Workload(method="full", batch=2, context=2048, **changes)


def lora(wanted: Lora = _ALL, **changes: Any) -> Workload:
    return Workload(method="lora", batch=2, context=2048, lora=wanted, **changes)


# Where several heads share a key, sdpa of older transformers makes a copy for each head, and the estimate counts it so;
# flash attention makes none, nor does sdpa of today's.
CASES = (
    *(Case(name, full(attention="flash")) for name in CONFIGS if name not in ("gemma2", "gpt2")),
    *(Case(name, full(attention="eager")) for name in ("llama", "qwen3", "gemma2")),
    Case("gpt2", full()._replace(context=1024)),
    *(Case(name, full(checkpointing="full")) for name in ("llama", "gpt_neox")),
    Case("llama", full(precision="mixed", attention="flash")),
    Case("llama", full(precision="fp32", attention="eager")),
    Case("llama", full(optimizer="sgd", attention="flash")),
    Case("llama", full(accumulation=True, attention="flash")),
    *(Case(name, lora(attention="flash")) for name in ("llama", "qwen3", "gemma")),
    Case("phi3", lora(attention="flash"), 0.03),
    Case("llama", lora(_DROPPED, attention="flash")),
    Case("llama", lora(checkpointing="full")),
)

# Two ways to ask what a forward pass leaves: the operators that are dispatched, and autograd itself in a real run.
REAL = {
    name: {**config, "num_hidden_layers": 2, "hidden_size": 96, "intermediate_size": 208, "num_attention_heads": 6,
           "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000}
    for name, config in CONFIGS.items()
    if name in ("llama", "qwen3", "gemma")
}  # fmt: skip


# What a config may say, and what becomes of it: the start of the answer, or empty where it runs all the same.
_SMALL = {**_DECODER, "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100}  # fmt: skip
HOSTILE: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "code of the repository": (
        {**_SMALL, "model_type": "evil", "auto_map": {"AutoModelForCausalLM": "evil/repo--modeling.Evil"}},
        "transformers 5.24.0 has no class for 'evil'",
    ),
    "code beside a known type": ({**_SMALL, "auto_map": {"AutoConfig": "evil/repo--modeling.Evil"}}, ""),
    "a class that is no model": ({**_SMALL, "architectures": ["AutoTokenizer", "__builtins__", 7]}, ""),
    "a quantised checkpoint": ({**_SMALL, "quantization_config": {"quant_method": "gptq", "bits": 4}}, ""),
    "more layers than atoms": ({**_SMALL, "num_hidden_layers": 10**30}, ""),
    "wider than memory": ({**_SMALL, "hidden_size": 10**30, "head_dim": 10**29}, "error"),
    "heads that do not divide": ({**_SMALL, "num_attention_heads": 7, "head_dim": None}, "error"),
    "no type": ({key: value for key, value in _SMALL.items() if key != "model_type"}, "the config names no model_type"),
    "a type that is no word": ({**_SMALL, "model_type": ["llama"]}, "the config names no model_type"),
}


def _requests() -> list[dict[str, Any]]:
    asked = [{**request_of(CONFIGS[one.config], one.workload)[0], "name": one.name} for one in CASES]
    for name, config in REAL.items():
        workload = Workload(method="full", batch=2, context=56, attention="eager")
        one = request_of(config, workload)[0]
        asked.append({**one, "name": f"real {name}", "real": True, "depths": [2]})
    for name, (config, _) in HOSTILE.items():
        asked.append({**request_of(config, Workload(method="full", context=64))[0], "name": name})
    whole = request_of(CONFIGS["llama"], CASES[0].workload)[0]
    return [*asked, {**whole, "name": "all layers", "depths": [12]}]


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    root = CACHE / "transformers"
    if not (root / "ready").exists():
        missing_part("transformers", "scripts/install_test_parts.sh transformers fetches it")
    done = subprocess.run(
        [str(root / "bin" / "python"), str(Path(__file__).with_name("dry_runs.py")), str(script.__file__)],
        input=json.dumps(_requests()), capture_output=True, text=True, timeout=600, env=clean_environ(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def run_named(answers: Mapping[str, Any], name: str) -> DryRun:
    found = answers[name]
    assert "runs" in found, found
    return run_of(found["runs"], [tuple(side) for side in found["sides"]], DryRun("cannot"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_peak_of_a_step_is_that_of_the_models_own_class(
    case: Case, answers: Mapping[str, Any], matrix: Matrix
) -> None:
    run = run_named(answers, case.name)
    model: Model = model_of_config(CONFIGS[case.config], case.config)._replace(weights="bf16")
    need = estimate(matrix, model, case.workload)
    found = compared(run, need)
    assert found is not None
    assert run.parameters is not None and run.trained is not None
    assert model.architecture.parameters in (run.parameters, run.parameters - run.trained)
    assert abs(found.share) <= case.within, (
        f"{found.share:+.1%}: torch {found.measured:,} ({run.phase}), counted {found.estimated.expected:,} "
        f"({need.peak}); kept for the backward pass: {run.activations:,}"
    )


@pytest.mark.parametrize("name", REAL)
def test_what_the_operators_tell_is_what_autograd_keeps_of_a_real_run(name: str, answers: Mapping[str, Any]) -> None:
    found = answers[f"real {name}"]
    (run,) = found["runs"]
    # The loss, and the count of labels in it, live beside what the graph keeps.
    assert 0 <= run["activations"] - found["real"] <= 2 * script.BLOCK


def test_a_few_layers_tell_of_all(answers: Mapping[str, Any]) -> None:
    whole, some = run_named(answers, "all layers"), run_named(answers, CASES[0].name)
    assert (whole.layers_run, some.layers_run) == ((12,), (2, 3))
    for key in ("parameters", "weights", "gradients", "optimizer", "activations", "peak", "phase"):
        assert getattr(some, key) == getattr(whole, key), key


@pytest.mark.parametrize("name", HOSTILE)
def test_a_config_runs_no_code_and_ends_nothing(name: str, answers: Mapping[str, Any]) -> None:
    expected, found = HOSTILE[name][1], answers[name]
    if not expected:
        assert found["runs"][0]["model_class"] == "LlamaForCausalLM"
    elif expected == "error":
        assert found["error"]
    else:
        assert found["cannot"] == expected
