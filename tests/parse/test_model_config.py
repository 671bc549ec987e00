from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.model_config import MOST_BYTES, read_config

LLAMA = b"""{
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "model_type": "llama",
  "num_hidden_layers": 32,
  "rope_theta": 500000.0,
  "time_step_limit": [0.0, Infinity]
}"""


def test_what_libraries_write_is_read() -> None:
    read = read_config(LLAMA)
    assert (read["model_type"], read["hidden_size"], read["rope_theta"]) == ("llama", 4096, 500000.0)


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read_config(b"\xef\xbb\xbf" + LLAMA) == read_config(LLAMA)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "config.json is not JSON: Expecting value in line 1"),
        (b'{\n"hidden_size": 4096,\n}', "config.json is not JSON: "),
        (b"[1, 2]", "this is not a config: it is no JSON object: 'list'"),
        (b"null", "this is not a config: it is no JSON object: 'NoneType'"),
        (b"\x80\x02}q\x00.", "config.json is not text in UTF-8"),
        (b"GGUF\x03\x00\x00\x00", "config.json is not JSON: "),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"num_hidden_layers": 1' + b"0" * 1_000_000 + b"}", "config.json holds a number of 1000001 digits"),
        (b" " * (MOST_BYTES + 1), f"config.json has {MOST_BYTES + 1} bytes: no config is that long"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_whatever_is_no_config_is_told_in_one_sentence(text: bytes, says: str) -> None:
    with pytest.raises(ParseError) as error:
        read_config(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 160


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        assert isinstance(read_config(text), dict)
    except ParseError as error:
        assert str(error)


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text() | st.none() | st.booleans(), max_size=5))
def test_any_object_comes_back(config: dict[str, object]) -> None:
    try:
        assert read_config(json.dumps(config).encode()) == config
    except ParseError as error:
        assert "digits" in str(error)
