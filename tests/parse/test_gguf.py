"""Headers of GGUF files: real ones, and what is none."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.fatbin import BytesReader
from cudadoctor.parse.gguf import GgufArray, GgufHeader, read_gguf

from .binaries import CountingReader

BLOCKS = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}


def text(word: str) -> bytes:
    return struct.pack("<Q", len(word)) + word.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def head(*entries: bytes, tensors: tuple[bytes, ...] = (), data: int = 0, **claimed: int) -> bytes:
    """A file of version 3. `claimed`: other numbers of tensors or entries than there are."""
    counts = (claimed.get("tensors_claimed", len(tensors)), claimed.get("entries_claimed", len(entries)))
    made = b"GGUF" + struct.pack("<IQQ", 3, *counts) + b"".join(entries) + b"".join(tensors)
    return made + bytes(-len(made) % 32) + bytes(data)


def read(data: bytes) -> GgufHeader:
    return read_gguf(BytesReader(data), len(data), BLOCKS)


@pytest.mark.parametrize("endian", [gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG])
def test_what_the_library_writes(tmp_path: Path, endian: gguf.GGUFEndian) -> None:
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=endian)
    writer.add_block_count(32)
    writer.add_rope_freq_base(500000.0)
    writer.add_bool("llama.attention.causal", True)
    writer.add_head_count([32, 32, 16])
    writer.add_string("general.name", "Tiny \u00e4")
    writer.add_string("tokenizer.chat_template", "x" * 9000)
    writer.add_token_list([f"word{number}" for number in range(5000)])
    writer.add_token_scores([0.5] * 5000)
    writer.add_array("general.tags", ["a", "b"])
    writer.add_tensor("output_norm.weight", numpy.zeros(256, "float32"))
    quantised = numpy.zeros((10, 144), "uint8")
    writer.add_tensor("blk.0.attn_k.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q4_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read(path.read_bytes())
    found = header.metadata
    assert (header.version, found["general.architecture"], found["llama.block_count"]) == (3, "llama", 32)
    assert (found["llama.rope.freq_base"], found["llama.attention.causal"]) == (500000.0, True)
    assert (found["general.name"], found["general.tags"]) == ("Tiny \u00e4", GgufArray(2, ("a", "b")))
    assert found["llama.attention.head_count"] == GgufArray(3, (32, 32, 16))
    assert found["tokenizer.ggml.tokens"] == found["tokenizer.ggml.scores"] == GgufArray(5000, None)
    assert found["tokenizer.chat_template"] == "x" * 4096
    assert {one.name: (one.shape, one.type, one.size) for one in header.tensors} == {
        "output_norm.weight": ((256,), 0, 1024),
        "blk.0.attn_k.weight": ((10, 256), 12, 1440),
    }
    real = gguf.GGUFReader(path)
    assert header.data == real.data_offset
    assert {one.name: header.data + one.offset for one in header.tensors} == {
        one.name: one.data_offset for one in real.tensors
    }


def test_a_tokenizer_over_many_pieces_of_the_file(tmp_path: Path) -> None:
    """A megabyte is read at a time: words lie across its borders."""
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["w" * (number % 97) for number in range(60_000)])
    writer.add_uint32("llama.after", 7)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert path.stat().st_size > 3 << 20
    assert read(path.read_bytes()).metadata["llama.after"] == 7


def test_nothing_of_the_data_is_read() -> None:
    data = head(tensors=(tensor("a", (1 << 20,)),), data=4 << 20)
    reader = CountingReader(data)
    read_gguf(reader, len(data), BLOCKS)
    assert sum(length for _, length in reader.reads) <= (1 << 20) + 64


def test_a_type_that_is_newer_than_we_are() -> None:
    """It takes what lies between it and the next tensor."""
    data = head(tensors=(tensor("a", (64,), 999), tensor("b", (8,), 0, 96), tensor("c", (8,), 999, 128)), data=192)
    assert [(one.name, one.size) for one in read(data).tensors] == [("a", 96), ("b", 32), ("c", 64)]


def test_the_first_version_counts_in_32_bits() -> None:
    data = b"GGUF" + struct.pack("<III", 1, 0, 1) + struct.pack("<I", 1) + b"k" + struct.pack("<II", 4, 9)
    assert read(data).metadata == {"k": 9}


NESTED = struct.pack("<IQ", 9, 1) * 40 + struct.pack("<IQ", 4, 0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it does not begin with GGUF"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4976698672\n", "Git LFS pointer"),
        (b"GGUF", "it is cut short: it ends in its header, after 4 bytes"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "its GGUF version is 99"),
        (head(entries_claimed=10**9), "its header claims 1000000000 metadata entries, more than any model has"),
        (head(tensors_claimed=10**12), "its header claims 1000000000000 tensors"),
        (head(entries_claimed=2**64 - 1), "its header claims 18446744073709551615 metadata entries"),
        (head(entries_claimed=5)[:24], "it is cut short: it ends in its header"),
        (head(struct.pack("<Q", 2**63) + b"abc"), "a name of 9223372036854775808 bytes"),
        (head(entry("a", 8, struct.pack("<Q", 2**62))), "it is cut short: it ends in its header"),
        (head(entry("a", 77, b"")), "a value of type 77"),
        (head(entry("a", 4, bytes(4)), entry("a", 4, bytes(4))), "its metadata has 'a' twice"),
        (head(entry("a", 9, struct.pack("<IQ", 4, 2**61))), "it is cut short: it ends in its header"),
        (head(entry("a", 9, struct.pack("<IQ", 8, 2**61))), "arrays of more texts than any tokenizer has"),
        (head(entry("a", 9, struct.pack("<IQ", 9, 2**61))), "arrays of more texts than any tokenizer has"),
        (head(entry("a", 9, NESTED)), "arrays nested deeper than any"),
        (head(entry("general.alignment", 4, struct.pack("<I", 33))), "its general.alignment is 33"),
        (head(entry("general.alignment", 4, bytes(4))), "its general.alignment is 0"),
        (head(entry("general.alignment", 8, text("x"))), "its general.alignment is 'x'"),
        (head(tensors=(tensor("a", (8,)), tensor("a", (8,), 0, 32)), data=64), "names the tensor 'a' twice"),
        (head(tensors=(tensor("a", (1,) * 9),)), "the tensor 'a' has 9 dimensions"),
        (head(tensors=(tensor("a", (2**40, 2**40)),)), "larger than any"),
        (head(tensors=(tensor("a", (2**63,)),)), "larger than any"),
        (head(tensors=(tensor("a", (8,), 0, 7),), data=64), "lies at 7, which is no multiple of 32"),
        (head(tensors=(tensor("a", (100,), 12),), data=64), "rows of 100 numbers, its type has blocks of 256"),
        (head(tensors=(tensor("a", (64,)), tensor("b", (8,), 0, 32)), data=256), "'a' and 'b' overlap"),
        (head(tensors=(tensor("a", (64,)),), data=255), "it is cut short: its tensors have 256 bytes, of which 255"),
        (head(tensors=(tensor("a", (8,), 0, 2**63),), data=64), "it is cut short"),
        (head(tensors=(tensor("a", (8,), 999, 2**63),), data=64), "it is cut short"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_none_is_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(ParseError) as told:
        read(data)
    assert says in str(told.value)
    assert len(str(told.value)) < 200 and "\n" not in str(told.value)


_ENDLESS = head(entry("a", 9, struct.pack("<IQ", 8, 1_400_000)), entries_claimed=60_000)


def test_a_header_without_an_end() -> None:
    """A sparse file of zeros: strings of no length, as many as the header says."""

    class Zeros:
        def read_at(self, offset: int, length: int) -> bytes:
            start = _ENDLESS if not offset else b""
            return (start + bytes(length))[:length]

    with pytest.raises(ParseError):
        read_gguf(Zeros(), 1 << 40, BLOCKS)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    for start in (b"", b"GGUF" + struct.pack("<IQQ", 3, 2, 3)):
        try:
            read(start + data)
        except ParseError:
            continue


_VALID = head(
    entry("general.architecture", 8, text("llama")),
    entry("a", 9, struct.pack("<IQ", 8, 2) + text("b") + text("c")),
    entry("d", 10, struct.pack("<Q", 5)),
    tensors=(tensor("e", (32, 4), 2), tensor("f", (8,), 0, 96)),
    data=128,
)


@given(st.lists(st.tuples(st.integers(0, len(_VALID) - 1), st.integers(0, 255)), max_size=4), st.integers(0, 60))
def test_any_damage(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(_VALID)
    for place, value in changes:
        data[place] = value
    damaged: Any = bytes(data[: len(data) - cut])
    try:
        found = read(damaged)
    except ParseError:
        return
    assert all(found.data + one.offset + one.size <= len(damaged) for one in found.tensors)
