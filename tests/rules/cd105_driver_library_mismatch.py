"""CD105: the two halves of the driver are of different versions."""

from __future__ import annotations

from cudadoctor.testing import (
    Machine,
    container,
    fails,
    jetson,
    linux,
    passes,
    report,
    skips,
    unknown_when,
    windows,
    wsl,
)

RULE = "CD105"


def mismatch(machine: Machine, library: str, on_disk: str) -> Machine:
    """The loaded module is 580.95.05; the library and the module file are of other versions."""
    return machine.driver_fails(18, "mismatch", 18, "Driver/library version mismatch").set(
        {
            "driver.library_version": library,
            "driver.nvml_library_version": library,
            "kernel.nvidia_module_files": [
                {"kernel": "6.8.0-85-generic", "path": "/lib/modules/nvidia.ko", "version": on_disk, "flavour": "open"}
            ],
        }
    )


UPDATED = mismatch(linux(), "580.105.08", "580.105.08")
SILENT = UPDATED.unknown("driver.nvml_error", "driver.smi_failure", "driver.smi_library_version")

CASES = [
    passes("the driver answers", linux()),
    passes(
        "another library lies around, and the driver answers",
        linux().set({"driver.library_version": "580.105.08"}),
    ),
    fails(
        "the packages were updated, the old module is still loaded",
        UPDATED,
        says=["updated", "module 580.95.05", "library 580.105.08"],
        certainty="certain",
        severity="error",
        blame="machine",
        fix="reload-module",
    ),
    fails(
        "the third number is all that differs",
        mismatch(linux().driver("550.90.07", "12.4"), "550.107.02", "550.107.02"),
        says=["550.90.07", "550.107.02"],
        fix="reload-module",
    ),
    fails(
        "half of an update: the module on disk is the old one, so a reboot changes nothing",
        mismatch(linux(), "590.44.01", "580.95.05"),
        says=["half of a driver update", "on disk is the old one"],
        fix="install-driver",
    ),
    fails("nobody knows what lies on disk", UPDATED.unknown("kernel.nvidia_module_files"), fix="reload-module"),
    fails(
        "the versions are not told",
        UPDATED.unknown(
            "driver.module_version", "driver.procfs_version", "driver.library_version", "driver.nvml_library_version"
        ),
        says="of different versions",
        certainty="certain",
    ),
    fails(
        "only the kernel log knows the versions",
        UPDATED.unknown(
            "driver.module_version", "driver.procfs_version", "driver.library_version", "driver.nvml_library_version"
        ).log("api-mismatch", client="580.105.08", module="580.95.05"),
        says=["580.95.05", "580.105.08"],
    ),
    fails("NVML is silent, the versions speak", SILENT, certainty="likely", fix="reload-module"),
    fails(
        "a container whose image brought a driver",
        mismatch(container(), "575.57.08", "575.57.08"),
        says="container's NVIDIA libraries do not fit",
        blame="allocation",
        fix="manual",
    ),
    passes(
        "another reason is known: no permission",
        UPDATED.driver_fails(4, "permission", 4, "Insufficient Permissions"),
    ),
    skips("the module is not loaded, so nothing parts", SILENT.set({"driver.module_version": "580.105.08"})),
    skips("WSL: the numbers of nvidia-smi and driver differ by design", wsl()),
    skips("Windows", windows()),
    skips("a Jetson", jetson()),
    unknown_when(
        "nobody could look for the module",
        SILENT.unknown("driver.module_loaded", "driver.module_version", "driver.procfs_version"),
    ),
    fails("a report: nvidia-smi's words", report().says("nvml_mismatch", "Driver/library version mismatch")),
    fails(
        "a report: TensorFlow names both versions",
        report().says("tensorflow_dso_mismatch", "does not match", kernel="510.47.3", library="510.60.2"),
        says=["510.47.3", "510.60.2"],
        certainty="certain",
        fix="reload-module",
    ),
    fails(
        "a report: the packages tell that the update was cut short",
        report("linux")
        .says("nvml_mismatch", "Driver/library version mismatch")
        .set(
            {
                "driver.procfs_version": "520.56.06",
                "driver.packages": [
                    {"name": "nvidia-kernel-dkms", "version": "520.56.06-2"},
                    {"name": "libnvidia-ml1", "version": "525.85.12-1"},
                ],
            }
        ),
        says=["520.56.06", "525.85.12", "the old one"],
        fix="manual",
    ),
    unknown_when("a report about something else", report("linux")),
]
