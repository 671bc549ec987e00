r"""Which Python and which pip: version lines, banners, `which`, `where`, and the folders in tracebacks.

Python 3.11.7 (main, Dec  4 2023, 18:10:11) [GCC 12.2.0] on linux
pip 24.0 from /opt/env/lib/python3.12/site-packages/pip (python 3.12)
$ which python                       C:\demo>where pip
/opt/env/bin/python                  C:\Python311\Scripts\pip.exe
  File "/opt/env/lib/python3.12/site-packages/torch/cuda/__init__.py", line 293, in _lazy_init
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.reports.blocks import LOG, TYPED, Block, Claim
from cudadoctor.reports.readers._said import python_claims
from cudadoctor.reports.text import Text

TRIGGERS = (
    "python 0.0",
    "pip 0",
    "which python",
    "which pip",
    "where python",
    "where pip",
    "site-packages/torch/",
    "site-packages\\torch\\",
    "dist-packages/torch/",
)

_VERSION = re.compile(r"\s*Python (\d\.\d{1,2}\.\d{1,2}(?:rc\d|[ab]\d)?)\+?(?: ?$| (?:\(|\||::|free-threading).*$)")
_ON = {"linux": "linux", "win32": "windows", "darwin": "darwin"}
_PIP = re.compile(r"\s*pip (\d[\d.]{0,12}) from (\S.{0,300}?)[/\\]pip \(python (\d\.\d{1,2})\)$")
_ASKED = re.compile(
    r"\b(?:which|where(?:\.exe)?|type -a|command -v)\s+(?:-a\s+)?(python|pip)[\d.]{0,4}(?:\.exe)?`?\s*$", re.I
)
_PATH = re.compile(r"\s*((?:/[^\s/:]{1,80}){1,20}|[A-Za-z]:\\[^\n:*?\"<>|]{3,300}?\.(?:exe|EXE|bat))\s*$")
_FRAME = re.compile(
    r"((?:/|[A-Za-z]:[/\\])[^\n\"'<>|*?]{0,300}?)[/\\](?:lib|lib64|Lib)[/\\](?:python(\d\.\d{1,2})t?[/\\])?"
    r"(site|dist)-packages[/\\]torch[/\\]"
)
_MOST_FRAMES = 200


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    frames: dict[str, int] = {}
    for hit in hits:
        line = text[hit]
        claims: list[Claim] = []
        last = hit
        version, pip, asked = _VERSION.match(line), _PIP.match(line), _ASKED.search(line)
        if version:
            claims += python_claims(line.strip()[7:], hit)
            system = re.search(r" on (linux|win32|darwin)$", line)
            if system:
                claims.append(Claim("system.os", _ON[system.group(1)], hit))
        elif pip:
            claims.append(Claim("python.pip", True, hit))
            claims.append(Claim("python.version", pip.group(3), hit, trust=TYPED))
            owner = _owner_of(pip.group(2), hit)
            claims += [owner] if owner is not None else []
        elif asked and hit + 1 < len(text):
            path = _PATH.match(text[hit + 1])
            found = _found(asked.group(1).lower(), path.group(1), hit + 1) if path else None
            claims += [found] if found is not None else []
            last = hit + 1
        elif "-packages" in line and len(frames) < _MOST_FRAMES:
            frame = _FRAME.search(line)
            if frame:
                frames[frame.group(0)] = hit
        if claims:
            yield Block("Python and pip", hit, last, tuple(claims), LOG)
    if frames:
        # Of several environments the last is that in which the program failed.
        place, hit = max(frames.items(), key=lambda item: item[1])
        yield Block("traceback", hit, hit, tuple(_of_frame(place, hit)), LOG)


def _of_frame(place: str, line: int) -> Iterator[Claim]:
    match = _FRAME.search(place)
    if match is None:
        return
    prefix, version, kind = match.groups()
    windows = prefix[1:2] == ":"
    yield Claim("torch.path", place.rstrip("/\\"), line)
    if kind == "site" and "/.local" not in prefix:
        yield Claim("python.prefix", prefix, line, trust=TYPED)
    if windows:
        yield Claim("system.os", "windows", line)
        version = version or _windows_version(prefix)
    if version:
        yield Claim("python.version", version, line, trust=TYPED)
    if re.search(r"[/\\](?:envs[/\\][^/\\]+|(?:mini|ana)conda\d?|miniforge\d?|mambaforge)$", prefix, re.IGNORECASE):
        yield Claim("python.environment", "conda", line)
    elif re.search(r"[/\\]\.?(?:venv|virtualenv)[^/\\]*$", prefix, re.IGNORECASE):
        yield Claim("python.environment", "venv", line)


def _windows_version(prefix: str) -> Optional[str]:
    match = re.search(r"[/\\]Python(\d)(\d{1,2})(?:-32)?$", prefix, re.IGNORECASE)
    return f"{match.group(1)}.{match.group(2)}" if match else None


def _owner_of(folder: str, line: int) -> Optional[Claim]:
    """Whose pip it is, by the folder in which it is installed."""
    if "/.local/" in folder or "AppData\\Roaming" in folder:
        return None  # the user's own, which several interpreters may share
    value: dict[str, Any]
    if folder.endswith("/dist-packages"):
        value = {"path": "/usr/bin/pip", "interpreter": "/usr/bin/python3"}
    else:
        match = re.match(r"(.*)[/\\](?:lib|lib64|Lib)[/\\](?:python\d\.\d{1,2}t?[/\\])?site-packages$", folder, re.I)
        if match is None:
            return None
        prefix = match.group(1)
        if folder[1:2] == ":":
            return Claim("python.prefix", prefix, line, trust=TYPED)
        value = {"path": f"{prefix}/bin/pip", "interpreter": f"{prefix}/bin/python"}
    return Claim("python.pip_on_path", value, line)


def _found(what: str, path: str, line: int) -> Optional[Claim]:
    # A shim stands for the interpreter of the day; a pip of the user's own folder for any.
    if "shims" in path or "WindowsApps" in path:
        return None
    if what == "python":
        return Claim("python.python_on_path", path, line)
    folder = re.match(r"(.*)[/\\]pip[\d.]{0,5}(?:\.exe)?$", path, re.IGNORECASE)
    if folder is None or "/.local/" in path:
        return None
    if path[1:2] == ":":
        scripts = re.match(r"(.*)\\Scripts$", folder.group(1), re.IGNORECASE)
        own = scripts is not None and re.search(r"\\Python\d{2,3}$", scripts.group(1), re.IGNORECASE)
        home = scripts.group(1) if scripts is not None and own else folder.group(1)
        return Claim("python.pip_on_path", {"path": path, "interpreter": f"{home}\\python.exe"}, line)
    return Claim("python.pip_on_path", {"path": path, "interpreter": f"{folder.group(1)}/python"}, line)
