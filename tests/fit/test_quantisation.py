"""Schemes by their names, and what they make of single tensors. Whole files: test_quantisation_files.py."""

from __future__ import annotations

from typing import Any

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.fit.architecture import (
    EMBEDDING,
    EXPERT,
    HEAD,
    MATRIX,
    NORM,
    ROUTER,
    Architecture,
    Attention,
    FeedForward,
    Layers,
    Model,
    Stored,
    Tensor,
)
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.quantisation import _among, head_of_its_own, scheme, schemes, tensor_bytes, weight_bytes
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError


def decoder(layers: Any, tensors: Any, tied: bool = False) -> Model:
    shape = Architecture("tiny", "decoder", "llama", 512, 1000, tuple(layers), tuple(tensors), tied)
    return Model(shape, "bf16")


def run(first: int, number: int, window: int = 0, experts: int = 0, heads: int = 8) -> Layers:
    part = FeedForward(1024, True, experts, min(experts, 2))
    return Layers(first, number, Attention("window" if window else "full", heads, 2, 64, window=window), part)


def sizes(matrix: Matrix, model: Model, name: str) -> dict[str, int]:
    made: dict[str, int] = {}
    for tensor, size in tensor_bytes(matrix, model._replace(weights=scheme(matrix, name).name)):
        made[tensor.name] = made.get(tensor.name, 0) + size
    return made


# -- names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bf16", "bf16"),
        ("bfloat16", "bf16"),
        ("torch.float16", "fp16"),
        ("F32", "fp32"),
        ("nf4", "nf4"),
        ("4bit", "nf4"),
        ("NF4-DQ", "nf4-dq"),
        ("nf4_dq", "nf4-dq"),
        ("8bit", "int8"),
        ("bnb-int8", "int8"),
        ("int4", "gptq-int4"),
        ("gptq_int8", "gptq-int8"),
        ("AWQ", "awq"),
        ("awq-int4", "awq"),
        ("fp8", "fp8"),
        ("mxfp4", "mxfp4"),
        ("q4_k_m", "Q4_K_M"),
        ("Q4-K-M", "Q4_K_M"),
        (" gguf:Q8_0 ", "Q8_0"),
        ("iq3_xxs", "IQ3_XXS"),
        ("q4", "Q4_K_M"),
        ("gguf", "Q4_K_M"),
    ],
)
def test_a_name(matrix: Matrix, text: str, name: str) -> None:
    assert scheme(matrix, text).name == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Q4_K_X", "did you mean Q4_K_S or Q4_K_M"),
        ("nf5", "did you mean nf4"),
        ("", "No quantisation is called ''"),
        ("?" * 10_000, "..."),
        ("\x1b[2J", "'\\x1b[2J'"),
    ],
)
def test_a_name_that_is_none(matrix: Matrix, text: str, says: str) -> None:
    with pytest.raises(ParseError) as told:
        scheme(matrix, text)
    assert says in str(told.value)
    assert len(str(told.value)) < 250 and str(told.value).isprintable()


def test_every_name_leads_to_one_scheme(matrix: Matrix) -> None:
    seen: dict[str, str] = {}
    for row in matrix.storage_schemes().values():
        for text in (row.name, *row.also):
            plain = text.lower().replace("_", "-")
            assert seen.setdefault(plain, row.name) == row.name, text
            assert scheme(matrix, text).name == row.name


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32), ("bf16", 16), ("int8", 8), ("fp8", 8.001953125), ("nf4", 4.5), ("nf4-dq", 4.126953125),
        ("gptq-int4", 4.15625), ("awq", 4.15625), ("gptq-int8", 8.1875), ("mxfp4", 4.25), ("nvfp4", 4.5),
        ("Q4_0", 4.5), ("Q5_0", 5.5), ("Q8_0", 8.5), ("Q2_K", 2.625), ("Q3_K_M", 3.4375), ("Q6_K", 6.5625),
        ("IQ4_XS", 4.25), ("IQ1_S", 1.5625), ("MXFP4_MOE", 4.25),
    ],
)  # fmt: skip
def test_the_bits_of_a_number(matrix: Matrix, name: str, bits: float) -> None:
    assert scheme(matrix, name).bits == bits


