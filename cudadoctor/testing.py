"""Machines made by hand and tables of cases, for the tests of rules; also for people who add rules of their own site.

    from cudadoctor.testing import fails, linux, passes, unknown_when

    RULE = "CD303"
    CASES = [
        passes("a cu128 wheel on a 550 driver", linux().driver("550.54.14", "12.4").torch("2.9.1+cu128")),
        fails("a cu130 wheel on a 535 driver", linux().driver("535.183.01", "12.2").torch("2.14.1+cu130"), says="580"),
        unknown_when("nobody could read the driver's version", linux().unknown("driver.nvml_version")),
    ]

A machine starts healthy: each builder changes what it names and leaves the rest as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from cudadoctor.model import ABSENT, FAIL, KNOWN, PASS, SKIP, UNDECIDED, UNKNOWN, Fact, Facts
from cudadoctor.model.catalogue import CATALOGUE, fits, spec_of

GIB = 1 << 30
MIB = 1 << 20

# What a made-up fact gives as its source, so that it is never taken for a reading.
SOURCE = "made by hand"


class _Gone:
    def __repr__(self) -> str:
        return "GONE"


# As a fact's value: looked, and it is not there.
GONE = _Gone()


# What NVML and nvidia-smi tell; with nothing to ask, it is unknown, as the probes have it.
_NVML_TELLS = ("nvml_error", "nvml_error_text", "nvml_version", "nvml_cuda", "nvml_library_version")
_SMI_TELLS = ("smi_exit", "smi_failure", "smi_failure_text", "smi_version", "smi_tool_version", "smi_cuda")


def _fact(name: str, value: Any) -> Fact[Any]:
    if isinstance(value, Fact):
        return value
    if isinstance(value, _Gone):
        return Fact(ABSENT, None, SOURCE)
    spec = spec_of(name)
    if spec is None:
        raise KeyError(f"there is no fact {name!r} in the catalogue")
    if not fits(spec, value):
        raise TypeError(f"fact {name!r} is a {spec.type}, not {value!r}")
    return Fact(KNOWN, value, SOURCE)


class Machine:
    """A machine made by hand. Immutable: every method returns another one."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def set(self, changes: Mapping[str, Any]) -> Machine:
        """Facts by name: a plain value (known), `GONE` (absent) or a whole `Fact`."""
        return Machine(self.facts.updated({name: _fact(name, value) for name, value in changes.items()}))

    def unknown(self, *names: str, reason: str = "permission denied") -> Machine:
        """Facts that could not be looked at."""
        return Machine(self.facts.updated({name: Fact(UNKNOWN, None, "", reason) for name in names}))

    def only(self, *names: str) -> Machine:
        """Nothing but these facts: all others were never looked at."""
        keep = set(names)
        return Machine(Facts({name: fact for name, fact in self.facts.items() if name in keep}))

    # -- GPU ----------------------------------------------------------------------------------------------------

    def gpu(
        self,
        name: str,
        compute_capability: str,
        memory_gib: float = 24,
        *,
        device_id: str = "2684",
        index: int = 0,
        bound_driver: Optional[str] = "nvidia",
    ) -> Machine:
        """The GPU at `index` as NVML, nvidia-smi, `/proc` and the PCI bus show it."""
        address = f"0000:{index + 1:02x}:00.0"
        total = int(memory_gib * GIB)
        nvml = {
            "name": name,
            "pci_address": address,
            "pci_device_id": device_id,
            "compute_capability": compute_capability,
            "memory_total": total,
            "memory_free": total - 600 * MIB,
            "memory_used": 600 * MIB,
            "lost": False,
            "mig_mode": GONE,
            "mig_devices": 0,
            "ecc_mode": GONE,
            "ecc_uncorrected": GONE,
            "retired_pending": GONE,
            "remap_pending": GONE,
            "remap_failure": GONE,
            "throttle_reasons": ["gpu_idle"],
            "temperature": 45,
            "temperature_slowdown": 95,
            "power": 31.5,
            "power_limit": 450.0,
            "power_limit_default": 450.0,
            "pcie_generation": 1,
            "pcie_generation_max": 4,
            "pcie_width": 16,
            "pcie_width_max": 16,
            "compute_mode": "default",
            "persistence_mode": True,
            "processes": [],
            "utilization": 0,
            "performance_state": 8,
            "clock_sm": 210,
            "clock_sm_max": 3120,
            "driver_model": GONE,
            "display_active": False,
            "nvlinks_up": GONE,
            "nvlinks_down": GONE,
        }
        changes: dict[str, Any] = {f"gpu.{index}.{key}": value for key, value in nvml.items()}
        changes["gpu.count"] = max(index + 1, self.facts.value("gpu.count", 0))
        changes["pci.gpus"] = _with_entry(
            self.facts.value("pci.gpus", []),
            index,
            pci_card(address, device_id, bound_driver),
        )
        changes["procfs.gpus"] = _with_entry(
            self.facts.value("procfs.gpus", []),
            index,
            {"address": address, "model": name, "minor": index, "firmware": None, "excluded": False},
        )
        changes["smi.gpus"] = _with_entry(
            self.facts.value("smi.gpus", []),
            index,
            {
                "index": index,
                "name": name,
                "truncated": False,
                "address": address,
                "memory_total": total,
                "memory_used": 600 * MIB,
                "compute_capability": compute_capability,
                "mig": None,
                "driver_model": None,
                "lost": False,
            },
        )
        return self.set(changes)

    def no_gpu(self) -> Machine:
        """No NVIDIA device at all, and so no driver."""
        return self.no_driver().set({"windows.gpus": []} if self._is_windows else {"pci.gpus": [], "procfs.gpus": GONE})

    def display_card(self, device_id: str, driver: Optional[str]) -> Machine:
        """One more NVIDIA card on the bus, which the driver does not list; `driver` is what holds it."""
        entries = [dict(entry) for entry in self.facts.value("pci.gpus", [])]
        address = f"0000:{len(entries) + 1:02x}:00.0"
        return self.set({"pci.gpus": [*entries, pci_card(address, device_id, driver)]})

    # -- driver -------------------------------------------------------------------------------------------------

    def driver(self, version: str, cuda: str, *, flavour: str = "open") -> Machine:
        """A working driver of this version, in all sources. `cuda` is the newest CUDA that it serves."""
        changes: dict[str, Any] = {
            "driver.nvml_version": version,
            "driver.nvml_cuda": cuda,
            "driver.nvml_library_version": version,
            "driver.nvml_error": GONE,
            "driver.smi_version": version,
            "driver.smi_tool_version": version,
            "driver.smi_cuda": cuda,
            "driver.smi_failure": GONE,
            "driver.smi_exit": 0,
        }
        if self.facts.value("system.os") == "linux" and not self.facts["system.wsl"].is_known:
            kernel = self.facts.value("system.kernel_release", "")
            changes.update(
                {
                    "driver.library_version": version,
                    "driver.module_loaded": True,
                    "driver.module_version": version,
                    "driver.procfs_version": version,
                    "driver.module_flavour": flavour,
                    "driver.libcuda": [_libcuda(version)],
                    "kernel.nvidia_module_files": [
                        {
                            "kernel": kernel,
                            "path": f"/lib/modules/{kernel}/updates/dkms/nvidia.ko",
                            "version": version,
                            "flavour": flavour,
                        }
                    ],
                    "kernel.dkms": [
                        {
                            "version": version,
                            "kernel": kernel,
                            "arch": "x86_64",
                            "status": "installed",
                        }
                    ],
                }
            )
        if self.facts.value("system.os") == "windows":
            changes["driver.windows_version"] = version
        return self.set(changes)

    def no_driver(self) -> Machine:
        """No driver: no module, no library, no nvidia-smi. The GPU stays on the bus, unbound."""
        machine = self._nothing_to_ask()
        if self._is_windows:
            adapters = [
                dict(entry, name="Microsoft Basic Display Adapter", driver_version=None)
                for entry in self.facts.value("windows.gpus", [])
            ]
            return machine.set({"windows.gpus": adapters, "driver.windows_version": GONE})
        changes: dict[str, Any] = {
            "driver.module_loaded": False,
            "driver.module_version": GONE,
            "driver.procfs_version": GONE,
            "driver.module_flavour": GONE,
            "driver.packages": [],
            "device.nodes": [],
            "procfs.gpus": GONE,
            "kernel.nvidia_module_files": [],
            "kernel.dkms": [],
            "kernel.modules": [m for m in self.facts.value("kernel.modules", []) if not m.startswith("nvidia")],
        }
        if self.facts["pci.gpus"].is_known:
            changes["pci.gpus"] = [dict(entry, driver=None) for entry in self.facts.value("pci.gpus", [])]
        return machine.set(changes)

    def _nothing_to_ask(self) -> Machine:
        """Neither an NVML library nor nvidia-smi."""
        machine = self._no_answers("there is no NVML library", "nvidia-smi was not found")
        changes: dict[str, Any] = {
            "driver.nvml_library": GONE,
            "driver.nvml_unresponsive": GONE,
            "driver.smi_path": GONE,
        }
        if not self._is_windows:
            changes["driver.libcuda"] = []
        changes["driver.library_version"] = GONE
        return machine.set(changes)

    def _no_answers(self, from_nvml: str, from_smi: str) -> Machine:
        machine = Machine(self.facts.without([name for name in self.facts if name.startswith("gpu.")]))
        machine = machine.unknown(*(f"driver.{name}" for name in _NVML_TELLS), "gpu.count", reason=from_nvml)
        return machine.unknown(*(f"driver.{name}" for name in _SMI_TELLS), "smi.gpus", reason=from_smi)

    @property
    def _is_windows(self) -> bool:
        return bool(self.facts.value("system.os") == "windows")

    def not_loaded(self) -> Machine:
        """The driver is installed, and its module is not loaded."""
        unbound = [dict(entry, driver=None) for entry in self.facts.value("pci.gpus", [])]
        return self.driver_fails(9, "no-driver", 9, "Driver Not Loaded").set(
            {
                "driver.module_loaded": False,
                "driver.module_version": GONE,
                "driver.procfs_version": GONE,
                "driver.module_flavour": GONE,
                "device.nodes": [],
                "procfs.gpus": GONE,
                "pci.gpus": unbound,
                "kernel.modules": [m for m in self.facts.value("kernel.modules", []) if not m.startswith("nvidia")],
            }
        )

    def no_devices(self) -> Machine:
        """The driver is loaded and lists no GPU ("No devices were found")."""
        machine = Machine(self.facts.without([name for name in self.facts if name.startswith("gpu.")]))
        machine = machine.unknown("driver.smi_version", "driver.smi_cuda", "smi.gpus", reason="it printed no table")
        return machine.set(
            {
                "gpu.count": 0,
                "driver.smi_exit": 6,
                "driver.smi_failure": "no-devices",
                "driver.smi_failure_text": "No devices were found",
            }
        )

    def hangs(self) -> Machine:
        """The driver answers neither NVML nor nvidia-smi in time."""
        machine = self._no_answers("NVML gave no answer (timed out)", "nvidia-smi printed no table")
        return machine.set(
            {
                "driver.nvml_unresponsive": True,
                "driver.smi_failure": "timed-out",
                "driver.smi_failure_text": "nvidia-smi did not answer in time",
            }
        )

    def driver_fails(self, nvml_error: int, smi_failure: str, smi_exit: int, text: str = "") -> Machine:
        """The driver is there and does not answer: NVML refuses with this code, nvidia-smi fails in this way."""
        library = self.facts["driver.nvml_library_version"]
        machine = self._no_answers(f"NVML did not start: {text or smi_failure}", "nvidia-smi printed no table")
        return machine.set(
            {
                "driver.nvml_library_version": library,
                "driver.nvml_error": nvml_error,
                "driver.nvml_error_text": text or smi_failure,
                "driver.smi_failure": smi_failure,
                "driver.smi_failure_text": text or smi_failure,
                "driver.smi_exit": smi_exit,
            }
        )

    def log(self, kind: str, text: str = "", bus_id: Optional[str] = None, **values: str) -> Machine:
        """A line of the kernel log about a GPU, as `parse.kernel_log` reads it."""
        event = {"kind": kind, "text": text or kind, "bus_id": bus_id, "seconds": 5.0, "values": values}
        return self.set({"kernel.log_events": [*self.facts.value("kernel.log_events", []), event]})

    def says(self, symptom: str, text: str, **captures: str) -> Machine:
        """A program's words, as `compat/messages.toml` names them."""
        return self.set({f"symptom.{symptom}": {"text": text, **captures}})

    # -- surroundings -------------------------------------------------------------------------------------------

    def job(self, kind: str = "slurm", gpus: Optional[int] = None) -> Machine:
        """Inside a job of a scheduler. `gpus` is what its variables say that it was given; None: they name none."""
        return self.set(
            {
                "scheduler.kind": kind,
                "scheduler.in_job": True,
                "scheduler.gpus_allocated": GONE if gpus is None else gpus,
            }
        )

    def asks(self, requirements: Mapping[str, Any]) -> Machine:
        """A policy asks for something: values as the facts hold them, by section and key ("gpu.count": "==8")."""
        return self.set({f"policy.{name}": value for name, value in requirements.items()})

    # -- Python and packages --------------------------------------------------------------------------------------

    def python(self, version: str, environment: str = "venv") -> Machine:
        return self.set({"python.version": version, "python.environment": environment})

    def torch(
        self,
        version: str,
        cuda: Optional[str] = None,
        *,
        sass: Optional[Sequence[str]] = None,
        ptx: Sequence[str] = (),
    ) -> Machine:
        """An installed torch. `cuda` follows from a `+cuXXX` version; without `sass`, what the libraries hold could not
        be read (rules then ask the matrix). Companions of the healthy machine are taken away."""
        local = version.partition("+")[2]
        if cuda is None and local.startswith("cu"):
            cuda = f"{local[2:-1]}.{local[-1]}"
        names = [name for name in self.facts if name.startswith(("package.", "torch."))]
        machine = Machine(self.facts.without(names))
        site = self.facts.value("python.site_packages", ["/opt/venv/lib/python3.12/site-packages"])[0]
        changes: dict[str, Any] = {
            "torch.version": version,
            "torch.metadata_version": version,
            "torch.path": f"{site}/torch",
            "torch.copies": [f"{site}/torch"],
            "torch.cuda": cuda if cuda is not None else GONE,
            "torch.hip": GONE,
            "torch.origin": "pip",
            "torch.missing_libraries": [],
            "package.torch.version": version,
            "package.torch.location": site,
            "package.torch.installer": "pip",
            "package.torch.requires": [],
            "package.torch.conda_build": GONE,
            "package.torchvision.version": GONE,
            "package.torchaudio.version": GONE,
            "package.triton.version": GONE,
            "packages.duplicates": [],
        }
        if sass is not None:
            changes["torch.sass"] = list(sass)
            changes["torch.ptx"] = list(ptx)
        elif cuda is None:
            changes["torch.sass"] = []
            changes["torch.ptx"] = []
        machine = machine.set(changes)
        if sass is None and cuda is not None:
            machine = machine.unknown("torch.sass", "torch.ptx", reason="the library was not read")
        return machine

    def no_torch(self) -> Machine:
        names = [name for name in self.facts if name.startswith(("package.", "torch."))]
        return Machine(self.facts.without(names)).set(
            {
                "torch.version": GONE,
                "torch.metadata_version": GONE,
                "torch.path": GONE,
                "torch.copies": [],
                "torch.cuda": GONE,
                "package.torch.version": GONE,
                "package.torchvision.version": GONE,
                "package.torchaudio.version": GONE,
                "packages.duplicates": [],
            }
        )

    def package(self, name: str, version: str, **more: Any) -> Machine:
        """Another installed package; `more` are its other facts (`requires=[...]`, `built_for_torch="2.6.0"`)."""
        changes: dict[str, Any] = {f"package.{name}.version": version, f"package.{name}.installer": "pip"}
        changes.update({f"package.{name}.{key}": value for key, value in more.items()})
        return self.set(changes)


