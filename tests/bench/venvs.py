"""Virtual environments of the patient, made quickly."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from .parts import CACHE, clean_environ, find_python, missing_part, patient_version
from .wheels import Wheel


class Venv:
    """A virtual environment.

    python          path of its interpreter
    site_packages   its site-packages
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = str(root / "bin" / "python")
        self.site_packages = next((root / "lib").glob("python3*")) / "site-packages"

    def unpack(self, *wheels: Wheel) -> Venv:
        """Installs wheels the short way: unpacked, with the INSTALLER file that pip would leave."""
        for wheel in wheels:
            with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
                archive.extractall(self.site_packages)
                info = next(n.split("/")[0] for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            (self.site_packages / info / "INSTALLER").write_text("pip\n")
            # Recorded, as pip does: what RECORD does not name stays behind when the package is uninstalled.
            with (self.site_packages / info / "RECORD").open("a") as record:
                record.write(f"{info}/INSTALLER,,\n")
        return self

    def installed(self) -> dict[str, str]:
        """project -> version, read from the names of the dist-info folders; without pip and setuptools."""
        found = {}
        for path in self.site_packages.glob("*.dist-info"):
            name, version = path.name[: -len(".dist-info")].split("-")[:2]
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
        return {name: version for name, version in sorted(found.items()) if name not in ("pip", "setuptools")}

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs this environment's python with the arguments. env: laid over a clean environment."""
        return subprocess.run(
            [self.python, *arguments],
            env=clean_environ(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def torch_build(self) -> tuple[str, str | None] | None:
        """(__version__, cuda) as torch/version.py says, run by itself; None where no torch is installed."""
        path = self.site_packages / "torch" / "version.py"
        if not path.exists():
            return None
        values: dict[str, object] = {}
        exec(path.read_text(), values)
        cuda = values["cuda"]
        return str(values["__version__"]), None if cuda is None else str(cuda)


def _prepared(python: str, version: str, pip: bool) -> Path:
    """An empty environment in the cache, to be copied."""
    key = hashlib.sha256(python.encode()).hexdigest()[:8]
    folder = CACHE / "venvs" / f"{version}{'-pip' if pip else ''}-{key}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # `venv` writes absolute paths into bin/; the copies do not use those scripts.
    work = Path(tempfile.mkdtemp(dir=folder.parent))
    command = [python, "-I", "-m", "venv", str(work)] + ([] if pip else ["--without-pip"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean_environ())
    if done.returncode:
        shutil.rmtree(work)
        raise RuntimeError(done.stdout + done.stderr)
    try:
        work.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(work)
    return folder


def make(root: Path, *wheels: Wheel, python: str | None = None, pip: bool = False) -> Venv:
    """A virtual environment in `root` that holds these wheels. python: a version ("3.12"); pip: the real pip too."""
    version = python or patient_version()
    interpreter = find_python(version)
    if not interpreter:
        missing_part(f"Python {version}", f"uv python install {version}, or put python{version} on PATH")
    shutil.copytree(_prepared(interpreter, version, pip), root, symlinks=True, dirs_exist_ok=True)
    for script in (root / "bin").iterdir():
        if script.name.startswith(("pip", "activate", "Activate")):
            text = script.read_text()
            start = text.splitlines()[0]
            script.write_text(
                text.replace(start, f"#!{root}/bin/python", 1)
                if script.name.startswith("pip")
                else re.sub(re.escape(str(CACHE / "venvs")) + r"/tmp\w+", str(root), text)
            )
    return Venv(root).unpack(*wheels)


def activated(venv: Venv) -> dict[str, str]:
    """The environment of a shell in which the venv is active."""
    return {"VIRTUAL_ENV": str(venv.root), "PATH": os.path.dirname(venv.python)}