def test_a_cache_in_blocks(matrix: Matrix) -> None:
    assert scheme(matrix, "q8_0").bytes_of(1024) == 1088
    assert scheme(matrix, "q4_0").bytes_of(1024) == 576
    assert scheme(matrix, "bf16").bytes_of(3) == 6


# -- the data


def test_the_blocks_are_those_of_the_real_library(matrix: Matrix) -> None:
    ours = {row.name: (row.id, row.values, row.size) for row in matrix.block_types().values()}
    theirs = {kind.name: (int(kind), *blocks) for kind, blocks in gguf.GGML_QUANT_SIZES.items()}
    # The library counts a float more in a block that is only ever an intermediate result.
    del ours["Q8_1"], theirs["Q8_1"]
    assert {name: theirs[name] for name in ours if name in theirs} == {n: b for n, b in ours.items() if n in theirs}
    assert len(set(ours) & set(theirs)) >= 28


def test_the_mixtures_have_the_numbers_of_the_real_library(matrix: Matrix) -> None:
    numbers = {row.file_type: row.name for row in matrix.storage_schemes().values() if row.file_type is not None}
    theirs = {int(kind): kind.name.partition("_")[2] for kind in gguf.LlamaFileType}
    for number, name in numbers.items():
        wanted = {"fp16": "F16", "fp32": "F32", "bf16": "BF16"}.get(name, name)
        assert theirs.get(number, wanted) in (wanted, "MXFP4_MOE"), name
    assert len(numbers) >= 30


def test_rules_name_what_exists(matrix: Matrix) -> None:
    types, rows = matrix.block_types(), matrix.storage_schemes()
    for rule in matrix.type_rules():
        assert rule.type in types or rule.type == "same"
        assert all(name == "*" or rows[name].kind == "mixture" for name in rule.mixtures)
    for row in types.values():
        assert row.fallback is None or types[row.fallback].values < row.values


def test_every_scheme_counts_every_catalogued_model(matrix: Matrix) -> None:
    """A condition of a rule that is not known would be an error here."""
    for name in ("llama-3.2-1b", "mixtral-8x7b", "qwen3-30b-a3b"):
        for one in schemes(matrix):
            assert weight_bytes(matrix, find(matrix, name)._replace(weights=one.name)) > 0


# -- what quantisers touch

LAYER = [
    Tensor("q", MATRIX, (512, 512), 4, 0),
    Tensor("down", MATRIX, (512, 1024), 4, 0),
    Tensor("norm", NORM, (512,), 8, 0),
]
WHOLE = [Tensor("token_embedding", EMBEDDING, (1000, 512)), Tensor("output", HEAD, (1000, 512)), *LAYER]


@pytest.mark.parametrize(
    ("name", "per_matrix"),
    [
        ("bf16", {(512, 512): 524288, (512, 1024): 1048576}),
        ("nf4", {(512, 512): 131072 + 4 * 4096 + 64, (512, 1024): 262144 + 4 * 8192 + 64}),
        ("nf4-dq", {(512, 512): 131072 + 4096 + 64 + 1092, (512, 1024): 262144 + 8192 + 128 + 1092}),
        ("int8", {(512, 512): 262144 + 2048, (512, 1024): 524288 + 2048}),
        ("gptq-int4", {(512, 512): 131072 + 5120 + 2048, (512, 1024): 262144 + 10240 + 4096}),
        ("awq", {(512, 512): 131072 + 5120, (512, 1024): 262144 + 10240}),
        ("fp8", {(512, 512): 262144 + 64, (512, 1024): 524288 + 128}),
    ],
)
def test_matrices_of_the_layers_alone(matrix: Matrix, name: str, per_matrix: dict[Any, int]) -> None:
    """Embedding, head and norms stay in 16 bits."""
    found = sizes(matrix, decoder([run(0, 4)], WHOLE), name)
    assert found["token_embedding"] == found["output"] == 1000 * 512 * 2
    assert found["norm"] == 8 * 512 * 2
    assert found["q"] == 4 * per_matrix[512, 512]
    assert found["down"] == 4 * per_matrix[512, 1024]


