"""The cache of keys and values: what makers and engines say a token takes, and what it never does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.kv_cache import Held, bytes_of_a_number, cache
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError

pytestmark = pytest.mark.once

KIB = 1024

# Bytes of one token in 16 bits: 2 x layers x heads of keys and values x their width x 2.
A_TOKEN = [
    ("llama-2-7b", 512 * KIB, "every head has keys and values of its own"),
    ("llama-2-70b", 320 * KIB, "eight heads of keys and values"),
    ("llama-3.1-8b", 128 * KIB, "a quarter of the heads"),
    ("mistral-7b-v0.3", 128 * KIB, ""),
    ("mixtral-8x7b", 128 * KIB, "experts keep nothing"),
    ("qwen2.5-0.5b", 12 * KIB, "two heads of keys and values"),
    ("qwen2.5-7b", 56 * KIB, "four"),
    ("qwen3-0.6b", 112 * KIB, "heads wider than the hidden state divided by their number"),
    ("falcon-7b", 8 * KIB, "one head of keys and values for all"),
    ("deepseek-v3", 70272, "61 layers of 512 + 64 numbers: once, not for keys and for values"),
    ("gpt-oss-20b", 48 * KIB, "as long as the window lasts"),
]


@pytest.mark.parametrize(("name", "wanted", "why"), A_TOKEN, ids=[row[0] for row in A_TOKEN])
def test_a_token_takes(matrix: Matrix, name: str, wanted: int, why: str) -> None:
    assert cache(matrix, find(matrix, name), Workload(), 1).total == wanted, why


@pytest.mark.parametrize(
    ("kv", "a_number"),
    [("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1), ("Q8_0", 1.0625), ("Q4_0", 0.5625), ("Q5_1", 0.75)],
)
def test_a_number_takes(matrix: Matrix, kv: str, a_number: float) -> None:
    """The types of llama.cpp bring a scale for each 32 numbers; engines that keep 8 bits keep nothing beside them."""
    model = find(matrix, "llama-3.1-8b")
    assert bytes_of_a_number(matrix, model, Workload(kv=kv)) == a_number
    assert cache(matrix, model, Workload(kv=kv), 4096).total == int(4096 * 64 * KIB * a_number)


def test_a_model_in_fp32_keeps_fp32(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.1-8b")._replace(weights="fp32")
    assert cache(matrix, model, Workload(), 1).total == 256 * KIB
    assert cache(matrix, model, Workload(engine="vllm"), 1).total == 128 * KIB


def test_an_unknown_type_is_one_sentence(matrix: Matrix) -> None:
    with pytest.raises(ParseError, match="q9_9"):
        cache(matrix, find(matrix, "llama-3.1-8b"), Workload(kv="q9_9"), 1)


def test_a_window_is_all_that_its_layers_keep(matrix: Matrix) -> None:
    """Every second layer of gpt-oss sees 128 tokens."""
    model = find(matrix, "gpt-oss-20b")
    whole = cache(matrix, model, Workload(), 32768, Held(windows=False)).total
    short = cache(matrix, model, Workload(), 32768).total
    assert whole == 32768 * 48 * KIB
    assert short == 32768 * 24 * KIB + 128 * 24 * KIB
    # llama.cpp keeps the window and what passes at once, in steps of 256 tokens.
    padded = cache(matrix, model, Workload(), 32768, Held(beyond=512, beyond_step=256)).total
    assert padded == 32768 * 24 * KIB + 768 * 24 * KIB


def test_blocks_are_whole(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.1-8b")
    assert cache(matrix, model, Workload(batch=3), 17, Held(step=16)).total == 3 * 32 * 128 * KIB


@pytest.mark.parametrize(("gpus", "part"), [(2, 2), (4, 4), (8, 8), (16, 8), (64, 8)])
def test_heads_are_spread_until_each_gpu_has_one(matrix: Matrix, gpus: int, part: int) -> None:
    """Eight heads of keys and values: on more than eight GPUs they are kept more than once."""
    model = find(matrix, "llama-3.1-70b")
    assert cache(matrix, model, Workload(), 100, Held(tensor=gpus)).total == 100 * 320 * KIB // part


def test_the_latent_vector_is_on_every_gpu(matrix: Matrix) -> None:
    model = find(matrix, "deepseek-v3")
    one, eight = (cache(matrix, model, Workload(), 100, Held(tensor=gpus)).total for gpus in (1, 8))
    assert one == eight
    # Who makes keys and values of it keeps 128 heads of (192 + 128) numbers.
    assert cache(matrix, model, Workload(), 1, Held(latent=False)).total == 61 * 128 * 320 * 2


def test_a_state_does_not_grow_and_is_in_fp32(matrix: Matrix) -> None:
    """Mamba keeps the last 4 inputs of its convolution, and 16 numbers of each of its 1536 channels."""
    model = find(matrix, "mamba-130m")
    for tokens in (1, 100_000):
        found = cache(matrix, model, Workload(batch=3), tokens)
        assert found.total == 24 * 3 * 1536 * (16 + 4) * 4
        assert found.largest_layer == 0  # nothing is joined anew when a token comes
    halves = cache(matrix, model, Workload(batch=3), 1, Held(tensor=2)).total
    assert halves * 2 == 24 * 3 * 1536 * (16 + 4) * 4


def test_a_hybrid_keeps_states_beside_keys_and_values(matrix: Matrix) -> None:
    """Four of Jamba's 32 layers attend: 8 heads of 128; the others keep a state of 8192 channels."""
    model = find(matrix, "jamba-v0.1")
    states = 28 * 8192 * (16 + 4) * 4
    found = cache(matrix, model, Workload(), 1000)
    assert found.total == 4 * 1000 * 2 * 8 * 128 * 2 + states
    assert found.largest_layer == 1000 * 2 * 8 * 128 * 2


