"""Driver packages of the distribution, by the folders of its package manager; none is run.

RPM keeps its list in a database that only `rpm` reads, which takes longer than everything else here: there the
packages stay unknown, but for the one that akmods has built.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.probes.driver_files import WSL, cuda_libraries, library_version
from cudadoctor.probes.pci import display_devices
from cudadoctor.system.port import System

DPKG = "/var/lib/dpkg/info"
PACMAN = "/var/lib/pacman/local"
AKMODS = "/usr/src/akmods"
_RPM = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")

# Names of packages that hold a part of the driver, or begin with these and a number. The toolkit, the container
# toolkit, settings and the like are none.
_NAMES = ("nvidia", "nvidia-lts", "nvidia-open", "nvidia-open-lts", "nvidia-smi", "libcuda1")
_BEGINNINGS = (
    "nvidia-driver",
    "nvidia-headless",
    "nvidia-dkms",
    "nvidia-kernel",
    "nvidia-utils",
    "nvidia-open",
    "nvidia-compute-utils",
    "nvidia-fabricmanager",
    "nvidia-legacy",
    "nvidia-tesla",
    "libnvidia-compute",
    "libnvidia-legacy",
    "libnvidia-ml",
    "libnvidia-tesla",
    "cuda-drivers",
    "linux-modules-nvidia",
    "linux-objects-nvidia",
    "akmod-nvidia",
)

_UNITS = ("/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system")
_FABRIC_MANAGER = "nvidia-fabricmanager.service"


def look(system: System) -> dict[str, Fact[Any]]:
    return {"driver.packages": _packages(system), "driver.fabric_manager": _fabric_manager(system)}


def _packages(system: System) -> Fact[list[dict[str, Any]]]:
    if not _is_of_interest(system):
        return unknown("not looked for: there is no NVIDIA device and no driver library", "packages")
    for folder, read in ((DPKG, _debian), (PACMAN, _arch)):
        listing = system.list_folder(folder)
        if listing.is_unknown:
            return unknown(listing.reason, folder)
        if listing.is_known:
            return known(read(listing.get()), folder)
    akmods = _akmods(system)
    if akmods:
        return known(akmods, AKMODS)
    if any(system.status(folder).is_known for folder in _RPM):
        return unknown("RPM's list was not read: that needs the rpm program", "rpm")
    return unknown("which packages this system has could not be told", "packages")


def _is_of_interest(system: System) -> bool:
    # Thousands of names are read only where a driver could be among them.
    devices = system.once(display_devices)[0]
    return bool(
        devices.value
        or devices.is_unknown
        or system.status(WSL).is_known
        or system.once(cuda_libraries).value
        or system.once(library_version).is_known
    )


def _is_of_driver(package: str) -> bool:
    return package in _NAMES or package.startswith(_BEGINNINGS)


def _debian(names: list[str]) -> list[dict[str, Any]]:
    # A package that is removed, but for its settings, keeps its .list and loses its .md5sums.
    found: dict[str, None] = {}
    for name in names:
        package, _, ending = name.rpartition(".")
        package = package.partition(":")[0]
        if ending == "md5sums" and _is_of_driver(package):
            found[package] = None
    return [{"name": package, "version": None} for package in found]


def _arch(names: list[str]) -> list[dict[str, Any]]:
    # nvidia-utils-610.43.02-3: name, version and release.
    found: list[dict[str, Any]] = []
    for name in names:
        parts = name.rsplit("-", 2)
        if len(parts) == 3 and _is_of_driver(parts[0]):
            found.append({"name": parts[0], "version": parts[1].rpartition(":")[2]})
    return found


def _akmods(system: System) -> list[dict[str, Any]]:
    # akmod-nvidia puts nvidia-kmod-580.95.05-1.fc42.src.rpm there.
    found: list[dict[str, Any]] = []
    for name in system.list_folder(AKMODS).value or ():
        matched = re.match(r"nvidia(-[0-9]{3}xx)?-kmod-([0-9.]{3,20})-.*\.rpm\Z", name, re.ASCII)
        if matched:
            found.append({"name": f"akmod-nvidia{matched.group(1) or ''}", "version": matched.group(2)})
    return found


def _fabric_manager(system: System) -> Fact[str]:
    path = _unit(system)
    if path is None:
        return absent(_FABRIC_MANAGER)
    program = system.which("systemctl")
    if not program.is_known:
        return unknown("there is no systemctl to ask", path)
    result = system.run([program.get(), "is-active", _FABRIC_MANAGER], timeout=3.0)
    if not result.is_known or result.get().timed_out:
        return unknown(result.reason or "timed out", result.source)
    state = result.get().stdout.strip()
    if state == "active":
        return known("running", result.source)
    if state in ("inactive", "failed", "activating", "deactivating", "reloading"):
        return known("stopped", result.source)
    # In a container there is no systemd to ask.
    return unknown("systemd did not say", result.source)


def _unit(system: System) -> Optional[str]:
    for folder in _UNITS:
        if system.status(f"{folder}/{_FABRIC_MANAGER}").is_known:
            return f"{folder}/{_FABRIC_MANAGER}"
    return None


PROBE = Probe("driver_packages", (LINUX,), ("driver.packages", "driver.fabric_manager"), look)
