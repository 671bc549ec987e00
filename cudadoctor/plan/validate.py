"""What may stand in a command. Everything that comes out of facts passes through here on its way into one.

Facts are read from files, programs and pasted reports: a package name with a `;` in it is somebody's attack or
somebody's mistake, and neither belongs in a line that people paste.
"""

from __future__ import annotations

import re

from cudadoctor.model import ParseError
from cudadoctor.model.pattern import pattern

_PACKAGE = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_VERSION = pattern(r"[0-9][0-9A-Za-z.!_-]{0,63}(?:\+[0-9A-Za-z][0-9A-Za-z._-]{0,63})?\Z")
_SYSTEM_PACKAGE = pattern(r"[A-Za-z0-9@][A-Za-z0-9+._:/-]{0,126}\Z")
_KERNEL = pattern(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,126}\Z")
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]{0,126}\Z")
_NAME = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,62}\Z")
_NODE = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")
_GUID = pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_URL = pattern(r"https?://[A-Za-z0-9._~:/?#@!$&()*+,;=%\[\]-]{1,500}\Z")
_SPECIFIER = pattern(
    r"(?:[<>=!~]{1,3}\s*)?[0-9][0-9A-Za-z.*+!_-]{0,63}(?:\s*,\s*[<>=!~]{1,3}\s*[0-9][0-9A-Za-z.*+!_-]{0,63}){0,7}\Z"
)
_PYTHON = pattern(r"3\.[0-9]{1,2}\Z")
_REQUIREMENT = pattern(r"([A-Za-z0-9._-]{1,100})\s*(\[[A-Za-z0-9_, .-]{1,100}\])?(.*)\Z")
_CHANNEL = pattern(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}\Z")
_BUILD = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.*]{0,99}\Z")


def _checked(pattern: re.Pattern[str], text: object, what: str) -> str:
    if not isinstance(text, str) or not pattern.match(text):
        raise ParseError(f"{str(text)[:60]!r} is not {what}, and goes into no command")
    return text


def package(text: object) -> str:
    """A Python package's name."""
    return _checked(_PACKAGE, text, "the name of a Python package")


def version(text: object) -> str:
    """An exact version, with or without a local part."""
    return _checked(_VERSION, text, "a version")


def specifier(text: object) -> str:
    """What a person asks for: "2.7.*", ">=2.6,<2.9", "2.7.1+cu126"."""
    return _checked(_SPECIFIER, text, "a version or a range such as 2.7.* or >=2.6,<2.9")


def requirement(text: object) -> str:
    """A package, maybe with extras and with the versions that are wanted of it: "vllm", "vllm<0.30",
    "jax[cuda12]==0.12.0"."""
    match = _REQUIREMENT.match(text) if isinstance(text, str) else None
    if match is None:
        raise ParseError(f"{str(text)[:60]!r} is not a package with or without versions, and goes into no command")
    name, extras, versions = match.group(1), (match.group(2) or "").replace(" ", ""), match.group(3).strip()
    if extras and versions[:1].isdigit():
        raise ParseError(f"{str(text)[:60]!r} is not a package with or without versions, and goes into no command")
    return package(name) + extras + (specifier(versions) if versions else "")


def python_version(text: object) -> str:
    """A Python such as 3.12."""
    return _checked(_PYTHON, text, "a Python version such as 3.12")


def system_package(text: object) -> str:
    """A package of the distribution."""
    return _checked(_SYSTEM_PACKAGE, text, "the name of a package")


def kernel(text: object) -> str:
    """A kernel release."""
    return _checked(_KERNEL, text, "a kernel release")


def variable(text: object) -> str:
    """The name of an environment variable."""
    return _checked(_VARIABLE, text, "the name of a variable")


def name(text: object) -> str:
    """The name of a group, a service or a kernel module."""
    return _checked(_NAME, text, "a name")


def node(text: object) -> str:
    """The name of a machine, as a scheduler knows it."""
    return _checked(_NODE, text, "the name of a machine")


def channel(text: object) -> str:
    """A conda channel by its name."""
    return _checked(_CHANNEL, text, "a conda channel")


def build(text: object) -> str:
    """A conda build string, maybe with a star."""
    return _checked(_BUILD, text, "a conda build")


def guid(text: object) -> str:
    return _checked(_GUID, text, "a GUID").lower()


def url(text: object) -> str:
    """The address of an index, without a slash at its end."""
    return _checked(_URL, text, "an http or https address").rstrip("/")


def path(text: object) -> str:
    """A path: any letters, but nothing that steers a terminal, and no option in disguise."""
    if not isinstance(text, str) or not text or len(text) > 4096 or not text.isprintable() or text.startswith("-"):
        raise ParseError(f"{str(text)[:60]!r} is not a path that can stand in a command")
    return text


def size(value: object) -> int:
    """A size in bytes, between 1 MiB and 16 TiB."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 << 20 <= value <= 1 << 44:
        raise ParseError(f"{str(value)[:60]} is not a size in bytes that a command can take")
    return value


def starts_with_package(requirement: str, name: str) -> bool:
    """Whether a requirement ("nvidia-cudnn-cu12==9.1.0.70") is one of that package."""
    rest = requirement[len(name) :]
    return requirement.startswith(name) and not re.match(r"[A-Za-z0-9._-]", rest)
