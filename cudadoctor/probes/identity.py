"""Which system this is, and with which rights the user asks."""

from __future__ import annotations

from typing import Any

from cudadoctor.model.fact import Fact, absent, known, unknown
from cudadoctor.probes.api import EVERYWHERE, Probe
from cudadoctor.system.port import System

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_TEGRA = "/etc/nv_tegra_release"
_MODEL = "/proc/device-tree/model"
# ostree makes it when it has started the system.
_OSTREE = "/run/ostree-booted"
# The kernel's door to Windows programs, in WSL alone.
_INTEROP = "/proc/sys/fs/binfmt_misc/WSLInterop"

_ARCHITECTURES = {
    "amd64": "x86_64",
    "x64": "x86_64",
    "arm64": "aarch64",
    "i386": "x86",
    "i486": "x86",
    "i586": "x86",
    "i686": "x86",
}


def look(system: System) -> dict[str, Fact[Any]]:
    identity = system.identity()
    libc = system.libc()
    facts: dict[str, Fact[Any]] = {
        "system.os": known(system.platform, "uname"),
        "system.arch": system.machine().map(_architecture),
        "system.kernel_release": system.kernel_release(),
        "system.libc": libc.map(lambda pair: pair[0]),
        "system.glibc": libc.map(lambda pair: pair[1]),
        "system.is_admin": identity.map(lambda user: user.is_admin),
        "system.groups": identity.map(lambda user: list(user.groups)),
    }
    if libc.is_known and libc.get()[0] != "glibc":
        facts["system.glibc"] = absent(libc.source)
    if system.platform == "linux":
        facts.update(_linux(system))
    elif system.platform == "windows":
        version = system.windows_call("version")
        facts["system.windows_build"] = version.map(lambda answer: answer["build"])
        facts["system.distribution_name"] = version.map(lambda answer: answer.get("edition"))
        if version.is_known and not version.get().get("edition"):
            facts["system.distribution_name"] = unknown("Windows does not say its edition", version.source)
    return facts


def _architecture(name: str) -> str:
    return _ARCHITECTURES.get(name.lower(), name.lower())


def _linux(system: System) -> dict[str, Fact[Any]]:
    from cudadoctor.parse.os_release import parse_os_release

    text = system.read_text(_OS_RELEASE[0])
    if text.is_absent:
        text = system.read_text(_OS_RELEASE[1])
    values = text.map(parse_os_release)

    def field(name: str) -> Fact[Any]:
        if values.is_known and not values.get().get(name):
            return absent(values.source)
        return values.map(lambda found: found[name])

    return {
        "system.distribution": field("ID"),
        "system.distribution_like": field("ID_LIKE").map(str.split),
        "system.distribution_version": field("VERSION_ID"),
        "system.distribution_name": field("PRETTY_NAME"),
        "system.ostree": _ostree(system),
        "system.wsl": _wsl(system),
        "system.jetson": _jetson(system),
    }


def _ostree(system: System) -> Fact[bool]:
    mark = system.status(_OSTREE)
    return unknown(mark.reason, mark.source) if mark.is_unknown else known(mark.is_known, mark.source)


def _wsl(system: System) -> Fact[int]:
    from cudadoctor.parse.kernel import parse_kernel_release

    release = system.kernel_release().map(parse_kernel_release)
    if release.is_known and release.get().wsl is not None:
        return known(release.get().wsl or 0, release.source)
    # WSL 2 with a kernel that somebody built for it. WSL 1 has no kernel that could be another one.
    for evidence in (system.status(_INTEROP), system.status("/usr/lib/wsl/lib"), system.variable("WSL_DISTRO_NAME")):
        if evidence.is_known:
            return known(2, evidence.source)
    return absent(release.source) if release.is_known else unknown(release.reason, release.source)


def _jetson(system: System) -> Fact[str]:
    from cudadoctor.parse.kernel import parse_kernel_release
    from cudadoctor.parse.os_release import parse_device_tree_string, parse_tegra_release

    release = system.read_text(_TEGRA).map(parse_tegra_release)
    if not release.is_absent:
        return release.map(lambda found: f"R{found.l4t}")
    kernel = system.kernel_release().map(parse_kernel_release)
    model = system.read_bytes(_MODEL, 256).map(parse_device_tree_string)
    if (model.is_known and "Jetson" in model.get()) or (kernel.is_known and kernel.get().is_tegra):
        # A container on a Jetson: the kernel shows through, the release file is the host's.
        return unknown("this is a Jetson, and its release file is not there", _TEGRA)
    return absent(_TEGRA)


PROBE = Probe(
    "identity",
    EVERYWHERE,
    (
        "system.os",
        "system.arch",
        "system.kernel_release",
        "system.distribution",
        "system.distribution_like",
        "system.distribution_version",
        "system.distribution_name",
        "system.ostree",
        "system.libc",
        "system.glibc",
        "system.wsl",
        "system.jetson",
        "system.is_admin",
        "system.groups",
        "system.windows_build",
    ),
    look,
)