def test_a_stage_keeps_its_layers(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.1-8b")
    assert cache(matrix, model, Workload(), 1, Held(stages=4)).total == 8 * 4 * KIB
    assert cache(matrix, model, Workload(), 1, Held(stages=3)).total == 11 * 4 * KIB


def test_the_decoder_of_whisper_looks_at_the_encoder(matrix: Matrix) -> None:
    model = find(matrix, "whisper-tiny")._replace(weights="fp16")
    found = cache(matrix, model, Workload(), 448, across=1500)
    assert found.total == 4 * 2 * 384 * 2 * (448 + 1500)
    assert cache(matrix, model, Workload(), 448).total == 4 * 2 * 384 * 2 * 448


@pytest.mark.parametrize("name", ["bert-base-uncased", "vit-base-patch16-224"])
def test_encoders_keep_nothing(matrix: Matrix, name: str) -> None:
    model = find(matrix, name)
    layers = tuple(one._replace(side="encoder") for one in model.architecture.layers)
    model = model._replace(architecture=model.architecture._replace(layers=layers))
    assert cache(matrix, model, Workload(), 512).total == 0


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([row[0] for row in A_TOKEN]),
    batch=st.integers(1, 64),
    tokens=st.integers(1, 200_000),
    more=st.integers(0, 1000),
    gpus=st.integers(1, 16),
    step=st.sampled_from([1, 16, 256]),
    windows=st.booleans(),
)
def test_more_never_takes_less(
    matrix: Matrix, name: str, batch: int, tokens: int, more: int, gpus: int, step: int, windows: bool
) -> None:
    model: Model = find(matrix, name)
    held = Held(step=step, windows=windows, tensor=gpus)

    def total(batch: int, tokens: int, held: Held) -> int:
        return cache(matrix, model, Workload(batch=batch), tokens, held).total

    here = total(batch, tokens, held)
    assert total(batch, tokens + more, held) >= here
    assert total(batch + 1, tokens, held) >= here
    assert total(batch, tokens, held._replace(windows=False)) >= here
    assert total(batch, tokens, held._replace(tensor=gpus + 1)) <= here
