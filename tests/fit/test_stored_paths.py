"""Which model a path means: files, parts of files, folders; only headers are read, and what is none is one sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from model_files import (
    header_of,
    hf_config,
    hf_llama,
    llama_keys,
    llama_tensors,
    write_gguf,
    write_safetensors,
    write_sparse,
)

from cudadoctor.cli import _model_files
from cudadoctor.cli._model_files import model_of_path
from cudadoctor.cli._words import InputError
from cudadoctor.fit.architecture import Model, Stored
from cudadoctor.matrix import Matrix


def stored(model: Model) -> Stored:
    assert model.stored is not None
    return model.stored


def sharded(folder: Path, index: bool = True, config: bool = True) -> list[Path]:
    """A model in two files of safetensors."""
    tensors = hf_llama()
    halves = [dict(list(tensors.items())[:9]), dict(list(tensors.items())[9:])]
    paths = [folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for path, half in zip(paths, halves):
        write_safetensors(path, half)
    if index:
        names = {name: path.name for path, half in zip(paths, halves) for name in half}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    if config:
        (folder / "config.json").write_text(json.dumps(hf_config()))
    return paths


def split_gguf(folder: Path, name: str = "big") -> list[Path]:
    """A model in two GGUF files, as gguf-split makes them."""
    tensors = llama_tensors(4)
    halves = [dict(list(tensors.items())[:20]), dict(list(tensors.items())[20:])]
    paths = [folder / f"{name}-0000{number}-of-00002.gguf" for number in (1, 2)]
    for number, (path, half) in enumerate(zip(paths, halves)):
        keys = {"split.no": number, "split.count": 2, "split.tensors.count": len(tensors)}
        write_gguf(path, "llama", {**(llama_keys(4) if not number else {}), **keys}, half)
    return paths


def test_a_folder_with_shards_and_index(matrix: Matrix, tmp_path: Path) -> None:
    paths = sharded(tmp_path)
    model = model_of_path(matrix, str(tmp_path))
    assert stored(model).files == 2
    assert stored(model).total == 2 * model.architecture.parameters
    for path in (*paths, tmp_path / "model.safetensors.index.json"):
        assert stored(model_of_path(matrix, str(path))).total == stored(model).total


def test_shards_without_an_index(matrix: Matrix, tmp_path: Path) -> None:
    sharded(tmp_path, index=False)
    assert stored(model_of_path(matrix, str(tmp_path))).files == 2


@pytest.mark.parametrize("index", [True, False])
def test_a_missing_shard(matrix: Matrix, tmp_path: Path, index: bool) -> None:
    sharded(tmp_path, index=index)[1].unlink()
    with pytest.raises(InputError, match=r"missing: model-00002-of-00002\.safetensors"):
        model_of_path(matrix, str(tmp_path))


def test_one_tensor_in_two_files(matrix: Matrix, tmp_path: Path) -> None:
    paths = sharded(tmp_path)
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(InputError, match="two of its files hold the tensor"):
        model_of_path(matrix, str(tmp_path))


def test_a_split_gguf_by_any_part_and_by_its_folder(matrix: Matrix, tmp_path: Path) -> None:
    paths = split_gguf(tmp_path)
    models = [model_of_path(matrix, str(path)) for path in (*paths, tmp_path)]
    assert {stored(model).total for model in models} == {stored(models[0]).total}
    assert {(model.architecture.layer_count, stored(model).files) for model in models} == {(4, 2)}
    paths[1].unlink()
    with pytest.raises(InputError, match=r"one of 2 parts, and 1 are missing: big-00002-of-00002\.gguf"):
        model_of_path(matrix, str(tmp_path))


def test_parts_that_lack_tensors(matrix: Matrix, tmp_path: Path) -> None:
    split_gguf(tmp_path)
    keys = {"split.no": 1, "split.count": 2, "split.tensors.count": 30}
    write_gguf(tmp_path / "big-00002-of-00002.gguf", "llama", keys, {"output.weight": ((8, 256), "F16")})
    with pytest.raises(InputError, match="its parts hold"):
        model_of_path(matrix, str(tmp_path))


def test_a_folder_with_several_gguf_files(matrix: Matrix, tmp_path: Path) -> None:
    for name in ("a-Q4_K_M", "a-Q8_0"):
        write_gguf(tmp_path / f"{name}.gguf", "llama", llama_keys(), llama_tensors())
    with pytest.raises(InputError, match=r"holds 2 models: say which one, a-Q4_K_M\.gguf, a-Q8_0\.gguf"):
        model_of_path(matrix, str(tmp_path))


def test_the_vision_part_beside_a_gguf_is_no_second_model(matrix: Matrix, tmp_path: Path) -> None:
    write_gguf(tmp_path / "a-Q4_K_M.gguf", "llama", llama_keys(), llama_tensors())
    write_gguf(tmp_path / "mmproj-a-f16.gguf", "clip", {"general.type": "mmproj"}, {"v.a": ((8,), "F32")})
    assert model_of_path(matrix, str(tmp_path)).architecture.name == "a-Q4_K_M"
    with pytest.raises(InputError, match="the vision or audio part of a model"):
        model_of_path(matrix, str(tmp_path / "mmproj-a-f16.gguf"))


def test_a_folder_with_both_kinds(matrix: Matrix, tmp_path: Path) -> None:
    sharded(tmp_path)
    write_gguf(tmp_path / "a.gguf", "llama", llama_keys(), llama_tensors())
    with pytest.raises(InputError, match="holds safetensors and GGUF files: say which one"):
        model_of_path(matrix, str(tmp_path))


def test_a_folder_with_a_config_alone(matrix: Matrix, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**hf_config(), "torch_dtype": "bfloat16"}))
    for path in (tmp_path, tmp_path / "config.json"):
        model = model_of_path(matrix, str(path))
        assert (model.architecture.layer_count, model.weights, model.stored) == (2, "bf16", None)


def test_files_of_mistral_lie_beside_those_of_transformers(matrix: Matrix, tmp_path: Path) -> None:
    sharded(tmp_path, index=False)
    write_sparse(tmp_path / "consolidated.safetensors", hf_llama(1))
    assert stored(model_of_path(matrix, str(tmp_path))).files == 2


def test_several_files_of_tensors(matrix: Matrix, tmp_path: Path) -> None:
    for name in ("low", "high"):
        write_sparse(tmp_path / f"{name}.safetensors", hf_llama(1))
    with pytest.raises(InputError, match="holds 2 files of tensors: say which one"):
        model_of_path(matrix, str(tmp_path))


@pytest.mark.parametrize("name", ["main", "other"])
def test_a_folder_of_the_hubs_cache(matrix: Matrix, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "models--org--Tiny-1B"
    snapshot = folder / "snapshots" / "0123abcd"
    for made in (snapshot, folder / "blobs", folder / "refs"):
        made.mkdir(parents=True)
    (folder / "refs" / name).write_text("0123abcd")
    sharded(snapshot)
    assert model_of_path(matrix, str(folder)).architecture.name == "Tiny-1B"
    if name == "other":
        (folder / "snapshots" / "ffff").mkdir()
        with pytest.raises(InputError, match="holds 2 snapshots of a model"):
            model_of_path(matrix, str(folder))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "holds no model: neither .safetensors, .gguf nor config.json"),
        (["README.md"], "holds no model"),
        (["pytorch_model.bin"], "of PyTorch's own format, which are not read, and no config.json"),
        (["adapter_config.json", "adapter_model.safetensors"], "holds a LoRA adapter, not a model"),
        (["model_index.json", "unet/config.json", "vae/config.json"], "several models: say which one, unet, vae"),
        (["config.json"], "cannot use"),
    ],
)
def test_folders_without_a_model(matrix: Matrix, tmp_path: Path, names: list[str], says: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(InputError) as told:
        model_of_path(matrix, str(tmp_path))
    assert says in str(told.value) and "\n" not in str(told.value)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 4976698672\n"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("model.safetensors", POINTER, "a Git LFS pointer, not the file itself: `git lfs pull` fetches that"),
        ("model.gguf", POINTER, "a Git LFS pointer"),
        ("model.safetensors.index.json", POINTER, "a Git LFS pointer"),
        ("model.safetensors", b"", "it has 0 bytes"),
        ("model.gguf", b"", "it does not begin with GGUF"),
        ("model.gguf", b"GGUF\x03\x00", "it is cut short"),
        ("model.safetensors", (2 << 30).to_bytes(8, "little") + b"{}", "its header would have 2147483648 bytes"),
        ("model.bin", b"PK\x03\x04", "of PyTorch's own format"),
        ("model.pth", b"\x80\x02", "of PyTorch's own format"),
        ("model.onnx", b"\x08\x07\x12\x04test1234", "is no model: give a .safetensors or .gguf file"),
        ("model.txt", b"hello", "is no model"),
        ("config.json", b"{", "cannot use"),
        ("config.json", b"[" * 100_000, "cannot use"),
        ("m-00001-of-00000.gguf", b"GGUF", "is named as part 1 of 0"),
        ("m-00003-of-00002.safetensors", b"x", "is named as part 3 of 2"),
        ("m-00001-of-99999.gguf", b"GGUF", "is named as part 1 of 99999"),
    ],
)  # fmt: skip
def test_files_that_are_none(matrix: Matrix, tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as told:
        model_of_path(matrix, str(tmp_path / name))
    assert says in str(told.value) and "\n" not in str(told.value)
    assert len(str(told.value)) < 300 + len(str(tmp_path))


def test_a_download_that_broke_off(matrix: Matrix, tmp_path: Path) -> None:
    for name, write in (("a.safetensors", write_sparse), ("a.gguf", None)):
        path = tmp_path / name
        if write is None:
            write_gguf(path, "llama", llama_keys(), llama_tensors())
        else:
            write(path, hf_llama())
        os.truncate(path, path.stat().st_size - 1)
        with pytest.raises(InputError, match="it is cut short"):
            model_of_path(matrix, str(path))


def test_what_is_not_there(matrix: Matrix, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*gone"):
        model_of_path(matrix, str(tmp_path / "gone.gguf"))


def test_an_index_that_leads_elsewhere(matrix: Matrix, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"a": "../../../etc/passwd"}}))
    with pytest.raises(InputError, match="which is no file beside it"):
        model_of_path(matrix, str(path))


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")
def test_a_pipe_does_not_make_it_wait(matrix: Matrix, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    with pytest.raises(InputError, match="is no file"):
        model_of_path(matrix, str(tmp_path / "model.gguf"))


@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_of_a_huge_file_the_header_alone_is_read(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A sparse file of 25 GB and more: it takes no place, and a byte of it that were read would count."""
    wide = 65_536
    path = tmp_path / f"model.{kind}"
    if kind == "gguf":
        big = llama_tensors()
        for layer in range(2):
            big[f"blk.{layer}.ffn_up.weight"] = ((wide, wide), "F32")
        write_gguf(path, "llama", llama_keys(), big)
    else:
        write_sparse(path, hf_llama(hidden=wide, kind="BF16"))
    assert path.stat().st_size > 25 * 10**9
    read_bytes: list[int] = []
    real = os.read

    def read(fd: int, length: int) -> bytes:
        data = real(fd, length)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(_model_files.os, "read", read)
    model = model_of_path(matrix, str(path))
    assert stored(model).total > 25 * 10**9
    assert sum(read_bytes) < 3 << 20


