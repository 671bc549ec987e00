"""Models by the names that people type, and by nothing but a size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.fit.architecture import DECODER
from cudadoctor.fit.catalogue import find, model_of_row, names, words
from cudadoctor.fit.quantisation import scheme
from cudadoctor.fit.typical import model_of_size
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError


@pytest.mark.once
def test_every_config_comes_out_at_the_count_beside_it(matrix: Matrix) -> None:
    rows = matrix.models()
    assert len(rows) > 240
    wrong = {row.name: row for row in rows if model_of_row(row).architecture.parameters != row.parameters}
    assert wrong == {}


@pytest.mark.once
def test_every_row_is_published_in_a_type_that_is_known(matrix: Matrix) -> None:
    for row in matrix.models():
        assert scheme(matrix, row.weights).name == row.weights, row.name


@pytest.mark.once
def test_no_name_means_two_models(matrix: Matrix) -> None:
    owner: dict[tuple[str, ...], str] = {}
    for row in matrix.models():
        for name in (row.name, *row.names):
            assert owner.setdefault(words(name), row.name) == row.name, name


@pytest.mark.once
def test_every_name_finds_its_model(matrix: Matrix) -> None:
    for row in matrix.models():
        for name in (row.name, *row.names, row.name.upper(), "someone/" + row.name, row.name.replace("-", " ")):
            assert find(matrix, name).architecture.name == row.name, name


NAMED = [
    ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b", "bf16"),
    ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b", "bf16"),
    ("Llama 3.1 8B", "llama-3.1-8b", "bf16"),
    ("llama3.1:8b", "llama-3.1-8b", "bf16"),
    ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b", "Q4_K_M"),
    ("Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama-3.1-8b", "Q4_K_M"),
    ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "llama-3.1-8b", "nf4"),
    ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3", "bf16"),
    ("mistral7b", "mistral-7b-v0.3", "bf16"),
    ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", "awq"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b", "gptq-int4"),
    ("Qwen/Qwen3-8B-FP8", "qwen3-8b", "fp8"),
    ("Qwen/Qwen3-8B-Base", "qwen3-8b", "bf16"),
    ("google/gemma-3-27b-it", "gemma-3-27b", "bf16"),
    ("gemma2:9b", "gemma-2-9b", "bf16"),
    ("deepseek-ai/DeepSeek-R1", "deepseek-v3", "fp8"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b", "bf16"),
    ("openai/gpt-oss-20b", "gpt-oss-20b", "mxfp4"),
    ("gpt-2", "gpt2", "fp32"),
    ("t5-base", "t5-base", "fp32"),
    ("google/flan-t5-xl", "flan-t5-xl", "fp32"),
    ("openai/whisper-large-v3", "whisper-large-v3", "fp16"),
    ("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2", "fp32"),
    ("black-forest-labs/FLUX.1-dev", "flux.1-dev-transformer", "bf16"),
    ("SDXL", "sdxl-base-unet", "fp16"),
    ("stable-diffusion-v1-5/stable-diffusion-v1-5", "sd-1.5-unet", "fp16"),
]


@pytest.mark.parametrize(("typed", "name", "weights"), NAMED, ids=[row[0] for row in NAMED])
def test_a_name_as_people_type_it(matrix: Matrix, typed: str, name: str, weights: str) -> None:
    model = find(matrix, typed)
    assert (model.architecture.name, model.weights) == (name, weights)


UNKNOWN = [
    ("lama-3.1-8b", "no model called 'lama-3.1-8b' is known: the nearest are llama-3.1-8b, "),
    ("qwen2.5-8b", "no model called 'qwen2.5-8b' is known: the nearest are qwen2.5-"),
    ("llama-3.1", "'llama-3.1' is not one model: llama-3.1-8b, llama-3.1-70b, llama-3.1-405b"),
    ("gemma-3", "'gemma-3' is not one model: gemma-3-270m, gemma-3-1b, gemma-3-4b, gemma-3-12b, gemma-3-27b"),
    ("mixtral", "'mixtral' is not one model: mixtral-8x7b, mixtral-8x22b"),
    ("qqqq", "no model called 'qqqq' is known: give its config.json, a file of its weights, or a size such as 7b"),
    ("", "no model called '' is known: give its config.json"),
    ("llama-3.1-8b-q9_z", "no model called 'llama-3.1-8b-q9_z' is known: the nearest are llama-3.1-8b"),
]


@pytest.mark.parametrize(("typed", "says"), UNKNOWN, ids=[row[0] or "nothing" for row in UNKNOWN])
def test_a_name_that_is_not_one_model(matrix: Matrix, typed: str, says: str) -> None:
    with pytest.raises(ParseError) as error:
        find(matrix, typed)
    assert str(error.value).startswith(says)
    assert str(error.value).isascii()


def test_gguf_alone_says_that_its_type_is_assumed(matrix: Matrix) -> None:
    model = find(matrix, "TheBloke/Llama-2-7B-Chat-GGUF")
    assert (model.architecture.name, model.weights) == ("llama-2-7b", "Q4_K_M")
    assert model.notes == ("GGUF files come in many types: Q4_K_M is assumed",)


def test_what_has_to_be_said_about_a_model_comes_with_it(matrix: Matrix) -> None:
    assert "Only the denoiser" in find(matrix, "sdxl").notes[0]
    assert find(matrix, "qwen3-8b").notes == ()


@given(st.text(max_size=60))
def test_any_text_is_a_model_or_one_sentence(matrix: Matrix, text: str) -> None:
    try:
        assert find(matrix, text).architecture.name in names(matrix)
    except ParseError as error:
        assert str(error).isascii()
        assert "\n" not in str(error)


# -- only a size


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        *(("7b", 7e9), ("7B", 7e9), (" 13b ", 13e9), ("0.5b", 0.5e9), ("350M", 350e6), ("10m", 10e6)),
        *(("70b", 70e9), ("1.5T", 1.5e12), ("10T", 1e13)),
    ],
)
def test_a_size_is_a_dense_decoder_of_that_size(matrix: Matrix, text: str, parameters: float) -> None:
    model = model_of_size(matrix, text)
    shape = model.architecture
    assert shape.guessed
    assert shape.kind == DECODER
    assert shape.parameters == pytest.approx(parameters, rel=0.02)
    for run in shape.layers:
        assert run.attention is not None
        assert run.attention.heads % run.attention.kv_heads == 0
    assert model.notes[0].startswith(f"{text.strip().lower()} is only a size: a dense decoder with ")


def test_8b_is_what_most_models_of_8b_are(matrix: Matrix) -> None:
    guessed, real = model_of_size(matrix, "8b").architecture, find(matrix, "llama-3.1-8b").architecture
    assert guessed.layers == real.layers
    assert guessed.parameters == real.parameters


@pytest.mark.parametrize("text", ["7", "b", "7gb", "-7b", "7b7", "", "1e9b", "7" * 50 + "b", "3m", "11T"])
def test_what_is_no_size(matrix: Matrix, text: str) -> None:
    with pytest.raises(ParseError):
        model_of_size(matrix, text)


@given(st.integers(10, 9_999_999))
def test_any_size_comes_out_at_that_size(matrix: Matrix, millions: int) -> None:
    wanted = millions * 10**6
    found = model_of_size(matrix, f"{millions // 1000}.{millions % 1000:03}b" if millions >= 1000 else f"{millions}m")
    assert 0.9 <= found.architecture.parameters / wanted <= 1.1
