#!/usr/bin/env python3
"""Holds the compatibility data against the wheels that it speaks of, and writes down what they say.

    .venv/bin/python scripts/verify_matrix.py                    # read the default index's wheels of torch, compare
    .venv/bin/python scripts/verify_matrix.py --write            # and write compat/verification.{json,md}
    .venv/bin/python scripts/verify_matrix.py --offline          # compare with what was read last time
    .venv/bin/python scripts/verify_matrix.py --torch 2.14.1 --torch 2.15.0 --code
    .venv/bin/python scripts/verify_matrix.py --sizes --write    # what a fresh install downloads, into compat/torch/

A few MB of each wheel are read by range requests. --code looks at the GPU code itself too, in one wheel of each CUDA
version and architecture (some tens of MB each). --sizes lets uv resolve a fresh install of each build of the default
index and adds up the wheels.

The index is the one that this interpreter's pip is configured for; --index names another. It must speak the JSON form
of the simple API (PEP 691). The exit status is 1 where a row disagrees with a wheel.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.actions.fetch import Fetcher, FetchError  # noqa: E402
from cudadoctor.actions.pip_index import pip_index  # noqa: E402
from cudadoctor.actions.remote_wheel import RemoteError, RemoteWheel  # noqa: E402
from cudadoctor.actions.wheel_contents import UnlikeWheel, WheelContents, read_contents, read_gpu_code  # noqa: E402
from cudadoctor.matrix import COMPANIONS, Build, Matrix, TorchRelease, load_matrix, numbers, torch_key  # noqa: E402
from cudadoctor.parse.dist_info import parse_metadata, parse_wheel_name  # noqa: E402
from cudadoctor.parse.errors import ParseError  # noqa: E402
from cudadoctor.parse.torch_version import parse_assignments  # noqa: E402

COMPAT = ROOT / "compat"
REPORT = COMPAT / "verification.json"
PAGE = COMPAT / "verification.md"
SCHEMA = "cudadoctor.verification/1"
FIRST = (1, 7, 0)
JSON_PAGE = "application/vnd.pypi.simple.v1+json"
# What the rows say of the CUDA packages: the ones whose versions matter to a diagnosis.
PINNED = ("cudnn", "nccl", "nvshmem", "cusparselt", "cuda-runtime", "cuda-toolkit")
# Platform -> what the markers of requirements ask for: sys_platform, platform_system, platform_machine, os_name.
MARKERS = {
    "linux-x86_64": ("linux", "Linux", "x86_64", "posix"),
    "linux-aarch64": ("linux", "Linux", "aarch64", "posix"),
    "windows-x86_64": ("win32", "Windows", "AMD64", "nt"),
    "macos-arm64": ("darwin", "Darwin", "arm64", "posix"),
    "macos-x86_64": ("darwin", "Darwin", "x86_64", "posix"),
}
MARKER_NAMES = ("sys_platform", "platform_system", "platform_machine", "os_name")


class Disagreement(NamedTuple):
    """A column in which a row and a wheel differ; `wheel` is the last word."""

    torch: str
    platform: str
    column: str
    ours: str
    wheel: str

    def __str__(self) -> str:
        return f"torch {self.torch} {self.platform}: {self.column} is {self.ours}, the wheel says {self.wheel}"


# ------------------------------------------------------------------------------------------ comparing; no network


def compare(matrix: Matrix, report: Mapping[str, Any]) -> list[Disagreement]:
    """Every column in which the rows differ from what the wheels of the report say."""
    found: list[Disagreement] = []
    for wheel in report["wheels"]:
        release = matrix.torch_release(wheel["torch"])
        if release is None:
            found.append(Disagreement(wheel["torch"], wheel["platform"], "the release", "missing", "there"))
            continue
        found += compare_wheel(release, wheel)
    there = {(wheel["torch"], wheel["platform"]) for wheel in report["wheels"]}
    for release in matrix.torch_releases():
        for platform in release.default:
            if (release.version, platform) not in there:
                found.append(Disagreement(release.version, platform, "default variant", release.default[platform], ""))
        tables = [wheel for wheel in report["wheels"] if wheel["torch"] == release.version and wheel.get("announced")]
        if tables:
            found += compare_table(release, tables[0]["announced"])
        found += compare_companions(release, report.get("companions", ()))
    return found


def compare_wheel(release: TorchRelease, wheel: Mapping[str, Any]) -> Iterator[Disagreement]:
    """One wheel of the default index against the row of its build, and of its release."""
    platform = wheel["platform"]

    def differs(column: str, ours: object, theirs: object) -> Iterator[Disagreement]:
        if ours != theirs:
            yield Disagreement(release.version, platform, column, _shown(ours), _shown(theirs))

    if wheel.get("broken"):
        default = release.build(release.default.get(platform, ""), platform)
        offered = [python for python in default.pythons if python not in default.pythons_index_only] if default else []
        yield from differs("pythons on PyPI", " ".join(offered), "")
        return
    variant = _variant(wheel["cuda"])
    yield from differs("default variant", release.default.get(platform), variant)
    yield from differs("requires_python", release.requires_python, wheel["requires_python"])
    build = release.build(variant, platform)
    if build is None:
        yield Disagreement(release.version, platform, "the build", "missing", variant)
        return
    here = [python for python in build.pythons if python not in build.pythons_index_only]
    yield from differs("pythons", " ".join(here), " ".join(wheel["pythons"]))
    yield from differs("sass", " ".join(build.sass), " ".join(wheel["sass"]))
    yield from differs("ptx", " ".join(build.ptx), " ".join(wheel["ptx"]))
    if wheel["sass"]:
        yield from differs("verified_in_binary", build.verified, True)
    elif build.verified:
        yield Disagreement(release.version, platform, "verified_in_binary", "True", "no GPU list")
    if wheel.get("code"):
        # What the code itself has: the wheel's own list must be true before ours can be.
        yield from differs("sass", " ".join(f"sm_{target}" for target in build.sass), " ".join(wheel["code"]["sass"]))
    if platform.startswith("linux"):
        yield from _glibc(build, wheel)
        refused = "2.41" if wheel["executable_stack"] else None
        yield from differs("glibc_below", build.glibc_below, refused)
        if wheel["cxx11_abi"] is not None:
            yield from differs("cxx11_abi", build.cxx11_abi, wheel["cxx11_abi"])
    if platform == "linux-x86_64":
        yield from differs("date", release.date, wheel["date"])
        yield from differs("companions.triton", release.companions.get("triton"), wheel["requires"].get("triton"))
        pins = _pins(wheel["requires"])
        for name in PINNED:
            yield from differs(f"nvidia.{name}", release.nvidia.get(name), pins.get(name))


def _glibc(build: Build, wheel: Mapping[str, Any]) -> Iterator[Disagreement]:
    """A tag with a glibc number is what installers go by; an older tag has none, and then no symbol may be newer."""
    ours, tag, symbols = (numbers(text or "") for text in (build.glibc, wheel["glibc_tag"], wheel["glibc_symbols"]))
    if tag and ours != tag:
        yield Disagreement(build.torch, build.platform, "glibc", _shown(build.glibc), wheel["glibc_tag"])
    elif symbols and (ours is None or ours < symbols):
        yield Disagreement(build.torch, build.platform, "glibc", _shown(build.glibc), wheel["glibc_symbols"])


def compare_table(release: TorchRelease, table: Mapping[str, Sequence[str]]) -> Iterator[Disagreement]:
    """The GPU lists that torch itself carries of all its Linux builds. That a build stands there proves no wheel of it;
    a build without a row is left out."""
    for way, targets in table.items():
        cuda, _, machine = way.partition(" ")
        build = release.build(_variant(cuda), f"linux-{machine}")
        if build is None or build.verified:
            continue
        column, wheel = f"{build.variant} sass", " ".join(targets)
        if " ".join(build.sass) != wheel:
            yield Disagreement(release.version, build.platform, column, " ".join(build.sass), wheel)
        if build.archs_guessed or build.disputed:
            ours = "a guess" if build.archs_guessed else f"disputed for {' '.join(build.disputed)}"
            yield Disagreement(release.version, build.platform, column, ours, wheel)


def compare_companions(release: TorchRelease, companions: Iterable[Mapping[str, Any]]) -> Iterator[Disagreement]:
    """torchvision and torchaudio: the version in the row must take this torch, and no other may be bound to it."""
    from packaging.specifiers import SpecifierSet

    for package in COMPANIONS:
        ours = release.companions.get(package)
        rows = [row for row in companions if row["package"] == package]
        bound = [row["version"] for row in rows if row["torch"] == f"=={release.version}"]
        mine = next((row for row in rows if row["version"] == ours), None)
        if not rows:
            continue
        if bound and ours not in bound:
            yield Disagreement(release.version, "any", f"companions.{package}", _shown(ours), " or ".join(bound))
        elif mine is None and ours is not None:
            yield Disagreement(release.version, "any", f"companions.{package}", ours, "no such release")
        elif mine is not None and not SpecifierSet(mine["torch"]).contains(release.version):
            yield Disagreement(
                release.version, "any", f"companions.{package}", _shown(ours), f"takes torch {mine['torch']}"
            )


def _pins(requires: Mapping[str, str]) -> dict[str, str]:
    """ "nvidia-cudnn-cu13" -> "cudnn"."""
    found = {}
    for name, specifier in requires.items():
        bare = re.sub(r"-cu\d+\Z", "", name)
        found[bare[len("nvidia-") :] if bare.startswith("nvidia-") else bare] = specifier
    return found


def _variant(cuda: Optional[str]) -> str:
    return "cpu" if cuda is None else "cu" + "".join(cuda.split(".")[:2])


def _shown(value: object) -> str:
    return "not there" if value in (None, "") else str(value)


# ------------------------------------------------------------------------------------------ reading wheels


def opened(options: argparse.Namespace) -> tuple[Fetcher, str]:
    """What fetches, and the address of the index."""
    found = None if options.index else pip_index(sys.executable)
    authorities = found.authorities if found else None
    fetcher = Fetcher(deadline=3600.0, authorities=authorities, proxy=found.proxy if found else None)
    return fetcher, options.index or (found.url if found else "")


def project_page(fetcher: Fetcher, index: str, project: str) -> list[dict[str, Any]]:
    """The wheels of a project on the index that were not withdrawn. SystemExit for anything but PEP 691's JSON."""
    answer = fetcher.get(f"{index.rstrip('/')}/{project}/", accept=JSON_PAGE)
    if answer is None or JSON_PAGE not in answer.content_type:
        raise SystemExit(f"{project}: the index has no such page in the JSON form of PEP 691")
    files = json.loads(answer.text)["files"]
    found = [file for file in files if file["filename"].endswith(".whl") and not file.get("yanked")]
    if not found:
        raise SystemExit(f"{project}: the index lists no wheels")
    return found


