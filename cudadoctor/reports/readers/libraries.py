"""CUDA libraries that a program did not find, those that the loader found, and LD_LIBRARY_PATH.

    ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory
    Could not load dynamic library 'libcudart.so.11.0'; dlerror: ...; LD_LIBRARY_PATH: /usr/local/cuda/lib64
    Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!
    libnvJitLink.so.12 => /usr/local/cuda-12.1/lib64/libnvJitLink.so.12 (0x00007f...)

One text may name several: TensorFlow prints a line a library. The driver's own (libcuda.so.1) is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, TABLE, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = (
    "cannot open shared object file",
    "could not load dynamic library",
    "could not locate",
    "could not load library",
    "unable to load any of {lib",
    "failed to open libnvrtc",
    "is it installed?",
    ".dll",
    "=> /",
    "ld_library_path",
)

_SO = r"lib[A-Za-z][\w-]{1,40}\.so(?:\.\d{1,4}){0,4}"
_DLL = r"(?:cudart|cublas|cublasLt|cudnn|cufft|curand|cusolver|cusparse|nvrtc|nvinfer|nppc|nvjpeg)[\w ]{0,24}\.dll"
_NOT_FOUND = tuple(
    re.compile(wording, re.IGNORECASE | re.ASCII)
    for wording in (
        rf"(?<![\w.-])({_SO}): cannot open shared object file",
        rf"Could not load dynamic library '({_SO}|{_DLL})'",
        # Where a reason follows that names another file, that one is missing.
        rf"Could not (?:locate|load library) ({_SO}|{_DLL})(?!\. Error: lib[^\n]{{0,200}}cannot open)",
        rf"Unable to load any of \{{({_SO})",
        rf"failed to open ({_SO})",
        rf"\"?({_DLL})\"?[ ;:,]{{0,3}}(?:is |was |which is )?(?:not found|missing|could not be found)",
    )
)
_COMPONENT = re.compile(r"Unable to load (cu[A-Z]{2,8}|cu[A-Za-z]{3,8})\. Is it installed\?", re.ASCII)
_FOUND = re.compile(rf"(?<![\w.-])({_SO}) => (/[^\s()]{{1,300}})", re.ASCII)
_PATH_SET = re.compile(r"LD_LIBRARY_PATH(?:\"|')?\s?(?:=|: ?)\s?[\"']?([^\s\"',;()]{0,2000})")
_ASKED = re.compile(r"\$\s*echo \$\{?LD_LIBRARY_PATH\}?\s*$")
_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\]([A-Za-z]\w{1,40})[/\\.]")
# The programs that name themselves in the line.
_NAMED = (
    ("tensorflow", "tensorflow"),
    ("dso_loader", "tensorflow"),
    ("onnxruntime", "onnxruntime-gpu"),
    ("cupy", "cupy"),
    ("jax", "jax"),
    ("xla", "jax"),
    ("ctranslate2", "ctranslate2"),
    ("faster_whisper", "ctranslate2"),
    ("bitsandbytes", "bitsandbytes"),
    ("paddle", "paddlepaddle-gpu"),
    ("tensorrt", "tensorrt"),
    ("torch", "torch"),
)
# Lines above the error in which a traceback names the module that wanted the library.
_ABOVE = 8
_MOST = 64


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    missing: dict[str, tuple[int, dict[str, Any]]] = {}
    loaded: dict[str, tuple[int, dict[str, Any]]] = {}
    path: Optional[tuple[int, str, bool]] = None
    for hit in hits:
        line = text[hit]
        found = _FOUND.search(line)
        if found and len(loaded) < _MOST and _is_cuda(found.group(1), matrix):
            loaded[found.group(1)] = (hit, {"soname": found.group(1), "path": found.group(2)})
        if "LD_LIBRARY_PATH" in line:
            path = _path(text, hit) or path
        soname = _missing(line)
        if soname and soname not in missing and len(missing) < _MOST and _is_cuda(soname, matrix):
            by = "jax" if _COMPONENT.search(line) else _asked_by(text, hit)
            entry = {"soname": soname, "asked_by": by, "text": line.strip()[:300]}
            missing[soname] = (hit, entry)
    if missing:
        lines = [line for line, _ in missing.values()]
        claim = Claim("libraries.not_found", [entry for _, entry in missing.values()], lines[-1])
        yield Block("libraries that were not found", min(lines), max(lines), (claim,), LOG)
    if loaded:
        lines = [line for line, _ in loaded.values()]
        claim = Claim("libraries.loaded", [entry for _, entry in loaded.values()], lines[-1])
        yield Block("ldd", min(lines), max(lines), (claim,), TABLE)
    if path is not None:
        at, value, is_program = path
        claim = Claim("env.LD_LIBRARY_PATH", value, at)
        yield Block("LD_LIBRARY_PATH", at, at, (claim,), LOG if is_program else TYPED)


def component(soname: str) -> str:
    """The name under which the matrix knows a library: cuDNN's parts go by cuDNN's."""
    return re.sub(r"\A(lib)?cudnn[_ ]\w*?(?=64_|\.so|\.dll|\Z)", r"\1cudnn", soname)


def _is_cuda(soname: str, matrix: Matrix) -> bool:
    known = matrix.library(component(soname))
    return known is not None and not known.from_driver


def _missing(line: str) -> Optional[str]:
    if "undefined symbol" in line:
        return None  # it was found, and does not fit
    for wording in _NOT_FOUND:
        match = wording.search(line)
        if match:
            return match.group(1).strip().replace(" ", "_")
    match = _COMPONENT.search(line)
    if match:
        return "lib" + {"cuSOLVER": "cusolver", "cuSPARSE": "cusparse"}.get(match.group(1), match.group(1).lower())
    return None


def _asked_by(text: Text, hit: int) -> Optional[str]:
    for index in range(hit, max(hit - _ABOVE, -1), -1):
        line = text[index]
        lowered = line.lower()
        if index == hit:
            for word, package in _NAMED:
                if word in lowered:
                    return package
        match = _PACKAGE.search(line)
        if match:
            package = match.group(1).lower().replace("_", "-")
            return next((name for word, name in _NAMED if word in package), package)
    return None


def _path(text: Text, hit: int) -> Optional[tuple[int, str, bool]]:
    """LD_LIBRARY_PATH as a program, `env` or a person gives it: (line, value, whether a program printed it)."""
    line = text[hit]
    if _ASKED.search(line) and hit + 1 < len(text):
        value, is_program, at = text[hit + 1].strip(), True, hit + 1
    else:
        match = _PATH_SET.search(line)
        if match is None:
            return None
        value, is_program, at = match.group(1), "export" not in line, hit
    folders = [folder for folder in value.split(":") if folder.startswith("/") and folder.isprintable()]
    return (at, ":".join(folders), is_program) if folders else None
