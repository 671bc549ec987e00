"""Training, term by term: each row a number that can be reckoned by hand, or that a framework's code says."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.need import ACTIVATIONS, ADAPTERS, BUFFERS, CACHED, GRADIENTS, LOGITS, OPTIMIZER, WEIGHTS, Need
from cudadoctor.fit.workload import FULL, LORA, QLORA, Lora, Sharding, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.model.fact import ParseError

P = 1_235_814_400  # of Llama 3.2 1B, whose head is its embedding
H, V, LAYERS = 2048, 128_256, 16


@pytest.fixture(scope="module")
def llama(matrix: Matrix) -> Model:
    return find(matrix, "llama-3.2-1b")


def amounts(need: Need, part: str) -> dict[str, int]:
    return {term.name: term.bytes for term in need.terms if term.part == part}


def of(matrix: Matrix, model: Model, **said: Any) -> Need:
    said.setdefault("stated", frozenset(("ce", "precision")))
    return estimate(matrix, model, Workload(**said))


# precision, optimizer -> bytes a parameter of weights, gradients, states
STATES = (
    ("bf16", "adamw", 2, 2, 4.0),
    ("bf16", "adamw_fp32", 2, 2, 8.0),
    ("bf16", "sgd", 2, 2, 0.0),
    ("bf16", "sgd_momentum", 2, 2, 2.0),
    ("bf16", "paged_adamw_8bit", 2, 2, 0.0),
    ("mixed", "adamw", 4, 4, 8.0),
    ("mixed", "lion", 4, 4, 4.0),
    ("fp32", "adamw", 4, 4, 8.0),
    ("fp32", "muon", 4, 4, 4.0),
)


@pytest.mark.parametrize(("precision", "optimizer", "weights", "gradients", "states"), STATES)
def test_bytes_of_a_parameter(
    matrix: Matrix, llama: Model, precision: str, optimizer: str, weights: int, gradients: int, states: float
) -> None:
    need = of(matrix, llama, method=FULL, precision=precision, optimizer=optimizer, accumulation=True, context=128)
    assert amounts(need, WEIGHTS)["weights"] == weights * P
    assert amounts(need, GRADIENTS)["gradients"] == gradients * P
    found = [size for name, size in amounts(need, OPTIMIZER).items() if "states" in name]
    assert sum(found) == states * P


def test_adamw_copies_all_parameters_in_a_step_unless_it_is_fused(matrix: Matrix, llama: Model) -> None:
    small = {"method": FULL, "batch": 1, "context": 16}
    step = of(matrix, llama, **small)
    assert step.peak == "optimizer step"
    assert amounts(step, OPTIMIZER)["copies that a step makes"] == 2 * P
    fused = of(matrix, llama, **small, fused_optimizer=True)
    assert "copies that a step makes" not in amounts(fused, OPTIMIZER)


def test_states_of_8_bits_are_two_bytes_and_a_scale_a_block(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=FULL, optimizer="adamw_8bit", framework="torchtune")
    assert amounts(need, OPTIMIZER)["states of adamw_8bit"] == round(P * (2 + 2 * 4 / 256))


def test_the_trainer_keeps_states_of_embeddings_wide(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=FULL, optimizer="adamw_8bit")
    embedding = V * H
    assert amounts(need, OPTIMIZER)["states of adamw_8bit"] == round(2.03125 * (P - embedding)) + 8 * embedding


# targets -> parameters of one layer of Llama 3.2 1B (h 2048, k and v 512, I 8192) for each of the rank
ADAPTED = (
    (("q", "v"), 2048 + 2048 + 2048 + 512),
    (("qkv",), 2048 + 2048 + 512 + 512),
    (("gate", "up", "down"), 3 * (2048 + 8192)),
    (("all",), 2 * (2048 + 2048) + 2 * (2048 + 512) + 3 * (2048 + 8192)),
)


@pytest.mark.parametrize(("targets", "a_layer"), ADAPTED, ids=str)
def test_adapters(matrix: Matrix, llama: Model, targets: tuple[str, ...], a_layer: int) -> None:
    need = of(matrix, llama, method=LORA, lora=Lora(8, targets))
    assert amounts(need, ADAPTERS)["adapters"] == 4 * 8 * LAYERS * a_layer


def test_the_head_may_have_an_adapter(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=LORA, lora=Lora(8, ("head",), width=2))
    assert amounts(need, ADAPTERS)["adapters"] == 2 * 8 * (V + H)


def test_a_model_without_the_targets_is_refused(matrix: Matrix, llama: Model) -> None:
    with pytest.raises(ParseError, match="none of the matrices that LoRA is to change"):
        of(matrix, llama, method=LORA, lora=Lora(8, ("dense",)))


# loss -> bytes for each token and word
LOSSES = (("plain", 12), ("upcast", 12), ("fp32", 12), ("bf16", 12), ("chunked", 2), ("fused", 0.3))


@pytest.mark.parametrize(("loss", "each"), LOSSES)
def test_logits(matrix: Matrix, llama: Model, loss: str, each: float) -> None:
    need = of(matrix, llama, method=LORA, batch=4, context=4096, loss=loss, checkpointing="full_offload")
    found = amounts(need, LOGITS)
    if found:  # of a fused loss, another moment may be the peak
        assert sum(found.values()) == round(each * 4 * 4096 * V)
    else:
        assert loss == "fused"


def test_a_loop_that_holds_the_output_holds_the_logits(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=LORA, batch=4, context=4096, loss="plain", framework="peft", checkpointing="full")
    assert sum(amounts(need, LOGITS).values()) == 14 * 4 * 4096 * V


def test_checkpointing_keeps_one_hidden_state_a_layer(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=LORA, batch=2, context=1024, checkpointing="full")
    assert amounts(need, ACTIVATIONS)["inputs of the layers"] == LAYERS * 2 * H * 2 * 1024


def test_embeddings_of_a_model_in_4_bits_become_fp32_in_peft_and_not_in_axolotl(matrix: Matrix, llama: Model) -> None:
    quantised = llama._replace(weights="nf4")
    peft, axolotl = (of(matrix, quantised, method=QLORA, framework=name) for name in ("peft", "axolotl"))
    extra = amounts(peft, WEIGHTS)["embeddings, norms and head in fp32"]
    assert extra == 2 * (V * H + (2 * LAYERS + 1) * H)
    assert "embeddings, norms and head in fp32" not in amounts(axolotl, WEIGHTS)


def test_matrices_in_4_bits_give_back_fp32_behind_norms_in_fp32(matrix: Matrix, llama: Model) -> None:
    """Three tensors as wide as the feed-forward part are kept, of twice the bytes, and the head's 16-bit copy. The dry
    run of the real classes (`fit --measure`) agrees within 2 %."""
    peft, axolotl = (
        of(matrix, llama._replace(weights="nf4"), method=QLORA, context=128, framework=framework)
        for framework in ("peft", "axolotl")
    )
    kept = [sum(amounts(need, ACTIVATIONS).values()) for need in (peft, axolotl)]
    assert kept[0] - kept[1] >= 6 * 8192 * 128 * LAYERS
    assert amounts(peft, BUFFERS)["the head in 16 bits"] == 2 * V * H
    assert "the head in 16 bits" not in amounts(axolotl, BUFFERS)


def test_litgpt_keeps_embedding_and_head_apart(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=LORA, framework="litgpt", lora=Lora(8, ("q", "v"), width=2))
    assert amounts(need, WEIGHTS)["a head of its own"] == 2 * V * H


# kind, degree -> divisors of weights, fp32 copy, gradients
SHARDED = (("zero1", 4, 1, 4), ("zero2", 4, 1, 4), ("zero3", 4, 4, 4))


@pytest.mark.parametrize(("kind", "degree", "weights", "states"), SHARDED)
def test_zero(matrix: Matrix, llama: Model, kind: str, degree: int, weights: int, states: int) -> None:
    need = of(matrix, llama, method=FULL, sharding=Sharding(kind, degree), accumulation=True)
    assert amounts(need, WEIGHTS)["weights"] == 2 * P // weights
    assert amounts(need, OPTIMIZER)["fp32 copy of the trained parameters"] == 4 * P // states
    assert amounts(need, OPTIMIZER)["states of adamw"] == 8 * P // states
    assert "buckets of gradients" in amounts(need, BUFFERS)
    assert need.gpus == degree


def test_data_parallel_copies_hold_everything_and_buckets_of_all_gradients(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=FULL, sharding=Sharding("ddp", 8), accumulation=True)
    assert amounts(need, WEIGHTS)["weights"] == 2 * P
    assert amounts(need, BUFFERS)["buckets of gradients"] == 2 * P


def test_offloading_moves_the_states_to_the_host(matrix: Matrix, llama: Model) -> None:
    here = of(matrix, llama, method=FULL, sharding=Sharding("zero2", 2))
    there = of(matrix, llama, method=FULL, sharding=Sharding("zero2", 2), offload="optimizer")
    assert not amounts(there, OPTIMIZER)
    assert there.host.expected - here.host.expected == 16 * P


def test_a_person_can_read_each_term(matrix: Matrix, llama: Model) -> None:
    need = of(matrix, llama, method=LORA, batch=2, context=2048)
    (term,) = [term for term in need.terms if term.part == LOGITS]
    assert term.formula == "bytes x tokens x V"
    assert term.numbers == "12 x 4,096 x 128,256"
    assert "fp32" in term.source


ENCODERS = ("bert-base-uncased", "vit-base-patch16-224", "t5-small", "whisper-small")


@pytest.mark.parametrize("name", ENCODERS)
def test_models_that_are_no_decoders(matrix: Matrix, name: str) -> None:
    model = find(matrix, name)
    need = of(matrix, model, method=FULL, precision="fp32", batch=4, context=128)
    assert amounts(need, WEIGHTS)["weights"] == 4 * model.architecture.parameters
    assert need.allocated.expected > 16 * model.architecture.parameters
    has_words = name.startswith(("t5", "whisper"))
    assert has_words or not amounts(need, LOGITS)
    assert has_words or any("small head" in sentence for sentence in need.assumed)


REFUSED = (
    ({"optimizer": "adamww"}, "the optimizer 'adamww' is not known: the nearest are adamw"),
    ({"loss": "mse"}, "the loss 'mse' is none of plain"),
    ({"checkpointing": "some"}, "checkpointing 'some' is none of none, full"),
    ({"precision": "int8"}, "the precision 'int8' is none of"),
    ({"sharding": Sharding("ring", 2)}, "the sharding 'ring' is none of"),
    ({"sharding": Sharding("fsdp", 0)}, "over 0 GPUs"),
    ({"batch": 0}, "one sequence or more"),
)


@pytest.mark.parametrize(("said", "sentence"), REFUSED, ids=[next(iter(row[0])) for row in REFUSED])
def test_what_is_not_known_is_refused_in_one_sentence(
    matrix: Matrix, llama: Model, said: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParseError, match=sentence.replace("(", r"\(")) as caught:
        of(matrix, llama, method=FULL, **said)
    assert "\n" not in str(caught.value)


def test_diffusion_is_not_guessed(matrix: Matrix) -> None:
    model = find(matrix, "sd-1.5-unet")
    with pytest.raises(ParseError, match="diffusion model"):
        of(matrix, model, method=FULL)


def test_what_a_layer_gives_back_lies_beside_the_logits(matrix: Matrix, llama: Model) -> None:
    """One tensor of logits is larger than all pieces that a layer leaves: the allocator gets new memory for it."""
    said = {"method": LORA, "checkpointing": "full", "context": 4096}
    need = of(matrix, llama, **said)
    assert need.peak == "loss"
    beside = amounts(need, CACHED)["blocks of one layer, too small for logits"]
    layer = of(matrix, llama, **{**said, "loss": "fused"})
    assert layer.peak == "backward pass, last layer"
    one = amounts(layer, ACTIVATIONS)
    assert beside == one["one layer, computed again"] + one["gradients inside of a layer"]
    # Where no tensor is that large, the small remainder of the logits is what comes on top.
    assert amounts(layer, CACHED)["blocks of one layer, too small for logits"] == round(0.3 * 4096 * V)


@pytest.mark.parametrize("kind", ["fsdp", "zero3"])
def test_what_is_sharded_flat_is_not_turned_into_fp32(matrix: Matrix, llama: Model, kind: str) -> None:
    quantised = llama._replace(weights="nf4")
    alone = of(matrix, quantised, method=QLORA, context=512)
    shared = of(matrix, quantised, method=QLORA, context=512, sharding=Sharding(kind, 2))
    assert "embeddings, norms and head in fp32" in amounts(alone, WEIGHTS)
    assert "embeddings, norms and head in fp32" not in amounts(shared, WEIGHTS)


def test_what_older_versions_keep(matrix: Matrix) -> None:
    """torch kept the softmax's input before 1.11, and its optimizers took one tensor at a time before 2.0."""
    bert = find(matrix, "bert-large-uncased")
    said = {"method": FULL, "precision": "fp32", "context": 512, "batch": 4, "attention": "eager"}
    new = amounts(of(matrix, bert, framework="transformers 4.20", **said), ACTIVATIONS)["activations of all layers"]
    old = amounts(of(matrix, bert, framework="transformers 4.18", **said), ACTIVATIONS)["activations of all layers"]
    assert old - new == 24 * 4 * 512 * (4 * 16 * 512)
    said = {**said, "batch": 1, "checkpointing": "full"}
    assert "copies that a step makes" in amounts(of(matrix, bert, framework="transformers 4.30", **said), OPTIMIZER)
    assert "copies that a step makes" not in amounts(of(matrix, bert, framework="transformers 4.18", **said), OPTIMIZER)


@pytest.mark.parametrize(("name", "attention"), [("gpt-oss-20b", "sdpa"), ("t5-base", "flash")])
def test_scores_that_no_fused_kernel_knows_are_kept(matrix: Matrix, name: str, attention: str) -> None:
    # gpt-oss has sinks, T5 a bias of positions: both are run as if eager attention had been asked for.
    model = find(matrix, name)
    need = of(matrix, model, method=FULL, attention=attention, context=512, batch=4)
    assert need.allocated == of(matrix, model, method=FULL, attention="eager", context=512, batch=4).allocated
