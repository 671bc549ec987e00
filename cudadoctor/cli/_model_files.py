"""A model out of files: a folder, .safetensors with or without index, .gguf (also in parts), config.json.

Only headers are read, a few megabytes of files of any size. What cannot be used ends in an InputError: one sentence.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Callable, Optional, TypeVar

from cudadoctor.cli._words import InputError
from cudadoctor.fit.architecture import Model
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError

_T = TypeVar("_T")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.(?P<ending>safetensors|gguf)\Z")
_MOST_CONFIG = 4 << 20
_MOST_INDEX = 32 << 20
_MOST_FILES = 10_000
_MOST_SHOWN = 4
_CONFIG = "config.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
# What stands beside the weights in a folder of GGUF files: no model by itself.
_BESIDE = ("mmproj", "imatrix")


class _File:
    """Random access to an open file, by its descriptor: a few reads, never the whole."""

    def __init__(self, path: str) -> None:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path!r} is no file")
        # It may have become a named pipe since: without O_NONBLOCK its opening waits for whoever writes to it.
        self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.fd)
            raise InputError(f"{path!r} is no file")
        self.size = status.st_size

    def read_at(self, offset: int, length: int) -> bytes:
        os.lseek(self.fd, offset, os.SEEK_SET)
        parts = []
        while length > 0:
            part = os.read(self.fd, length)
            if not part:
                break
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def model_of_path(matrix: Matrix, path: str) -> Model:
    """The model that a file or folder holds. InputError, one sentence that names the file, where there is none that can
    be read, or several."""
    try:
        if os.path.isdir(path):
            return _of_folder(matrix, path)
        return _of_file(matrix, path)
    except OSError as error:
        raise InputError(f"cannot read {error.filename or path!r}: {error.strerror or error}") from None


def _of_file(matrix: Matrix, path: str) -> Model:
    lowered = path.lower()
    if lowered.endswith(".index.json"):
        return _of_index(matrix, path)
    if lowered.endswith(".json"):
        return _of_config(path)
    with _File(path) as file:
        start = file.read_at(0, 16)
    if start[:4] == b"GGUF":
        return _of_gguf(matrix, path)
    if lowered.endswith(_PICKLES) or start[:2] == b"\x80\x02" or start[:4] == b"PK\x03\x04":
        raise InputError(f"{path!r} is of PyTorch's own format, which is not read: give the config.json beside it")
    if lowered.endswith(".gguf"):
        return _of_gguf(matrix, path)
    if not lowered.endswith(".safetensors") and start[8:9] != b"{":
        raise InputError(f"{path!r} is no model: give a .safetensors or .gguf file, a config.json, or their folder")
    return _of_safetensors(matrix, _parts(path), path)


# -- folders


def _of_folder(matrix: Matrix, path: str) -> Model:
    names = _names(path)
    snapshot = _snapshot(path, names)
    if snapshot is not None:
        return _of_folder(matrix, snapshot)
    ggufs = _wholes(names, ".gguf")
    ggufs = [name for name in ggufs if not name.lower().startswith(_BESIDE)] or ggufs
    tensors = _wholes([name for name in names if not name.startswith("adapter_")], ".safetensors")
    indexes = [name for name in names if name.endswith(".safetensors.index.json")]
    if ggufs and (tensors or indexes):
        some = _listed([*(indexes or tensors), *ggufs])
        raise InputError(f"{path!r} holds safetensors and GGUF files: say which one, {some}")
    if len(ggufs) > 1:
        raise InputError(f"{path!r} holds {len(ggufs)} models: say which one, {_listed(ggufs)}")
    if ggufs:
        return _of_gguf(matrix, os.path.join(path, ggufs[0]))
    if len(indexes) > 1:
        raise InputError(f"{path!r} holds {len(indexes)} models: say which one, {_listed(indexes)}")
    if indexes:
        return _of_index(matrix, os.path.join(path, indexes[0]))
    # Mistral's own layout lies beside the usual one, with the same tensors.
    usual = [name for name in tensors if not name.startswith("consolidated")] or tensors
    if len(usual) > 1:
        named = [name for name in usual if name.startswith(("model.", "model-", "diffusion_pytorch_model"))]
        usual = named if len(named) == 1 else usual
    if len(usual) > 1:
        raise InputError(f"{path!r} holds {len(usual)} files of tensors: say which one, {_listed(usual)}")
    if usual:
        first = os.path.join(path, usual[0])
        return _of_safetensors(matrix, _parts(first), first)
    if _CONFIG in names:
        return _of_config(os.path.join(path, _CONFIG))
    if "adapter_config.json" in names:
        raise InputError(f"{path!r} holds a LoRA adapter, not a model: give the model that it belongs to")
    if "model_index.json" in names:
        parts = [name for name in names if os.path.isfile(os.path.join(path, name, _CONFIG))]
        raise InputError(f"{path!r} holds a pipeline of several models: say which one, {_listed(parts)}")
    if any(name.lower().endswith(_PICKLES) for name in names):
        raise InputError(f"{path!r} holds files of PyTorch's own format, which are not read, and no config.json")
    raise InputError(f"{path!r} holds no model: neither .safetensors, .gguf nor config.json")


def _names(path: str) -> list[str]:
    names = []
    with os.scandir(path) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > _MOST_FILES:
                raise InputError(f"{path!r} holds more than {_MOST_FILES} files: say which one")
    return sorted(names)


def _snapshot(path: str, names: Sequence[str]) -> Optional[str]:
    """The cache of Hugging Face's hub keeps a model as models--ORG--NAME/snapshots/COMMIT."""
    if "snapshots" not in names or "blobs" not in names:
        return None
    snapshots = os.path.join(path, "snapshots")
    try:
        with _File(os.path.join(path, "refs", "main")) as file:
            commit = file.read_at(0, 64).decode("ascii", "replace").strip()
    except (OSError, InputError):
        commit = ""
    found = _names(snapshots)
    if commit in found:
        return os.path.join(snapshots, commit)
    if len(found) == 1:
        return os.path.join(snapshots, found[0])
    raise InputError(f"{path!r} holds {len(found)} snapshots of a model: give the folder of one")