def pci_card(address: str, device_id: str, driver: Optional[str]) -> dict[str, Any]:
    """A card as the PCI bus shows it."""
    return {
        "address": address,
        "device_id": device_id,
        "class": "030000",
        "driver": driver,
        "numa_node": None,
        "link_speed_gts": 2.5,
        "link_width": 16,
        "max_link_speed_gts": 16.0,
        "max_link_width": 16,
    }


def device_nodes(*paths: str, mode: str = "666", group: str = "root", usable: bool = True) -> list[dict[str, Any]]:
    """Device nodes as `device.nodes` lists them."""
    return [
        {"path": path, "mode": mode, "uid": 0, "gid": 0, "group": group, "usable": usable, "device": f"195:{number}"}
        for number, path in enumerate(paths)
    ]


def _with_entry(entries: Sequence[Mapping[str, Any]], index: int, entry: dict[str, Any]) -> list[dict[str, Any]]:
    kept = [dict(old) for position, old in enumerate(entries) if position != index]
    kept.insert(index, entry)
    return kept


def _libcuda(version: str) -> dict[str, Any]:
    folder = "/usr/lib/x86_64-linux-gnu"
    return {
        "path": f"{folder}/libcuda.so.1",
        "real_path": f"{folder}/libcuda.so.{version}",
        "found_by": "ld.so.cache",
        "kind": "driver",
        "version": version,
    }


