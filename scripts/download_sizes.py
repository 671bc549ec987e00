#!/usr/bin/env python3
"""What a fresh `pip install torch==X` downloads, for each platform: the column download_mib of compat/torch/.

    .venv/bin/python scripts/download_sizes.py                          # print
    .venv/bin/python scripts/download_sizes.py --write                  # and write the column
    .venv/bin/python scripts/download_sizes.py --torch 2.15.0

uv resolves the install (nothing of torch is downloaded), from the index that this interpreter's pip is configured for,
for the second newest Python of the build: the newest one may still lack a package. Then the wheels are added up.
Only builds of the default index are measured: what the others weigh is not known here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.actions.pip_index import pip_index  # noqa: E402
from cudadoctor.matrix import Build, Matrix, load_matrix  # noqa: E402
from cudadoctor.matrix.compile import load_toml  # noqa: E402

COMPAT = ROOT / "compat"
SOURCE = "sizes"
UV_PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "windows-x86_64": "x86_64-pc-windows-msvc",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
}


def default_builds(matrix: Matrix, wanted: Sequence[str]) -> Iterator[Build]:
    """The builds of the default index that a plain pip can install."""
    for release in matrix.torch_releases():
        if wanted and release.version not in wanted:
            continue
        for platform, variant in release.default.items():
            build = release.build(variant, platform)
            if build is not None and python_for(build):
                yield build


def python_for(build: Build) -> Optional[str]:
    """The second newest Python of the build, or its only one; None where the default index has no wheel of it."""
    pythons = [p for p in build.pythons if not p.endswith("t") and p not in build.pythons_index_only]
    pythons.sort(key=lambda text: int(text.split(".")[1]))
    return pythons[-2] if len(pythons) > 1 else pythons[0] if pythons else None


def resolved(build: Build, index: str) -> dict[str, int]:
    """Bytes by package of a fresh install. Raises RuntimeError with uv's words where it finds none."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, lock = Path(folder, "wanted.in"), Path(folder, "pylock.toml")
        wanted.write_text(f"torch=={build.torch}\n", "ascii")
        command = [
            sys.executable, "-m", "uv", "pip", "compile", str(wanted), "--format", "pylock.toml", "-o", str(lock),
            "--python-version", python_for(build) or "", "--python-platform", UV_PLATFORMS[build.platform],
            "--no-config", "--quiet", "--only-binary", "torch",
        ]  # fmt: skip
        # Without it uv takes an older macOS than torch's wheels are for.
        environment = {**os.environ, "UV_DEFAULT_INDEX": index, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        if done.returncode:
            raise RuntimeError(" ".join(done.stderr.split()))
        return sizes(load_toml(str(lock)))


def sizes(lock: dict[str, Any]) -> dict[str, int]:
    """Bytes of each package of a pylock.toml: its wheel, else its source. Of several wheels that would do, the
    largest."""
    found = {}
    for package in lock["packages"]:
        files = package.get("wheels") or ([package["sdist"]] if "sdist" in package else [])
        found[package["name"]] = max(int(file["size"]) for file in files)
    return found


def with_column(text: str, build: Build, mib: int) -> str:
    """The text of a data file with download_mib and its source in the row of the build."""
    start = text.index(f'\nversion = "{build.torch}"\n')
    end = text.find("\n[[release]]", start)
    end = len(text) if end < 0 else end
    row = re.compile(
        rf'^(  \{{ variant = "{build.variant}", platform = "{build.platform}", .*?)(?: \}},)$', re.MULTILINE
    )
    match = row.search(text, start, end)
    if match is None:
        raise RuntimeError(f"no row of {build.torch} {build.variant} {build.platform} on a line of its own")
    bare = re.sub(r", download_mib = \d+, sizes = \S+?(?=,|$)", "", match.group(1))
    return text[: match.start()] + f'{bare}, download_mib = {mib}, sizes = "{SOURCE}" }},' + text[match.end() :]


def with_source(text: str, day: str) -> str:
    how = "sizes of the wheels that uv resolves for a fresh install from PyPI"
    line = f'{SOURCE} = "{how}, {day} (scripts/download_sizes.py)"'
    if re.search(rf"^{SOURCE} = ", text, re.MULTILINE):
        return re.sub(rf"^{SOURCE} = .*$", line, text, flags=re.MULTILINE)
    return text.rstrip("\n") + "\n" + line + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", help="address of the index")
    parser.add_argument("--torch", action="append", default=[], metavar="VERSION", help="only this release")
    parser.add_argument("--write", action="store_true", help="write compat/torch/")
    options = parser.parse_args()
    matrix = load_matrix(str(COMPAT))
    index = options.index or pip_index(sys.executable).url
    day = time.strftime("%Y-%m-%d", time.gmtime())
    failed = 0
    for build in default_builds(matrix, options.torch):
        try:
            found = resolved(build, index)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"torch {build.torch} {build.platform}: {str(error)[:300]}", flush=True)
            continue
        mib = -(-sum(found.values()) // (1 << 20))
        largest = sorted(found, key=lambda name: -found[name])[:4]
        shown = ", ".join(f"{name} {found[name] >> 20}" for name in largest)
        print(
            f"torch {build.torch} {build.platform} {build.variant}: {mib} MiB ({shown}, {len(found)} packages)",
            flush=True,
        )
        if options.write:
            path = COMPAT / "torch" / (".".join(build.torch.split(".")[:2]) + ".toml")
            text = with_column(path.read_text("utf-8"), build, mib)
            path.write_text(with_source(text, day), "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
