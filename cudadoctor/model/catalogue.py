"""The names of all facts, with type, unit and meaning: the one agreement between probes, reports and rules.

A name with `{n}` stands for one fact a GPU, `{name}` for one a package or variable. Types are those of JSON; `bytes`
are integers, versions are the original strings. `list[dict]` values list the keys of their entries in the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Optional

from cudadoctor.model.fact import Facts, ParseError, no_number
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple


class FactSpec(NamedTuple):
    """What a fact holds. `type` is bool, int, float, str, list[str], list[dict] or dict; `unit` may be empty."""

    type: str
    meaning: str
    unit: str = ""


CATALOGUE: dict[str, FactSpec] = {
    # -- system -------------------------------------------------------------------------------------------------
    "system.os": FactSpec("str", "operating system: linux, windows or darwin"),
    "system.arch": FactSpec("str", "processor architecture: x86_64, aarch64, x86, ..."),
    "system.kernel_release": FactSpec("str", "release of the running kernel, as uname -r prints it"),
    "system.distribution": FactSpec("str", "ID of os-release"),
    "system.distribution_like": FactSpec("list[str]", "ID_LIKE of os-release"),
    "system.distribution_version": FactSpec("str", "VERSION_ID of os-release"),
    "system.distribution_name": FactSpec("str", "PRETTY_NAME of os-release; on Windows the edition"),
    "system.ostree": FactSpec("bool", "the system is an image onto which packages are layered (ostree)"),
    "system.libc": FactSpec("str", "C library: glibc or musl"),
    "system.glibc": FactSpec("str", "version of glibc"),
    "system.wsl": FactSpec("int", "1 or 2 inside the Windows Subsystem for Linux; absent elsewhere"),
    "system.container": FactSpec(
        "str", "kind of container: docker, podman, apptainer, kubernetes, lxc, ...; absent: none seen"
    ),
    "system.container_evidence": FactSpec("list[str]", "what speaks for a container (none is proof alone)"),
    "system.jetson": FactSpec("str", "Jetson Linux release, as R36.4.3; absent elsewhere"),
    "system.is_admin": FactSpec("bool", "the user is root or an administrator"),
    "system.groups": FactSpec("list[str]", "names (else numbers) of the user's groups"),
    "system.windows_build": FactSpec("int", "build number of Windows"),
    "system.date": FactSpec("str", "today, as YYYY-MM-DD"),
    "system.uptime": FactSpec("float", "time since the machine was started", "s"),
    # -- kernel ---------------------------------------------------------------------------------------------------
    "kernel.modules": FactSpec("list[str]", "loaded kernel modules; unknown where the kernel does not list them"),
    "kernel.command_line": FactSpec(
        "list[str]", "parameters of the kernel command line that concern nouveau, nvidia, iommu or pci"
    ),
    "kernel.nouveau_blacklisted_by": FactSpec(
        "list[str]", "files or parameters that keep nouveau from loading; empty: none"
    ),
    "kernel.nvidia_blacklisted_by": FactSpec(
        "list[str]", "files or parameters that keep nvidia from loading; empty: none"
    ),
    "kernel.secure_boot": FactSpec("bool", "UEFI Secure Boot is on; absent: no UEFI"),
    "kernel.lockdown": FactSpec("str", "kernel lockdown: none, integrity or confidentiality"),
    "kernel.headers": FactSpec("bool", "headers of the running kernel are installed (/lib/modules/RELEASE/build)"),
    "kernel.installed": FactSpec("list[str]", "kernel releases that have a folder in /lib/modules"),
    "kernel.nvidia_module_files": FactSpec(
        "list[dict]", "nvidia.ko files on disk: kernel, path, and version and flavour (open or proprietary) where known"
    ),
    "kernel.dkms": FactSpec(
        "list[dict]", "nvidia modules in DKMS: version, kernel, arch, status (added, built, installed, ...)"
    ),
    "kernel.log_events": FactSpec(
        "list[dict]",
        "kernel log lines about GPUs, as parse.kernel_log reads them: kind, text, bus_id (or null), values (a dict)",
    ),
    # -- driver -------------------------------------------------------------------------------------------------
    "driver.module_loaded": FactSpec("bool", "the nvidia kernel module is loaded"),
    "driver.module_version": FactSpec("str", "version of the loaded nvidia module (/sys/module/nvidia/version)"),
    "driver.procfs_version": FactSpec("str", "version of the loaded module (/proc/driver/nvidia/version)"),
    "driver.module_flavour": FactSpec("str", "flavour of the loaded module: open or proprietary"),
    "driver.library_version": FactSpec(
        "str",
        "version of the driver's user-space library, by the name of the file that libcuda.so.1 or libnvidia-ml.so.1 leads to",
    ),
    "driver.libcuda": FactSpec(
        "list[dict]",
        "libcuda.so.1 files in the order in which the loader finds them: path, real_path, found_by (LD_LIBRARY_PATH, ld.so.cache, default, wsl), kind (driver, stub, compat, wsl, empty, dangling), version or null",
    ),
    "driver.nvml_library": FactSpec("str", "path or name of the NVML library that was found; absent: none found"),
    "driver.nvml_library_version": FactSpec(
        "str", "driver version of the NVML library itself, which it tells even without a driver"
    ),
    "driver.nvml_error": FactSpec(
        "int", "code with which NVML refused to start (9 no driver, 18 mismatch, ...); absent: it started"
    ),
    "driver.nvml_error_text": FactSpec("str", "the words for nvml_error"),
    "driver.nvml_version": FactSpec("str", "driver version, by NVML"),
    "driver.nvml_cuda": FactSpec("str", "newest CUDA that the driver serves, by NVML, as 12.2"),
    "driver.nvml_unresponsive": FactSpec("bool", "NVML did not answer within the deadline"),
    "driver.smi_path": FactSpec("str", "nvidia-smi that was run; absent: not on PATH nor in its usual places"),
    "driver.smi_exit": FactSpec("int", "exit status of nvidia-smi"),
    "driver.smi_failure": FactSpec(
        "str",
        "how nvidia-smi failed (no-driver, no-library, mismatch, permission, gpu-lost, no-devices, unknown-error, device-handle, timed-out, unreadable, ...); absent: it answered",
    ),
    "driver.smi_failure_text": FactSpec("str", "first line of what nvidia-smi said when it failed"),
    "driver.smi_version": FactSpec("str", "driver version, by nvidia-smi"),
    "driver.told_version": FactSpec("str", "driver version, as a person names it: no sign that the driver answers"),
    "driver.smi_tool_version": FactSpec("str", "version of the nvidia-smi program"),
    "driver.smi_library_version": FactSpec("str", "NVML library version that nvidia-smi names on a mismatch"),
    "driver.smi_cuda": FactSpec("str", "newest CUDA that the driver serves, by nvidia-smi"),
    "driver.windows_version": FactSpec("str", "display driver in the Windows registry, in NVIDIA's numbering (560.94)"),
    "driver.packages": FactSpec(
        "list[dict]", "driver packages of the distribution: name, version (null where unknown)"
    ),
    "driver.fabric_manager": FactSpec(
        "str", "state of the fabric manager service: running, stopped; absent: not installed"
    ),
    "driver.imex": FactSpec(
        "str",
        "state of the IMEX service (one NVLink across several machines): running, stopped; absent: not installed",
    ),
    "device.nodes": FactSpec(
        "list[dict]",
        "/dev/nvidia*, /dev/nvidia-caps*, /dev/dxg and /dev/nvgpu before any NVIDIA library ran: path, mode (octal text), uid, gid, group (name or null), usable (the user may read and write), device (major:minor)",
    ),
    # -- GPUs, a source each ------------------------------------------------------------------------------------
    "pci.gpus": FactSpec(
        "list[dict]",
        "NVIDIA display devices on the PCI bus: address (0000:01:00.0), device_id (4 hex digits), class (6 hex digits), driver (nvidia, nouveau, vfio-pci, ... or null), numa_node, link_speed_gts, link_width, max_link_speed_gts, max_link_width",
    ),
    "pci.other_display": FactSpec("list[str]", "vendor ids of display devices of other makers (8086, 1002)"),
    "procfs.gpus": FactSpec("list[dict]", "/proc/driver/nvidia/gpus: address, model, minor, firmware, excluded"),
    "gpu.told": FactSpec("list[str]", "GPUs as a person names them: no sign that a driver shows them"),
    "smi.gpus": FactSpec(
        "list[dict]",
        "GPUs by nvidia-smi: index, name, truncated (the name is cut), address, memory_total (bytes or null), memory_used, compute_capability (or null), mig (bool or null), driver_model (WDDM, TCC, MCDM or null), lost (bool)",
    ),
    "windows.gpus": FactSpec(
        "list[dict]",
        "display adapters in the Windows registry: name, driver_version (NVIDIA's numbering or null), vendor_id, device_id",
    ),
    "gpu.count": FactSpec("int", "number of GPUs, by NVML"),
    "gpu.{n}.name": FactSpec("str", "product name, by NVML"),
    "gpu.{n}.pci_address": FactSpec("str", "PCI address, as 0000:01:00.0"),
    "gpu.{n}.pci_device_id": FactSpec("str", "PCI device id, 4 hex digits"),
    "gpu.{n}.compute_capability": FactSpec("str", "compute capability, as 8.9"),
    "gpu.{n}.memory_total": FactSpec("int", "device memory", "bytes"),
    "gpu.{n}.memory_free": FactSpec("int", "free device memory", "bytes"),
    "gpu.{n}.memory_used": FactSpec("int", "used device memory", "bytes"),
    "gpu.{n}.lost": FactSpec("bool", "the GPU has fallen off the bus"),
    "gpu.{n}.mig_mode": FactSpec("bool", "MIG mode is on; absent: the card has none"),
    "gpu.{n}.mig_devices": FactSpec("int", "number of MIG devices"),
    "gpu.{n}.ecc_mode": FactSpec("bool", "ECC is on; absent: the card has none"),
    "gpu.{n}.ecc_uncorrected": FactSpec("int", "uncorrected ECC errors since the driver was loaded"),
    "gpu.{n}.retired_pending": FactSpec("bool", "page retirement is pending"),
    "gpu.{n}.remap_pending": FactSpec("bool", "row remapping is pending"),
    "gpu.{n}.remap_failure": FactSpec("bool", "a row remapping failed"),
    "gpu.{n}.recovery_action": FactSpec(
        "str",
        "what the driver says that the GPU needs: none, reset, reboot, drain-p2p, drain-and-reset, bus-reset, recover-imex-domain",
    ),
    "gpu.{n}.throttle_reasons": FactSpec(
        "list[str]",
        "active clock event reasons: gpu_idle, applications_clocks_setting, sw_power_cap, hw_slowdown, sync_boost, sw_thermal_slowdown, hw_thermal_slowdown, hw_power_brake_slowdown, display_clock_setting",
    ),
    "gpu.{n}.temperature": FactSpec("int", "temperature of the GPU", "degrees C"),
    "gpu.{n}.temperature_slowdown": FactSpec("int", "temperature at which the card slows itself down", "degrees C"),
    "gpu.{n}.power": FactSpec("float", "power draw", "W"),
    "gpu.{n}.power_limit": FactSpec("float", "enforced power limit", "W"),
    "gpu.{n}.power_limit_default": FactSpec("float", "power limit that the card ships with", "W"),
    "gpu.{n}.pcie_generation": FactSpec("int", "PCIe generation of the link now (a link idles down)"),
    "gpu.{n}.pcie_generation_max": FactSpec("int", "highest PCIe generation that card and slot can do together"),
    "gpu.{n}.pcie_width": FactSpec("int", "lanes of the link now"),
    "gpu.{n}.pcie_width_max": FactSpec("int", "most lanes that card and slot can do together"),
    "gpu.{n}.compute_mode": FactSpec("str", "default, exclusive-thread, prohibited or exclusive-process"),
    "gpu.{n}.persistence_mode": FactSpec("bool", "persistence mode is on; absent where there is none"),
    "gpu.{n}.processes": FactSpec(
        "list[dict]", "compute processes: pid, memory (bytes or null), in reports also name (the program's, or null)"
    ),
    "gpu.{n}.utilization": FactSpec("int", "share of time in which a kernel ran", "%"),
    "gpu.{n}.performance_state": FactSpec("int", "performance state, 0 (fastest) to 15"),
    "gpu.{n}.clock_sm": FactSpec("int", "SM clock now", "MHz"),
    "gpu.{n}.clock_sm_max": FactSpec("int", "highest SM clock", "MHz"),
    "gpu.{n}.driver_model": FactSpec("str", "Windows driver model: WDDM, TCC or MCDM"),
    "gpu.{n}.nvlinks_up": FactSpec("int", "number of its NVLinks that are up; absent: the card has none"),
    "gpu.{n}.nvlinks_down": FactSpec("int", "number of its NVLinks that are down (unused ones are, too)"),
    "gpu.{n}.display_active": FactSpec("bool", "a display runs on it"),
    # What only nvidia-smi's own words in a report tell.
    "gpu.{n}.mig_pending": FactSpec("bool", "MIG mode changes with the GPU's next reset"),
    "gpu.{n}.fabric_state": FactSpec(
        "str", "registration with the NVLink fabric: completed, in-progress, not-started, none (it has no fabric)"
    ),
    "gpu.{n}.fabric_status": FactSpec("str", "how that registration ended, in nvidia-smi's words (Success, ...)"),
    "gpu.{n}.addressing_mode": FactSpec("str", "how system memory is addressed: hmm, ats or none; absent: not told"),
    "gpu.{n}.bar1_total": FactSpec("int", "size of the window through which the CPU sees the GPU's memory", "bytes"),
    "gpu.{n}.virtualization": FactSpec("str", "virtualization mode: none, pass-through, vgpu, host-vgpu, host-vsga"),
    "smi.links": FactSpec(
        "list[dict]",
        "by nvidia-smi topo -m, each pair of GPUs: first, second (numbers), link (NV12, PIX, PXB, PHB, NODE, SYS)",
    ),
    "smi.peer_access": FactSpec(
        "list[dict]",
        "by nvidia-smi topo -p2p, each pair of GPUs: first, second (numbers), can (r read, w write, n NVLink, a atomics, p property), status (OK, CNS, GNS, TNS, NS)",
    ),
    # -- toolkits -------------------------------------------------------------------------------------------------
    "toolkit.nvcc_on_path": FactSpec("str", "nvcc that PATH finds"),
    "toolkit.nvcc_on_path_version": FactSpec("str", "its version, as 12.4.131"),
    "toolkit.found": FactSpec(
        "list[dict]",
        "CUDA toolkits: root, version (or null), nvcc (path or null), found_by (PATH, CUDA_HOME, CUDA_PATH, usr-local, conda, pypi, distribution)",
    ),
    "toolkit.cuda_home": FactSpec(
        "dict",
        "what CUDA_HOME (else CUDA_PATH) says: variable, path, exists (bool), has_nvcc (bool); absent: neither is set",
    ),
    "toolkit.host_compiler": FactSpec(
        "dict", "host C++ compiler that nvcc would call: name (gcc, clang, msvc), version, path"
    ),
    "toolkit.c_compiler": FactSpec("str", "C compiler that PATH finds (gcc, clang or cc): Triton compiles with it"),
    # -- the patient's Python -----------------------------------------------------------------------------------
    "python.headers": FactSpec("bool", "the headers of this Python (Python.h) are installed"),
    "python.executable": FactSpec("str", "the interpreter whose environment is looked at"),
    "python.prefix": FactSpec("str", "its environment's folder"),
    "python.version": FactSpec("str", "its version, as 3.11.7"),
    "python.implementation": FactSpec("str", "CPython, PyPy, ..."),
    "python.bits": FactSpec("int", "64 or 32"),
    "python.free_threaded": FactSpec("bool", "it is a free-threaded build"),
    "python.arch": FactSpec(
        "str", "architecture that the interpreter was built for, where it differs from the system's"
    ),
    "python.environment": FactSpec("str", "kind of environment: venv, conda, system, user, tool"),
    "python.environment_name": FactSpec("str", "name for people: the conda environment or the folder"),
    "python.chosen_by": FactSpec("str", "why this one: --python, VIRTUAL_ENV, CONDA_PREFIX, own, PATH"),
    "python.site_packages": FactSpec("list[str]", "folders in which its packages lie, in import order"),
    "python.externally_managed": FactSpec("bool", "the system's package manager owns it (PEP 668)"),
    "python.pip": FactSpec("bool", "pip is installed in it"),
    "python.uv_environment": FactSpec("bool", "uv made the environment"),
    "python.others_with_torch": FactSpec("list[dict]", "other environments at hand that hold torch: executable, torch"),
    "python.pip_on_path": FactSpec(
        "dict", "the pip command on PATH: path, interpreter (whose packages it installs, or null)"
    ),
    "python.python_on_path": FactSpec("str", "the python (else python3) that PATH finds"),
    "pip.index_url": FactSpec("str", "index that pip is configured for, without credentials; absent: PyPI"),
    "pip.extra_index_urls": FactSpec("list[str]", "extra indexes that pip is configured for, without credentials"),
    "pip.no_index": FactSpec("bool", "pip is told to use no index"),
    "pip.find_links": FactSpec(
        "list[str]", "pages and folders of wheels that pip looks in as well, without credentials"
    ),
    "pip.constraints": FactSpec("list[str]", "constraint files that pip is configured for"),
    "pip.constraint_pins": FactSpec(
        "list[str]", "what these files say of torch and of what it requires, as torch==2.6.0"
    ),
    "pip.require_virtualenv": FactSpec("bool", "pip is told to install into virtual environments only"),
    "pip.user": FactSpec("bool", "pip is told to install into the user's own folder"),
    "pip.target": FactSpec("str", "folder that pip is told to install into; absent: the environment"),
    "pip.configured_by": FactSpec("list[str]", "files and variables that say so"),
    "uv.torch_backend": FactSpec("str", "backend that uv takes torch for whatever index is named; absent: none is set"),
    "uv.exclude_newer": FactSpec(
        "str", "day after which uv takes nothing, nor anything without a date; absent: none is set"
    ),
    # The last install command that a report shows, and what conda says of the machine.
    "install.program": FactSpec("str", "pip, uv, conda or poetry"),
    "install.requirements": FactSpec("list[str]", "what it asks for, as written: torch==2.9.1, torchvision"),
    "install.index_url": FactSpec("str", "index that it takes packages from, without credentials; absent: none named"),
    "install.extra_index_urls": FactSpec("list[str]", "further indexes and pages of wheels, without credentials"),
    "conda.virtual_cuda": FactSpec(
        "str", "CUDA that conda's solver takes the machine to have (__cuda), by conda info; absent: it lists none"
    ),
    # -- packages -------------------------------------------------------------------------------------------------
    "package.{name}.version": FactSpec("str", "version of an installed package that matters to CUDA (normalised name)"),
    "package.{name}.location": FactSpec("str", "folder in which it is installed"),
    "package.{name}.installer": FactSpec("str", "pip, uv, conda, ..."),
    "package.{name}.requires": FactSpec(
        "list[str]",
        "requirements of the package that concern torch, CUDA or NVIDIA packages, markers resolved for this Python",
    ),
    "package.{name}.built_for_torch": FactSpec("str", "torch version that an extension says it was built for"),
    "package.{name}.built_for_cuda": FactSpec(
        "str", "CUDA version that a package's own files say it was built for; absent: a CPU build"
    ),
    "package.{name}.conda_build": FactSpec("str", "conda's build string (py311_cuda126..., cpu_...)"),
    "package.{name}.conda_channel": FactSpec("str", "conda channel"),
    "packages.duplicates": FactSpec("list[dict]", "packages installed more than once: name, versions, locations"),
    "packages.leftovers": FactSpec("list[str]", "folders such as ~orch that an interrupted pip left"),
    # -- torch ----------------------------------------------------------------------------------------------------
    "torch.version": FactSpec("str", "__version__ of torch/version.py, with its local part (2.14.1+cu126)"),
    "torch.metadata_version": FactSpec("str", "version that the package's metadata gives"),
    "torch.path": FactSpec("str", "folder of the torch that an import would take"),
    "torch.cuda": FactSpec("str", "CUDA that torch was built with, as 12.6; absent: built without CUDA"),
    "torch.hip": FactSpec("str", "ROCm that torch was built with; absent: none"),
    "torch.origin": FactSpec("str", "how it came: pip, conda, source, system"),
    "torch.sass": FactSpec("list[str]", "GPU architectures that the libraries hold machine code for, as sm_86"),
    "torch.ptx": FactSpec("list[str]", "architectures that the libraries hold PTX for, as compute_90; empty: none"),
    "torch.copies": FactSpec("list[str]", "every torch folder on the import path, the winner first"),
    "torch.missing_libraries": FactSpec(
        "list[str]",
        "libraries that torch's own need (DT_NEEDED) and that are in none of the folders that it looks in; empty: none",
    ),
    "torch.platform_tag": FactSpec("str", "platform tag of the installed wheel, as manylinux_2_28_x86_64"),
    "torch.cudnn": FactSpec("str", "version of the cuDNN package beside it"),
    "torch.cuda_available": FactSpec("bool", "what torch.cuda.is_available() gave, where a report says it"),
    # -- libraries ------------------------------------------------------------------------------------------------
    "libraries.search_path": FactSpec(
        "list[str]", "folders of LD_LIBRARY_PATH (on Windows: of PATH that hold CUDA libraries)"
    ),
    "libraries.on_search_path": FactSpec(
        "list[dict]", "CUDA libraries in those folders: directory, soname, file, version (or null)"
    ),
    "libraries.preloaded": FactSpec("list[str]", "LD_PRELOAD"),
    "libraries.not_found": FactSpec(
        "list[dict]",
        "CUDA libraries that a program did not find, as its error texts say: soname, asked_by (package that wanted it, or null), text",
    ),
    "libraries.loaded": FactSpec(
        "list[dict]", "CUDA libraries as ldd or a debugger shows that they were found: soname, path"
    ),
    # -- memory, disks, limits ----------------------------------------------------------------------------------
    "memory.total": FactSpec("int", "physical memory", "bytes"),
    "memory.available": FactSpec("int", "memory available now", "bytes"),
    "memory.swap_total": FactSpec("int", "swap (Linux) or page files (Windows), all together; 0: none", "bytes"),
    "memory.swap_devices": FactSpec("list[dict]", "swap areas: path, kind (file, partition, zram), size (bytes)"),
    "memory.cgroup_limit": FactSpec("int", "memory limit of the control group; absent: unlimited", "bytes"),
    "memory.commit_limit": FactSpec("int", "Windows: physical memory and page files together", "bytes"),
    "memory.page_file": FactSpec(
        "list[dict]",
        "Windows page files: path, mode (system-managed or fixed), initial, maximum (bytes or null); empty: none",
    ),
    "memory.shm_size": FactSpec("int", "size of /dev/shm", "bytes"),
    "memory.shm_free": FactSpec("int", "free room in /dev/shm", "bytes"),
    "limits.nofile": FactSpec("int", "open files (soft limit); absent: unlimited"),
    "limits.memlock": FactSpec("int", "lockable memory (soft limit); absent: unlimited", "bytes"),
    "limits.address_space": FactSpec("int", "address space (soft limit); absent: unlimited", "bytes"),
    "disk.environment_free": FactSpec("int", "free room where the environment's packages lie", "bytes"),
    "disk.environment_writable": FactSpec("bool", "the user may write there"),
    "disk.temporary_free": FactSpec("int", "free room where temporary files go", "bytes"),
    "disk.temporary_path": FactSpec("str", "where temporary files go"),
    "disk.cache_free": FactSpec("int", "free room where pip keeps what it downloads", "bytes"),
    "disk.cache_path": FactSpec("str", "where pip keeps what it downloads"),
    "disk.working_free": FactSpec("int", "free room in the working folder", "bytes"),
    "disk.kind": FactSpec("str", "kind of the disk under the working folder: nvme, ssd, hdd, network, memory, virtual"),
    "disk.filesystem": FactSpec("str", "file system of the working folder"),
    # -- Windows ----------------------------------------------------------------------------------------------------
    "windows.power_plan": FactSpec("str", "GUID of the active power plan, lower case"),
    "windows.power_plan_name": FactSpec("str", "its name, in the system's language"),
    "windows.power_plan_personality": FactSpec(
        "str", "personality of the plan: high-performance, balanced, power-saver"
    ),
    "windows.power_plans": FactSpec("list[str]", "GUIDs of the plans that exist"),
    "windows.power_overlay": FactSpec("str", "GUID of the active power mode overlay"),
    "windows.battery": FactSpec("bool", "the machine has a battery"),
    "windows.on_battery": FactSpec("bool", "it runs on battery now"),
    "windows.hardware_scheduling": FactSpec("str", "hardware-accelerated GPU scheduling: on, off; absent: the default"),
    "windows.tdr_delay": FactSpec("int", "seconds until a GPU counts as hung; absent: the default", "s"),
    "windows.tdr_level": FactSpec("int", "TdrLevel; absent: the default"),
    "windows.vc_runtime": FactSpec("str", "version of the installed Visual C++ runtime; absent: none"),
    "windows.long_paths": FactSpec("bool", "long paths are enabled"),
    # -- surroundings -------------------------------------------------------------------------------------------
    "env.{name}": FactSpec(
        "str", "an environment variable that matters (PATH and secrets are not among them); absent: not set"
    ),
    "scheduler.kind": FactSpec("str", "slurm, kubernetes, lsf, pbs or sge; absent: no scheduler seen"),
    "scheduler.in_job": FactSpec("bool", "this process runs inside a job (on a login node: false)"),
    "scheduler.gpus_allocated": FactSpec(
        "int", "GPUs that the job was given, by the scheduler's variables; absent: the variables name none"
    ),
    "scheduler.node": FactSpec("str", "the node's name where the scheduler gives it"),
    # -- what programs and people report beside it ----------------------------------------------------------------
    # Of the last report of torch that the GPU's memory did not suffice; "reserved" holds what is allocated, too.
    "oom.device": FactSpec("int", "number of the GPU whose memory ran out, as torch counts"),
    "oom.tried": FactSpec("int", "memory that was asked for in vain", "bytes"),
    "oom.total": FactSpec("int", "memory of that GPU", "bytes"),
    "oom.free": FactSpec("int", "memory of that GPU that nobody held", "bytes"),
    "oom.allocated": FactSpec("int", "memory that torch's tensors held", "bytes"),
    "oom.reserved": FactSpec("int", "memory that torch had taken from the driver, in use or not", "bytes"),
    "oom.process": FactSpec("int", "memory that this process held, with what is not torch's", "bytes"),
    "oom.others": FactSpec("int", "memory that other processes held, as far as they are named", "bytes"),
    "oom.allowed": FactSpec("int", "memory that torch was told to keep within", "bytes"),
    "oom.private_pools": FactSpec("int", "memory that lay in pools of CUDA graphs", "bytes"),
    "oom.program": FactSpec(
        "str",
        "whose report it is: torch, vllm, sglang, jax, tensorflow, llama.cpp, cupy, paddle, tensorrt; absent: not told",
    ),
    "oom.phase": FactSpec(
        "str", "what the program was at, by its traceback: loading, attention, loss, backward, optimizer, cache"
    ),
    # The table of torch.cuda.memory_summary().
    "allocator.device": FactSpec("int", "number of the GPU that the table is about, as torch counts"),
    "allocator.allocated": FactSpec("int", "memory that tensors hold", "bytes"),
    "allocator.allocated_peak": FactSpec("int", "most memory that tensors held", "bytes"),
    "allocator.active": FactSpec("int", "memory in blocks that are in use or wait for the GPU", "bytes"),
    "allocator.requested": FactSpec("int", "memory that the program asked for, before rounding", "bytes"),
    "allocator.reserved": FactSpec("int", "memory that torch has taken from the driver", "bytes"),
    "allocator.reserved_peak": FactSpec("int", "most memory that torch had taken from the driver", "bytes"),
    "allocator.not_releasable": FactSpec("int", "free pieces of blocks that are partly in use", "bytes"),
    "allocator.retries": FactSpec("int", "how often torch gave back all it could and asked again"),
    "allocator.ooms": FactSpec("int", "how often memory did not suffice"),
    "scheduler.gpus_requested": FactSpec("bool", "the job script or command that a report shows asks for GPUs"),
    "container.image": FactSpec("str", "container image that a report names, as nvidia/cuda:12.8.0-base-ubuntu22.04"),
    "container.engine": FactSpec("str", "engine whose command a report shows: docker, podman, nerdctl or apptainer"),
    "container.gpus_requested": FactSpec("bool", "the command that started the container asks for GPUs"),
    "container.host_ipc": FactSpec("bool", "it shares the host's /dev/shm"),
    "container.shm_size": FactSpec("int", "size of /dev/shm that it asks for", "bytes"),
    "pod.gpu_limit": FactSpec("int", "GPUs in the pod's resource limits; 0: limits without a GPU are shown"),
    "wsl.version": FactSpec("str", "version of WSL itself, by wsl --version"),
    "wsl.kernel_version": FactSpec("str", "version of WSL's kernel, by wsl --version or --status"),
    "libraries.listed": FactSpec(
        "list[dict]", "CUDA libraries that a report lists, wherever they lie (ldconfig -p, find, ls): path, soname"
    ),
    "nodes.differences": FactSpec(
        "list[dict]",
        "in what the nodes of a job or cluster differ that should be alike: what (driver, torch, nccl, cuda, gpus), values (texts, one a group of nodes)",
    ),
    # -- what a policy asks for (its source is the line that asks), and what `cudadoctor verify` proved --------------
    "policy.gpu.count": FactSpec("str", "GPUs that the job has to see: a number or a range of it, as ==8 or >=4"),
    "policy.gpu.names": FactSpec("list[str]", "products of which each GPU has to be one"),
    "policy.gpu.compute_capability": FactSpec("str", "range of the compute capability of each GPU, as >=8.0"),
    "policy.gpu.memory_total": FactSpec("int", "least device memory of each GPU", "bytes"),
    "policy.gpu.memory_free": FactSpec("int", "least free device memory of each GPU", "bytes"),
    "policy.gpu.temperature": FactSpec("int", "highest temperature of each GPU", "degrees C"),
    "policy.gpu.pcie_generation": FactSpec("int", "least PCIe generation that card and slot can do together"),
    "policy.gpu.pcie_width": FactSpec("int", "fewest PCIe lanes of each GPU"),
    "policy.gpu.nvlink": FactSpec("bool", "each GPU's NVLinks have to be up"),
    "policy.gpu.mig": FactSpec("bool", "whether MIG mode has to be on or off"),
    "policy.gpu.mig_devices": FactSpec("str", "MIG devices of each GPU: a number or a range of it"),
    "policy.gpu.throttled": FactSpec("bool", "false: no GPU's clocks may be held down"),
    "policy.driver.version": FactSpec("str", "range of the driver's version, as >=535,<600"),
    "policy.driver.cuda": FactSpec("str", "CUDA version that the driver has to serve, as 12.6"),
    "policy.torch.version": FactSpec("str", "range of torch's version"),
    "policy.torch.cuda": FactSpec("str", "range of the CUDA that torch is built with"),
    "policy.nccl.version": FactSpec("str", "range of NCCL's version"),
    "policy.system.memory_total": FactSpec("int", "least memory that the job may use", "bytes"),
    "policy.system.memory_available": FactSpec("int", "least memory that is free now", "bytes"),
    "policy.system.fabric_manager": FactSpec("bool", "the fabric manager has to run"),
    "policy.limits.nofile": FactSpec("str", "fewest open files (soft limit): a number or unlimited"),
    "policy.limits.memlock": FactSpec("str", "least lockable memory (soft limit): a number of bytes or unlimited"),
    "policy.disk.working": FactSpec("int", "least free room in the working folder", "bytes"),
    "policy.disk.temporary": FactSpec("int", "least free room for temporary files", "bytes"),
    "policy.disk.environment": FactSpec("int", "least free room where packages lie", "bytes"),
    "policy.disk.cache": FactSpec("int", "least free room where pip keeps downloads", "bytes"),
    "policy.disk.shm": FactSpec("int", "least free room in /dev/shm", "bytes"),
    "policy.fit.model": FactSpec("str", "model that has to fit into the GPUs' memory: a name, or a size as 7b"),
    "policy.fit.train": FactSpec("str", "how it is trained: full, lora, qlora; absent: inference"),
    "policy.fit.quant": FactSpec("str", "type of its weights, as bf16 or q4_k_m"),
    "policy.fit.precision": FactSpec("str", "of training: bf16, mixed, fp16, fp32"),
    "policy.fit.batch": FactSpec("int", "sequences at once"),
    "policy.fit.context": FactSpec("int", "tokens of a sequence"),
    "policy.fit.kv": FactSpec("str", "type of the KV cache, as fp8"),
    "policy.fit.engine": FactSpec("str", "what runs it at inference: transformers, vllm, llama.cpp"),
    "policy.fit.attention": FactSpec("str", "flash, sdpa, eager"),
    "policy.fit.checkpointing": FactSpec("str", "of activations: none, full, selective, full_offload"),
    "policy.fit.optimizer": FactSpec("str", "optimizer, as adamw or adamw_8bit"),
    "policy.fit.loss": FactSpec("str", "plain, upcast, fp32, bf16, chunked, fused"),
    "policy.fit.lora_rank": FactSpec("int", "rank of the adapters"),
    "policy.fit.gpus": FactSpec("int", "GPUs that share the work"),
    "policy.fit.sharding": FactSpec("str", "how they share it: ddp, zero1, zero2, zero3, fsdp, tp, pp"),
    "policy.fit.offload": FactSpec("str", "to the machine's memory: none, optimizer, all, layers"),
    "policy.verify.checks": FactSpec("list[str]", "checks of `cudadoctor verify` that have to pass"),
    "verify.results": FactSpec(
        "list[dict]",
        "what `cudadoctor verify` found: check, gpu (number or null), status (pass, fail, skip), severity (error, warning), rule (id or null: what a failure means), message, and what was measured",
    ),
    # -- the examination itself ---------------------------------------------------------------------------------
    "examination.kind": FactSpec("str", "live, replay, report, facts or assumed"),
    "examination.failed": FactSpec("list[dict]", "probes that failed: probe, reason"),
    "examination.timed_out": FactSpec(
        "list[dict]", "probes that did not end in time: probe, seconds; folder: that did not answer"
    ),
    "symptom.{name}": FactSpec(
        "dict", "an error text that was reported: text, and what it captures; names in lower case with underscores"
    ),
    "request.gpu": FactSpec("bool", "the person asked for a GPU (planning for a machine that has one)"),
}

# No machine has as many; a document that claims more is not believed that far.
MOST_GPUS = 256


# Beginnings of the names that no probe answers: only what people paste, ask for or have proved tells of them.
ONLY_IN_REPORTS = (
    "policy.",
    "verify.",
    "scheduler.gpus_requested",
    "symptom.",
    "oom.",
    "allocator.",
    "container.",
    "pod.",
    "wsl.",
    "libraries.listed",
    "libraries.loaded",
    "libraries.not_found",
    "conda.virtual_",
    "install.",
    "nodes.",
    "driver.imex",
    "driver.told_version",
    "gpu.told",
    "torch.cuda_available",
    "smi.links",
    "smi.peer_access",
    "gpu.{n}.mig_pending",
    "gpu.{n}.fabric_status",
    "gpu.{n}.addressing_mode",
    "gpu.{n}.bar1_total",
    "gpu.{n}.virtualization",
)


_NUMBERED = pattern(r"gpu\.(\d{1,3})\.")


def gpu_numbers(facts: Facts) -> Sequence[int]:
    """NVML's numbers of the GPUs: the N of the facts `gpu.N.name` and so on.

    A report may tell of GPU 3 and not of how many there are: then it is the GPUs of which something is known.
    """
    count = facts.value("gpu.count")
    if count is not None or facts.value("examination.kind") != "report":
        return range(min(count or 0, MOST_GPUS))
    named = {_NUMBERED.match(name) for name in facts if name.startswith("gpu.") and not facts[name].is_unknown}
    return sorted({number for match in named if match for number in (int(match.group(1)),) if number < MOST_GPUS})


_PLACEHOLDER = pattern(r"\\\{(n|name)\\\}")


def _pattern(name: str) -> re.Pattern[str]:
    body = _PLACEHOLDER.sub(lambda match: r"\d+" if match.group(1) == "n" else r"[A-Za-z0-9_.\-]+?", re.escape(name))
    return re.compile(body + r"\Z")


def spec_of(name: str) -> Optional[FactSpec]:
    """What the fact `name` holds, or None for a name that does not exist."""
    exact = CATALOGUE.get(name)
    if exact is not None:
        return exact
    for expression, spec in _templates(name.partition(".")[0]):
        if expression.match(name):
            return spec
    return None


@cache
def _templates(subject: str) -> list[tuple[re.Pattern[str], FactSpec]]:
    """The facts of a subject that stand for many."""
    return [
        (_pattern(template), spec)
        for template, spec in CATALOGUE.items()
        if "{" in template and template.startswith(subject + ".")
    ]


# Nothing that is counted or measured in a machine is larger, and arithmetic beyond it overflows.
_INT_LIMIT = 1 << 63


def fits(spec: FactSpec, value: object) -> bool:
    """Whether `value` is of the type that the catalogue gives."""
    if spec.type == "bool":
        return isinstance(value, bool)
    if spec.type == "int":
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT_LIMIT
    if spec.type == "float":
        # Neither infinite nor "not a number", which no JSON document can carry.
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _INT_LIMIT
    if spec.type == "str":
        return isinstance(value, str)
    if spec.type == "dict":
        return isinstance(value, dict)
    if spec.type == "list[str]":
        return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return isinstance(value, list) and all(isinstance(entry, dict) and _texts_are_texts(entry) for entry in value)


# Keys whose values are texts (or null) in the entries of every list: the rules read them as such.
_TEXT_KEYS = frozenset(
    (
        "address",
        "arch",
        "bus_id",
        "class",
        "compute_capability",
        "device",
        "device_id",
        "directory",
        "driver",
        "driver_model",
        "driver_version",
        "executable",
        "file",
        "found_by",
        "group",
        "kernel",
        "kind",
        "mode",
        "model",
        "name",
        "nvcc",
        "path",
        "probe",
        "reason",
        "root",
        "soname",
        "status",
        "text",
        "torch",
        "vendor_id",
        "version",
    )
)


def _texts_are_texts(entry: dict[str, object]) -> bool:
    return all(isinstance(entry[key], str) or entry[key] is None for key in _TEXT_KEYS.intersection(entry))


def read_facts(document: object) -> Facts:
    """The facts of a document, each of its type, or ParseError. What no catalogue knows is a fact of a later version:
    no rule here asks for it."""
    facts = Facts.from_json(document)
    for name, fact in facts.items():
        spec = spec_of(name)
        if fact.is_known and spec is not None and not fits(spec, fact.value):
            text = repr(fact.value)
            shown = text if len(text) <= 60 else text[:57] + "..."
            raise ParseError(f"fact {name!r} must be a {spec.type}, not {shown}")
    return facts


def read_value(name: str, text: str) -> object:
    """The value of fact `name` that a person wrote as `text` (for `--assume`), or ParseError."""
    spec = spec_of(name)
    if spec is None:
        raise ParseError(f"there is no fact {name!r}; `cudadoctor facts` lists them")
    if spec.type == "str":
        return text
    if spec.type == "bool":
        lowered = text.lower()
        if lowered in ("true", "yes", "on", "1"):
            return True
        if lowered in ("false", "no", "off", "0"):
            return False
        raise ParseError(f"fact {name!r} is true or false, not {text!r}")
    if spec.type in ("int", "float"):
        try:
            number = int(text) if spec.type == "int" else float(text)
        except ValueError:
            number = None
        if not fits(spec, number):
            unit = f" ({spec.unit})" if spec.unit else ""
            raise ParseError(f"fact {name!r} is a number{unit}, not {text!r}")
        return number
    if spec.type == "list[str]":
        return [part.strip() for part in text.split(",") if part.strip()]
    import json

    try:
        value = json.loads(text, parse_constant=no_number)
    except ValueError:
        raise ParseError(f"fact {name!r} is written as JSON, and {text!r} is none") from None
    if not fits(spec, value):
        raise ParseError(f"fact {name!r} is a {spec.type}, not {text!r}")
    return value
