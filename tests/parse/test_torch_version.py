"""torch/version.py as the builds write it."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.torch_version import TorchVersion, parse_assignments, parse_torch_version

GIT = "0123456789abcdef0123456789abcdef01234567"

FILES = [
    (
        "a CUDA build",
        f"""\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.9.1+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = '{GIT}'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
""",
        TorchVersion("2.9.1+cu128", "12.8", True, None, False, GIT),
    ),
    (
        "a CPU build",
        f"""\
from typing import Optional
__version__ = '2.6.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = '{GIT}'
hip: Optional[str] = None
""",
        TorchVersion("2.6.0+cpu", None, True, None, False, GIT),
    ),
    (
        "a ROCm build",
        "__version__ = '2.5.0+rocm6.2'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = '6.2.41133'\n",
        TorchVersion("2.5.0+rocm6.2", None, True, "6.2.41133", False, None),
    ),
    (
        "1.x: plain assignments",
        "__version__ = '1.8.1+cu111'\ndebug = False\ncuda = '11.1'\ngit_version = 'abc'\nhip = None\n",
        TorchVersion("1.8.1+cu111", "11.1", True, None, False, "abc"),
    ),
    (
        "a debug build with double quotes, comments and CR LF",
        '__version__ = "2.0.0a0"  # local\r\ndebug = True\r\ncuda: str | None = "11.8"\r\n',
        TorchVersion("2.0.0a0", "11.8", True, None, True, None),
    ),
    (
        "no cuda line: nothing is said about CUDA",
        "__version__ = '2.1.0'\n",
        TorchVersion("2.1.0", None, False, None, None, None),
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_version_file(text: str, expected: TorchVersion) -> None:
    assert parse_torch_version(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda = '12.8'",
        "__version__ = get()",
        "__version__ == '2.0'",
        "__version__ = None",
        "__version__ = 'a' + 'b'",
        "    __version__ = '2.0'",
        "__version__ = '2.0\\n'",
        "__version__ = ''",
    ],
)
def test_no_version_file(text: str) -> None:
    with pytest.raises(ParseError, match=r"torch/version\.py"):
        parse_torch_version(text)


def test_nothing_is_run() -> None:
    text = "import os; os.abort()\n__version__ = '1'\nraise SystemExit\ncuda = open('/etc/passwd').read()\n"
    assert parse_assignments(text) == {"__version__": "1"}
