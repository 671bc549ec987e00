"""Releases of torch and the builds of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Optional

from .sections import Sections, origin
from .tables import Build, TorchRelease, Variant
from .versions import cuda_of_variant, numbers, torch_key

# What is built beside torch, in versions of its own and for the same variants.
COMPANIONS = ("torchvision", "torchaudio")

_EMPTY: Mapping[str, str] = MappingProxyType({})

# Platforms whose CPU wheels on PyTorch's index carry "+cpu".
_LOCAL_CPU = ("linux-x86_64", "windows-x86_64")


class TorchQuestions(Sections):
    """Rows are made into builds only where a question needs them."""

    def torch_releases(self) -> tuple[TorchRelease, ...]:
        """Every release, newest first: in the order of versions, not of dates or files."""
        return self.once("torch releases", lambda: tuple(self._release(wanted) for wanted in self._torch_rows()))

    def torch_versions(self) -> tuple[str, ...]:
        """The versions of every release, newest first."""
        return tuple(row["version"] for _, row in self._torch_rows().values())

    def torch_release(self, version: str) -> Optional[TorchRelease]:
        """The release of "2.14.1", also as "2.14.1+cu126". None: a nightly, or a version that is not known."""
        wanted = torch_key(version)
        return None if wanted is None or wanted not in self._torch_rows() else self._release(wanted)

    def wheel_pythons(self, platform: str) -> Mapping[str, str]:
        """Every Python ("3.12", "3.13t") that a seen wheel of torch for that platform is for, with the newest such
        release. Read from the rows as they are: making all builds of all releases would take a check longer."""

        def make() -> dict[str, str]:
            found: dict[str, str] = {}
            for _, row in self._torch_rows().values():
                for item in row["builds"]:
                    if item["platform"] == platform and item.get("seen", True) and not item.get("guessed", False):
                        for python in item["pythons"].split(" "):
                            found.setdefault(python, row["version"])
            return found

        return self.once(f"pythons {platform}", make)

    def glibc_floors(self, platform: str) -> tuple[str, ...]:
        """The oldest glibc that seen wheels of torch for that platform need, newest release first; empty: none."""

        def make() -> tuple[str, ...]:
            floors = (
                item.get("glibc", row["glibc"].get(platform))
                for _, row in self._torch_rows().values()
                for item in row["builds"]
                if item["platform"] == platform and item.get("seen", True)
            )
            return tuple(floor for floor in floors if floor)

        return self.once(f"glibc {platform}", make)

    def _torch_rows(self) -> dict[tuple[int, int, int], tuple[dict[str, Any], dict[str, Any]]]:
        """Release -> its file and its row, newest first."""

        def make() -> dict[tuple[int, int, int], tuple[dict[str, Any], dict[str, Any]]]:
            found = {}
            for data in self.raw("torch").values():
                for row in data["release"]:
                    found[torch_key(row["version"]) or (0, 0, 0)] = (data, row)
            return dict(sorted(found.items(), reverse=True))

        return self.once("torch", make)

    def _release(self, wanted: tuple[int, int, int]) -> TorchRelease:
        return self.once(f"torch {wanted}", lambda: self._make_release(*self._torch_rows()[wanted]))

    def _make_release(self, data: Mapping[str, Any], row: Mapping[str, Any]) -> TorchRelease:
        version = row["version"]
        items: dict[str, list[Mapping[str, Any]]] = {}
        for item in row["builds"]:
            items.setdefault(item["variant"], []).append(item)

        def variant(name: str) -> Variant:
            platforms = tuple(item["platform"] for item in items[name])

            def build_at(place: int) -> Build:
                name_of_it = f"build {version} {name} {place}"
                return self.once(name_of_it, lambda: self._make_build(data, row, items[name][place]))

            return Variant(version, name, cuda_of_variant(name), self.index_url(name), platforms, build_at)

        names = sorted(items, key=lambda name: numbers(cuda_of_variant(name) or "0") or ())
        variants = tuple(map(variant, names))
        return TorchRelease(
            version,
            row["date"],
            row["requires_python"],
            MappingProxyType(row["default"]),
            row["cxx11_abi"],
            MappingProxyType(row["companions"]),
            tuple(row.get("companions_untagged", ())),
            MappingProxyType(row["nvidia"]),
            variants,
            row.get("note"),
            *origin(data, row),
        )

    def _make_build(self, data: Mapping[str, Any], row: Mapping[str, Any], item: Mapping[str, Any]) -> Build:
        variant, platform = item["variant"], item["platform"]
        listed, checked = origin(data, item, "listed")
        archs = origin(data, item, "archs")[0] if "archs" in item else listed
        local: Optional[str] = variant
        if item.get("no_local_version") or (variant == "cpu" and platform not in _LOCAL_CPU):
            local = None
        return Build(
            row["version"],
            variant,
            cuda_of_variant(variant),
            platform,
            tuple(item["pythons"].split(" ")),
            tuple(item["pythons_inferred"].split(" ")) if "pythons_inferred" in item else (),
            item.get("glibc", row["glibc"].get(platform)),
            item.get("cxx11_abi", row["cxx11_abi"]) if platform.startswith("linux") else None,
            tuple(item["sass"].split(" ")) if "sass" in item else (),
            tuple(item["ptx"].split(" ")) if "ptx" in item else (),
            tuple(item["disputed"].split(" ")) if "disputed" in item else (),
            bool(item.get("seen", True)),
            bool(item.get("guessed", False)),
            bool(item.get("archs_guessed", False)),
            bool(item.get("verified_in_binary", False)),
            row["default"].get(platform) == variant,
            self.index_url(variant),
            local,
            listed,
            archs,
            checked,
            item.get("download_mib"),
            tuple(item["pythons_index_only"].split(" ")) if "pythons_index_only" in item else (),
            item.get("glibc_below"),
        )

    def companions(self, torch: str) -> Mapping[str, str]:
        """torchvision and torchaudio (versions) and triton (a range) of a torch release; empty: not known."""
        release = self.torch_release(torch)
        return _EMPTY if release is None else release.companions
