"""Questions to the compatibility data.

Pure: text in, values out. Every answer carries the source that it rests on; what the data does not hold is "unknown" or
None, never "no". Systems are "linux", "windows" and "wsl" (which counts in Windows numbers, the driver being Windows').
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Callable, Optional, TypeVar

from .tables import (
    Architecture,
    Branch,
    Build,
    Distribution,
    DriverBound,
    Floor,
    Gpu,
    GpuMatch,
    HostCompiler,
    Library,
    MatrixError,
    Pin,
    PowerPlan,
    Toolkit,
    TorchRelease,
    Variant,
    Verdict,
)
from .versions import Numbers, capability, cuda_of_variant, numbers, target, torch_key

_T = TypeVar("_T")
_EMPTY: Mapping[str, str] = MappingProxyType({})


class Matrix:
    """The compatibility matrix. Made by :func:`cudadoctor.matrix.load_matrix`.

    ``section`` gives the raw data of one section by name; it is asked once for each section that a question needs.
    """

    def __init__(self, section: Callable[[str], dict[str, Any]]) -> None:
        self._section = section
        self._raw: dict[str, dict[str, Any]] = {}
        self._made: dict[str, Any] = {}
        meta = self.raw("meta")
        if meta.get("schema") != 1:
            raise MatrixError(
                f"The compatibility data has schema {meta.get('schema')}, this version of cudadoctor reads schema 1."
            )

    # -- the data itself

    def raw(self, section: str) -> dict[str, Any]:
        """One section as plain data. Raises MatrixError where it is missing or damaged."""
        if section not in self._raw:
            self._raw[section] = self._section(section)
        return self._raw[section]

    def _once(self, name: str, make: Callable[[], _T]) -> _T:
        if name not in self._made:
            try:
                self._made[name] = make()
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise MatrixError(
                    f"The compatibility data is damaged ({name}: {type(error).__name__} {error}): "
                    "install cudadoctor again."
                ) from None
        found: _T = self._made[name]
        return found

    @property
    def revision(self) -> str:
        """ "2026.11.0": goes up with every change of the data."""
        return str(self.raw("meta")["revision"])

    @property
    def checked(self) -> str:
        """The day on which the data was last checked, "2026-11-30"."""
        return str(self.raw("meta")["checked"])

    def age_days(self, today: str) -> int:
        """Days between the check of the data and ``today`` ("2026-12-31"); never below 0. ValueError for no date."""
        from datetime import date

        return max(0, (date.fromisoformat(today) - date.fromisoformat(self.checked)).days)

    def index_url(self, variant: str) -> str:
        """``https://download.pytorch.org/whl/cu126``."""
        return str(self.raw("meta")["wheel_index"]) + "/" + variant

    # -- toolkits and floors

    def toolkits(self) -> tuple[Toolkit, ...]:
        """Every toolkit release, newest first."""
        return self._once("cuda_toolkits", self._make_toolkits)

    def _make_toolkits(self) -> tuple[Toolkit, ...]:
        data = self.raw("cuda_toolkits")
        rows = [
            Toolkit(
                row["cuda"],
                row["release"],
                row["label"],
                row.get("date"),
                row.get("linux"),
                row.get("windows"),
                row.get("windows_seen"),
                row.get("branch"),
                row.get("confidence", "stated"),
                row.get("note"),
                *_origin(data, row),
            )
            for row in data["toolkit"]
        ]
        rows.sort(key=lambda row: numbers(row.release) or (), reverse=True)
        return tuple(rows)

    def toolkit(self, version: str) -> Optional[Toolkit]:
        """The release "12.6.3", or for "12.6" its first release. None: there is no such toolkit, or it is not known.

        12.7 is None: a driver can show a CUDA version that never had a toolkit.
        """
        return self._once(f"toolkit {version}", lambda: self._find_toolkit(version))

    def _find_toolkit(self, version: str) -> Optional[Toolkit]:
        parts = numbers(version)
        if parts is None:
            return None
        found = None
        for row in self.toolkits():
            if row.release == version:
                return row
            if numbers(row.cuda) == parts[:2] and (len(parts) == 2 or numbers(row.release) == parts):
                found = row
        return found

    def floors(self) -> tuple[Floor, ...]:
        """The driver floor of each CUDA major that has one, newest first."""
        return self._once("floors", self._make_floors)

    def _make_floors(self) -> tuple[Floor, ...]:
        data = self.raw("cuda_toolkits")
        rows = [
            Floor(row["cuda"], row["linux"], row["linux_table"], row["windows"], row.get("note"), *_origin(data, row))
            for row in data["floor"]
        ]
        rows.sort(key=lambda row: row.cuda, reverse=True)
        return tuple(rows)

    def floor(self, cuda_major: int, system: str) -> Optional[str]:
        """Oldest driver for any CUDA of that major: ``floor(12, "linux")`` is "525.60.13". None: no floor is known."""
        for row in self.floors():
            if row.cuda == cuda_major:
                return row.windows if _windows(system) else row.linux
        return None

    # -- driver branches

    def branches(self) -> tuple[Branch, ...]:
        """Every driver branch, newest first."""
        return self._once("driver_branches", self._make_branches)

    def _make_branches(self) -> tuple[Branch, ...]:
        data = self.raw("driver_branches")
        rows = [
            Branch(
                row["name"],
                row["linux"],
                row["cuda"],
                tuple(row.get("windows", ())),
                tuple(row.get("windows_guessed", ())),
                row.get("kind"),
                row.get("end_of_life"),
                row.get("end_of_life_other"),
                row.get("first_linux"),
                row.get("first_date"),
                row.get("latest_linux"),
                row.get("latest_windows"),
                tuple(row.get("last_for", ())),
                tuple(row["modules"]),
                row.get("confidence", "stated"),
                row.get("note"),
                *_origin(data, row),
            )
            for row in data["branch"]
        ]
        rows.sort(key=lambda row: row.linux, reverse=True)
        return tuple(rows)

    def branch(self, name: str) -> Optional[Branch]:
        """The branch "R580", also as "580" (a Linux number)."""
        number = name.strip().upper().lstrip("R")
        for row in self.branches():
            if str(row.linux) == number:
                return row
        return None

    def branch_of(self, driver: str, system: str) -> Optional[Branch]:
        """The branch of a driver: "566.36" on Windows is R565. None: no branch of that number is known.

        Where only a guess links the Windows number to the branch, the answer's ``confidence`` is "guessed".
        """
        parts = numbers(driver.strip().lstrip("Rr"))
        if not parts:
            return None
        for row in self.branches():
            if not _windows(system):
                if row.linux == parts[0]:
                    return row
            elif parts[0] in row.windows:
                return row
            elif parts[0] in row.windows_guessed:
                return row._replace(confidence="guessed")
        return None

    def newer_branches(self, branch: str) -> tuple[Branch, ...]:
        """The branches after that one, oldest first."""
        start = self.branch(branch)
        if start is None:
            return ()
        return tuple(row for row in reversed(self.branches()) if row.linux > start.linux)

    # -- does a driver serve a CUDA version?

    def driver_serves(self, driver: str, system: str, cuda: str) -> Verdict:
        """Whether a driver runs programs built with that CUDA ("12.6", or "12" for the major).

        By CUDA major, as minor version compatibility promises: the minor never decides. "no" names the driver that
        would do, in the numbers of that system.
        """
        have = numbers(driver.strip().lstrip("Rr"))
        want = numbers(cuda)
        if not have or not want:
            return Verdict("unknown", f"{driver!r} or {cuda!r} is not a version number", None, None, "")
        floor = next((row for row in self.floors() if row.cuda == want[0]), None)
        if floor is None:
            return self._serves_exactly(have, driver, system, cuda, want)
        needed = floor.windows if _windows(system) else floor.linux
        os_name = _os_name(system)
        need = numbers(needed) or ()
        if have >= need:
            reason = f"driver {driver} serves every CUDA {want[0]}.x: on {os_name} that needs {needed} or newer"
            return Verdict("yes", reason, None, None, floor.source)
        if have == need[: len(have)]:  # a bare branch number such as "525"
            if not _windows(system) and have == numbers(floor.linux_table):
                reason = f"NVIDIA gives the R{floor.linux_table} branch as the oldest for CUDA {want[0]}.x"
                return Verdict("yes", reason, None, None, floor.source)
            reason = f"CUDA {want[0]}.x needs driver {needed} on {os_name}; {driver} is too short to tell"
            return Verdict("unknown", reason, needed, None, floor.source)
        reason = f"CUDA {want[0]}.x needs driver {needed} or newer on {os_name}, this is {driver}"
        return Verdict("no", reason, needed, None, floor.source)

    def _serves_exactly(self, have: Numbers, driver: str, system: str, cuda: str, want: Numbers) -> Verdict:
        """For a CUDA without a floor for its major (before 11): the toolkit's own row decides."""
        row = self.toolkit(".".join(str(part) for part in want[:2])) if len(want) > 1 else None
        needed = None if row is None else (row.windows if _windows(system) else row.linux)
        need = numbers(needed) if needed else None
        if row is None or needed is None or need is None:
            return Verdict("unknown", f"no driver is known for CUDA {cuda}", None, None, "")
        if have >= need:
            return Verdict(
                "yes", f"driver {driver} is {needed} or newer, which CUDA {cuda} needs", None, None, row.source
            )
        if have == need[: len(have)]:
            reason = f"CUDA {cuda} needs driver {needed}; {driver} is too short to tell"
            return Verdict("unknown", reason, needed, None, row.source)
        reason = f"CUDA {cuda} needs driver {needed} or newer on {_os_name(system)}, this is {driver}"
        return Verdict("no", reason, needed, None, row.source)

    def ptx_ok(self, driver: str, system: str, cuda: str) -> Verdict:
        """Whether the driver can compile PTX made by that toolkit: here the minor does count."""
        want = numbers(cuda)
        branch = self.branch_of(driver, system)
        if want is None or branch is None or branch.guessed:
            return Verdict("unknown", f"the branch of driver {driver} is not known", None, None, "")
        shown = numbers(branch.cuda) or ()
        if shown >= want[:2]:
            reason = f"{branch.name} compiles PTX up to CUDA {branch.cuda}"
            return Verdict("yes", reason, None, None, branch.source)
        row = self.toolkit(".".join(str(part) for part in want[:2]))
        needed = None if row is None else (row.windows or row.windows_seen if _windows(system) else row.linux)
        reason = f"{branch.name} compiles PTX up to CUDA {branch.cuda}, this PTX is of CUDA {cuda}"
        return Verdict("no", reason, needed, None, branch.source)

    # -- architectures

    def architectures(self) -> tuple[Architecture, ...]:
        """Every architecture row, oldest first."""
        return self._once("architectures", self._make_architectures)

    def _make_architectures(self) -> tuple[Architecture, ...]:
        data = self.raw("architectures")
        rows = [
            Architecture(
                row["name"],
                tuple(row["capability"]),
                row.get("first_cuda"),
                row.get("last_cuda"),
                row.get("min_driver"),
                row.get("min_driver_bound"),
                row.get("max_driver"),
                row.get("modules"),
                bool(row.get("tegra", False)),
                row.get("note"),
                *_origin(data, row),
            )
            for row in data["architecture"]
        ]
        rows.sort(key=lambda row: capability(row.capability[0]) or (0, 0))
        return tuple(rows)

    def architecture(self, compute_capability: str) -> Optional[Architecture]:
        """The architecture of "8.9" (also "sm_89"); None where it is not known."""
        wanted = capability(compute_capability)
        if wanted is None:
            return None
        for row in self.architectures():
            if any(capability(item) == wanted for item in row.capability):
                return row
        return None

    def first_branch_for(self, gpu: Gpu | str) -> Optional[DriverBound]:
        """The first driver branch for a GPU row, or for a compute capability ("12.0").

        Only a ``decisive`` bound may carry "this driver is too old for this GPU". A GPU row's own number is given
        where it is firm; else its architecture's; else the row's as it is.
        """
        if not isinstance(gpu, str):
            own = None
            if gpu.min_driver:
                bound = "guessed" if "min_driver" in gpu.guessed else (gpu.min_driver_bound or "at-most")
                own = DriverBound(gpu.min_driver, bound, gpu.source)
                if own.decisive:
                    return own
            family = self.first_branch_for(gpu.capability)
            return family if family is not None else own
        row = self.architecture(gpu)
        if row is None or row.min_driver is None:
            return None
        return DriverBound(row.min_driver, row.min_driver_bound or "at-most", row.source)

    def last_branch_for(self, gpu: Gpu | str) -> Optional[DriverBound]:
        """The last driver branch for a GPU or a compute capability; None: still supported, or not known."""
        row = self.architecture(gpu if isinstance(gpu, str) else gpu.capability)
        if row is None or row.max_driver is None:
            return None
        return DriverBound(row.max_driver, "exact", row.source)

    # -- does compiled code run on a GPU?

    def runs_on(
        self,
        sass: Iterable[str],
        ptx: Iterable[str],
        compute_capability: str,
        disputed: Iterable[str] = (),
        ptx_compiles: str = "yes",
    ) -> Verdict:
        """Whether code compiled for these targets ("86", "sm_86", "sm_90a") runs on that compute capability.

        Machine code of X.Y runs on X.Z with Z >= Y, of a target with a suffix only on exactly that one (``f``: its
        family), and between desktop and Tegra parts it is not promised ("unknown"). PTX for an older or equal GPU makes
        it "likely", if the driver can compile it: ``ptx_compiles`` is the answer of :meth:`ptx_ok`.
        """
        have = capability(compute_capability)
        if have is None:
            return Verdict("unknown", f"{compute_capability!r} is not a compute capability", None, None, "")
        gpu = f"sm_{have[0]}{have[1]}"
        unsure = {found[:2] for found in map(target, disputed) if found}
        given = [(target(text), text) for text in sass]
        code = [found for found, _ in given if found]
        unread = [text for found, text in given if not found]
        portable = [found for found in map(target, ptx) if found]
        rule = "NVIDIA CUDA programming guide: binary and PTX compatibility"
        if not code and not portable and not unread:
            return Verdict("no", "the build has no GPU code at all", None, None, rule)
        tegra = self._is_tegra(have)
        maybe = None
        best = None
        for found in code:
            same = found.major == have[0] and found.minor <= have[1]
            exact = found[:2] == have
            if not same or (found.suffix == "a" and not exact):
                continue
            if found[:2] in unsure:
                maybe = maybe or f"sources contradict each other on whether it has {found.name} code"
            elif not exact and tegra != self._is_tegra((found.major, found.minor)):
                maybe = maybe or f"{found.name} code on {gpu} is not promised: one is a Tegra part, the other is not"
            elif best is None or found > best:
                best = found
        if best is not None:
            how = "exactly this GPU" if best[:2] == have else f"runs on {gpu}, being of the same major"
            return Verdict("yes", f"it has {best.name} code: {how}", None, best.name, rule)
        usable = [found for found in portable if found[:2] <= have and (not found.suffix or found[:2] == have)]
        if usable and ptx_compiles != "no":
            last = max(usable)
            via = f"compute_{last.major}{last.minor}{last.suffix}"
            if ptx_compiles == "yes":
                reason = f"no machine code for {gpu}, but {via} PTX, which the driver compiles: slow at first"
                return Verdict("likely", reason, None, via, rule)
            maybe = maybe or f"no machine code for {gpu}; whether the driver compiles its {via} PTX is not known"
        if maybe is not None:
            return Verdict("unknown", maybe, None, None, rule)
        if any(found == have for found in unsure):
            reason = f"sources contradict each other on whether it has {gpu} code"
            return Verdict("unknown", reason, None, None, rule)
        if unread:
            reason = f"what {unread[0]!r} in its GPU list means is not known"
            return Verdict("unknown", reason, None, None, rule)
        listed = [found.name for found in sorted(code)]
        reason = f"it has no code for {gpu}" + (f", only for {_span(listed)}" if listed else " or any other GPU")
        if usable:
            reason += "; its PTX is newer than the driver"
        elif not portable:
            reason += ", no PTX"
        return Verdict("no", reason, None, None, rule)

    def build_runs_on(
        self,
        build: Build,
        compute_capability: str,
        driver: Optional[str] = None,
        system: Optional[str] = None,
    ) -> Verdict:
        """:meth:`runs_on` for a build. A guessed GPU list decides nothing; PTX counts for what the driver compiles."""
        # The resolver asks the same for each what-if; a driver matters to builds with PTX only.
        question = (build.torch, build.variant, build.platform, compute_capability)
        name = " ".join((*question, driver or "", system or "") if build.ptx else question)
        return self._once(f"runs {name}", lambda: self._build_runs_on(build, compute_capability, driver, system))

    def _build_runs_on(
        self, build: Build, compute_capability: str, driver: Optional[str], system: Optional[str]
    ) -> Verdict:
        if build.cuda is None:
            return Verdict("no", "a CPU build has no GPU code", None, None, build.source)
        if build.archs_guessed or build.guessed:
            reason = f"the GPU list of torch {build.torch} {build.variant} on {build.platform} is a guess"
            return Verdict("unknown", reason, None, None, build.source)
        compiles = "unknown"
        if build.ptx and driver and system:
            compiles = self.ptx_ok(driver, system, build.cuda).answer
        found = self.runs_on(build.sass, build.ptx, compute_capability, build.disputed, compiles)
        return found._replace(source=build.source)

    def _is_tegra(self, wanted: tuple[int, int]) -> bool:
        def make() -> frozenset[tuple[int, int]]:
            found = []
            for row in self.architectures():
                if row.tegra:
                    found += [item for item in map(capability, row.capability) if item]
            return frozenset(found)

        return wanted in self._once("tegra", make)

    # -- torch

    def torch_releases(self) -> tuple[TorchRelease, ...]:
        """Every release, newest first: in the order of versions, not of dates or files."""
        return self._once("torch releases", lambda: tuple(self._release(wanted) for wanted in self._torch_rows()))

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

        return self._once(f"pythons {platform}", make)

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

        return self._once(f"glibc {platform}", make)

    def _torch_rows(self) -> dict[tuple[int, int, int], tuple[dict[str, Any], dict[str, Any]]]:
        """Release -> its file and its row, newest first."""

        def make() -> dict[tuple[int, int, int], tuple[dict[str, Any], dict[str, Any]]]:
            found = {}
            for data in self.raw("torch").values():
                for row in data["release"]:
                    found[torch_key(row["version"]) or (0, 0, 0)] = (data, row)
            return dict(sorted(found.items(), reverse=True))

        return self._once("torch", make)

    def _release(self, wanted: tuple[int, int, int]) -> TorchRelease:
        return self._once(f"torch {wanted}", lambda: self._make_release(*self._torch_rows()[wanted]))

    def _make_release(self, data: Mapping[str, Any], row: Mapping[str, Any]) -> TorchRelease:
        version = row["version"]
        builds: dict[str, list[Build]] = {}
        for item in row["builds"]:
            variant, platform = item["variant"], item["platform"]
            listed, checked = _origin(data, item, "listed")
            archs = _origin(data, item, "archs")[0] if "archs" in item else listed
            default = row["default"].get(platform) == variant
            local: Optional[str] = variant
            if item.get("no_local_version") or (variant == "cpu" and platform not in _LOCAL_CPU):
                local = None
            builds.setdefault(variant, []).append(
                Build(
                    version,
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
                    default,
                    self.index_url(variant),
                    local,
                    listed,
                    archs,
                    checked,
                )
            )
        names = sorted(builds, key=lambda name: numbers(cuda_of_variant(name) or "0") or ())
        variants = tuple(
            Variant(version, name, cuda_of_variant(name), self.index_url(name), tuple(builds[name])) for name in names
        )
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
            *_origin(data, row),
        )

    def companions(self, torch: str) -> Mapping[str, str]:
        """torchvision and torchaudio (versions) and triton (a range) of a torch release; empty: not known."""
        release = self.torch_release(torch)
        return _EMPTY if release is None else release.companions

    # -- GPUs

    def gpus(self) -> tuple[Gpu, ...]:
        """Every product, oldest architecture first."""
        return tuple(self._gpu(number) for number in range(len(self.raw("gpus")["rows"])))

    def _gpu(self, number: int) -> Gpu:
        return self._once(f"gpu {number}", lambda: self._make_gpu(number))

    def _make_gpu(self, number: int) -> Gpu:
        data = self.raw("gpus")
        row = data["rows"][number]
        return Gpu(
            row["name"],
            row["class"],
            row["architecture"],
            row["compute_capability"],
            row.get("chip"),
            row["memory_gib"],
            row.get("memory_type"),
            row.get("bandwidth_gbs"),
            row.get("tdp_w"),
            row.get("psu_w"),
            row.get("sm_count"),
            row.get("tflops"),
            row.get("released"),
            tuple(row.get("smi", ())),
            tuple(row.get("pci", ())),
            row.get("min_driver"),
            row.get("min_driver_bound"),
            row.get("modules"),
            tuple(row.get("guessed", ())),
            *_origin(data, row),
        )

    def gpu(self, text: str) -> GpuMatch:
        """What a person or a tool calls a GPU: "4090", "RTX 4090", "NVIDIA A100-SXM4-80GB", "H100 PCIe", "sm_89",
        "8.9", a MIG device or a vGPU, an lspci line.

        Several products may share the name; ``capability`` is set where they agree on it.
        """
        from .names import cut_off, take_apart

        stripped = text.strip()
        begin = cut_off(stripped)
        if begin is not None:
            rows = self._beginning(begin)
            kind = "name" if rows else "none"
            return GpuMatch(text, kind, rows, _shared_capability(rows), (), None, None)
        lowered = stripped.lower()
        if lowered.startswith(("sm_", "compute_")) or (numbers(lowered) and "." in lowered):
            found = capability(lowered)
            if found is not None:
                name = f"{found[0]}.{found[1]}"
                return GpuMatch(text, "capability", (), name, (), None, None)
        asked = take_apart(stripped)
        rows, kind = self._named(asked.words)
        if asked.vgpu:  # "GRID RTX6000-4Q" is the Quadro of that name; the later ones spell out their generation
            board, _ = self._named(("quadro", *asked.words))
            rows = board or rows
        if not rows and asked.vgpu:  # vGPU boards carry letters of their own: V100DX, A100D, H100XM
            for cut in (1, 2):
                if not rows and asked.words and asked.words[0][:-cut]:
                    rows, kind = self._named((asked.words[0][:-cut], *asked.words[1:]))
        if not rows and len(asked.words) == 1:
            known = self._chip_capability(asked.words[0])
            if known is not None:
                return GpuMatch(text, "chip", (), known, (), None, None)
        if not rows:
            return GpuMatch(text, "none", (), None, self._nearest(stripped), asked.mig, asked.vgpu)
        return GpuMatch(text, kind, rows, _shared_capability(rows), (), asked.mig, asked.vgpu)

    def gpu_by_pci(self, device: str) -> GpuMatch:
        """The products of a PCI device id: "2684", "0x2684", "10de:2684".

        Where the id itself is not listed but lies in the range of a chip, ``kind`` is "chip": the compute capability is
        sure, the rows are the products with that chip that are known (none, for old ones).
        """
        wanted = device.strip().split(":")[-1].upper()
        if wanted.startswith("0X"):
            wanted = wanted[2:]
        wanted = wanted.zfill(4)
        none = GpuMatch(device, "none", (), None, (), None, None)
        if len(wanted) != 4 or any(digit not in "0123456789ABCDEF" for digit in wanted):
            return none
        gpus = self.raw("gpus")
        rows = self._rows(gpus["by_pci"].get(wanted, ()))
        if rows:
            return GpuMatch(device, "pci", rows, _shared_capability(rows), (), None, None)
        for row in self.raw("pci_chips")["chip"]:
            if row["first"] <= wanted <= row["last"]:
                rows = self._rows(gpus["by_chip"].get(row["chip"].lower(), ()))
                return GpuMatch(device, "chip", rows, row["capability"], (), None, None)
        return none

    def _rows(self, found: Sequence[int]) -> tuple[Gpu, ...]:
        return tuple(self._gpu(number) for number in found)

    def _named(self, asked: tuple[str, ...]) -> tuple[tuple[Gpu, ...], str]:
        from .names import contains, key

        data = self.raw("gpus")
        by_name = data["by_name"]
        if not asked:
            return (), "none"
        without_size = tuple(word for word in asked if not (word.endswith("gb") and word[:-2].isdigit()))
        for words in dict.fromkeys((asked, without_size)):
            tries = [words]
            if words and words[0].isdigit():
                tries = [(line, *words) for line in ("rtx", "gtx", "gt")]
            for attempt in tries:
                found = by_name.get(key(attempt))
                if found:
                    return self._best(self._rows(found), attempt), "name"
            partial = [name for name in by_name if contains(tuple(name.split(" ")), words)] if words else []
            if partial:
                numbers_of = sorted({number for name in partial for number in by_name[name]})
                return self._rows(numbers_of), "name"
        chip = data["by_chip"].get(asked[0])
        return (self._rows(chip), "chip") if chip and len(asked) == 1 else ((), "none")

    def _chip_capability(self, name: str) -> Optional[str]:
        """The compute capability of a chip by its code name, "GK104": also of chips whose products are not listed."""
        for row in self.raw("pci_chips")["chip"]:
            if row["chip"].lower() == name:
                return str(row["capability"])
        return None

    def _beginning(self, text: str) -> tuple[Gpu, ...]:
        """The products whose printed name begins so; the last word may itself be cut."""
        from .names import key, words

        wanted = key(words(text))
        by_name = self.raw("gpus")["by_name"]
        found = {number for name in by_name if name.startswith(wanted) for number in by_name[name]} if wanted else ()
        return self._rows(sorted(found))

    @staticmethod
    def _best(rows: tuple[Gpu, ...], asked: tuple[str, ...]) -> tuple[Gpu, ...]:
        """Of products that share a printed name, first those that have it as their own."""
        from .names import words

        return tuple(sorted(rows, key=lambda row: words(row.name) != asked))

    def _nearest(self, text: str) -> tuple[str, ...]:
        from difflib import get_close_matches

        rows = self.raw("gpus")["rows"]
        plain = {row["name"].lower(): row["name"] for row in rows}
        brand = ("geforce ", "nvidia ", "tesla ")
        for row in rows:
            short = row["name"].lower()
            for word in brand:
                short = short.replace(word, "")
            plain.setdefault(short, row["name"])
        wanted = text.lower()
        for word in brand:
            wanted = wanted.replace(word, "")
        for line in ("rtx ", "gtx "):  # "4095" looks like "4090" only when the line is there
            plain.update({name[len(line) :]: full for name, full in plain.items() if name.startswith(line)})
        found = get_close_matches(wanted.strip(), list(plain), n=6, cutoff=0.6)
        return tuple(dict.fromkeys(plain[name] for name in found))[:3]

    # -- packages that are tied to torch

    def pins(self, package: str) -> tuple[Pin, ...]:
        """Known releases of a package with the torch that each requires, newest first; empty: not known."""
        return tuple(row for row in self._once("pins", self._make_pins) if row.package == _package(package))

    def pin(self, package: str, version: str) -> Optional[Pin]:
        """What this release of a package requires, where the data knows the release."""
        for row in self.pins(package):
            if row.version == version:
                return row
        return None

    def _make_pins(self) -> tuple[Pin, ...]:
        data = self.raw("extensions")
        return tuple(
            Pin(
                _package(row["package"]),
                row["version"],
                row.get("date"),
                row["torch"],
                row.get("torchvision"),
                row.get("torchaudio"),
                tuple(row["cuda"].split(" ")) if "cuda" in row else (),
                *_origin(data, row),
            )
            for row in data["pin"]
        )

    def companion_ok(self, package: str, version: str, torch: str) -> Verdict:
        """Whether torchvision or torchaudio of this version belongs to that torch release (versions, not build tags).

        "unknown" for a release that the data does not have: what the package's own METADATA requires goes first anyway.
        """
        wanted, have = torch_key(torch), torch_key(version)
        if wanted is None or have is None:
            return Verdict("unknown", f"{package} {version} or torch {torch} is no known release", None, None, "")
        belongs = [row for row in self.torch_releases() if torch_key(row.companions.get(package, "")) == have]
        if any(torch_key(row.version) == wanted for row in belongs):
            return Verdict("yes", f"{package} {version} belongs to torch {torch}", None, None, belongs[0].source)
        rule = self._companion_rule(package, have)
        if belongs and rule is not None and rule["torch"].startswith(">="):
            least = torch_key(rule["torch"][2:])
            source = _origin(self.raw("extensions"), rule)[0]
            if least is not None and wanted >= least:
                reason = f"{package} {version} takes torch {rule['torch']}"
                return Verdict("yes", reason, None, None, source)
            reason = f"{package} {version} requires torch {rule['torch']}, this is torch {torch}"
            return Verdict("no", reason, None, None, source)
        if belongs and rule is not None:
            names = ", ".join(sorted(row.version for row in belongs))
            reason = f"{package} {version} belongs to torch {names}, this is torch {torch}"
            return Verdict("no", reason, None, None, belongs[0].source)
        return Verdict("unknown", f"it is not known to which torch {package} {version} belongs", None, None, "")

    def _companion_rule(self, package: str, have: tuple[int, int, int]) -> Optional[Mapping[str, Any]]:
        """The latest rule of the package that is in force for its version."""
        found = None
        since: tuple[int, int, int] = (-1, 0, 0)
        for row in self.raw("extensions")["rule"]:
            start = torch_key(row["since"]) if "since" in row else (0, 0, 0)
            if row["package"] == package and start is not None and since < start <= have:
                found, since = row, start
        return found

    # -- compilers, libraries, power plans, distributions

    def host_compiler(self, cuda: str) -> Optional[HostCompiler]:
        """Host compilers that nvcc of "12.6" (or "12.6.3") accepts; None: not known."""
        wanted = (numbers(cuda) or ())[:2]
        for row in self._once("host_compilers", self._make_compilers):
            if len(wanted) == 2 and numbers(row.cuda) == wanted:
                return row
        return None

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
                *_origin(data, row),
            )
            for row in data["compiler"]
        )

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
            return Library(name, row["component"], packages, driver, *_origin(data, row))
        return None

    def kernel_modules(self, kind: str) -> tuple[str, ...]:
        """Names of kernel modules, "nvidia" or "nouveau" (whatever else holds an NVIDIA GPU)."""
        return tuple(row["name"] for row in self.raw("libraries")["module"] if row["kind"] == kind)

    def power_plans(self) -> tuple[PowerPlan, ...]:
        return self._once("power_plans", self._make_plans)

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
                *_origin(data, row),
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


# Platforms whose CPU wheels on PyTorch's index carry "+cpu".
_LOCAL_CPU = ("linux-x86_64", "windows-x86_64")


def _windows(system: str) -> bool:
    if system not in ("linux", "windows", "wsl"):
        raise ValueError(f"system is {system!r}, not linux, windows or wsl")
    return system != "linux"


def _os_name(system: str) -> str:
    return "Windows" if _windows(system) else "Linux"


def _origin(data: Mapping[str, Any], row: Mapping[str, Any], column: str = "source") -> tuple[str, str]:
    """The row's source in words, and the day it was checked."""
    found = row.get(column) or data.get("source") or ()
    keys = (found,) if isinstance(found, str) else found
    sources = data.get("sources", {})
    return "; ".join(sources[name] for name in keys), row.get("checked") or data["checked"]


def _shared_capability(rows: tuple[Gpu, ...]) -> Optional[str]:
    found = {row.capability for row in rows}
    return found.pop() if len(found) == 1 else None


def _span(names: list[str]) -> str:
    return names[0] + "".join(" " + name[3:] for name in names[1:])


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
        *_origin(data, row),
    )