class Listed(NamedTuple):
    """A wheel on the index's page."""

    torch: str
    platform: str
    python: str
    file: Mapping[str, Any]


def listed(files: Iterable[Mapping[str, Any]]) -> list[Listed]:
    """The wheels of a page by release, platform and Python; what the rows have no word for is left out."""
    found = []
    for file in files:
        try:
            name = parse_wheel_name(file["filename"])
        except ParseError:
            continue
        platform, python = platform_of(name.platform), python_of(name.python, name.abi)
        key = torch_key(name.version)
        if platform and python and key and key >= FIRST and "rc" not in name.version:
            found.append(Listed(name.version.partition("+")[0], platform, python, file))
    return found


def platform_of(tag: str) -> Optional[str]:
    """ "manylinux_2_28_x86_64" -> "linux-x86_64"."""
    if tag.startswith(("manylinux", "linux")):
        return next((f"linux-{machine}" for machine in ("x86_64", "aarch64") if tag.endswith("_" + machine)), None)
    if tag == "win_amd64":
        return "windows-x86_64"
    if tag.startswith("macosx"):
        return next((f"macos-{machine}" for machine in ("x86_64", "arm64") if tag.endswith("_" + machine)), None)
    return None


def python_of(python: str, abi: str) -> Optional[str]:
    """ "cp313", "cp313t" -> "3.13t"."""
    match = re.fullmatch(r"cp3(\d+)", python)
    return None if match is None else f"3.{match.group(1)}" + ("t" if re.fullmatch(r"cp3\d+t", abi) else "")


