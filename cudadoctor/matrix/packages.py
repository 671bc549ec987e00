"""Packages that are tied to a torch release, and the wheels that bring CUDA libraries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Optional

from .drivers import DriverQuestions
from .sections import origin
from .tables import Framework, FrameworkRelease, Library, Pin, Verdict
from .torch_builds import TorchQuestions
from .versions import torch_key


class PackageQuestions(TorchQuestions, DriverQuestions):
    """What a package says of itself goes before what is asked here."""

    def pins(self, package: str) -> tuple[Pin, ...]:
        """Known releases of a package with the torch that each requires, newest first; empty: not known."""
        return self.once("pins", self._make_pins).get(_package(package), ())

    def pin(self, package: str, version: str) -> Optional[Pin]:
        """What this release of a package requires, where the data knows the release."""
        for row in self.pins(package):
            if row.version == version:
                return row
        return None

    def _make_pins(self) -> dict[str, tuple[Pin, ...]]:
        data = self.raw("frameworks")
        found: dict[str, tuple[Pin, ...]] = {}
        for row in data["pin"]:
            name = _package(row["package"])
            pin = Pin(
                name,
                row["version"],
                row.get("date"),
                row["torch"],
                row.get("torchvision"),
                row.get("torchaudio"),
                tuple(row["cuda"].split(" ")) if "cuda" in row else (),
                row.get("python"),
                *origin(data, row),
            )
            found[name] = (*found.get(name, ()), pin)
        return found

    def frameworks(self) -> tuple[Framework, ...]:
        """Every package that is known to be tied to torch or CUDA: first those that are tied to torch."""
        return self.once("frameworks", self._make_frameworks)

    def framework(self, name: str) -> Optional[Framework]:
        """The package of that name, also by another name of it ("flashinfer", "cupy-cuda12x"); None: not known."""
        wanted = _package(name)
        for row in self.raw("frameworks")["framework"]:
            if wanted in (row["name"], *row.get("names", ())):
                return next(found for found in self.frameworks() if found.name == row["name"])
        return None

    def framework_releases(self, name: str) -> tuple[FrameworkRelease, ...]:
        """Known releases of a package that is tied to CUDA and not to torch, newest first; empty: not known."""
        found = self.framework(name)
        return () if found is None else tuple(row for row in self._framework_releases() if row.package == found.name)

    def _make_frameworks(self) -> tuple[Framework, ...]:
        data = self.raw("frameworks")
        rows = []
        for row in data["framework"]:
            cuda = row.get("cuda", {})
            rows.append(
                Framework(
                    row["name"],
                    row["torch"],
                    MappingProxyType(cuda),
                    self._drivers(cuda, row.get("driver_linux", {}), "linux"),
                    self._drivers(cuda, row.get("driver_windows", {}), "windows"),
                    MappingProxyType(row.get("capability", {})),
                    row["windows"],
                    tuple(row["platforms"]),
                    bool(row.get("torch_index", False)),
                    row.get("note"),
                    *origin(data, row),
                    row.get("windows_last"),
                )
            )
        return tuple(sorted(rows, key=lambda row: not row.tied_to_torch))

    def _drivers(self, cuda: Mapping[str, str], own: Mapping[str, str], system: str) -> Mapping[str, str]:
        """Its own floors where it has some, else CUDA's."""
        found = {major: own.get(major) or self.floor(int(major), system) for major in cuda}
        return MappingProxyType({major: driver for major, driver in found.items() if driver})

    def _framework_releases(self) -> tuple[FrameworkRelease, ...]:
        def make() -> tuple[FrameworkRelease, ...]:
            data = self.raw("frameworks")
            plain = {row["name"]: row.get("cuda", {}) for row in data["framework"]}
            rows = []
            for row in data["release"]:
                majors = tuple(row["cuda"].split(" "))
                install = {**plain[row["package"]], **row.get("install", {})}
                rows.append(
                    FrameworkRelease(
                        row["package"],
                        row["version"],
                        row.get("date"),
                        row.get("python"),
                        majors,
                        MappingProxyType({major: f"{install[major]}=={row['version']}" for major in majors}),
                        MappingProxyType(row.get("needs", {})),
                        row.get("note"),
                        *origin(data, row),
                    )
                )
            return tuple(rows)

        return self.once("framework releases", make)

    def companion_ok(self, package: str, version: str, torch: str) -> Verdict:
        """Whether torchvision or torchaudio of this version belongs to that torch release (versions, not build tags).

        "unknown" for a release that the data does not have: what the package's own METADATA requires goes first anyway.
        """
        wanted, have = torch_key(torch), torch_key(version)
        if wanted is None or have is None:
            return Verdict("unknown", f"{package} {version} or torch {torch} is no known release", None, None, "")
        # The rows as they are: making every build of every release would take a check longer than all else.
        belongs = [
            (data, row)
            for data, row in self._torch_rows().values()
            if torch_key(row["companions"].get(package, "")) == have
        ]
        source = origin(*belongs[0])[0] if belongs else ""
        if any(torch_key(row["version"]) == wanted for _, row in belongs):
            return Verdict("yes", f"{package} {version} belongs to torch {torch}", None, None, source)
        rule = self._companion_rule(package, have)
        if not belongs or rule is None:
            reason = f"it is not known to which torch {package} {version} belongs"
            return Verdict("unknown", reason, None, None, "")
        if rule["torch"].startswith(">="):
            least = torch_key(rule["torch"][2:])
            source = origin(self.raw("frameworks"), rule)[0]
            if least is not None and wanted >= least:
                reason = f"{package} {version} takes torch {rule['torch']}"
                return Verdict("yes", reason, None, None, source)
            reason = f"{package} {version} requires torch {rule['torch']}, this is torch {torch}"
            return Verdict("no", reason, None, None, source)
        names = ", ".join(sorted(row["version"] for _, row in belongs))
        reason = f"{package} {version} belongs to torch {names}, this is torch {torch}"
        return Verdict("no", reason, None, None, source)

    def pinned_exactly(self, package: str, version: str) -> bool:
        """Whether torchvision or torchaudio of this version wants the one torch that it was built for."""
        have = torch_key(version)
        rule = None if have is None else self._companion_rule(package, have)
        return rule is not None and rule["torch"] == "=="

    def _companion_rule(self, package: str, have: tuple[int, int, int]) -> Optional[Mapping[str, Any]]:
        """The latest rule of the package that is in force for its version."""
        found = None
        since: tuple[int, int, int] = (-1, 0, 0)
        for row in self.raw("frameworks")["rule"]:
            start = torch_key(row["since"]) if "since" in row else (0, 0, 0)
            if row["package"] == package and start is not None and since < start <= have:
                found, since = row, start
        return found

    def library(self, name: str, cuda_major: Optional[int] = None) -> Optional[Library]:
        """The wheels that bring a CUDA library: "libcudart.so.13", "cudart64_12.dll", "libcudnn.so.9".

        Where several CUDA majors share the file name, ``cuda_major`` narrows the answer. None: no CUDA library.
        """
        data = self.raw("libraries")
        stem, number = _split_library(name)
        for row in data["library"]:
            windows = row.get("windows")
            if row["stem"] == stem:
                found = _by_number(row["packages"], number)
            elif windows and name.lower().endswith(".dll") and name.lower().startswith(windows.lower()):
                found = _by_dll_number(row["packages"], name[len(windows) : -len(".dll")])
            else:
                continue
            packages = tuple(word for word in found if word != "driver")
            if cuda_major is not None and len(packages) > 1:
                packages = tuple(word for word in packages if _cuda_major_of_package(word) == cuda_major)
            driver = "driver" in row["packages"].values()
            return Library(name, row["component"], packages, driver, *origin(data, row))
        return None

    def cuda_wheels(self, cuda_major: int) -> tuple[str, ...]:
        """Names of all wheels that bring CUDA libraries of that major."""
        rows = [row for row in self.raw("libraries")["library"] if not row.get("apart")]
        names = (name for row in rows for words in row["packages"].values() for name in words.split(" "))
        return tuple(
            sorted({name for name in names if name != "driver" and _cuda_major_of_package(name) == cuda_major})
        )


