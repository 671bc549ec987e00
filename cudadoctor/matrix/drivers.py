"""CUDA toolkits, driver branches, and which driver serves which CUDA."""

from __future__ import annotations

from typing import Optional

from .sections import Sections, origin
from .tables import Branch, Floor, ForwardCompat, Toolkit, Verdict
from .versions import Numbers, numbers


class DriverQuestions(Sections):
    """Drivers count in Linux or in Windows numbers: a system is "linux", "windows" or "wsl"."""

    def toolkits(self) -> tuple[Toolkit, ...]:
        """Every toolkit release, newest first."""
        return self.once("cuda_toolkits", self._make_toolkits)

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
                *origin(data, row),
            )
            for row in data["toolkit"]
        ]
        rows.sort(key=lambda row: numbers(row.release) or (), reverse=True)
        return tuple(rows)

    def toolkit(self, version: str) -> Optional[Toolkit]:
        """The release "12.6.3", or for "12.6" its first release. None: there is no such toolkit, or it is not known.

        12.7 is None: a driver can show a CUDA version that never had a toolkit.
        """
        return self.once(f"toolkit {version}", lambda: self._find_toolkit(version))

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
        return self.once("floors", self._make_floors)

    def _make_floors(self) -> tuple[Floor, ...]:
        data = self.raw("cuda_toolkits")
        rows = [
            Floor(row["cuda"], row["linux"], row["linux_table"], row["windows"], row.get("note"), *origin(data, row))
            for row in data["floor"]
        ]
        rows.sort(key=lambda row: row.cuda, reverse=True)
        return tuple(rows)

    def floor(self, cuda_major: int, system: str) -> Optional[str]:
        """Oldest driver for any CUDA of that major: ``floor(12, "linux")`` is "525.60.13". None: no floor is known."""
        for row in self.floors():
            if row.cuda == cuda_major:
                return row.windows if counts_as_windows(system) else row.linux
        return None

    def branches(self) -> tuple[Branch, ...]:
        """Every driver branch, newest first."""
        return self.once("driver_branches", self._make_branches)

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
                *origin(data, row),
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
            if not counts_as_windows(system):
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

    def forward_compats(self) -> tuple[ForwardCompat, ...]:
        """Every forward compatibility package that is known, newest first."""
        return self.once("forward_compat", self._make_compats)

    def _make_compats(self) -> tuple[ForwardCompat, ...]:
        data = self.raw("forward_compat")
        rows = [
            ForwardCompat(
                row["cuda"],
                row["package"],
                row["driver"],
                tuple(row["bases"]),
                row.get("confidence", "stated"),
                row.get("note"),
                *origin(data, row),
            )
            for row in data["compat"]
        ]
        rows.sort(key=lambda row: numbers(row.cuda) or (), reverse=True)
        return tuple(rows)

    def forward_compat_for(self, klass: str) -> str:
        """Whether GPUs of that class ("datacenter", "geforce") may use such a package: "yes"; "some", ask the vendor;
        "no"; or "unknown"."""
        for row in self.raw("forward_compat")["scope"]:
            if row["class"] == klass:
                return str(row["answer"])
        return "unknown"

    # -- does a driver serve a CUDA version?

    def driver_serves(self, driver: str, system: str, cuda: str) -> Verdict:
        """Whether a driver runs programs built with that CUDA ("12.6", or "12" for the major).

        By CUDA major, as minor version compatibility promises: a newer minor is never a reason for "no". The first
        releases of a major came with an older driver than its floor; that driver serves those releases. "no" names the
        driver that would do, in the numbers of that system.
        """
        have = numbers(driver.strip().lstrip("Rr"))
        want = numbers(cuda)
        if not have or not want:
            return Verdict("unknown", f"{driver!r} or {cuda!r} is not a version number", None, None, "")
        floor = next((row for row in self.floors() if row.cuda == want[0]), None)
        if floor is None:
            return self._serves_exactly(have, driver, system, cuda, want)
        needed = floor.windows if counts_as_windows(system) else floor.linux
        os_name = _os_name(system)
        need = numbers(needed) or ()
        if have >= need:
            reason = f"driver {driver} serves every CUDA {want[0]}.x: on {os_name} that needs {needed} or newer"
            return Verdict("yes", reason, None, None, floor.source)
        if have == need[: len(have)]:  # a bare branch number such as "525"
            if not counts_as_windows(system) and have == numbers(floor.linux_table):
                reason = f"NVIDIA gives the R{floor.linux_table} branch as the oldest for CUDA {want[0]}.x"
                return Verdict("yes", reason, None, None, floor.source)
            branch = self.branch_of(driver, system)
            if branch is not None and not counts_as_windows(system) and branch.first_linux == needed:
                reason = f"driver {driver} is {branch.name}, whose first, {needed}, serves every CUDA {want[0]}.x"
                return Verdict("yes", reason, None, None, floor.source)
            reason = f"CUDA {want[0]}.x needs driver {needed} on {os_name}; {driver} is too short to tell"
            return Verdict("unknown", reason, needed, None, floor.source)
        row = self.toolkit(".".join(str(part) for part in want[:2])) if len(want) > 1 else None
        own = None if row is None else (row.windows if counts_as_windows(system) else row.linux)
        if row is not None and own and (numbers(own) or ()) <= have:
            reason = f"driver {driver} is {own} or newer, with which CUDA {row.cuda} came"
            return Verdict("yes", reason, None, None, row.source)
        reason = f"CUDA {want[0]}.x needs driver {needed} or newer on {os_name}, this is {driver}"
        return Verdict("no", reason, needed, None, floor.source)

    def _serves_exactly(self, have: Numbers, driver: str, system: str, cuda: str, want: Numbers) -> Verdict:
        """For a CUDA without a floor for its major (before 11): the toolkit's own row decides."""
        row = self.toolkit(".".join(str(part) for part in want[:2])) if len(want) > 1 else None
        needed = None if row is None else (row.windows if counts_as_windows(system) else row.linux)
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
        needed = None if row is None else (row.windows or row.windows_seen if counts_as_windows(system) else row.linux)
        reason = f"{branch.name} compiles PTX up to CUDA {branch.cuda}, this PTX is of CUDA {cuda}"
        return Verdict("no", reason, needed, None, branch.source)


def counts_as_windows(system: str) -> bool:
    if system not in ("linux", "windows", "wsl"):
        raise ValueError(f"system is {system!r}, not linux, windows or wsl")
    return system != "linux"


def _os_name(system: str) -> str:
    return "Windows" if counts_as_windows(system) else "Linux"
