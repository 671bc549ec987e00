"""Kernel log lines -> events."""

from __future__ import annotations

import pytest

from cudadoctor.parse import kernel_log as log
from cudadoctor.parse.kernel_log import parse_kernel_log

EVENTS = [
    # lines, kind, bus id, values
    (
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Thu Jan  1 00:00:00 UTC 2024",
        (log.MODULE_LOADED, None, {"version": "535.183.01", "flavour": "proprietary"}),
    ),
    (
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)",
        (log.MODULE_LOADED, None, {"version": "580.95.05", "flavour": "open"}),
    ),
    (
        "NVRM: API mismatch: the client has the version 550.54.15, but\n"
        "NVRM: this kernel module has the version 550.54.14.  Please\n"
        "NVRM: make sure that this kernel module and all NVIDIA driver\n"
        "NVRM: components have the same version.",
        (log.API_MISMATCH, None, {"client": "550.54.15", "module": "550.54.14"}),
    ),
    (
        "NVRM: API mismatch: the client 'nvidia-smi' (pid 77)\n"
        "NVRM: has the version 580.95.05, but this kernel module has\n"
        "NVRM: the version 580.82.09.  Please make sure that this\n"
        "NVRM: kernel module and all NVIDIA driver components\n"
        "NVRM: have the same version.",
        (log.API_MISMATCH, None, {"client": "580.95.05", "module": "580.82.09"}),
    ),
    (
        "NVRM: The NVIDIA probe routine was not called for 1 device(s).\n"
        "NVRM: This can occur when a driver such as:\nNVRM: nouveau, rivafb, nvidiafb or rivatv\n"
        "NVRM: was loaded and obtained ownership of the NVIDIA device(s).",
        (log.DEVICE_TAKEN, None, {"drivers": "nouveau, rivafb, nvidiafb or rivatv"}),
    ),
    (
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2c02)\n"
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
        (log.NEEDS_OPEN_MODULE, "0000:01:00.0", {}),
    ),
    (
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b81) installed in this system is not supported by open\n"
        "NVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).",
        (log.NEEDS_PROPRIETARY_MODULE, "0000:01:00.0", {}),
    ),
    (
        "NVRM: The NVIDIA GeForce GTX 660 GPU installed in this system is\n"
        "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please\nNVRM:  visit the unix page for more",
        (log.NEEDS_LEGACY_DRIVER, None, {"branch": "470"}),
    ),
    (
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:11c0) installed\n"
        "NVRM: in this system is not supported by the 550.144.03 NVIDIA Linux\nNVRM: graphics driver release.",
        (log.UNSUPPORTED_GPU, "0000:01:00.0", {"driver": "550.144.03", "device_id": "11c0"}),
    ),
    (
        "NVRM: The NVIDIA GPU 0000:17:00.0 (PCI ID: 10de:26b9)\n"
        "NVRM: installed in this system is not supported by the\nNVRM: NVIDIA 535.54.03 driver release.",
        (log.UNSUPPORTED_GPU, "0000:17:00.0", {"driver": "535.54.03", "device_id": "26b9"}),
    ),
    (
        "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b9) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        (log.OFF_THE_BUS, "0000:b3:00.0", {}),
    ),
    (
        "NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.\n"
        "NVRM: To force use of Open nvidia.ko on other GPUs, see the",
        (log.NEEDS_PROPRIETARY_MODULE, None, {}),
    ),
    (
        "nvidia-nvswitch3: SXid (PCI:0000:06:00.0): 14017, Fatal, Link 04 XBAR error",
        (log.SXID, "0000:06:00.0", {"number": "14017", "fatal": "yes", "detail": "Fatal, Link 04 XBAR error"}),
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 46 egress non-posted PRIV error",
        (
            log.SXID,
            "0000:c1:00.0",
            {"number": "12028", "fatal": "no", "detail": "Non-fatal, Link 46 egress non-posted PRIV error"},
        ),
    ),
    (
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:2477)",
        (log.INIT_FAILED, "0000:01:00.0", {"codes": "0x62:0x40:2477"}),
    ),
    ("NVRM: kgspInitRm_IMPL: cannot bootstrap riscv/gsp: 0xffff", (log.INIT_FAILED, None, {"gsp": "yes"})),
    ("NVRM: RmInitAdapter: Cannot initialize GSP firmware RM", (log.INIT_FAILED, None, {"gsp": "yes"})),
    ("NVRM: RmInitAdapter failed! (0x30:0xffff:660)", (log.INIT_FAILED, None, {"codes": "0x30:0xffff:660"})),
    ("NVRM: rm_init_adapter(0) failed", (log.INIT_FAILED, None, {})),
    (
        "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
        (log.INIT_FAILED, "0000:01:00.0", {}),
    ),
    ("NVRM: osInitNvMapping: *** Cannot attach gpu", (log.INIT_FAILED, None, {})),
    ("nvidia: probe of 0000:01:00.0 failed with error -1", (log.INIT_FAILED, "0000:01:00.0", {})),
    (
        "nvidia 0000:01:00.0: Direct firmware load for nvidia/580.95.05/gsp_ga10x.bin failed with error -2",
        (log.FIRMWARE_MISSING, "0000:01:00.0", {"file": "nvidia/580.95.05/gsp_ga10x.bin"}),
    ),
    ("NVRM: RmFetchGspRmImages: No firmware image found", (log.FIRMWARE_MISSING, None, {})),
    (
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)",
        (log.BAR_INVALID, "0000:01:00.0", {}),
    ),
    ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", (log.OFF_THE_BUS, "0000:01:00.0", {})),
    ("NVRM: GPU 0000:01:00.0 is already bound to vfio-pci.", (log.BOUND_TO_VFIO, "0000:01:00.0", {})),
    (
        "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        (
            log.XID,
            "0000:01:00.0",
            {"number": "79", "detail": "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
        ),
    ),
    (
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery",
        (log.XID, "0000:3b:00.0", {"number": "154", "detail": "GPU recovery"}),
    ),
    (
        "NVRM: Xid (0000:03:00): 14, Channel 00000001",
        (log.XID, "0000:03:00.0", {"number": "14", "detail": "Channel 00000001"}),
    ),
    ("NVRM: Xid (PCI:0000:3b:00): 13", (log.XID, "0000:3b:00.0", {"number": "13", "detail": ""})),
    ("Loading of module with unavailable key is rejected", (log.KEY_REJECTED, None, {})),
    ("Loading of unsigned module is rejected", (log.KEY_REJECTED, None, {})),
    (
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
        (log.KEY_REJECTED, None, {}),
    ),
    (
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        (log.KEY_REJECTED, None, {"module": "nvidia"}),
    ),
    (
        "modprobe: ERROR: could not insert 'nvidia-uvm': Required key not available",
        (log.KEY_REJECTED, None, {"module": "nvidia_uvm"}),
    ),
    (
        "modprobe: ERROR: could not insert 'nvidia': No such device",
        (log.NO_SUCH_DEVICE, None, {"module": "nvidia"}),
    ),
    (
        "modprobe: ERROR: could not insert 'nvidia': Exec format error",
        (log.WRONG_KERNEL, None, {"module": "nvidia"}),
    ),
    (
        "insmod: ERROR: could not insert module nvidia.ko: Invalid module format",
        (log.WRONG_KERNEL, None, {"module": "nvidia"}),
    ),
    (
        "nvidia: version magic '6.8.0-78-generic SMP ' should be '6.8.0-79-generic SMP '",
        (log.WRONG_KERNEL, None, {"module": "nvidia", "built_for": "6.8.0-78-generic", "running": "6.8.0-79-generic"}),
    ),
    ("nvidia: disagrees about version of symbol module_layout", (log.WRONG_KERNEL, None, {"module": "nvidia"})),
    ("nvidia_drm: Unknown symbol drm_open (err -2)", (log.WRONG_KERNEL, None, {"module": "nvidia_drm"})),
    (
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-79-generic",
        (log.MODULE_NOT_FOUND, None, {"module": "nvidia", "kernel": "6.8.0-79-generic"}),
    ),
    (
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        (log.UNSIGNED_LOADED, None, {}),
    ),
    ("nouveau 0000:01:00.0: NVIDIA GA102 (b72000a1)", (log.NOUVEAU_PROBED, "0000:01:00.0", {})),
    (
        "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID) nvidia",
        (log.PCIE_ERROR, "0000:00:01.0", {"severity": "Corrected"}),
    ),
    (
        "nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
        (log.NO_POWER_STATE, "0000:01:00.0", {}),
    ),
    (
        "Out of memory: Killed process 4242 (python) total-vm:104857600kB, anon-rss:61234567kB",
        (log.PROCESS_KILLED, None, {"pid": "4242", "name": "python", "scope": "system"}),
    ),
    (
        "Memory cgroup out of memory: Killed process 4242 (pt_data_worker) total-vm:104857600kB",
        (log.PROCESS_KILLED, None, {"pid": "4242", "name": "pt_data_worker", "scope": "cgroup"}),
    ),
    ("dmesg: read kernel buffer failed: Operation not permitted", (log.LOG_UNREADABLE, None, {})),
]