def test_mxfp4_is_for_experts_where_there_are_any(matrix: Matrix) -> None:
    experts = Tensor("gate", EXPERT, (1024, 512), 4 * 8, 0)
    with_experts = decoder([run(0, 4, experts=8)], [*WHOLE, experts, Tensor("router", ROUTER, (8, 512), 4, 0)])
    found = sizes(matrix, with_experts, "mxfp4")
    assert (found["q"], found["gate"]) == (4 * 512 * 512 * 2, 32 * 1024 * 512 * 17 // 32)
    assert sizes(matrix, decoder([run(0, 4)], WHOLE), "mxfp4")["q"] == 4 * 512 * 512 * 17 // 32


@pytest.mark.parametrize(("name", "own"), [("awq", True), ("fp8", True), ("gptq-int4", False), ("nf4", False)])
def test_a_head_that_the_files_hold_although_it_is_the_embedding(matrix: Matrix, name: str, own: bool) -> None:
    tied = decoder([run(0, 4)], [one for one in WHOLE if one.role != HEAD], tied=True)._replace(weights=name)
    assert head_of_its_own(matrix, tied) is own
    last, size = tensor_bytes(matrix, tied)[-1]
    assert (last.role == HEAD, size == 1000 * 512 * 2) == (own, own)
    assert not head_of_its_own(matrix, decoder([run(0, 4)], WHOLE)._replace(weights=name))


# -- llama.cpp's choices

Q4, Q5, Q6 = (4.5, 5.5, 6.5625)


def layers_of(matrix: Matrix, model: Model, name: str, tensor: str, elements: int) -> float:
    """Bits of a number of all tensors of that name."""
    return sizes(matrix, model, name)[tensor] * 8 / elements


def test_more_bits_for_the_first_the_last_and_each_third_layer(matrix: Matrix) -> None:
    """Of 32 layers: 4 in front, 4 at the end, 8 of the 24 between."""
    down = Tensor("down", MATRIX, (512, 1024), 32, 0)
    model = decoder([run(0, 32)], [down])
    assert layers_of(matrix, model, "Q4_K_M", "down", down.elements) == (16 * Q6 + 16 * Q4) / 32
    assert layers_of(matrix, model, "Q4_K_S", "down", down.elements) == (4 * Q5 + 28 * Q4) / 32


def test_runs_that_lie_one_behind_the_other_are_the_layers_they_say(matrix: Matrix) -> None:
    """The same layers, as one run and as three."""
    parts = [(0, 3), (3, 1), (4, 28)]
    runs = [run(first, number, window=64 * (place % 2)) for place, (first, number) in enumerate(parts)]
    tensors = [Tensor("down", MATRIX, (512, 1024), number, place) for place, (_, number) in enumerate(parts)]
    apart = [size for _, size in tensor_bytes(matrix, decoder(runs, tensors)._replace(weights="Q4_K_M"))]
    block = 512 * 1024 // 256
    assert apart[0] == 3 * block * 210
    assert sum(apart) == 16 * block * 210 + 16 * block * 144


@pytest.mark.parametrize(("first", "second"), [(26, 6), (6, 26), (16, 16)])
def test_runs_that_gather_layers_of_a_kind_are_spread(matrix: Matrix, first: int, second: int) -> None:
    """Which layers are meant is not said, but the sum is that of the model."""
    runs = [run(0, first, window=64), run(5, second)]
    tensors = [Tensor("down", MATRIX, (512, 1024), count, place) for place, count in enumerate((first, second))]
    apart = [size for _, size in tensor_bytes(matrix, decoder(runs, tensors)._replace(weights="Q4_K_M"))]
    block = 512 * 1024 // 256
    assert sum(apart) == 16 * block * (210 + 144)
    assert all(count * block * 144 < size < count * block * 210 for size, count in zip(apart, (first, second)))


def test_which_layers_get_more_bits() -> None:
    """The first and the last eighth, and of those between each third, counted from the first eighth's end."""
    assert [layer for layer in range(32) if _among("more-bits", layer, 32)] == [
        *(0, 1, 2, 3), *(6, 9, 12, 15, 18, 21, 24, 27), *(28, 29, 30, 31),
    ]  # fmt: skip
    assert [layer for layer in range(16) if _among("middle", layer, 16)] == list(range(2, 14))
    assert [layer for layer in range(16) if _among("first-8th", layer, 16)] == [0, 1]


def test_eight_experts_get_more_bits_elsewhere(matrix: Matrix) -> None:
    tensors = [
        Tensor("k", MATRIX, (512, 512), 4, 0),
        Tensor("o", MATRIX, (512, 512), 4, 0),
        Tensor("router", ROUTER, (8, 512), 4, 0),
    ]
    found = sizes(matrix, decoder([run(0, 4, experts=8)], tensors), "Q4_K_M")
    count = 4 * 512 * 512
    assert (found["k"] * 8 / count, found["o"] * 8 / count, found["router"]) == (8.5, 5.5, 4 * 8 * 512 * 4)
    found = sizes(matrix, decoder([run(0, 4, experts=16)], tensors), "Q4_K_M")
    assert (found["k"] * 8 / count, found["o"] * 8 / count) == (4.5, 4.5)


def test_the_embedding_that_is_the_head_is_stored_as_a_head(matrix: Matrix) -> None:
    tied = decoder([run(0, 4)], [one for one in WHOLE if one.role != HEAD], tied=True)
    assert sizes(matrix, tied, "Q4_K_M")["token_embedding"] * 8 == 1000 * 512 * Q6
    assert sizes(matrix, decoder([run(0, 4)], WHOLE), "Q4_K_M")["token_embedding"] * 8 == 1000 * 512 * Q4


@pytest.mark.parametrize(
    ("into", "bits"),
    [(512, 4.5), (896, 5.5), (100, 16)],
    ids=["blocks of 256", "blocks of 32", "no blocks"],
)
def test_rows_that_are_no_whole_number_of_blocks(matrix: Matrix, into: int, bits: float) -> None:
    one = Tensor("up", MATRIX, (64, into), 1, 0)
    assert sizes(matrix, decoder([run(0, 1)], [one]), "Q4_K_S")["up"] * 8 == one.elements * bits


# -- of a file


def test_of_a_file_the_bytes_are_the_files(matrix: Matrix) -> None:
    model = decoder([run(0, 4)], WHOLE)._replace(weights="nf4", stored=Stored("a", 12_345_677, {}, 0, "nf4"))
    assert weight_bytes(matrix, model) == 12_345_677
    assert sum(size for _, size in tensor_bytes(matrix, model)) == 12_345_677
    exact = tuple(range(1, len(WHOLE) + 1))
    model = model._replace(stored=Stored("a", sum(exact), {}, 0, "nf4", 1, exact))
    assert [size for _, size in tensor_bytes(matrix, model)] == list(exact)


# -- properties

SCHEMES = ["IQ1_S", "IQ2_XXS", "Q2_K", "Q3_K_M", "Q4_K_S", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "bf16", "fp32"]


@given(
    st.integers(1, 96),
    st.integers(1, 8).map(lambda count: 256 * count),
    st.integers(1, 4),
    st.integers(1, 5000),
    st.booleans(),
    st.sampled_from([0, 4, 8, 64]),
)
def test_more_bits_never_take_less(
    matrix: Matrix, layers: int, hidden: int, times: int, words: int, tied: bool, experts: int
) -> None:
    role, copies = (EXPERT, layers * experts) if experts else (MATRIX, layers)
    tensors = [
        Tensor("token_embedding", EMBEDDING, (words, hidden)),
        *([] if tied else [Tensor("output", HEAD, (words, hidden))]),
        *(Tensor(name, MATRIX, (hidden, hidden), layers, 0) for name in ("q", "k", "v", "o")),
        *(Tensor(name, role, (times * hidden, hidden), copies, 0) for name in ("gate", "up")),
        Tensor("down", role, (hidden, times * hidden), copies, 0),
        Tensor("norm", NORM, (hidden,), 2 * layers, 0),
    ]
    model = decoder([run(0, layers, experts=experts)], tensors, tied)
    counted = [weight_bytes(matrix, model._replace(weights=name)) for name in SCHEMES]
    assert counted == sorted(counted)