def _looked_everywhere() -> Facts:
    """Every fact without a placeholder, absent: the ground on which the healthy machines stand."""
    return Facts({name: Fact(ABSENT, None, SOURCE) for name in CATALOGUE if "{" not in name})


_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_HOME",
    "CUDA_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
)


def linux() -> Machine:
    """A healthy workstation: RTX 4090, driver 580.95.05 (open module), Ubuntu 24.04, Python 3.12 in a venv, torch
    2.14.1+cu130 with its torchvision."""
    kernel = "6.8.0-85-generic"
    site = "/home/user/proj/.venv/lib/python3.12/site-packages"
    base = Machine(_looked_everywhere()).set(
        {
            "system.os": "linux",
            "system.arch": "x86_64",
            "system.kernel_release": kernel,
            "system.distribution": "ubuntu",
            "system.distribution_like": ["debian"],
            "system.distribution_version": "24.04",
            "system.distribution_name": "Ubuntu 24.04.3 LTS",
            "system.libc": "glibc",
            "system.glibc": "2.39",
            "system.container_evidence": [],
            "system.is_admin": False,
            "system.groups": ["user", "sudo", "video", "render"],
            "system.date": "2026-11-30",
            "kernel.modules": ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", "video"],
            "kernel.command_line": [],
            "kernel.nouveau_blacklisted_by": ["/etc/modprobe.d/nvidia-graphics-drivers-kms.conf"],
            "kernel.nvidia_blacklisted_by": [],
            "kernel.secure_boot": False,
            "kernel.lockdown": "none",
            "kernel.headers": True,
            "kernel.installed": [kernel],
            "kernel.log_events": [],
            "driver.nvml_library": "libnvidia-ml.so.1",
            "driver.nvml_unresponsive": False,
            "driver.smi_path": "/usr/bin/nvidia-smi",
            "driver.packages": [{"name": "nvidia-driver-580-open", "version": "580.95.05"}],
            "device.nodes": [
                {
                    "path": path,
                    "mode": "666",
                    "uid": 0,
                    "gid": 0,
                    "group": "root",
                    "usable": True,
                    "device": device,
                }
                for path, device in (
                    ("/dev/nvidia0", "195:0"),
                    ("/dev/nvidiactl", "195:255"),
                    ("/dev/nvidia-uvm", "511:0"),
                    ("/dev/nvidia-uvm-tools", "511:1"),
                )
            ],
            "pci.gpus": [],
            "pci.other_display": [],
            "toolkit.found": [],
            "toolkit.host_compiler": {"name": "gcc", "version": "13.3.0", "path": "/usr/bin/gcc"},
            "toolkit.c_compiler": "/usr/bin/gcc",
            "python.executable": "/home/user/proj/.venv/bin/python",
            "python.prefix": "/home/user/proj/.venv",
            "python.version": "3.12.3",
            "python.implementation": "CPython",
            "python.headers": True,
            "python.bits": 64,
            "python.free_threaded": False,
            "python.environment": "venv",
            "python.environment_name": "~/proj/.venv",
            "python.chosen_by": "VIRTUAL_ENV",
            "python.site_packages": [site],
            "python.externally_managed": False,
            "python.pip": True,
            "python.uv_environment": False,
            "python.others_with_torch": [],
            "python.pip_on_path": {
                "path": "/home/user/proj/.venv/bin/pip",
                "interpreter": "/home/user/proj/.venv/bin/python",
            },
            "python.python_on_path": "/home/user/proj/.venv/bin/python",
            "pip.extra_index_urls": [],
            "pip.no_index": False,
            "pip.configured_by": [],
            "packages.leftovers": [],
            "libraries.search_path": [],
            "libraries.on_search_path": [],
            "libraries.preloaded": [],
            "memory.total": 64 * GIB,
            "memory.available": 50 * GIB,
            "memory.swap_total": 8 * GIB,
            "memory.swap_devices": [{"path": "/swap.img", "kind": "file", "size": 8 * GIB}],
            "memory.shm_size": 32 * GIB,
            "memory.shm_free": 32 * GIB,
            "limits.nofile": 1024,
            "limits.memlock": 8 * GIB,
            "disk.environment_free": 300 * GIB,
            "disk.environment_writable": True,
            "disk.temporary_free": 300 * GIB,
            "disk.temporary_path": "/tmp",
            "disk.kind": "nvme",
            "disk.filesystem": "ext4",
            "scheduler.in_job": False,
            "examination.kind": "assumed",
            "examination.failed": [],
            "examination.timed_out": [],
        }
    )
    base = base.set({f"env.{name}": GONE for name in _VARIABLES})
    base = base.set({"env.VIRTUAL_ENV": "/home/user/proj/.venv"})
    return (
        base.gpu("NVIDIA GeForce RTX 4090", "8.9", 24)
        .driver("580.95.05", "13.0")
        .torch("2.14.1+cu130", sass=["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"])
        .package("torchvision", "0.29.1+cu130", built_for_cuda="13.0", requires=["torch>=2.14"])
    )