PREFIXES = {
    "bare": ("", None),
    "dmesg": ("[  812.123456] ", 812.123456),
    "dmesg -r": ("<4>[  812.123456] ", 812.123456),
    "dmesg -T": ("[Mon Jan  5 07:11:23 2026] ", None),
    "journal": ("Jan 05 07:11:23 gpu-box kernel: ", None),
    "journal, precise": ("2026-01-05T07:11:23.123456+01:00 gpu-box kernel: ", None),
    "syslog with both": ("Jan  5 07:11:23 gpu-box kernel: [  812.123456] ", 812.123456),
}


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
@pytest.mark.parametrize(("lines", "expected"), EVENTS)
def test_event(prefix: str, lines: str, expected: tuple[object, ...]) -> None:
    start, seconds = PREFIXES[prefix]
    text = "\n".join(start + line for line in lines.splitlines())
    events = parse_kernel_log("[    0.000000] Linux version 6.8.0\n" + text + "\n[   99.000000] usb 1-1: new device\n")
    assert [(one.kind, one.bus_id, one.values) for one in events] == [expected]
    assert events[0].seconds == seconds
    assert events[0].text == lines.splitlines()[0]


def test_a_logger_with_fields_of_its_own() -> None:
    text = (
        "kern:     err: [2026-03-09T02:46:53.856596762Z]: NVRM: The NVIDIA GeForce GT 730 GPU installed in this>\n"
        " NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please      \n"
        "               NVRM:  visit the page for more\n"
    )
    assert [one.kind for one in parse_kernel_log(text.replace("this>", "this system is"))] == [log.NEEDS_LEGACY_DRIVER]
    assert parse_kernel_log("it says: NVRM: nothing") == []


