#!/usr/bin/env python3
"""Makes the one file that runs on a bare node: cudadoctor and all that it needs, for any Python from the oldest on.

    python scripts/build_zipapp.py [-o dist/cudadoctor.pyz] [--oldest 3.11] [--for PYTHON ...]

Run it with an interpreter of the oldest Python that the file shall run on (--oldest; without it the oldest that
cudadoctor supports, pyproject.toml: requires-python), into which cudadoctor is installed: its packages are copied, no
network is asked, and what is installed for the oldest Python runs on newer ones. A newer Python's packages may not run
on older ones; then this says so and makes nothing.

The file holds the sources and, for each Python that is at hand (or named by --for), the compiled code of all modules:
a Python without that runs it too, and compiles what it needs at every start. Nothing is written where it runs. The same
inputs make the same bytes.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor import bundle  # noqa: E402
from cudadoctor.matrix import compile as compiling  # noqa: E402

SHEBANG = b"#!/usr/bin/env python3\n"

# The extras of pyproject.toml whose packages a node needs.
EXTRAS = ("fleet",)

# What zip files know as the beginning of time, in every time zone.
WRITTEN = (1980, 1, 1, 0, 0, 0)

# Installed beside a package, and not of it: nvidia-ml-py's example.
LEFT_OUT = ("example.py",)

# Every Python reads this first: no word in it may be newer than Python 2.
MAIN = """\
import sys

if sys.version_info < ({major}, {minor}):
    sys.stderr.write(
        "cudadoctor: error: this is Python %d.%d, and cudadoctor needs {major}.{minor} or newer: "
        "name one, as in `python{major}.{minor} %s check`\\n" % (sys.version_info[0], sys.version_info[1], sys.argv[0])
    )
    sys.exit(2)

from cudadoctor.cli import run

if __name__ == "__main__":
    run()
"""

COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
import bundle
for folder, version, file in zip(*[iter(sys.argv[2:])] * 3):
    with open(file.replace("*", bundle.file_name()), "wb") as target:
        target.write(bundle.build(folder, version, packed=True))
"""


class Unfit(Exception):
    """Why nothing can be made here: one sentence."""


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def oldest_of(requires: str) -> tuple[int, int]:
    """(3, 9) of ">=3.9"."""
    allowed = SpecifierSet(requires)
    return next((3, minor) for minor in range(100) if allowed.contains(f"3.{minor}.99"))


def asked(version: str, least: tuple[int, int]) -> tuple[int, int]:
    """(3, 11) of "3.11", which is no older than cudadoctor allows."""
    parts = version.split(".")
    if len(parts) != 2 or parts[0] != "3" or not parts[1].isdigit() or (3, int(parts[1])) < least:
        raise Unfit(f"--oldest takes {least[0]}.{least[1]} or newer, not {version}")
    return 3, int(parts[1])


# ---------------------------------------------------------------------------------------------------- its packages


def wanted(texts: Iterable[str], extras: Iterable[str], oldest: tuple[int, int]) -> Iterator[Requirement]:
    """Those of these requirements that apply to any Python from the oldest on, on this system."""
    here: dict[str, Any] = dict(default_environment())
    for text in texts:
        requirement = Requirement(text)
        versions = [f"3.{minor}" for minor in range(oldest[1], oldest[1] + 20)]
        if requirement.marker is None or any(
            requirement.marker.evaluate(
                {**here, "python_version": version, "python_full_version": version + ".0", "extra": extra}
            )
            for version in versions
            for extra in ("", *extras)
        ):
            yield requirement


