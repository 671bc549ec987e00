"""The loaded nvidia module: is it there, which version, open or proprietary, which GPUs it holds."""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact, ParseError, absent, known, unknown
from cudadoctor.parse.kernel import OPEN, PROPRIETARY, parse_modules, parse_nvrm_version
from cudadoctor.parse.procfs import parse_gpu_information
from cudadoctor.parse.versions import is_plain
from cudadoctor.probes.api import LINUX, Probe
from cudadoctor.system.port import System

_MODULES = "/proc/modules"
_SYS_MODULE = "/sys/module/nvidia"
_VERSION = "/proc/driver/nvidia/version"
_GPUS = "/proc/driver/nvidia/gpus"


def look(system: System) -> dict[str, Fact[Any]]:
    listed = system.read_text(_MODULES).map(parse_modules)
    nvrm = system.read_text(_VERSION).map(parse_nvrm_version)
    loaded = _loaded(system, listed, nvrm)
    return {
        "kernel.modules": _names(listed),
        "driver.module_loaded": loaded,
        "driver.module_version": _module_version(system, loaded),
        "driver.procfs_version": nvrm.map(lambda version: version.version),
        "driver.module_flavour": _flavour(listed, nvrm, loaded),
        "procfs.gpus": _gpus(system),
    }


def _names(listed: Fact[Any]) -> Fact[list[str]]:
    if listed.is_absent:
        # A kernel built without modules, or a sandbox. What it has built in, nouveau for one, is not to be seen.
        return unknown("the kernel does not list its modules", _MODULES)
    return listed.map(list)


def _loaded(system: System, listed: Fact[Any], nvrm: Fact[Any]) -> Fact[bool]:
    if listed.is_known and "nvidia" in listed.get():
        return known(True, _MODULES)
    if nvrm.is_known:
        return known(True, _VERSION)
    folder = system.status(_SYS_MODULE)
    if folder.is_known:
        return known(True, _SYS_MODULE)
    if listed.is_known:
        return known(False, _MODULES)
    if folder.is_absent and system.list_folder("/sys/module").value:
        return known(False, "/sys/module")
    return unknown(folder.reason or listed.reason or "neither /proc nor /sys shows the kernel's modules", _MODULES)


def _module_version(system: System, loaded: Fact[bool]) -> Fact[str]:
    fact = system.read_text(f"{_SYS_MODULE}/version", 256).map(_plain_version)
    if not fact.is_absent or loaded.value is False:
        return fact
    if loaded.is_known:
        return unknown("the module is loaded, and /sys does not show its version", fact.source)
    return unknown(loaded.reason, fact.source)


def _plain_version(text: str) -> str:
    version = text.strip()
    if not is_plain(version):
        raise ParseError(f"not a driver version: {version[:40]!a}")
    return version


def _flavour(listed: Fact[Any], nvrm: Fact[Any], loaded: Fact[bool]) -> Fact[str]:
    if nvrm.is_known:
        return known(nvrm.get().flavour, _VERSION)
    if listed.is_known and "nvidia" in listed.get():
        # The kernel marks a module whose licence is not free with P.
        return known(PROPRIETARY if listed.get()["nvidia"].is_proprietary else OPEN, _MODULES)
    if loaded.value is False:
        return absent(loaded.source)
    return unknown(nvrm.reason or loaded.reason or "nothing shows the module's licence", _VERSION)


def _gpus(system: System) -> Fact[list[dict[str, Any]]]:
    listing = system.list_folder(_GPUS)
    if not listing.is_known:
        return Fact(listing.state, None, _GPUS, listing.reason)
    gpus: list[dict[str, Any]] = []
    for address in listing.get():
        read = system.read_text(f"{_GPUS}/{address}/information").map(parse_gpu_information)
        information = read.value
        gpus.append(
            {
                "address": address,
                "model": information.model if information else None,
                "minor": information.minor if information else None,
                "firmware": information.firmware if information else None,
                "excluded": information.excluded if information else None,
            }
        )
    return known(gpus, _GPUS)


PROBE = Probe(
    "kernel_module",
    (LINUX,),
    (
        "kernel.modules",
        "driver.module_loaded",
        "driver.module_version",
        "driver.procfs_version",
        "driver.module_flavour",
        "procfs.gpus",
    ),
    look,
)
