"""What surrounds CUDA on a system: host compilers, kernel modules, power plans, distributions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Optional

from .sections import Sections, origin
from .tables import Assembler, Distribution, HeaderClash, HostCompiler, PowerPlan, WslNeeds
from .versions import numbers


class SystemQuestions(Sections):
    """A distribution without data is None: its commands are not guessed."""

    def host_compiler(self, cuda: str) -> Optional[HostCompiler]:
        """Host compilers that nvcc of "12.6" (or "12.6.3") accepts; None: not known."""
        wanted = (numbers(cuda) or ())[:2]
        for row in self.host_compilers():
            if len(wanted) == 2 and numbers(row.cuda) == wanted:
                return row
        return None

    def host_compilers(self) -> tuple[HostCompiler, ...]:
        """The host compilers of every toolkit that is known, the newest toolkit first."""
        return self.once("host_compilers", self._make_compilers)

    def _make_compilers(self) -> tuple[HostCompiler, ...]:
        data = self.raw("host_compilers")
        return tuple(
            HostCompiler(
                row["cuda"],
                row.get("read_from"),
                row["gcc_max"],
                row.get("gcc_min"),
                row["clang_max"],
                row.get("clang_min"),
                row["msvc_min"],
                row["msvc_below"],
                row["visual_studio"],
                row.get("confidence", "stated"),
                row.get("note"),
                *origin(data, row),
            )
            for row in data["compiler"]
        )

    def headers_too_new(self, glibc: str, cuda: str, arch: Optional[str] = None) -> Optional[HeaderClash]:
        """What in the headers of this glibc the nvcc of `cuda` cannot compile; None: nothing that is known."""
        have, toolkit = numbers(glibc), (numbers(cuda) or ())[:2]
        for row in self.header_clashes():
            here = row.arch in (None, arch) and have is not None and have >= (numbers(row.glibc) or ())
            if here and len(toolkit) == 2 and toolkit < (numbers(row.cuda) or ()):
                return row
        return None

    def header_clashes(self) -> tuple[HeaderClash, ...]:
        """All headers of glibc that an older nvcc cannot compile, the newest glibc first."""
        data = self.raw("host_compilers")
        return tuple(
            HeaderClash(
                row["glibc"],
                row["cuda"],
                row.get("arch"),
                tuple(row["functions"]),
                row.get("confidence", "stated"),
                row.get("note"),
                *origin(data, row),
            )
            for row in data["header"]
        )

    def assembler(self, triton: str, compute_capability: str) -> Optional[Assembler]:
        """The ptxas inside that Triton's wheel which it takes for such a GPU; None: not known."""
        have = numbers(triton)
        data = self.raw("host_compilers")
        for row in data["assembler"]:
            if have is None or have < (numbers(row["triton"]) or ()):
                continue
            second = "newer" in row and (numbers(compute_capability) or ()) >= (numbers(row["newer_from"]) or ())
            return Assembler(row["newer"] if second else row["cuda"], row["variable"], *origin(data, row))
        return None

    def kernel_modules(self, kind: str) -> tuple[str, ...]:
        """Names of kernel modules, "nvidia" or "nouveau" (whatever else holds an NVIDIA GPU)."""
        return tuple(row["name"] for row in self.raw("libraries")["module"] if row["kind"] == kind)

    def power_plans(self) -> tuple[PowerPlan, ...]:
        return self.once("power_plans", self._make_plans)

    def _make_plans(self) -> tuple[PowerPlan, ...]:
        data = self.raw("power_plans")
        return tuple(
            PowerPlan(
                row["guid"],
                row["name"],
                row["kind"],
                bool(row.get("overlay", False)),
                row.get("alias"),
                row.get("note"),
                *origin(data, row),
            )
            for row in data["plan"]
        )

    def power_plan(self, guid: str) -> Optional[PowerPlan]:
        """The plan or overlay with that GUID; None: a copy or a plan of the maker's, which may be anything."""
        wanted = guid.strip().strip("{}").lower()
        for row in self.power_plans():
            if row.guid == wanted:
                return row
        return None

    def wsl_needs(self) -> WslNeeds:
        """What WSL has to be for Windows to lend it a GPU."""

        def make() -> WslNeeds:
            data = self.raw("wsl")
            (row,) = data["needs"]
            return WslNeeds(row["windows_build"], row["kernel"], *origin(data, row))

        return self.once("wsl", make)

    def distribution(self, id: str, id_like: str = "", version: Optional[str] = None) -> Optional[Distribution]:
        """The row for an os-release: its ID, else the first of ID_LIKE that is known. None: a system without data.

        ``version`` is VERSION_ID; it picks among rows for different releases, where the ID itself matched.
        """
        data = self.raw("distributions")
        names = [id.strip().lower(), *id_like.strip().lower().split()]
        for place, name in enumerate(names):
            rows = [row for row in data["distribution"] if name == row["id"] or name in row.get("names", ())]
            fitting = [row for row in rows if place or _in_range(version, row.get("versions"))]
            if fitting:
                return _distribution(data, fitting[0], place > 0, version)
            if rows:
                return None
        return None


def _in_range(version: Optional[str], wanted: Optional[str]) -> bool:
    """Whether "9.4" is in ">=8 <10". A version that cannot be read is in no range."""
    if wanted is None:
        return True
    have = numbers(version or "")
    if have is None:
        return False
    for clause in wanted.split(" "):
        limit = numbers(clause.lstrip("<>=")) or ()
        if clause.startswith(">=") and have < limit:
            return False
        if clause.startswith("<") and have >= limit:
            return False
    return True


def _distribution(
    data: Mapping[str, Any], row: Mapping[str, Any], relative: bool, version: Optional[str]
) -> Distribution:
    def words(column: str) -> tuple[str, ...]:
        return tuple(row.get(column, ()))

    return Distribution(
        row["id"],
        row["title"],
        row["family"],
        relative,
        version,
        words("install"),
        words("remove"),
        words("refresh"),
        words("driver_tool"),
        row.get("driver_needs"),
        row.get("driver_pattern"),
        row.get("mok_key"),
        words("venv"),
        words("pip"),
        words("compiler"),
        words("python_headers"),
        words("toolkit"),
        words("initramfs"),
        words("bootloader"),
        MappingProxyType(dict(row)),
        row.get("note"),
        *origin(data, row),
    )