def node(gpus: int = 8) -> Machine:
    """A healthy node of a cluster: H100s behind NVSwitches, which the fabric manager has set up, 2 TiB of memory."""
    machine = linux()
    for index in range(gpus):
        machine = machine.gpu("NVIDIA H100 80GB HBM3", "9.0", 80, device_id="2330", index=index)
        states = {"mig_mode": False, "ecc_mode": True, "ecc_uncorrected": 0, "fabric_state": "completed"}
        states.update({"nvlinks_up": 18, "nvlinks_down": 0})
        machine = machine.set({f"gpu.{index}.{key}": value for key, value in states.items()})
    return (
        machine.package("nvidia-nccl-cu13", "2.28.9")
        .set({"driver.fabric_manager": "running", "memory.total": 2048 * GIB, "memory.available": 1900 * GIB})
        .set({"memory.shm_size": 1024 * GIB, "memory.shm_free": 1024 * GIB, "disk.working_free": 5000 * GIB})
        .set({"env.CUDA_DEVICE_ORDER": GONE})
    )


def report(system: Optional[str] = None) -> Machine:
    """What somebody pasted: nothing is known but what the methods add. `system`: the system that the text shows."""
    told = Machine(Facts()).set({"examination.kind": "report"})
    return told if system is None else told.set({"system.os": system})


