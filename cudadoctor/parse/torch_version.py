"""torch/version.py, the file that the build writes into the package. Read, never run.

    from typing import Optional

    __all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
    __version__ = '2.9.1+cu128'
    debug = False
    cuda: Optional[str] = '12.8'          a CPU build: cuda: Optional[str] = None
    git_version = '0123456789abcdef0123456789abcdef01234567'
    hip: Optional[str] = None

Up to 1.x the lines are plain assignments. The same shape serves torchvision/version.py (`cuda = '12.8'` or None) and
others.
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

from .errors import unlike

_WORDS: dict[str, bool | None] = {"True": True, "False": False, "None": None}


class TorchVersion(NamedTuple):
    """`version` as written, with its local part. `cuda`: "12.8"; None where the file says None or has no such line.

    `has_cuda_line` tells the two apart: only a file that says `cuda = None` calls itself a build without CUDA.
    """

    version: str
    cuda: str | None
    has_cuda_line: bool
    hip: str | None
    debug: bool | None
    git_version: str | None


def parse_assignments(text: str) -> dict[str, str | bool | None]:
    """Top-level `name = literal` and `name: type = literal` lines whose literal is a string, True, False or None.

    Never fails.
    """
    values: dict[str, str | bool | None] = {}
    for line in text.splitlines():
        left, sign, right = line[:400].partition("=")
        name = left.partition(":")[0].strip()
        if not sign or right.startswith("=") or line[:1].isspace() or not name.isidentifier() or not name.isascii():
            continue
        value = right.strip()
        if value[:1] in ("'", '"'):
            end = value.find(value[0], 1)
            if end > 0 and "\\" not in value[:end] and value[end + 1 :].strip()[:1] in ("", "#"):
                values[name] = value[1:end]
        else:
            word = value.partition("#")[0].strip()
            if word in _WORDS:
                values[name] = _WORDS[word]
    return values


def parse_torch_version(text: str) -> TorchVersion:
    """torch/version.py. ParseError when it assigns no `__version__`."""
    values = parse_assignments(text)

    def string(name: str) -> str | None:
        value = values.get(name)
        return value if isinstance(value, str) and value else None

    version = string("__version__")
    if version is None:
        raise unlike("torch/version.py", text.strip())
    debug = values.get("debug")
    return TorchVersion(
        version=version,
        cuda=string("cuda"),
        has_cuda_line="cuda" in values,
        hip=string("hip"),
        debug=debug if isinstance(debug, bool) else None,
        git_version=string("git_version"),
    )
