"""CD104: the kernel refuses a module whose key the firmware does not know."""

from __future__ import annotations

from cudadoctor.testing import GONE, container_without_gpu, fails, linux, passes, report, skips, unknown_when, windows

RULE = "CD104"

# Secure Boot on, the module that DKMS built on disk and not loaded; users may not read the kernel log.
REFUSED = linux().not_loaded().set({"kernel.secure_boot": True, "kernel.lockdown": "integrity"})
UNREADABLE = REFUSED.unknown("kernel.log_events", reason="reading the kernel log needs root")
SIGNED = {
    "kernel.nvidia_module_files": [
        {
            "kernel": "6.8.0-85-generic",
            "path": "/lib/modules/6.8.0-85-generic/kernel/nvidia-580-open/nvidia.ko",
            "version": "580.95.05",
            "flavour": "open",
        }
    ]
}

CASES = [
    passes("Secure Boot is on and the module is loaded", linux().set({"kernel.secure_boot": True})),
    fails(
        "the kernel log says so",
        REFUSED.log("key-rejected", module="nvidia"),
        says="Secure Boot keeps",
        certainty="certain",
        severity="error",
        blame="machine",
        fix="enroll-mok",
    ),
    fails("a line that names no module", REFUSED.log("key-rejected"), says="keeps", certainty="likely"),
    fails("nobody may read the log, and DKMS built the module", UNREADABLE, says="keeps", certainty="likely"),
    fails(
        "nobody may read the log; the distribution's own module is signed with a key that the firmware knows",
        UNREADABLE.set(SIGNED),
        says="keeps",
        certainty="possible",
    ),
    fails(
        "Secure Boot is off, and the kernel demands signatures all the same",
        linux().not_loaded().log("key-rejected", module="nvidia"),
        certainty="certain",
    ),
    passes("the log can be read and tells of no refusal: nobody tried to load it yet", REFUSED),
    passes("Secure Boot is off", linux().not_loaded()),
    passes("no UEFI, no Secure Boot", linux().not_loaded().set({"kernel.secure_boot": GONE})),
    skips(
        "a refused module of somebody else: NVIDIA has none for this kernel",
        REFUSED.log("key-rejected").set({"kernel.nvidia_module_files": []}),
    ),
    skips("there is no module that could be refused", UNREADABLE.set({"kernel.nvidia_module_files": []})),
    skips("a setting keeps it away", UNREADABLE.set({"kernel.nvidia_blacklisted_by": ["/etc/modprobe.d/no.conf"]})),
    skips(
        "nouveau holds the card",
        UNREADABLE.set({"pci.gpus": [dict(REFUSED.facts.value("pci.gpus")[0], driver="nouveau")]}),
    ),
    skips("no card", linux().no_gpu().set({"kernel.secure_boot": True})),
    skips("a container", container_without_gpu().set({"kernel.secure_boot": True})),
    skips("Windows checks its drivers itself", windows()),
    unknown_when("nobody could ask the firmware", UNREADABLE.unknown("kernel.secure_boot")),
    unknown_when("nobody could look for modules", UNREADABLE.unknown("kernel.nvidia_module_files")),
    fails(
        "a report: modprobe's own words",
        report().says("module_key_rejected", "could not insert 'nvidia': Key was rejected by service"),
        certainty="certain",
        fix="enroll-mok",
    ),
    fails(
        "a report: the screen that would enrol the key never comes",
        report()
        .says("module_key_rejected", "could not insert 'nvidia': Key was rejected by service")
        .says("mok_screen_missing", "the enrollment window doesn't show up"),
        certainty="certain",
        fix="manual",
    ),
    fails(
        "a report: somebody says so",
        report().says("module_key_rejected", "the nvidia module key is rejected"),
        certainty="likely",
    ),
    fails(
        "a report: a key was rejected, of whatever module",
        report("linux").says("module_key_rejected", "Key was rejected by service"),
        certainty="possible",
    ),
    fails("a report: the blue screen was passed over", report().says("mok_not_enrolled", "MOK"), certainty="possible"),
    unknown_when("a report: Secure Boot is on, and no more", report("linux").set({"kernel.secure_boot": True})),
]