def windows() -> Machine:
    """A healthy Windows 11 desktop: RTX 4070, driver 581.57, Python 3.12, torch 2.14.1+cu130 from the PyTorch index."""
    site = "C:\\Users\\user\\proj\\.venv\\Lib\\site-packages"
    base = Machine(_looked_everywhere()).set(
        {
            "system.os": "windows",
            "system.arch": "x86_64",
            "system.distribution_name": "Windows 11 Pro",
            "system.windows_build": 26100,
            "system.is_admin": False,
            "system.date": "2026-11-30",
            "driver.nvml_library": "C:\\Windows\\System32\\nvml.dll",
            "driver.nvml_unresponsive": False,
            "driver.smi_path": "C:\\Windows\\System32\\nvidia-smi.exe",
            "windows.gpus": [
                {
                    "name": "NVIDIA GeForce RTX 4070",
                    "driver_version": "581.57",
                    "vendor_id": "10de",
                    "device_id": "2786",
                }
            ],
            "toolkit.found": [],
            "python.executable": "C:\\Users\\user\\proj\\.venv\\Scripts\\python.exe",
            "python.prefix": "C:\\Users\\user\\proj\\.venv",
            "python.version": "3.12.7",
            "python.implementation": "CPython",
            "python.bits": 64,
            "python.free_threaded": False,
            "python.environment": "venv",
            "python.environment_name": "proj\\.venv",
            "python.chosen_by": "VIRTUAL_ENV",
            "python.site_packages": [site],
            "python.externally_managed": False,
            "python.pip": True,
            "python.uv_environment": False,
            "python.others_with_torch": [],
            "pip.extra_index_urls": [],
            "pip.no_index": False,
            "pip.configured_by": [],
            "packages.leftovers": [],
            "libraries.search_path": [],
            "libraries.on_search_path": [],
            "memory.total": 32 * GIB,
            "memory.available": 20 * GIB,
            "memory.swap_total": 32 * GIB,
            "memory.commit_limit": 64 * GIB,
            "memory.page_file": [
                {"path": "C:\\pagefile.sys", "mode": "system-managed", "initial": None, "maximum": None}
            ],
            "disk.environment_free": 300 * GIB,
            "disk.environment_writable": True,
            "disk.temporary_free": 300 * GIB,
            "disk.temporary_path": "C:\\Users\\user\\AppData\\Local\\Temp",
            "windows.power_plan": "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c",
            "windows.power_plan_name": "High performance",
            "windows.power_plan_personality": "high-performance",
            "windows.power_plans": [
                "381b4222-f694-41f0-9685-ff5bb260df2e",
                "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c",
            ],
            "windows.battery": False,
            "windows.on_battery": False,
            "windows.vc_runtime": "14.44.35211",
            "windows.long_paths": True,
            "scheduler.in_job": False,
            "examination.kind": "assumed",
            "examination.failed": [],
            "examination.timed_out": [],
        }
    )
    base = base.set({f"env.{name}": GONE for name in _VARIABLES})
    machine = (
        base.gpu("NVIDIA GeForce RTX 4070", "8.9", 12, device_id="2786")
        .driver("581.57", "13.0")
        .torch("2.14.1+cu130", sass=["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"])
        .package("torchvision", "0.29.1+cu130", built_for_cuda="13.0", requires=["torch>=2.14"])
    )
    # Windows has neither the PCI folder nor the procfs of Linux.
    return machine.set({"pci.gpus": GONE, "procfs.gpus": GONE, "gpu.0.driver_model": "WDDM"})


