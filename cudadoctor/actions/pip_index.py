"""Which index an interpreter's own pip takes packages from when nobody names one. pip is asked, not imitated."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Optional

from cudadoctor.actions.fetch import FetchError
from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import cuda_tag_of_url, without_credentials
from cudadoctor.parse.pip_output import parse_pip_config_list, parse_pip_default_index

_SECONDS = 30.0
# Where Python keeps the pip that it would install; Debian keeps it apart.
_BUNDLED = """
import ensurepip, glob, os, sysconfig
for folder in (os.path.join(ensurepip.__path__[0], "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")):
    for wheel in sorted(glob.glob(os.path.join(folder or "", "pip-*.whl")))[-1:]:
        print(wheel)
        raise SystemExit
"""
_NAME_IT = "name the index with --index-url"


class PipIndex(NamedTuple):
    """`url` may hold a password. `authorities` (a file) and `proxy` as pip is set; None: it is not."""

    url: str
    is_configured: bool
    authorities: Optional[str] = None
    proxy: Optional[str] = None


def pip_index(python: str) -> PipIndex:
    """The default index of this interpreter's pip, after its files and variables.

    FetchError where it has none, and where it is an index of one CUDA variant: that one does not tell what a plain
    `pip install torch` gives.
    """
    pip, listed = _pip(python)
    settings = parse_pip_config_list(listed)
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"):
        raise FetchError(f"pip is set to use no index (no-index): {_NAME_IT}")
    configured = settings.get("index-url", "").strip()
    url = configured
    if not url:
        try:
            url = parse_pip_default_index(_output([*pip, "--isolated", "install", "--help"]) or "")
        except ParseError:
            raise FetchError(f"pip of {python} does not tell its default index: {_NAME_IT}") from None
    shown = without_credentials(url)
    if cuda_tag_of_url(url) is not None:
        raise FetchError(
            f"pip is set to PyTorch's index of one variant ({shown}), which does not tell the default one: {_NAME_IT}"
        )
    if not url.lower().startswith(("http://", "https://")):
        raise FetchError(f"pip is set to an index that is no web address ({shown}): {_NAME_IT}")
    return PipIndex(url, bool(configured), settings.get("cert") or None, settings.get("proxy") or None)


def _pip(python: str) -> tuple[Sequence[str], str]:
    """How pip of this interpreter is run, installed or the one that Python itself brings along, and its settings."""
    pip: Sequence[str] = (python, "-m", "pip")
    listed = _output([*pip, "config", "list"])
    if listed is None:
        bundled = (_output([python, "-I", "-c", _BUNDLED]) or "").strip()
        pip = (python, os.path.join(bundled, "pip"))
        listed = _output([*pip, "config", "list"]) if bundled.endswith(".whl") else None
    if listed is None:
        raise FetchError(f"{python} has no pip that could tell its default index: {_NAME_IT}")
    return pip, listed


def _output(command: Sequence[str]) -> Optional[str]:
    """What a command prints; None where it fails."""
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "COLUMNS": "300", "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError):
        raise FetchError(f"{command[0]} cannot be run to ask its pip: {_NAME_IT}") from None
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip of {command[0]} did not answer within {_SECONDS:g} seconds: {_NAME_IT}") from None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
