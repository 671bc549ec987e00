"""Where an installer looks for packages: pip.conf, PIP_* variables, uv.toml.

pip.conf, or pip.ini on Windows (a later section of a command's own name counts for that command only):

    [global]
    index-url = https://download.pytorch.org/whl/cu126
    extra-index-url =
        https://one.example/simple
        https://two.example/simple
    [install]
    constraint = constraints.txt

Environment: PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, ..., lists parted by blanks. uv.toml (only its plain forms are read):

    index-url = "https://one.example/simple"
    extra-index-url = ["https://two.example/simple"]
    [[index]]
    name = "pytorch"
    url = "https://download.pytorch.org/whl/cu126"
    default = true

Addresses may hold a password: show them only through `without_credentials`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Optional

from cudadoctor.model.record import NamedTuple


class IndexSettings(NamedTuple):
    """What is set; empty or None for what is not. `no_index`: look at no index at all; `user`: into the user's own
    folder; `target`: into that folder."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: Optional[bool] = None
    require_virtualenv: Optional[bool] = None
    break_system_packages: Optional[bool] = None
    user: Optional[bool] = None
    target: str | None = None


def parse_pip_config(text: str) -> IndexSettings:
    """One pip.conf: its [global] section, then [install] over it. Lines that are no settings are passed over.

    Never fails.
    """
    sections: dict[str, dict[str, str]] = {}
    section, key = "", ""
    for line in text.lstrip("\ufeff").splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if line[0] in " \t" and key:
            sections[section][key] += "\n" + stripped
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            section, key = stripped[1:-1].strip().lower(), ""
            continue
        found = re.match(r"([A-Za-z][\w-]{0,60})\s{0,20}[=:](.*)$", stripped, re.ASCII)
        if found is None:
            key = ""
            continue
        key = found.group(1).lower().replace("_", "-")
        sections.setdefault(section, {})[key] = found.group(2).strip()
    merged = dict(sections.get("global", {}))
    merged.update(sections.get("install", {}))
    return _settings(merged)


def parse_pip_environment(environment: Mapping[str, str]) -> IndexSettings:
    """PIP_* variables of an environment; an empty variable counts as not set, as in pip. Never fails."""
    values = {
        name[4:].lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_") and value.strip()
    }
    return _settings(values)


def _settings(values: Mapping[str, str]) -> IndexSettings:
    def words(name: str) -> tuple[str, ...]:
        return tuple(values.get(name, "").split())

    def flag(name: str) -> Optional[bool]:
        value = values.get(name, "").strip().lower()
        return None if not value else value in ("1", "true", "yes", "on", "y", "t")

    index = values.get("index-url", values.get("pypi-url", "")).strip()
    return IndexSettings(
        index_url=index or None,
        extra_index_urls=words("extra-index-url"),
        find_links=words("find-links"),
        constraints=words("constraint"),
        trusted_hosts=words("trusted-host"),
        no_index=flag("no-index"),
        require_virtualenv=flag("require-virtualenv"),
        break_system_packages=flag("break-system-packages"),
        user=flag("user"),
        target=values.get("target", "").strip() or None,
    )


class UvIndex(NamedTuple):
    """One [[index]] table of uv's."""

    name: str | None
    url: str
    default: bool
    explicit: bool  # used only for packages that name it


def parse_uv_config(text: str) -> list[UvIndex]:
    """The indexes that uv.toml (or [tool.uv] of a pyproject.toml) sets, its older keys included, in order. Never fails.

    Reads one setting a line, which is how people write them; a TOML file that says it in another way gives less.
    """
    indexes: list[UvIndex] = []
    table: dict[str, str] | None = None
    section = ""

    def close() -> None:
        if table and table.get("url"):
            indexes.append(
                UvIndex(
                    table.get("name"), table["url"], table.get("default") == "true", table.get("explicit") == "true"
                )
            )

    for raw in text.splitlines():
        line = raw.strip()
        header = re.match(r"(\[{1,2})\s{0,4}([\w.-]{1,80})\s{0,4}\]{1,2}", line, re.ASCII)
        if header:
            close()
            section = header.group(2)
            table = {} if header.group(1) == "[[" and section in ("index", "tool.uv.index") else None
            continue
        found = re.match(r"([\w-]{1,60})\s{0,20}=\s{0,20}(.*)$", line, re.ASCII)
        if found is None:
            continue
        key, value = found.group(1), found.group(2)
        strings = re.findall(r"\"([^\"]{0,500})\"|'([^']{0,500})'", value)
        texts = [double or single for double, single in strings]
        if table is not None:
            table[key] = texts[0] if texts else value.split("#")[0].strip()
        elif section in ("", "pip", "tool.uv", "tool.uv.pip") and key in ("index-url", "extra-index-url"):
            indexes.extend(UvIndex(None, url, key == "index-url", False) for url in texts if url)
    close()
    return indexes


def parse_uv_options(text: str) -> dict[str, str]:
    """Settings with one text as their value, of uv.toml's top level and its [pip]: {"torch-backend": "cpu"}. Never
    fails."""
    options: dict[str, str] = {}
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        header = re.match(r"\[{1,2}\s{0,4}([\w.-]{1,80})", line, re.ASCII)
        if header:
            section = header.group(1)
            continue
        found = re.match(r"([\w-]{1,60})\s{0,20}=\s{0,20}(?:\"([^\"]{0,200})\"|'([^']{0,200})')", line, re.ASCII)
        if found and section in ("", "pip"):
            options[found.group(1)] = found.group(2) or found.group(3) or ""
    return options


def parse_constraints(text: str) -> list[str]:
    """The requirements of a constraints file, names normalized, without comments, options and markers. Never fails."""
    found = []
    for raw in text.splitlines():
        line = re.split(r"(?:^|\s)#|;", raw, maxsplit=1)[0].strip()
        match = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:\[[^\]]{0,200}\])?\s{0,20}([<>=!~@].{0,300})$", line)
        if match:
            name = re.sub(r"[-_.]+", "-", match.group(1)).lower()
            found.append(name + re.sub(r"\s", "", match.group(2)))
    return found


def without_credentials(url: str) -> str:
    """An address without its user and password: "https://me:secret@host/x" -> "https://host/x"."""
    return re.sub(r"^([a-z][a-z0-9+.-]{0,20}://)[^/@\s]{0,500}@", r"\1", url, flags=re.I)


def cuda_tag_of_url(url: str) -> str | None:
    """The variant that an index address ends in: ".../whl/cu126" or ".../whl/nightly/cpu/" -> "cu126", "cpu"; else
    None.
    """
    found = re.search(r"/(cu[0-9]{2,4}|cpu|xpu|rocm[0-9.]{1,8})/?$", url.strip(), re.ASCII)
    return found.group(1) if found else None