def wsl() -> Machine:
    """A healthy Ubuntu in WSL2: the Windows driver 581.57 serves it, there is no NVIDIA device on the PCI bus and no
    kernel module of its own."""
    base = linux()
    names = [name for name in base.facts if name.startswith("gpu.0.driver_model")]
    machine = Machine(base.facts.without(names)).set(
        {
            "system.wsl": 2,
            "system.kernel_release": "6.6.87.2-microsoft-standard-WSL2",
            "kernel.modules": [],
            "kernel.secure_boot": GONE,
            "kernel.headers": False,
            "kernel.nvidia_module_files": [],
            "kernel.dkms": GONE,
            "driver.packages": [],
            "driver.module_loaded": False,
            "driver.module_version": GONE,
            "driver.procfs_version": GONE,
            "driver.module_flavour": GONE,
            "driver.smi_path": "/usr/lib/wsl/lib/nvidia-smi",
            "driver.nvml_library": "/usr/lib/wsl/lib/libnvidia-ml.so.1",
            "driver.libcuda": [
                {
                    "path": "/usr/lib/wsl/lib/libcuda.so.1",
                    "real_path": "/usr/lib/wsl/lib/libcuda.so.1",
                    "found_by": "wsl",
                    "kind": "wsl",
                    "version": None,
                }
            ],
            "device.nodes": [
                {
                    "path": "/dev/dxg",
                    "mode": "666",
                    "uid": 0,
                    "gid": 0,
                    "group": "root",
                    "usable": True,
                    "device": "10:125",
                }
            ],
        }
    )
    machine = machine.driver("581.57", "13.0").set(
        {
            "driver.smi_tool_version": "580.102.01",
            "driver.library_version": GONE,
            "pci.gpus": [],
            "procfs.gpus": GONE,
        }
    )
    return machine


