"""CD103: a driver, and no module of it for the running kernel."""

from __future__ import annotations

from cudadoctor.testing import (
    Machine,
    container_without_gpu,
    fails,
    linux,
    passes,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD103"

RUNNING = "6.8.0-85-generic"
BEFORE = "6.8.0-79-generic"


def file_for(kernel: str, version: str = "580.95.05") -> dict[str, str]:
    path = f"/lib/modules/{kernel}/updates/dkms/nvidia.ko.zst"
    return {"kernel": kernel, "path": path, "version": version, "flavour": "open"}


def after_update(machine: Machine) -> Machine:
    """The kernel was updated and the module was not built for it."""
    return machine.set(
        {
            "kernel.installed": [BEFORE, RUNNING],
            "kernel.nvidia_module_files": [file_for(BEFORE)],
            "kernel.dkms": [{"version": "580.95.05", "kernel": BEFORE, "arch": "x86_64", "status": "installed"}],
        }
    )


UPDATED = after_update(linux().not_loaded())
NO_FILES = linux().not_loaded().set({"kernel.nvidia_module_files": [], "kernel.dkms": []})

CASES = [
    passes("the driver answers", linux()),
    passes("loaded, though its file was removed since", linux().set({"kernel.nvidia_module_files": []})),
    passes("the module is there and not loaded: for another rule", linux().not_loaded()),
    fails(
        "the headers of the new kernel are missing",
        UPDATED.set({"kernel.headers": False}),
        says=[RUNNING, "no headers to build it", BEFORE],
        certainty="certain",
        severity="error",
        blame="machine",
        fix="build-module",
    ),
    fails("the build failed, headers and all", UPDATED, says="no NVIDIA module: there is one for", fix="build-module"),
    fails(
        "nobody could look for headers",
        UPDATED.unknown("kernel.headers"),
        says="no NVIDIA module: there is one for",
    ),
    fails(
        "nouveau took the card, since there was nothing else",
        UPDATED.set({"pci.gpus": [dict(UPDATED.facts.value("pci.gpus")[0], driver="nouveau")]}),
        fix=["build-module", "blacklist-nouveau"],
    ),
    fails(
        "Arch: the update took the running kernel away",
        UPDATED.set({"kernel.installed": ["6.9.1-arch1-1"], "kernel.nvidia_module_files": [file_for("6.9.1-arch1-1")]}),
        says=["an update replaced it", "6.9.1-arch1-1"],
        fix="reboot",
    ),
    fails(
        "DKMS has the source and built nothing",
        NO_FILES.set({"kernel.dkms": [{"version": "580.95.05", "kernel": None, "arch": None, "status": "added"}]}),
        says="DKMS has 580.95.05",
        fix="build-module",
    ),
    fails(
        "only nvidia-utils, which came with another package",
        NO_FILES,
        says="only the driver's programs and libraries",
        certainty="likely",
        fix="install-driver",
    ),
    fails(
        "the file was built for another kernel",
        linux().not_loaded().log("wrong-kernel", module="nvidia", built_for=BEFORE, running=RUNNING),
        says="built for another",
        certainty="certain",
    ),
    skips(
        "only nvidia-utils, and nouveau holds the card",
        NO_FILES.set({"pci.gpus": [dict(NO_FILES.facts.value("pci.gpus")[0], driver="nouveau")]}),
    ),
    skips("no driver at all", linux().no_driver()),
    skips("no card", linux().no_gpu()),
    skips("a container has no modules", container_without_gpu()),
    skips("WSL has no module", wsl().no_driver()),
    skips("Windows", windows()),
    unknown_when("nobody could look into /lib/modules", UPDATED.unknown("kernel.nvidia_module_files")),
    unknown_when("the running kernel is not known", UPDATED.unknown("system.kernel_release")),
    fails(
        "a report: DKMS has built it for another kernel",
        report("linux")
        .says("smi_no_driver", "NVIDIA-SMI has failed")
        .set(
            {
                "system.kernel_release": RUNNING,
                "kernel.dkms": [{"version": "550.120", "kernel": BEFORE, "arch": "x86_64", "status": "installed"}],
            }
        ),
        says=[RUNNING, BEFORE],
        certainty="likely",
        fix="build-module",
    ),
    fails(
        "a report: modprobe finds none",
        report().says("module_not_found", "modprobe: FATAL: Module nvidia not found", kernel=RUNNING),
        says=RUNNING,
        certainty="likely",
    ),
    fails(
        "a report: building it failed",
        report()
        .says("module_build_failed", "Bad return status", kernel=RUNNING)
        .says("smi_no_driver", "NVIDIA-SMI has failed"),
        says=RUNNING,
        certainty="certain",
        fix="build-module",
    ),
    fails(
        "a report: the builder names its module, and no kernel",
        report().says("module_build_failed", "Consult /var/lib/dkms/nvidia/550.120/build/make.log", driver="550.120"),
        says="the running kernel has no NVIDIA module",
    ),
    unknown_when(
        "a report: DKMS could not build a module, and nothing in the text is about NVIDIA",
        report("linux").says("module_build_failed", "Your kernel headers cannot be found", kernel=RUNNING),
    ),
    unknown_when(
        "a report: DKMS could not build another module than NVIDIA's",
        report().says("module_build_failed", "Bad return status", module="virtualbox"),
    ),
    unknown_when(
        "a report: the driver does not answer, and no more", report("linux").says("smi_no_driver", "has failed")
    ),
]
