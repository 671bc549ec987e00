"""What inference needs, counted, beside what torch allocates when it runs the model's own class: tensors without
memory, on the CPU, by the child script of `fit --measure`."""

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
from cudadoctor.fit.config import model_of_config
from cudadoctor.fit.inference import inference
from cudadoctor.fit.measured import DryRun, compared, run_of
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix

pytestmark = [pytest.mark.once, pytest.mark.real_part("transformers")]

_DECODER = {
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 6, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip
_NARROW = {key: value for key, value in _DECODER.items() if key != "head_dim"}

CONFIGS: dict[str, Mapping[str, Any]] = {
    "llama": {"model_type": "llama", **_DECODER},
    "mistral": {"model_type": "mistral", **_DECODER, "sliding_window": None},
    "qwen2": {"model_type": "qwen2", **_NARROW},
    "qwen3": {"model_type": "qwen3", **_DECODER, "head_dim": 128},
    "phi3": {"model_type": "phi3", "pad_token_id": 0, **_NARROW},
    "gemma": {"model_type": "gemma", **_DECODER, "tie_word_embeddings": True},
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 6, "n_head": 12, "n_positions": 4096,
             "vocab_size": 50257},
    "gpt_neox": {"model_type": "gpt_neox", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 6,
                 "num_attention_heads": 16, "vocab_size": 50304, "max_position_embeddings": 4096},
    "falcon": {"model_type": "falcon", "hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16,
               "vocab_size": 32000, "multi_query": True, "parallel_attn": True, "bias": False},
    "starcoder2": {"model_type": "starcoder2", **_NARROW},
    "olmo2": {"model_type": "olmo2", **_NARROW},
    "phi": {"model_type": "phi", **_NARROW},
    "mixtral": {"model_type": "mixtral", **_DECODER, "num_local_experts": 8, "num_experts_per_tok": 2},
}  # fmt: skip


class Case(NamedTuple):
    config: str
    workload: Workload
    within: float
    """How far the two may lie apart, as a share of all that is allocated, weights included."""

    @property
    def name(self) -> str:
        return f"{self.config}-{self.workload.attention}-{self.workload.batch}x{self.workload.context}"


def prompt(attention: str = "flash", batch: int = 2, context: int = 4096) -> Workload:
    return Workload(batch=batch, context=context, attention=attention)


# One tensor as wide as the hidden state more than most families hold, and one less: norms come after the parts there.
WIDER = {"falcon": 0.05, "olmo2": 0.03}

CASES = (
    *(Case(name, prompt(), WIDER.get(name, 0.02)) for name in CONFIGS if name != "mixtral"),
    Case("mixtral", prompt(), 0.25),
    *(Case(name, prompt("sdpa"), 0.02) for name in ("llama", "qwen3")),
    *(Case(name, prompt("eager", 1, 2048), 0.06) for name in ("llama", "qwen2")),
)


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    root = CACHE / "transformers"
    if not (root / "ready").exists():
        missing_part("transformers", "scripts/install_test_parts.sh transformers fetches it")
    asked = [{**request_of(CONFIGS[one.config], one.workload)[0], "name": one.name} for one in CASES]
    done = subprocess.run(
        [str(root / "bin" / "python"), str(Path(__file__).with_name("dry_runs.py")), str(script.__file__)],
        input=json.dumps(asked), capture_output=True, text=True, timeout=600, env=clean_environ(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_prompt_takes_what_the_models_own_class_takes(case: Case, answers: Mapping[str, Any], matrix: Matrix) -> None:
    answer = answers[case.name]
    assert "cannot" not in answer, answer
    run = run_of(answer["runs"], [tuple(side) for side in answer["sides"]], DryRun("cannot"))
    model = model_of_config(CONFIGS[case.config], case.config)._replace(weights="bf16")
    need = inference(matrix, model, case.workload)
    found = compared(run, need)
    assert found is not None
    assert abs(found.share) <= case.within, (
        f"{found.share:+.1%}: torch {found.measured:,} ({run.phase}), counted {found.estimated.expected:,} "
        f"({need.peak}): {[(one.name, one.bytes) for one in need.terms]}"
    )