def closure(requirements: Iterable[str], oldest: tuple[int, int]) -> list[Distribution]:
    """The installed packages that are required, and those which they require, sorted by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    queue = list(wanted(requirements, (), oldest))
    while queue:
        requirement = queue.pop()
        key = (canonicalize_name(requirement.name), tuple(sorted(requirement.extras)))
        if key in seen:
            continue
        seen.add(key)
        try:
            one = distribution(requirement.name)
        except PackageNotFoundError:
            raise Unfit(f"{requirement} is not installed for {sys.executable}") from None
        if not requirement.specifier.contains(one.version, prereleases=True):
            raise Unfit(f"{requirement} is asked for, and {one.version} is installed for {sys.executable}")
        needs = str(one.metadata["Requires-Python"] or "")
        if not SpecifierSet(needs).contains("{}.{}.99".format(*oldest)):
            raise Unfit(
                f"{requirement.name} {one.version} needs Python {needs}, and the file shall run on Python "
                f"{oldest[0]}.{oldest[1]}: run this with an interpreter of Python {oldest[0]}.{oldest[1]}, or, where "
                f"no node has so old a one, with --oldest {sys.version_info[0]}.{sys.version_info[1]}"
            )
        found[key[0]] = one
        queue += wanted(one.requires or (), requirement.extras, oldest)
    return [found[name] for name in sorted(found)]


def modules_of(one: Distribution) -> Iterator[tuple[str, Path]]:
    """The files of an installed package that a program reads: no compiled code, which fits one Python only."""
    for file in one.files or ():
        name = file.as_posix()
        if (
            name.startswith(("../", "/"))
            or ".dist-info/" in name
            or "__pycache__" in name
            or name.endswith((".pyc", ".so", ".pyd", ".pyi", "py.typed", ".pth"))
            or name in LEFT_OUT
        ):
            continue
        yield name, Path(str(file.locate()))


def licences_of(one: Distribution) -> Iterator[tuple[str, Path]]:
    """Its licence files; where it has none, the metadata, which name the licence."""
    folder = f"licenses/{canonicalize_name(one.metadata['Name'])}-{one.version}"
    inside = [file for file in one.files or () if ".dist-info/" in file.as_posix()]
    words = ("LICEN", "COPYING", "NOTICE", "AUTHORS")
    texts = [file for file in inside if file.name.upper().startswith(words)]
    for file in texts or [file for file in inside if file.name == "METADATA"]:
        yield f"{folder}/{file.name}", Path(str(file.locate()))


# ------------------------------------------------------------------------------------------------------- the file


def pythons(oldest: tuple[int, int]) -> list[str]:
    """An interpreter of each minor version that is at hand."""
    versions = [f"3.{minor}" for minor in range(oldest[1], oldest[1] + 12)]
    command = f'. "{ROOT}/scripts/find_python.sh"; for v in {" ".join(versions)}; do find_python $v; done'
    bash = shutil.which("bash")
    if bash is None:
        return [sys.executable]
    done = subprocess.run([bash, "-c", command], stdout=subprocess.PIPE, text=True, timeout=120)
    return done.stdout.split("\n")[:-1] or [sys.executable]


def collect(oldest: tuple[int, int], packages: list[Distribution], interpreters: list[str]) -> dict[str, bytes]:
    """Name within the file -> content."""
    files: dict[str, bytes] = {"__main__.py": MAIN.format(major=oldest[0], minor=oldest[1]).encode("ascii")}
    own = ROOT / "cudadoctor"
    with tempfile.TemporaryDirectory(prefix="cudadoctor-zipapp-") as scratch:
        for path in own.rglob("*"):
            inside = path.relative_to(own).as_posix()
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.split("/"))
            made = inside.startswith((bundle.FOLDER + "/", "matrix/compiled/"))
            if path.is_file() and not hidden and not made and not inside.endswith(".pyc"):
                files["cudadoctor/" + inside] = path.read_bytes()
        data = Path(scratch, "data")
        for name in compiling.write(str(ROOT / "compat"), str(data), False):
            files["cudadoctor/matrix/compiled/" + name] = (data / name).read_bytes()
        files["licenses/cudadoctor/LICENSE"] = (ROOT / "LICENSE").read_bytes()
        beside = Path(scratch, "beside")
        beside.mkdir()
        for one in packages:
            for name, path in (*modules_of(one), *licences_of(one)):
                files[name] = path.read_bytes()
                if name.endswith(".py"):
                    (beside / name).parent.mkdir(parents=True, exist_ok=True)
                    (beside / name).write_bytes(files[name])
        # As it lies in the file, and nothing that lies around in a checkout.
        alone = Path(scratch, "alone", "cudadoctor")
        for name, content in files.items():
            if name.startswith("cudadoctor/") and name.endswith(".py"):
                place = alone.parent / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        files.update(compiled(alone, beside, Path(scratch), interpreters))
    return files


def compiled(own: Path, beside: Path, scratch: Path, interpreters: list[str]) -> dict[str, bytes]:
    """The bundles of each interpreter."""
    code, here, there = scratch / "code", scratch / "own", scratch / "others"
    for folder in (code, here, there):
        folder.mkdir()
    shutil.copy(own / "bundle.py", code)
    version = bundle.version_in(str(own / "__init__.py"))
    # Sets are marshalled in the order of their hashes.
    environment = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ.get("PATH", "")}
    own_job = (str(own), version, str(here / "*"))
    others_job = (str(beside), version, str(there / "*"))
    for python in interpreters:
        done = subprocess.run(
            [python, "-S", "-s", "-c", COMPILE, str(code), *own_job, *others_job],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        if done.returncode:
            raise Unfit(f"{python} cannot compile it: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    found = {f"cudadoctor/{bundle.FOLDER}/{path.name}": path.read_bytes() for path in here.iterdir()}
    found.update({f"{bundle.FOLDER}/{path.name}": path.read_bytes() for path in there.iterdir()})
    return found


def packed(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    target.write(SHEBANG)
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, WRITTEN)
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            # The compiled code is packed already, each module by itself.
            stored = name.endswith(".bin") or name == "__main__.py"
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name], compresslevel=9)
    return target.getvalue()


def write(path: Path, content: bytes) -> None:
    """Whole or not at all: nodes may be running the one that lies there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(content)
        new.chmod(0o755)
        new.replace(path)
    finally:
        if new.exists():
            new.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist" / "cudadoctor.pyz")
    parser.add_argument("--for", dest="interpreters", action="append", metavar="PYTHON")
    parser.add_argument("--oldest", metavar="X.Y", help="the oldest Python that the file shall run on")
    options = parser.parse_args()
    about = project()
    extras = [text for extra in EXTRAS for text in about.get("optional-dependencies", {}).get(extra, [])]
    try:
        oldest = oldest_of(about["requires-python"])
        if options.oldest is not None:
            oldest = asked(options.oldest, oldest)
        packages = closure([*about["dependencies"], *extras], oldest)
        files = collect(oldest, packages, options.interpreters or pythons(oldest))
    except Unfit as reason:
        print(f"build_zipapp.py: {reason}", file=sys.stderr)
        return 1
    content = packed(files)
    write(options.output, content)
    prefix = f"cudadoctor/{bundle.FOLDER}/"
    tags = [name[len(prefix) : -len(".bin")] for name in sorted(files) if name.startswith(prefix)]
    print(f"{options.output}: {len(content) / 1e6:.1f} MB, {len(files)} files")
    print("packages:", ", ".join(f"{one.metadata['Name']} {one.version}" for one in packages))
    print("compiled for:", ", ".join(tags))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
