"""Every family, and every model of the catalogue, has as many parameters as its own class in transformers or diffusers,
and tensors of the same shapes."""

from __future__ import annotations

import collections
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.parts import CACHE, clean_environ, missing_part
from family_configs import CASES

from cudadoctor.fit.config import architecture_of_config
from cudadoctor.fit.families import known
from cudadoctor.matrix import Matrix

pytestmark = [pytest.mark.once, pytest.mark.real_part("transformers")]

CHILD = Path(__file__).with_name("real_classes.py")

# Families whose modeling code is published with the models only: no class of transformers to ask.
WITHOUT_CLASS = {"qwen", "chatglm", "baichuan", "internlm", "internlm2", "minicpm", "aquila", "xverse"}
# Its class takes its tower from timm, which is not among the parts.
WITHOUT_CLASS.add("gemma3n")
# Called otherwise in transformers.
ALSO_CALLED = {"yi": "llama", "Yi": "llama", "code_llama": "llama", "kimi_k2": "deepseek_v3"}
# Asked in one of the models that contain them.
WITHIN = {"idefics3_vision", "smolvlm_vision", "llama4_vision_model"}
WITHIN |= {"mllama_text_model", "glm4v_text", "glm4v_moe_text"}

CATALOGUE_CLASSES = {
    "bert": "BertModel",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
    "distilbert": "DistilBertModel",
    "deberta-v2": "DebertaV2Model",
    "modernbert": "ModernBertModel",
    "vit": "ViTForImageClassification",
    "whisper": "WhisperForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
    "wav2vec2": "Wav2Vec2ForCTC",
}


class Counted(NamedTuple):
    parameters: int
    shapes: collections.Counter[str]


@pytest.fixture(scope="module")
def real(matrix: Matrix) -> dict[str, Counted]:
    """What the classes hold: of the cases by their name, of the catalogue's models by "catalogue: " and theirs."""
    python = CACHE / "transformers" / "bin" / "python"
    if not python.exists():
        missing_part("transformers and diffusers", "scripts/install_test_parts.sh transformers fetches them")
    asked: list[dict[str, Any]] = [{"name": one.name, "config": one.config, "class": one.class_name} for one in CASES]
    for row in matrix.models():
        config = shallow(with_null(row.config))
        family = config.get("model_type")
        if family in WITHOUT_CLASS or is_untied_t5(config):
            continue
        if family in ALSO_CALLED:
            config["model_type"] = ALSO_CALLED[family]
        name = CATALOGUE_CLASSES.get(family, "") if family else ""
        if "T5EncoderModel" in config.get("architectures", ()):
            name = "T5EncoderModel"
        asked.append({"name": f"catalogue: {row.name}", "config": config, "class": name})
    done = subprocess.run(
        [str(python), str(CHILD)],
        input=json.dumps(asked),
        text=True,
        capture_output=True,
        timeout=600,
        env=clean_environ(),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    assert {name: one["error"] for name, one in answers.items() if "error" in one} == {}
    return {name: Counted(one["parameters"], collections.Counter(one["shapes"])) for name, one in answers.items()}


def with_null(config: Any) -> dict[str, Any]:
    """A config of the catalogue as JSON: TOML has no null, there it is 0."""
    made = {key: with_null(value) if isinstance(value, dict) else value for key, value in config.items()}
    return {**made, **{key: None for key in ("sliding_window", "q_lora_rank") if made.get(key) == 0}}


LAYERS = {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth"}
LAYERS.add("num_single_layers")


def shallow(config: dict[str, Any]) -> dict[str, Any]:
    """With some layers only: a class of a hundred takes a second to build, and they are alike."""
    made: dict[str, Any] = {
        key: shallow(value) if isinstance(value, dict) else min(value, 7) if key in LAYERS else value
        for key, value in config.items()
    }
    if "layer_types" in made:
        made["layer_types"] = made["layer_types"][:7]
    if made.get("num_kv_shared_layers"):
        made["num_kv_shared_layers"] = 1
    if "attention_types" in made:
        made.update(attention_types=[[["global", "local"], 3]], num_layers=6)
    if "dual_attention_layers" in made:
        made["dual_attention_layers"] = [one for one in made["dual_attention_layers"] if one < 7]
    return made


def is_untied_t5(config: dict[str, Any]) -> bool:
    """transformers builds T5 with one tensor for embedding and head, and parts them when the files hold two."""
    return config.get("model_type") == "t5" and config.get("tie_word_embeddings") is False


@pytest.mark.parametrize("case", CASES, ids=[one.name for one in CASES])
def test_a_family_has_the_tensors_of_its_class(real: dict[str, Counted], case: Any) -> None:
    ours = architecture_of_config(case.config, case.name)
    theirs = real[case.name]
    assert ours.parameters == theirs.parameters
    if any(run.feed_forward is not None and run.feed_forward.experts for run in ours.layers):
        return  # their class stacks the experts into one tensor
    if case.name == "stablelm 2":
        return  # one tensor a head
    shapes: collections.Counter[str] = collections.Counter()
    for tensor in ours.tensors:
        shapes[",".join(str(size) for size in sorted(tensor.shape) if size != 1)] += tensor.copies
    if case.name.startswith("granitemoeshared"):
        return
    assert shapes == theirs.shapes


def test_every_model_of_the_catalogue_has_as_many_as_its_class(real: dict[str, Counted], matrix: Matrix) -> None:
    asked = [row for row in matrix.models() if f"catalogue: {row.name}" in real]
    assert len(asked) > 220
    wrong = {}
    for row in asked:
        ours = architecture_of_config(shallow(dict(row.config)), row.name).parameters
        theirs = real[f"catalogue: {row.name}"].parameters
        if ours != theirs:
            wrong[row.name] = (ours, theirs)
    assert wrong == {}


def test_every_family_is_asked() -> None:
    asked = {one.config.get("model_type", one.config.get("_class_name")) for one in CASES}
    assert set(known()) - asked == WITHOUT_CLASS | set(ALSO_CALLED) | WITHIN | {"ministral3"}