def glibc_of(tag: str) -> Optional[str]:
    """The oldest glibc of a wheel with this platform tag, where the tag has a number.

    torch's "manylinux1" has none, and what it stands for was never true of torch.
    """
    match = re.search(r"manylinux_(\d+)_(\d+)_", tag)
    if match:
        return f"{match.group(1)}.{match.group(2)}"
    return "2.17" if "manylinux2014" in tag else None


def python_order(python: str) -> tuple[int, bool]:
    return int(python.rstrip("t").split(".")[1]), python.endswith("t")


def read_wheel(fetcher: Fetcher, wheels: Sequence[Listed], with_code: bool) -> dict[str, Any]:
    """What one wheel of a release for a platform says, as the report keeps it: that of the newest Python.

    Raises RemoteError.
    """
    wheel = max((one for one in wheels if not one.python.endswith("t")), key=lambda one: python_order(one.python))
    remote = RemoteWheel(fetcher.session, wheel.file["url"])
    pythons = sorted({one.python for one in wheels}, key=python_order)
    row = {
        "torch": wheel.torch,
        "platform": wheel.platform,
        "file": wheel.file["filename"],
        "sha256": wheel.file.get("hashes", {}).get("sha256"),
        "bytes": remote.size,
        "fetched": 0,
        "date": min(one.file["upload-time"][:10] for one in wheels if "upload-time" in one.file),
        "pythons": pythons,
    }
    try:
        found: WheelContents = read_contents(remote)
    except UnlikeWheel as error:
        return {**row, "fetched": remote.fetched, "broken": str(error).partition(": ")[2]}
    row.update(
        {
            "version": found.version,
            "cuda": found.cuda,
            "requires_python": found.requires_python,
            "sass": list(found.sass),
            "ptx": list(found.ptx),
            "glibc_tag": glibc_of(parse_wheel_name(wheel.file["filename"]).platform),
            "glibc_symbols": found.glibc,
            "cxx11_abi": found.cxx11_abi,
            "executable_stack": list(found.executable_stack),
            "requires": holding(found, wheel.platform, pythons),
        }
    )
    if found.announced:
        row["announced"] = {f"{cuda} {machine}": list(archs.sass) for (cuda, machine), archs in found.announced.items()}
    if with_code:
        code = read_gpu_code(remote)
        if code is not None:
            row["code"] = {"sass": list(code.sass), "ptx": list(code.ptx), "fatbins": code.fatbins}
    row["fetched"] = remote.fetched
    return row