def container(kind: str = "docker") -> Machine:
    """A healthy container on the healthy workstation, with its GPU and the driver's libraries mounted in."""
    return linux().set(
        {
            "system.container": kind,
            "system.container_evidence": ["/.dockerenv"] if kind == "docker" else [kind],
            "system.is_admin": True,
            "kernel.nvidia_module_files": [],
            "kernel.dkms": GONE,
            "kernel.headers": False,
            "kernel.installed": GONE,
            "driver.packages": [],
            "env.NVIDIA_VISIBLE_DEVICES": "all",
            "env.NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "memory.shm_size": 16 * GIB,
            "memory.shm_free": 16 * GIB,
        }
    )


def container_without_gpu(kind: str = "docker") -> Machine:
    """A container on the healthy workstation into which nothing of its GPU was passed: the bus and the loaded module
    are those of the host, device nodes and libraries are missing."""
    machine = container(kind)._nothing_to_ask()
    return machine.set({"device.nodes": [], "env.NVIDIA_VISIBLE_DEVICES": GONE, "env.NVIDIA_DRIVER_CAPABILITIES": GONE})


def jetson() -> Machine:
    """A healthy Jetson Orin with JetPack 5: its GPU is on the chip and on no bus, and it has neither NVML nor
    nvidia-smi."""
    base = linux()._nothing_to_ask()
    nodes = device_nodes("/dev/nvgpu/igpu0/ctrl", "/dev/nvhost-ctrl-gpu", "/dev/nvmap", mode="660", group="video")
    machine = base.set(
        {
            "system.arch": "aarch64",
            "system.jetson": "R35.4.1",
            "system.kernel_release": "5.10.120-tegra",
            "kernel.modules": ["nvgpu", "nvmap"],
            "kernel.nvidia_module_files": [],
            "kernel.dkms": [],
            "kernel.secure_boot": GONE,
            "driver.packages": [],
            "driver.module_loaded": False,
            "driver.module_version": GONE,
            "driver.procfs_version": GONE,
            "driver.module_flavour": GONE,
            "pci.gpus": [],
            "procfs.gpus": GONE,
            "device.nodes": nodes,
            "driver.libcuda": [
                {
                    "path": "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
                    "real_path": "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1",
                    "found_by": "ld.so.cache",
                    "kind": "driver",
                    "version": None,
                }
            ],
            "memory.total": 32 * GIB,
        }
    )
    return machine.no_torch()


