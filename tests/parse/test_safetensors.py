"""Headers of safetensors files: real ones, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader
from cudadoctor.parse.safetensors import read_index, read_safetensors

from .binaries import CountingReader

ONE = {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}
_ONE = json.dumps(ONE).encode()


def file(header: Any, data: int = 12) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def test_what_the_library_writes(tmp_path: Path) -> None:
    arrays = {
        "model.norm.weight": numpy.ones(4, "float32"),
        "model.layers.0.mlp.up_proj.weight": numpy.ones((8, 4), "float16"),
        "model.layers.0.mlp.up_proj.qweight": numpy.ones((1, 8), "int32"),
        "empty": numpy.ones((0, 4), "float16"),
    }
    save_file(arrays, str(tmp_path / "a.safetensors"), metadata={"format": "pt"})
    data = (tmp_path / "a.safetensors").read_bytes()
    header = read_safetensors(BytesReader(data), len(data))
    assert header.metadata == {"format": "pt"}
    assert {one.name: (one.dtype, one.shape, one.size) for one in header.tensors} == {
        "model.norm.weight": ("F32", (4,), 16),
        "model.layers.0.mlp.up_proj.weight": ("F16", (8, 4), 64),
        "model.layers.0.mlp.up_proj.qweight": ("I32", (1, 8), 32),
        "empty": ("F16", (0, 4), 0),
    }
    assert header.data + sum(one.size for one in header.tensors) == len(data)


def test_nothing_of_the_data_is_read() -> None:
    data = file({"a": {"dtype": "U8", "shape": [1000], "data_offsets": [0, 1000]}}, 1000)
    reader = CountingReader(data)
    read_safetensors(reader, len(data))
    assert max(offset + length for offset, length in reader.reads) == len(data) - 1000


def test_a_type_that_is_newer_than_we_are() -> None:
    """Its bytes are known all the same."""
    data = file({"a": {"dtype": "F3_E1M1", "shape": [32], "data_offsets": [0, 12]}})
    assert read_safetensors(BytesReader(data), len(data)).tensors[0].size == 12


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is no safetensors file: it has 0 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4976698672\n", "Git LFS pointer"),
        (b"PK\x03\x04 a zip archive", "no header stands at its start"),
        (b"<!DOCTYPE html><html>Not found</html>", "no header stands at its start"),
        ((2 << 30).to_bytes(8, "little") + b'{"a": ', "its header would have 2147483648 bytes"),
        ((2**64 - 1).to_bytes(8, "little") + b'{"a": ', "its header would have 18446744073709551615 bytes"),
        ((5000).to_bytes(8, "little") + b'{"a": ', "it is cut short: its header has 5000 bytes, the file 14"),
        (file(b'{"a": {'), "its header is no JSON that can be read"),
        (file(b'{"a": ' + b"[" * 100_000), "its header is no JSON that can be read"),
        (file(b'{"a": \xff}'), "its header is no JSON that can be read"),
        (file(b'{"a": NaN}'), "its header is no JSON that can be read"),
        (file({"a": 1}), "its header says nothing of use about 'a'"),
        (file({"a": {**ONE, "dtype": 7}}), "its header gives 'a' no type"),
        (file({"a": {**ONE, "dtype": "F\x1b[2J"}}), "its header gives 'a' no type"),
        (file({"a": {**ONE, "shape": [2, -3]}}), "its header gives 'a' no shape"),
        (file({"a": {**ONE, "shape": [2, 3.5]}}), "its header gives 'a' no shape"),
        (file({"a": {**ONE, "shape": [1] * 1000}}), "its header gives 'a' no shape"),
        (file({"a": {**ONE, "data_offsets": [-12, 0]}}), "its header gives 'a' no place in the file"),
        (file({"a": {**ONE, "data_offsets": [0, 10**30]}}), "its header gives 'a' no place in the file"),
        (file({"a": {**ONE, "data_offsets": [12, 0]}}), "'a' is F16 [2, 3], in -12 bytes"),
        (file({"a": {**ONE, "data_offsets": [0, 11]}}), "'a' is F16 [2, 3], in 11 bytes"),
        (file({"a": ONE, "b": {**ONE, "data_offsets": [6, 18]}}, 18), "'a' and 'b' overlap"),
        (file({"a": ONE}, 11), "it is cut short: its tensors have 12 bytes, of which 11 are there"),
        (file(b'{"a": %b, "a": %b}' % (_ONE, _ONE)), "its header names 'a' twice"),
        (file({"__metadata__": {"epochs": 3}, "a": ONE}), "__metadata__ is not a table of texts"),
        (file(b'{"a":[' + b"{}," * 300_000 + b"{}]}"), "its header names more than 200000 tensors"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_none_is_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(ParseError) as told:
        read_safetensors(BytesReader(data), len(data))
    assert says in str(told.value)
    assert len(str(told.value)) < 200 and "\n" not in str(told.value)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        read_safetensors(BytesReader(data), len(data))
    except ParseError:
        return
    assert data[8:9] == b"{"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "a", "__metadata__"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_header(header: Any) -> None:
    data = file(header)
    try:
        found = read_safetensors(BytesReader(data), len(data))
    except ParseError:
        return
    assert all(0 <= one.begin <= one.end <= 12 for one in found.tensors)


# -- the index of several files


def test_an_index() -> None:
    text = json.dumps({"metadata": {"total_size": 9}, "weight_map": {"b": "m-2.safetensors", "a": "m-1.safetensors"}})
    assert read_index(text.encode()) == ("m-1.safetensors", "m-2.safetensors")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{}", "it has no weight_map"),
        (b"[]", "no JSON object"),
        (b'{"weight_map": {}}', "it has no weight_map"),
        (b'{"weight_map": {"a": 3}}', "which is no file beside it"),
        (b'{"weight_map": {"a": "../../etc/passwd"}}', "'../../etc/passwd', which is no file beside it"),
        (b'{"weight_map": {"a": "C:\\\\x"}}', "which is no file beside it"),
        (b'{"weight_map": {"a": ".."}}', "which is no file beside it"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b'{"weight_map": ' + b"[" * 100_000, "no JSON that can be read"),
    ],
)
def test_what_is_no_index(text: bytes, says: str) -> None:
    with pytest.raises(ParseError) as told:
        read_index(text)
    assert says in str(told.value)
