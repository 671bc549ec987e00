"""From the TOML that people edit to the sections that the program reads.

A section is plain JSON data. In an installed package the sections are JSON files, compiled when the package was built;
in a bare checkout they are made from the TOML on demand. Both go through this module, so they are equal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .load import INDEX
from .names import key, words

# Section -> the files it is made of: one TOML file of that name, or all files of that folder.
FOLDERS = ("torch",)
SECTIONS = (
    "meta",
    "cuda_toolkits",
    "driver_branches",
    "forward_compat",
    "architectures",
    "gpus",
    "pci_chips",
    "torch",
    "host_compilers",
    "distributions",
    "power_plans",
    "libraries",
    "frameworks",
    "messages",
    "xid",
    "wsl",
    "verify",
    "conda_forge",
    "images",
    "memory",
    "models",
    "quantisations",
    "cards",
    "changes",
    "engines",
)


def toml_parser() -> Any:
    """Python's own TOML parser, or the package tomli for 3.9 and 3.10. ImportError where neither is there."""
    import importlib

    try:
        return importlib.import_module("tomllib")
    except ImportError:
        return importlib.import_module("tomli")


def load_toml(path: str) -> dict[str, Any]:
    """Parse one TOML file. Raises OSError or ValueError (a syntax error, with its line)."""
    with open(path, "rb") as file:
        data: dict[str, Any] = toml_parser().load(file)
    return data


def toml_files(compat: str) -> list[str]:
    """Names of the data files below ``compat``, without ending: "meta", "torch/2.14"."""
    found = []
    for folder in ("", *FOLDERS):
        for entry in os.scandir(os.path.join(compat, folder) if folder else compat):
            if entry.name.endswith(".toml") and entry.is_file():
                found.append((folder + "/" if folder else "") + entry.name[: -len(".toml")])
    return sorted(found)


def stamp(compat: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of every data file: cheap to compare, no file is read."""
    found = []
    for folder in ("", *FOLDERS):
        for entry in os.scandir(os.path.join(compat, folder) if folder else compat):
            if entry.name.endswith(".toml"):
                status = entry.stat()
                name = (folder + "/" if folder else "") + entry.name
                found.append((name, status.st_size, status.st_mtime_ns))
    return sorted(found)


def section(compat: str, name: str) -> dict[str, Any]:
    """One section, straight from the TOML below ``compat``. Raises OSError or ValueError."""
    if name in FOLDERS:
        files = [file for file in toml_files(compat) if file.startswith(name + "/")]
        return shape(name, {file.split("/", 1)[1]: load_toml(os.path.join(compat, file + ".toml")) for file in files})
    return shape(name, load_toml(os.path.join(compat, name + ".toml")))


def shape(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The form in which a section is stored: GPU rows get what their group shares, and are indexed by name and id.

    Each GPU row is stored as text: a check asks for one or two of some hundreds, and reads no others.
    """
    if name != "gpus":
        return dict(data)
    rows: list[str] = []
    by_name: dict[str, list[int]] = {}
    by_pci: dict[str, list[int]] = {}
    by_chip: dict[str, list[int]] = {}
    for group in data.get("group", ()):
        shared = {column: value for column, value in group.items() if column != "gpus"}
        for gpu in group.get("gpus", ()):
            number = len(rows)
            rows.append(json.dumps({**shared, **gpu}, separators=(",", ":")))
            names = (gpu["name"], *gpu.get("smi", ()), *gpu.get("also", ()))
            for text in dict.fromkeys(key(words(name)) for name in names):
                by_name.setdefault(text, []).append(number)
            for pci in gpu.get("pci", ()):
                by_pci.setdefault(pci, []).append(number)
            if "chip" in gpu:
                by_chip.setdefault(gpu["chip"].lower(), []).append(number)
    head = {column: value for column, value in data.items() if column != "group"}
    return {**head, "rows": rows, "by_name": by_name, "by_pci": by_pci, "by_chip": by_chip}


def check(compat: str) -> list[str]:
    """Everything wrong with the data below ``compat``, as sentences; an empty list where it is sound."""
    from .schema import check_file

    problems = []
    names = toml_files(compat)
    for name in names:
        try:
            problems += check_file(name, load_toml(os.path.join(compat, name + ".toml")))
        except ValueError as error:
            problems.append(f"{name}: is not TOML: {error}")
    for name in SECTIONS:
        if not any(file == name or file.startswith(name + "/") for file in names):
            problems.append(f"{name}: is missing")
    return problems


def write(compat: str, folder: str, with_stamp: bool) -> list[str]:
    """Compile everything below ``compat`` into JSON files in ``folder``; their names are returned.

    ``with_stamp`` records the state of the TOML, so that a loader beside it can tell whether the JSON is stale.
    Raises ValueError where the data breaks its schema.
    """
    problems = check(compat)
    if problems:
        raise ValueError("the compatibility data is not sound:\n  " + "\n  ".join(problems))
    os.makedirs(folder, exist_ok=True)
    index: dict[str, Any] = {"sections": list(SECTIONS), "meta": section(compat, "meta")}
    if with_stamp:
        index["stamp"] = stamp(compat)
    written = []
    for name in SECTIONS:
        if name != "meta":
            written.append(_put(folder, name + ".json", section(compat, name)))
    written.append(_put(folder, INDEX, index))  # last: a broken run leaves no index that vouches for old files
    return written


def _put(folder: str, name: str, data: Any) -> str:
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="ascii") as file:
        json.dump(data, file, separators=(",", ":"), ensure_ascii=True)
        file.write("\n")
    os.replace(path + ".new", path)
    return name