# -- tables of cases ----------------------------------------------------------------------------------------------


class RuleCase(NamedTuple):
    """One line of a rule's table. `says`: texts that the message must hold; `fix`: kinds or step ids that must be
    offered; None in `certainty`, `severity` and `blame` leaves them free."""

    title: str
    facts: Facts
    status: str
    says: tuple[str, ...] = ()
    certainty: Optional[str] = None
    severity: Optional[str] = None
    blame: Optional[str] = None
    fix: tuple[str, ...] = ()


def _texts(says: str | Sequence[str]) -> tuple[str, ...]:
    return (says,) if isinstance(says, str) and says else tuple(says)


def passes(title: str, machine: Machine, says: str | Sequence[str] = ()) -> RuleCase:
    return RuleCase(title, machine.facts, PASS, _texts(says))


def fails(
    title: str,
    machine: Machine,
    says: str | Sequence[str] = (),
    *,
    certainty: Optional[str] = None,
    severity: Optional[str] = None,
    blame: Optional[str] = None,
    fix: str | Sequence[str] = (),
) -> RuleCase:
    return RuleCase(title, machine.facts, FAIL, _texts(says), certainty, severity, blame, _texts(fix))


def skips(title: str, machine: Machine, says: str | Sequence[str] = ()) -> RuleCase:
    return RuleCase(title, machine.facts, SKIP, _texts(says))


def unknown_when(title: str, machine: Machine, says: str | Sequence[str] = ()) -> RuleCase:
    return RuleCase(title, machine.facts, UNDECIDED, _texts(says))