def test_continued_lines_without_a_time() -> None:
    text = """\
[    4.123456] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2c02)
               NVRM: installed in this system requires use of the NVIDIA open kernel modules.
"""
    assert [(one.kind, one.bus_id, one.seconds) for one in parse_kernel_log(text)] == [
        (log.NEEDS_OPEN_MODULE, "0000:01:00.0", 4.123456)
    ]


QUIET = """\
[    0.000000] Command line: BOOT_IMAGE=/vmlinuz ro nvidia-drm.modeset=1
[    1.000000] r8169 0000:03:00.0 eth0: RTL8168h/8111h, XID 541, IRQ 127
[    3.123456] nvidia: loading out-of-tree module taints kernel.
[    3.123460] nvidia: module license 'NVIDIA' taints kernel.
[    3.223456] nvidia-nvlink: Nvlink Core is being initialized, major device number 234
[    3.323456] nvidia 0000:01:00.0: enabling device (0000 -> 0003)
[    3.323470] nvidia 0000:01:00.0: vgaarb: VGA decodes changed: olddecodes=io+mem,decodes=none:owns=none
[    3.523456] nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  535.183.01
[    3.623456] [drm] [nvidia-drm] [GPU ID 0x00000100] Loading driver
[    3.823456] nvidia-uvm: Loaded the UVM driver, major device number 511.
[    4.000000] vboxdrv: module verification failed: signature and/or required key missing - tainting kernel
modprobe: ERROR: could not insert 'vboxdrv': Key was rejected by service
modprobe: FATAL: Module vboxdrv not found in directory /lib/modules/6.8.0-79-generic
[    5.000000] NVRM: Persistence mode is deprecated and will be removed in a future release.
"""


def test_a_healthy_boot_and_other_peoples_modules_give_no_event() -> None:
    assert parse_kernel_log(QUIET) == []


def test_order_is_that_of_the_log() -> None:
    text = """\
[    1.000000] nouveau 0000:01:00.0: NVIDIA GA102 (b72000a1)
[ 9000.000001] NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=python
[ 9000.000002] NVRM: Xid (PCI:0000:01:00): 43, pid=1, name=python
"""
    assert [(one.kind, one.values.get("number")) for one in parse_kernel_log(text)] == [
        (log.NOUVEAU_PROBED, None),
        (log.XID, "31"),
        (log.XID, "43"),
    ]