def _wholes(names: Sequence[str], ending: str) -> list[str]:
    """The files with that ending; of one that is split, the first part."""
    found: dict[tuple[str, str], str] = {}
    for name in names:
        if name.lower().endswith(ending):
            shard = _SHARD.match(name)
            found.setdefault((shard["stem"], shard["count"]) if shard else (name, ""), name)
    return list(found.values())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN])
    return shown + (f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else "")


def _parts(path: str) -> list[str]:
    """The file, or all the parts that it is one of. InputError where some are missing."""
    folder, name = os.path.split(path)
    shard = _SHARD.match(name)
    if shard is None:
        return [path]
    count = int(shard["count"])
    if not 0 < int(shard["number"]) <= count <= _MOST_FILES:
        raise InputError(f"{path!r} is named as part {int(shard['number'])} of {count}")
    names = [f"{shard['stem']}-{number:05}-of-{shard['count']}.{shard['ending']}" for number in range(1, count + 1)]
    paths = [os.path.join(folder, one) for one in names]
    missing = [one for one, there in zip(names, map(os.path.exists, paths)) if not there]
    if missing:
        raise InputError(f"{path!r} is one of {count} parts, and {len(missing)} are missing: {_listed(missing)}")
    return paths


# -- files


def _of_gguf(matrix: Matrix, path: str) -> Model:
    from cudadoctor.fit.stored_gguf import model_of_gguf
    from cudadoctor.parse.gguf import read_gguf

    blocks = {row.id: (row.values, row.size) for row in matrix.block_types().values()}
    headers = []
    for part in _parts(path):
        with _File(part) as file:
            headers.append(_told(part, partial(read_gguf, file, file.size, blocks)))
    return _told(path, partial(model_of_gguf, matrix, headers, _name_of(path), path))


def _of_index(matrix: Matrix, path: str) -> Model:
    from cudadoctor.parse.safetensors import read_index

    text = _content(path, _MOST_INDEX)
    names = _told(path, partial(read_index, text))
    paths = [os.path.join(os.path.dirname(path), name) for name in names]
    missing = [name for name, there in zip(names, map(os.path.exists, paths)) if not there]
    if missing:
        raise InputError(f"{path!r} lists {len(names)} files, and {len(missing)} are missing: {_listed(missing)}")
    return _of_safetensors(matrix, paths, path)


def _of_safetensors(matrix: Matrix, paths: Sequence[str], path: str) -> Model:
    from cudadoctor.fit.stored import model_of_safetensors
    from cudadoctor.parse.safetensors import read_safetensors

    headers = []
    for part in paths:
        with _File(part) as file:
            headers.append(_told(part, partial(read_safetensors, file, file.size)))
    config = _config_beside(path)
    return _told(path, partial(model_of_safetensors, matrix, headers, _name_of(path), config, path))


def _of_config(path: str) -> Model:
    from cudadoctor.fit.config import model_of_config
    from cudadoctor.parse.model_config import read_config

    config = _told(path, partial(read_config, _content(path, _MOST_CONFIG)))
    return _told(path, partial(model_of_config, config, _name_of(path)))


def _config_beside(path: str) -> Optional[Mapping[str, Any]]:
    beside = os.path.join(os.path.dirname(path), _CONFIG)
    if not os.path.exists(beside):
        return None
    from cudadoctor.parse.model_config import read_config

    return _told(beside, partial(read_config, _content(beside, _MOST_CONFIG)))


def config_of_file(path: str) -> Mapping[str, Any]:
    """A config.json, read. InputError where it cannot be used."""
    from cudadoctor.parse.model_config import read_config

    return _told(path, partial(read_config, _content(path, _MOST_CONFIG)))


def _content(path: str, most: int) -> bytes:
    with _File(path) as file:
        if file.size > most:
            raise InputError(f"{path!r} is larger than {most >> 20} MiB, which no such file is")
        return file.read_at(0, most)


def _told(path: str, read: Callable[[], _T]) -> _T:
    """What `read` gives; its ParseError as a sentence about that file."""
    try:
        return read()
    except ParseError as error:
        raise InputError(f"cannot use {path!r}: {error}") from None


def _name_of(path: str) -> str:
    """As `_called`, with a question mark for what would harm a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in _called(path))


def _called(path: str) -> str:
    """What people call it: the name of the file, or of its folder where every model's file is called so."""
    folder, name = os.path.split(os.path.abspath(path))
    shard = _SHARD.match(name)
    stem = shard["stem"] if shard else re.sub(r"(\.safetensors)?(\.index)?\.(json|safetensors|gguf)\Z", "", name)
    if stem in ("model", "config", "consolidated", "diffusion_pytorch_model", "pytorch_model"):
        named = os.path.basename(folder)
        above = os.path.basename(os.path.dirname(os.path.dirname(folder)))
        if above.startswith("models--"):
            return above.rpartition("--")[2]
        return named or stem
    return stem