def test_names_of_files_are_shown_as_they_can_be(matrix: Matrix, tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(InputError) as told:
        model_of_path(matrix, str(path))
    assert str(told.value).isprintable()


def test_the_header_may_come_alone(matrix: Matrix, tmp_path: Path) -> None:
    """Somebody fetches a header to ask before the download: it is cut short, and that is said."""
    (tmp_path / "model.safetensors").write_bytes(header_of(hf_llama()))
    with pytest.raises(InputError, match=r"its tensors have \d+ bytes, of which 0 are there"):
        model_of_path(matrix, str(tmp_path))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Tiny-Q4.gguf", "Tiny-Q4"),
        ("Tiny/model.safetensors", "Tiny"),
        ("Tiny/model.safetensors.index.json", "Tiny"),
        ("Tiny/config.json", "Tiny"),
        ("Tiny/model-00001-of-00002.safetensors", "Tiny"),
        ("Tiny-00001-of-00002.gguf", "Tiny"),
        ("models--org--Tiny/snapshots/abc/model.safetensors", "Tiny"),
    ],
)
def test_what_a_model_is_called(path: str, name: str) -> None:
    assert _model_files._name_of(os.path.join("folder", *path.split("/"))) == name


def test_any_name(matrix: Matrix, tmp_path: Path) -> None:
    names: list[Any] = ["model.GGUF", "MODEL.Safetensors"]
    write_gguf(tmp_path / names[0], "llama", llama_keys(), llama_tensors())
    assert model_of_path(matrix, str(tmp_path / names[0])).architecture.layer_count == 2
    write_sparse(tmp_path / names[1], hf_llama())
    assert model_of_path(matrix, str(tmp_path / names[1])).architecture.layer_count == 2