def holding(found: WheelContents, platform: str, pythons: Iterable[str]) -> dict[str, str]:
    """The requirements on triton and NVIDIA's packages that hold on that platform, for at least one of its Pythons: a
    triton that is not made for the newest one is not required there."""
    from packaging.markers import Marker

    environments = []
    for python in (python.rstrip("t") for python in pythons):
        environment = dict(zip(MARKER_NAMES, MARKERS[platform]))
        environment.update(python_version=python, python_full_version=python + ".0", extra="")
        environments.append(environment)
    kept = {}
    for one in found.requirements:
        if one.name.startswith(("nvidia-", "cuda-")) or one.name == "triton":
            marker = Marker(one.marker) if one.marker else None
            if marker is None or any(marker.evaluate(environment) for environment in environments):
                kept[one.name] = one.specifier
    return kept


def read_companions(fetcher: Fetcher, index: str) -> list[dict[str, Any]]:
    """Every release of torchvision and torchaudio, with the torch that it requires ("" for any)."""
    found = []
    for package in COMPANIONS:
        versions: dict[tuple[int, int, int], Listed] = {}
        for file in project_page(fetcher, index, package):
            try:
                name = parse_wheel_name(file["filename"])
            except ParseError:
                continue
            key = torch_key(name.version)
            if key and (name.platform == "any" or platform_of(name.platform) == "linux-x86_64"):
                versions[key] = Listed(name.version, "linux-x86_64", "", file)
        for one in (versions[key] for key in sorted(versions)):
            wheel = RemoteWheel(fetcher.session, one.file["url"])
            (path,) = (name for name in wheel.names() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            meta = parse_metadata(wheel.read(path).decode("utf-8", "replace"), only=["torch"])
            row = {
                "package": package,
                "version": one.torch,
                "file": one.file["filename"],
                "torch": ",".join(sorted(requirement.specifier for requirement in meta.requirements)),
            }
            own = f"{package}/version.py"
            if own in wheel.names():
                cuda = parse_assignments(wheel.read(own).decode("utf-8", "replace")).get("cuda")
                row["cuda"] = cuda if isinstance(cuda, str) else None
            found.append(row)
            print(f"{package} {one.torch}: torch {row['torch'] or '(any)'}", flush=True)
    return found


def read_all(options: argparse.Namespace, matrix: Matrix, before: Mapping[str, Any]) -> dict[str, Any]:
    """The report anew; what was not asked for is taken from the one before."""
    fetcher, index = opened(options)
    by_wheel: dict[tuple[str, str], list[Listed]] = {}
    for one in listed(project_page(fetcher, index, "torch")):
        by_wheel.setdefault((one.torch, one.platform), []).append(one)
    kept = {(row["torch"], row["platform"]): row for row in before.get("wheels", ())}
    failed = []
    code_seen = set()
    for key in sorted(by_wheel, key=lambda item: (torch_key(item[0]) or FIRST, item[1])):
        version, platform = key
        if (options.torch and version not in options.torch) or (options.platform and platform not in options.platform):
            continue
        release = matrix.torch_release(version)
        default = "cpu" if release is None else release.default.get(platform, "cpu")
        with_code = options.code and default != "cpu" and (default, platform) not in code_seen
        try:
            row = read_wheel(fetcher, by_wheel[key], with_code)
        except RemoteError as error:
            failed.append(str(error))
            print(f"NOT READ {error}", flush=True)
            continue
        if with_code:
            code_seen.add((default, platform))
        elif "code" in kept.get(key, {}) and kept[key]["sha256"] == row["sha256"]:
            row["code"] = kept[key]["code"]
        kept[key] = row
        said = row.get("broken") or _variant(row["cuda"])
        print(f"torch {version} {platform}: {said}, {row['fetched'] / 1e6:.1f} MB read", flush=True)
    companions = before.get("companions", [])
    if options.companions or not companions:
        companions = read_companions(fetcher, index)
    if failed:
        print(f"{len(failed)} wheels could not be read; what was read of them before stays")
    return {
        "schema": SCHEMA,
        "read": time.strftime("%Y-%m-%d", time.gmtime()),
        "wheels": [kept[key] for key in sorted(kept, key=lambda item: (torch_key(item[0]) or FIRST, item[1]))],
        "companions": companions,
        "history": list(before.get("history", ())),
    }


# ------------------------------------------------------------------------------------------ the kept report


def remember(report: dict[str, Any], found: Iterable[Disagreement]) -> None:
    """The history of the report: each disagreement with the day on which it was found, and whether it still is one."""
    now = [list(one) for one in found]
    known = [entry["what"] for entry in report["history"]]
    for entry in report["history"]:
        entry["settled"] = entry["what"] not in now
    report["history"] += [
        {"found": report["read"], "what": what, "settled": False} for what in now if what not in known
    ]


def page(report: Mapping[str, Any]) -> str:
    """The report for people."""
    wheels = report["wheels"]
    releases = sorted({row["torch"] for row in wheels}, key=lambda version: torch_key(version) or FIRST, reverse=True)
    platforms = sorted({row["platform"] for row in wheels})
    fetched = sum(row["fetched"] for row in wheels) / 1e6
    whole = sum(row["bytes"] for row in wheels) / 1e9
    code = [row for row in wheels if row.get("code")]
    lines = [
        "# The compatibility data, held against the wheels",
        "",
        "Written by `scripts/verify_matrix.py --write`. The tests hold the rows of `compat/torch/` against the figures",
        "beside this page (`verification.json`).",
        "",
        f"On {report['read']}, {len(wheels)} wheels of {len(releases)} releases of torch on PyPI were read by range",
        f"requests ({', '.join(platforms)}): {fetched:.0f} MB of {whole:.1f} GB. Compared:",
        "",
        "| column | read from |",
        "|---|---|",
        "| default variant, CUDA | `torch/version.py` |",
        "| Pythons, date | the index's list of files |",
        "| requires_python, triton, nvidia pins | METADATA, markers of that platform evaluated |",
        "| sass, ptx | the string that `torch.cuda.get_arch_list()` splits, in `libtorch_python.so` |",
        "| glibc | the platform tag; the highest `GLIBC_` symbol of the small libraries |",
        "| cxx11_abi | the symbols of `libc10.so` |",
        "| glibc_below | whether a library asks for an executable stack, which glibc refuses from 2.41 on |",
        "| GPU lists of the other variants | the table in `torch/cuda/__init__.py`, from torch 2.13 on |",
        "| torchvision, torchaudio | what each of their releases requires of torch "
        f"({len(report['companions'])} releases) |",
        "",
    ]
    if code:
        names = ", ".join(f"{row['torch']} {_variant(row['cuda'])} {row['platform'].split('-')[1]}" for row in code)
        lines += [
            f"In {len(code)} of them, the code itself was looked at (the first fatbins of `libtorch_cuda.so`):",
            f"{names}. It is for the targets that the wheel lists.",
            "",
        ]
    history = report["history"]
    still = [entry for entry in history if not entry["settled"]]
    lines += [
        "## Disagreements",
        "",
        f"{len(still) or 'None'} open. {len(history) - len(still)} found and settled by mending the row:",
        "",
    ]
    if history:
        lines += [
            "| found | torch | platform | column | the row said | the wheel says | |",
            "|---|---|---|---|---|---|---|",
        ]
        for entry in history:
            lines.append(
                f"| {entry['found']} | "
                + " | ".join(entry["what"])
                + f" | {'settled' if entry['settled'] else 'OPEN'} |"
            )
        lines.append("")
    lines += [
        "## What was read",
        "",
        "| torch | platform | variant | GPU code | glibc | Pythons | wheel MB | read MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for release in releases:
        for row in (row for row in wheels if row["torch"] == release):
            if row.get("broken"):
                lines.append(f"| {release} | {row['platform']} | cannot be installed: {row['broken']} | | | | | |")
                continue
            archs = " ".join([*row["sass"], *(f"ptx{target}" for target in row["ptx"])])
            lines.append(
                f"| {release} | {row['platform']} | {_variant(row['cuda'])} | {archs} | "
                f"{row['glibc_tag'] or row['glibc_symbols'] or ''} | {' '.join(row['pythons'])} | "
                f"{row['bytes'] / 1e6:.0f} | {row['fetched'] / 1e6:.1f} |"
            )
    return "\n".join(lines) + "\n"


def load_report(path: Path = REPORT) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("ascii"))
    except FileNotFoundError:
        return {"wheels": [], "companions": [], "history": []}
    if found.get("schema") != SCHEMA:
        raise SystemExit(f"{path}: is no report of this script")
    return found


def dumped(report: Mapping[str, Any]) -> str:
    """One wheel a line: a change of one is a change of one line."""
    parts = []
    for key, value in report.items():
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]" if value else f" {json.dumps(key)}: []")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


# ------------------------------------------------------------------------------------------ main


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", help="address of a simple index (PEP 691)")
    parser.add_argument("--torch", action="append", metavar="VERSION", help="only this release; may be repeated")
    parser.add_argument("--platform", action="append", choices=sorted(MARKERS), help="only this one; may be repeated")
    parser.add_argument("--code", action="store_true", help="look at the GPU code itself, too")
    parser.add_argument("--companions", action="store_true", help="read torchvision and torchaudio anew, too")
    parser.add_argument("--offline", action="store_true", help="compare with what was read last time")
    parser.add_argument("--write", action="store_true", help="write the report")
    options = parser.parse_args(arguments)
    matrix = load_matrix(str(COMPAT))
    report = load_report()
    if not options.offline:
        try:
            report = read_all(options, matrix, report)
        except (FetchError, RemoteError) as error:
            raise SystemExit(str(error)) from None
    found = compare(matrix, report)
    for one in found:
        print(one)
    if options.write:
        remember(report, found)
        REPORT.write_text(dumped(report), "ascii")
        PAGE.write_text(page(report), "utf-8")
    print(f"{len(report['wheels'])} wheels, {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
