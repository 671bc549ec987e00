"""From which indexes the patient's installer takes packages: pip's files and variables, or uv's."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from bench.parts import clean_environ

from cudadoctor.probes.pip_settings import PROBE
from cudadoctor.system.live import LiveSystem
from cudadoctor.system.replay import ReplaySystem

from .pythons import Sections, debian, machine_with, site_of, venv, windows_venv, windows_with
from .tables import ABSENT, DENIED, Unknown, check

VENV = "/home/me/proj/.venv"
MIRROR = "https://mirror.example/simple"
CU126 = "https://download.pytorch.org/whl/cu126"


def config(path: str, *lines: str) -> Sections:
    return {"files": {path: ["[global]", *lines]}}


def in_venv(*parts: Sections, **variables: str) -> ReplaySystem:
    return machine_with(debian(), venv(VENV), *parts, VIRTUAL_ENV=VENV, **variables)


def in_uv(*parts: Sections, **variables: str) -> ReplaySystem:
    made_by_uv = venv(VENV, "3.12.3", "/usr/bin", "uv = 0.9.1", key="version_info")
    return machine_with(debian(), made_by_uv, *parts, VIRTUAL_ENV=VENV, **variables)


CASES: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    (
        "nothing is configured: PyPI",
        in_venv(),
        {"index_url": ABSENT, "extra_index_urls": [], "no_index": False, "configured_by": []},
    ),
    (
        "for everybody",
        in_venv(config("/etc/pip.conf", f"index-url = {MIRROR}")),
        {"index_url": MIRROR, "configured_by": ["/etc/pip.conf"]},
    ),
    (
        "the user's file is stronger, and the environment's is stronger still",
        in_venv(
            config("/etc/pip.conf", "index-url = https://one.example"),
            config("/home/me/.config/pip/pip.conf", "index-url = https://two.example", f"extra-index-url = {CU126}"),
            config(f"{VENV}/pip.conf", "index-url = https://three.example"),
        ),
        {
            "index_url": "https://three.example",
            "extra_index_urls": [CU126],
            "configured_by": ["/etc/pip.conf", "/home/me/.config/pip/pip.conf", f"{VENV}/pip.conf"],
        },
    ),
    (
        "variables are the strongest",
        in_venv(
            config("/home/me/.config/pip/pip.conf", f"index-url = {MIRROR}"),
            PIP_INDEX_URL="https://other.example",
            PIP_EXTRA_INDEX_URL=f"{CU126} {MIRROR}",
        ),
        {
            "index_url": "https://other.example",
            "extra_index_urls": [CU126, MIRROR],
            "configured_by": ["/home/me/.config/pip/pip.conf", "$PIP_INDEX_URL", "$PIP_EXTRA_INDEX_URL"],
        },
    ),
    (
        "no index at all",
        in_venv(config("/etc/pip.conf", "no-index = true"), {"files": {"/opt/wheels": ""}}),
        {"no_index": True, "configured_by": ["/etc/pip.conf"]},
    ),
    (
        "settings that are about something else",
        in_venv(config("/etc/pip.conf", "timeout = 60")),
        {"index_url": ABSENT, "configured_by": []},
    ),
    (
        "user and password stay where they are",
        in_venv(
            config("/etc/pip.conf", "index-url = https://me:s3cret@mirror.example/simple"),
            PIP_EXTRA_INDEX_URL="https://s3cret@extra.example",
        ),
        {"index_url": MIRROR, "extra_index_urls": ["https://extra.example"]},
    ),
    (
        "PIP_CONFIG_FILE replaces the user's own",
        in_venv(
            config("/home/me/.config/pip/pip.conf", "index-url = https://two.example"),
            config("/srv/pip.conf", f"index-url = {MIRROR}"),
            PIP_CONFIG_FILE="/srv/pip.conf",
        ),
        {"index_url": MIRROR, "configured_by": ["/srv/pip.conf"]},
    ),
    (
        "PIP_CONFIG_FILE=/dev/null switches all files off",
        in_venv(config("/etc/pip.conf", f"index-url = {MIRROR}"), PIP_CONFIG_FILE="/dev/null"),
        {"index_url": ABSENT, "configured_by": []},
    ),
    (
        "XDG's places",
        in_venv(
            config("/site/xdg/pip/pip.conf", f"index-url = {MIRROR}"),
            config("/data/me/pip/pip.conf", f"extra-index-url = {CU126}"),
            XDG_CONFIG_DIRS="/site/xdg:/etc/xdg",
            XDG_CONFIG_HOME="/data/me",
        ),
        {"index_url": MIRROR, "extra_index_urls": [CU126]},
    ),
    (
        "a file that may not be read leaves open what it says",
        in_venv({"files": {"/etc/pip.conf": DENIED}}),
        {"index_url": Unknown("permission denied"), "extra_index_urls": Unknown("permission denied")},
    ),
    (
        "a stronger source decides all the same",
        in_venv({"files": {"/etc/pip.conf": DENIED}}, PIP_INDEX_URL=MIRROR),
        {"index_url": MIRROR, "extra_index_urls": Unknown("permission denied")},
    ),
    (
        "no HOME",
        ReplaySystem.of({"unlisted": "absent", **config("/etc/pip.conf", f"index-url = {MIRROR}")}),
        {"index_url": MIRROR},
    ),
    (
        "Windows",
        windows_with(
            windows_venv("C:\\v"),
            {"files": {"C:\\Users\\me\\AppData\\Roaming\\pip\\pip.ini": ["[global]", f"index-url = {MIRROR}"]}},
            VIRTUAL_ENV="C:\\v",
        ),
        {"index_url": MIRROR, "configured_by": ["C:\\Users\\me\\AppData\\Roaming\\pip\\pip.ini"]},
    ),
    (
        "uv's own environment without pip: uv's settings count, pip's do not",
        in_uv(
            config("/etc/pip.conf", "index-url = https://pip.example"),
            {"files": {"/home/me/.config/uv/uv.toml": [f'index-url = "{MIRROR}"']}},
            UV_EXTRA_INDEX_URL=CU126,
        ),
        {
            "index_url": MIRROR,
            "extra_index_urls": [CU126],
            "configured_by": ["/home/me/.config/uv/uv.toml", "$UV_EXTRA_INDEX_URL"],
        },
    ),
    (
        "uv's newer names",
        in_uv(UV_DEFAULT_INDEX="https://me:s3cret@mirror.example/simple", UV_INDEX=f"pytorch={CU126}"),
        {"index_url": MIRROR, "extra_index_urls": [CU126]},
    ),
    (
        "an index of uv's that only named packages use is none for the others",
        in_uv(
            {
                "files": {
                    "/etc/uv/uv.toml": ["[[index]]", 'name = "pytorch"', f'url = "{CU126}"', "explicit = true"],
                }
            }
        ),
        {"index_url": ABSENT, "extra_index_urls": [], "configured_by": []},
    ),
    (
        "pip in an environment that uv made: pip's settings",
        in_uv({"files": {f"{site_of(VENV)}/pip/__init__.py": ""}}, PIP_INDEX_URL=MIRROR),
        {"index_url": MIRROR, "configured_by": ["$PIP_INDEX_URL"]},
    ),
    (
        "where to install, and into what",
        in_venv(
            config("/etc/pip.conf", "user = true", "require-virtualenv = yes", "find-links = /opt/wheels"),
            PIP_USER="0",
            PIP_TARGET="/opt/site",
        ),
        {
            "user": False,
            "require_virtualenv": True,
            "target": "/opt/site",
            "find_links": ["/opt/wheels"],
            "configured_by": ["/etc/pip.conf", "$PIP_USER", "$PIP_TARGET"],
        },
    ),
    (
        "constraints, and what they say of torch",
        in_venv(
            {"files": {"/etc/pip/constraint.txt": ["torch==2.6.0a0+ecf3bae", "nvidia-cudnn-cu12==9.1"]}},
            PIP_CONSTRAINT="/etc/pip/constraint.txt",
        ),
        {
            "constraints": ["/etc/pip/constraint.txt"],
            "constraint_pins": ["torch==2.6.0a0+ecf3bae", "nvidia-cudnn-cu12==9.1"],
            "configured_by": ["$PIP_CONSTRAINT"],
        },
    ),
    (
        "constraints that lie on a server are not known",
        in_venv(PIP_CONSTRAINT="https://me:s3cret@one.example/constraints.txt"),
        {
            "constraints": ["https://one.example/constraints.txt"],
            "constraint_pins": Unknown("on a server"),
        },
    ),
]  # fmt: skip

UV_CASES: list[tuple[str, ReplaySystem, dict[str, Any]]] = [
    ("uv is told nothing", in_venv(), {"torch_backend": ABSENT, "exclude_newer": ABSENT}),
    (
        "by its file, also where pip made the environment",
        in_venv(
            {
                "files": {
                    "/home/me/.config/uv/uv.toml": ['exclude-newer = "2026-10-01"', "[pip]", 'torch-backend = "cpu"']
                }
            }
        ),
        {"torch_backend": "cpu", "exclude_newer": "2026-10-01"},
    ),
    (
        "variables are stronger",
        in_uv({"files": {"/etc/uv/uv.toml": ['torch-backend = "cpu"']}}, UV_TORCH_BACKEND="auto"),
        {"torch_backend": "auto", "exclude_newer": ABSENT},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in UV_CASES], ids=[row[0] for row in UV_CASES])
def test_what_turns_uv_aside(system: ReplaySystem, expected: dict[str, Any]) -> None:
    check(PROBE, system, {f"uv.{name}": value for name, value in expected.items()})


@pytest.mark.parametrize(("system", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_where_packages_come_from(system: ReplaySystem, expected: dict[str, Any]) -> None:
    facts = check(PROBE, system, {f"pip.{name}": value for name, value in expected.items()})
    assert "s3cret" not in repr(facts)


def test_the_real_pip_reads_the_same_files_in_the_same_order(venv_with: Any, tmp_path: Path) -> None:
    patient = venv_with(pip=True)
    home = tmp_path / "home"
    for path, number in ((home / ".config" / "pip" / "pip.conf", 1), (patient.root / "pip.conf", 2)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[global]\nindex-url = https://index{number}.example\n")
    (home / ".config" / "pip" / "pip.conf").open("a").write(f"extra-index-url = {CU126}\n")
    for variables in ({}, {"PIP_INDEX_URL": "https://index3.example"}):
        environment = clean_environ({"HOME": str(home), "XDG_CONFIG_DIRS": str(tmp_path / "none"), **variables})
        code = (
            "import json; from pip._internal.configuration import Configuration as C; c = C(isolated=False); c.load();"
            "print(json.dumps(dict(c.items())))"
        )
        done = subprocess.run(
            [patient.python, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        said = json.loads(done.stdout)
        system = LiveSystem(time.monotonic() + 30, patient.python)
        system._environment = environment
        facts = check(PROBE, system, {})  # type: ignore[arg-type]
        index = said.get(":env:.index-url", said.get("global.index-url"))
        assert facts["pip.index_url"].get() == index
        assert facts["pip.extra_index_urls"].get() == [said["global.extra-index-url"]]
