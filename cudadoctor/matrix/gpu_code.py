"""GPU architectures: which drivers drive them, and which compiled code runs on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from .drivers import DriverQuestions
from .sections import origin
from .tables import Architecture, Build, DriverBound, ForwardCompat, Gpu, Verdict
from .versions import capability, numbers, target


class CodeQuestions(DriverQuestions):
    """PTX counts for what the driver compiles; so these build on the questions about drivers."""

    def architectures(self) -> tuple[Architecture, ...]:
        """Every architecture row, oldest first."""
        return self.once("architectures", self._make_architectures)

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
                *origin(data, row),
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

    def architectures_of(self, branch: str) -> tuple[Architecture, ...]:
        """The architectures that a driver branch drives, oldest first; without embedded parts, whose driver comes with
        their system. One whose first branch is not known is older than the branches that are. Empty: no such branch.
        """
        row = self.branch(branch)
        if row is None:
            return ()
        found = []
        for architecture in self.architectures():
            first = self.branch(architecture.min_driver) if architecture.min_driver else None
            last = self.branch(architecture.max_driver) if architecture.max_driver else None
            begun = first is None or first.linux <= row.linux
            ended = last is not None and last.linux < row.linux
            if begun and not ended and not architecture.tegra:
                found.append(architecture)
        return tuple(found)

    def forward_compat(self, branch: str, cuda: str, gpus: Iterable[Gpu | str] = ()) -> Optional[ForwardCompat]:
        """The package that lets a kernel driver of that branch ("R535") run programs of that CUDA ("13.2", or "13").

        With ``gpus`` (rows or compute capabilities) only what the driver behind the package still supports. Of several,
        the oldest that is at least as new as asked; else the newest of that major, which serves all but newer PTX.
        None: NVIDIA names none for that branch. Whether a GPU's class may use one: :meth:`forward_compat_for`.
        """
        want = numbers(cuda)
        base = self.branch(branch)
        if want is None or base is None:
            return None
        lasts = [found.number for found in map(self.last_branch_for, gpus) if found is not None]
        fitting = []
        for row in self.forward_compats():
            behind = self.branch_of(row.driver, "linux")
            served = behind is not None and all(behind.linux <= last for last in lasts)
            if base.name in row.bases and served and (numbers(row.cuda) or ())[:1] == want[:1]:
                fitting.append(row)
        new_enough = [row for row in fitting if (numbers(row.cuda) or ()) >= want[:2]]
        if new_enough:
            return new_enough[-1]
        return fitting[0] if fitting else None

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
        return self.once(f"runs {name}", lambda: self._build_runs_on(build, compute_capability, driver, system))

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

        return wanted in self.once("tegra", make)


def _span(names: list[str]) -> str:
    return names[0] + "".join(" " + name[3:] for name in names[1:])