def _package(name: str) -> str:
    """A package name as PyPI normalizes it."""
    return name.strip().lower().replace("_", "-").replace(".", "-")


def _split_library(name: str) -> tuple[str, str]:
    """``"libcudart.so.11.0"`` -> ``("libcudart", "11.0")``."""
    stem, dot, number = name.partition(".so")
    return (stem, number.lstrip(".")) if dot else (name, "")


def _by_number(packages: Mapping[str, str], number: str) -> list[str]:
    """The wheels for a library number: "12" also for a file named .12.4.127; all of them where no number is given."""
    if not number:
        return list(dict.fromkeys(word for names in packages.values() for word in names.split(" ")))
    for known, names in packages.items():
        if number == known or number.startswith(known + ".") or known.startswith(number + "."):
            return names.split(" ")
    return []


def _by_dll_number(packages: Mapping[str, str], number: str) -> list[str]:
    """The same for a DLL: "12", "120_0" and "110" stand for 12, 12.0 and 11.0."""
    digits = number.split("_")[0]
    if len(digits) == 3:
        digits = digits[:2]
    return _by_number(packages, digits) if digits.isdigit() else []


def _cuda_major_of_package(name: str) -> int:
    """11 and 12 for -cu11 and -cu12; wheels of CUDA 13 have -cu13 or no ending."""
    ending = name.rpartition("-cu")[2]
    return int(ending) if ending.isdigit() else 13
