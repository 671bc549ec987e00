"""What nvidia-smi prints beside its table: lists, trees, XML, CSV, topology, its version and its failures.

Layouts are real, values invented. A row of a test: what is pasted, and the facts that it states.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts
from cudadoctor.reports import Reading, read_report

MIB = 1 << 20


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix()


def stated(facts: Facts) -> dict[str, Any]:
    """What is stated, but for the list of GPUs, and for wordings of errors, which others read."""
    names = (name for name in facts if not name.startswith(("symptom.", "examination.", "smi.gpus")))
    return {name: facts[name].value for name in names}


def read(text: str, matrix: Matrix) -> Reading:
    return read_report([("r", text)], matrix)


UUID = "GPU-00000000-1111-4222-8333-44444444444"
LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "two GPUs": (
        f"GPU 0: NVIDIA L4 (UUID: {UUID}0)\nGPU 1: NVIDIA RTX A6000 (UUID: {UUID}1)\n",
        {"gpu.count": 2, "gpu.0.name": "NVIDIA L4", "gpu.1.name": "NVIDIA RTX A6000"},
    ),
    "run together into one line, identifiers taken out": (
        "$ nvidia-smi -L GPU 0: NVIDIA L4 (UUID: GPU-xxx) GPU 1: NVIDIA L4 (UUID: GPU-xxx)",
        {"gpu.count": 2, "gpu.0.name": "NVIDIA L4", "gpu.1.name": "NVIDIA L4"},
    ),
    "MIG": (
        f"GPU 0: NVIDIA A30 (UUID: {UUID}0)\n  MIG 2g.12gb     Device  0: (UUID: MIG-{UUID[4:]}5)\n"
        f"  MIG 1g.6gb      Device  1: (UUID: MIG-{UUID[4:]}6)\n",
        {"gpu.count": 1, "gpu.0.name": "NVIDIA A30", "gpu.0.mig_mode": True, "gpu.0.mig_devices": 2},
    ),
    "MIG before R470": (
        f"GPU 0: A100-PCIE-40GB (UUID: {UUID}0)\n  MIG 3g.20gb Device 0: (UUID: MIG-{UUID}0/1/0)\n",
        {"gpu.count": 1, "gpu.0.name": "A100-PCIE-40GB", "gpu.0.mig_mode": True, "gpu.0.mig_devices": 1},
    ),
    "a lost GPU": (
        f"GPU 0: NVIDIA L4 (UUID: {UUID}0)\nUnable to determine the product name for gpu 1: GPU is lost\n",
        {"gpu.count": 2, "gpu.0.name": "NVIDIA L4", "gpu.1.lost": True},
    ),
    "a Jetson": (
        "GPU 0: Orin (nvgpu) (UUID: 11111111-2222-5333-8444-555555555555)",
        {"gpu.count": 1, "gpu.0.name": "Orin (nvgpu)", "system.arch": "aarch64"},
    ),
    "of one GPU that was asked for by its number": (
        f"GPU 3: NVIDIA L4 (UUID: {UUID}3)",
        {"gpu.3.name": "NVIDIA L4"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), LISTS.values(), ids=LISTS)
def test_list(matrix: Matrix, text: str, expected: dict[str, Any]) -> None:
    assert stated(read(text, matrix).facts) == expected


TREE = """\
==============NVSMI LOG==============

Timestamp                                 : Tue Mar 10 09:15:02 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 1
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H200
    Persistence Mode                      : Disabled
    Addressing Mode                       : HMM
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    Driver Model
        Current                           : N/A
    GPU Virtualization Mode
        Virtualization Mode               : Pass-Through
    GPU Recovery Action                   : GPU Reset
    PCI
        Device Id                         : 0x233510DE
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    FB Memory Usage
        Total                             : 143771 MiB
        Reserved                          : 500 MiB
        Used                              : 1024 MiB
        Free                              : 142247 MiB
    BAR1 Memory Usage
        Total                             : 262144 MiB
        Used                              : 1 MiB
    Compute Mode                          : Exclusive_Process
    Utilization
        Gpu                               : 7 %
        Memory                            : 3 %
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 4
            SRAM Uncorrectable            : 1
            DRAM Correctable              : 9
            DRAM Uncorrectable            : 2
        Aggregate
            SRAM Uncorrectable            : 70
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 3
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 88 C
        GPU Slowdown Temp                 : 87 C
        Memory Current Temp               : 95 C
    GPU Power Readings
        Power Draw                        : 310.25 W
        Current Power Limit               : 500.00 W
        Default Power Limit               : 700.00 W
    Module Power Readings
        Power Draw                        : 999.00 W
    Clocks
        SM                                : 1200 MHz
    Max Clocks
        SM                                : 1980 MHz
    Fabric
        State                             : In Progress
        Status                            : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : /home/somebody/env/bin/python
            Used GPU Memory               : 512 MiB
        Process ID                        : 99
            Type                          : G
            Name                          : Xorg
            Used GPU Memory               : 5 MiB
"""
TREE_FACTS = {
    "driver.smi_version": "550.54.15",
    "driver.smi_cuda": "12.4",
    "gpu.count": 1,
    "gpu.0.name": "NVIDIA H200",
    "gpu.0.lost": False,
    "gpu.0.pci_address": "0000:18:00.0",
    "gpu.0.pci_device_id": "2335",
    "gpu.0.persistence_mode": False,
    "gpu.0.addressing_mode": "hmm",
    "gpu.0.mig_mode": False,
    "gpu.0.mig_pending": True,
    "gpu.0.mig_devices": 0,
    "gpu.0.virtualization": "pass-through",
    "gpu.0.recovery_action": "reset",
    "gpu.0.pcie_generation": 1,
    "gpu.0.pcie_generation_max": 5,
    "gpu.0.pcie_width": 8,
    "gpu.0.pcie_width_max": 16,
    "gpu.0.performance_state": 0,
    "gpu.0.throttle_reasons": ["sw_power_cap", "hw_slowdown", "hw_thermal_slowdown"],
    "gpu.0.memory_total": 143771 * MIB,
    "gpu.0.memory_used": 1024 * MIB,
    "gpu.0.memory_free": 142247 * MIB,
    "gpu.0.bar1_total": 262144 * MIB,
    "gpu.0.compute_mode": "exclusive-process",
    "gpu.0.utilization": 7,
    "gpu.0.ecc_mode": True,
    "gpu.0.ecc_uncorrected": 3,
    "gpu.0.remap_pending": True,
    "gpu.0.remap_failure": False,
    "gpu.0.temperature": 88,
    "gpu.0.temperature_slowdown": 87,
    "gpu.0.power": 310.25,
    "gpu.0.power_limit": 500.0,
    "gpu.0.power_limit_default": 700.0,
    "gpu.0.clock_sm": 1200,
    "gpu.0.clock_sm_max": 1980,
    "gpu.0.fabric_state": "in-progress",
    "gpu.0.processes": [{"pid": 4711, "memory": 512 * MIB, "name": "python"}],
}


class TestTree:
    def test_whole(self, matrix: Matrix) -> None:
        reading = read(TREE, matrix)
        assert stated(reading.facts) == TREE_FACTS
        assert "nvidia-smi -q" in [block.kind for block in reading.recognised]

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: "\n".join(line.strip() for line in text.splitlines()),
            lambda text: "\n".join(" ".join(line.split()) for line in text.splitlines()),
            lambda text: "\n".join("> " + line for line in text.splitlines()),
            lambda text: "\r\n".join(text.splitlines()),
            lambda text: "\n".join(f"2026-03-10T09:15:02Z {line}" for line in text.splitlines()),
            lambda text: text.replace("NVSMI", "\x1b[1mNVSMI\x1b[0m") + "\nuser@host:~$ exit\nPending : No\n",
        ],
        ids=["indentation lost", "blanks collapsed", "quoted", "CR LF", "log", "prompt behind it"],
    )
    def test_pasted(self, matrix: Matrix, change: Any) -> None:
        assert stated(read(change(TREE), matrix).facts) == TREE_FACTS

    def test_older_names_of_the_same_things(self, matrix: Matrix) -> None:
        text = (
            TREE.replace("Clocks Event Reasons", "Clocks Throttle Reasons")
            .replace("GPU Power Readings", "Power Readings")
            .replace("Current Power Limit  ", "Enforced Power Limit ")
            .replace("ECC Mode", "Ecc Mode")
        )
        assert stated(read(text, matrix).facts) == TREE_FACTS

    def test_the_head_of_r610_calls_its_old_labels_deprecated(self, matrix: Matrix) -> None:
        text = """==============NVSMI LOG==============
Driver Version                : 610.20.01 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
KMD Version                   : 610.20.01
CUDA UMD Version              : 13.3
Attached GPUs                 : 4
"""
        assert stated(read(text, matrix).facts) == {"driver.smi_version": "610.20.01", "driver.smi_cuda": "13.3"}

    def test_errors_before_ampere_are_counted_by_their_bits(self, matrix: Matrix) -> None:
        text = """==============NVSMI LOG==============
Attached GPUs                 : 1
GPU 00000000:18:00.0
    Ecc Errors
        Volatile
            Single Bit
                Device Memory : 5
                Total         : 5
            Double Bit
                Device Memory : 2
                Total         : 2
        Aggregate
            Double Bit
                Total         : 40
    Retired Pages
        Single Bit ECC        : 1
        Pending               : Yes
"""
        facts = stated(read(text, matrix).facts)
        assert (facts["gpu.0.ecc_uncorrected"], facts["gpu.0.retired_pending"]) == (2, True)

    def test_a_mig_device_is_not_its_card(self, matrix: Matrix) -> None:
        text = TREE.replace(
            "        Pending                           : Enabled\n    Driver Model",
            "        Pending : Enabled\n    MIG Device\n        Index : 0\n        ECC Errors\n            Volatile\n"
            "                SRAM Uncorrectable : 9\n        FB Memory Usage\n            Total : 9856 MiB\n"
            "    Accounting Mode : Enabled\n    Driver Model",
        ).replace("        Current                           : Disabled\n", "        Current : Enabled\n")
        facts = stated(read(text, matrix).facts)
        names = ("mig_devices", "memory_total", "ecc_uncorrected")
        assert [facts[f"gpu.0.{name}"] for name in names] == [1, 143771 * MIB, 3]

    def test_one_section_of_two_gpus(self, matrix: Matrix) -> None:
        text = """$ nvidia-smi -q | grep -A4 Throttle
    Clocks Throttle Reasons
        Idle                              : Active
        SW Power Cap                      : Not Active
--
    Clocks Throttle Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
"""
        reading = read(text, matrix)
        assert stated(reading.facts) == {
            "gpu.0.throttle_reasons": ["gpu_idle"],
            "gpu.1.throttle_reasons": ["sw_power_cap"],
        }
        assert [block.kind for block in reading.recognised] == ["nvidia-smi -q, in part"]

    @pytest.mark.parametrize(
        "text",
        [
            "Product Name: OptiPlex 7090",
            "    Product Name          : OptiPlex 7090",
            "Compute mode is on",
            "Fabric\nState : x",
        ],
    )
    def test_what_is_none(self, matrix: Matrix, text: str) -> None:
        assert not stated(read(text, matrix).facts)


XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>535.54.03</driver_version>
	<cuda_version>12.2</cuda_version>
	<attached_gpus>2</attached_gpus>
	<gpu id="00000000:3B:00.0">
		<product_name>NVIDIA L40S</product_name>
		<mig_mode>
			<current_mig>N/A</current_mig>
		</mig_mode>
		<mig_devices>
			None
		</mig_devices>
		<pci>
			<pci_device_id>26B910DE</pci_device_id>
			<pci_gpu_link_info><pcie_gen><max_link_gen>4</max_link_gen></pcie_gen></pci_gpu_link_info>
		</pci>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
		</clocks_event_reasons>
		<fb_memory_usage>
			<total>46068 MiB</total>
			<used>100 MiB</used>
		</fb_memory_usage>
		<ecc_errors>
			<volatile>
				<sram_uncorrectable>1</sram_uncorrectable>
				<dram_uncorrectable>0</dram_uncorrectable>
			</volatile>
			<aggregate>
				<dram_uncorrectable>8</dram_uncorrectable>
			</aggregate>
		</ecc_errors>
		<max_clocks>
			<sm_clock>2520 MHz</sm_clock>
		</max_clocks>
		<processes>
			<process_info>
				<pid>31</pid>
				<type>C</type>
				<process_name>python</process_name>
				<used_memory>90 MiB</used_memory>
			</process_info>
		</processes>
	</gpu>
	<gpu id="00000000:5E:00.0">
		<product_name>GPU is lost</product_name>
	</gpu>
</nvidia_smi_log>
"""
XML_FACTS = {
    "driver.smi_version": "535.54.03",
    "driver.smi_cuda": "12.2",
    "gpu.count": 2,
    "gpu.0.name": "NVIDIA L40S",
    "gpu.0.lost": False,
    "gpu.0.mig_mode": None,
    "gpu.0.pci_address": "0000:3b:00.0",
    "gpu.0.pci_device_id": "26b9",
    "gpu.0.pcie_generation_max": 4,
    "gpu.0.throttle_reasons": ["gpu_idle"],
    "gpu.0.memory_total": 46068 * MIB,
    "gpu.0.memory_used": 100 * MIB,
    "gpu.0.ecc_uncorrected": 1,
    "gpu.0.clock_sm_max": 2520,
    "gpu.0.processes": [{"pid": 31, "memory": 90 * MIB, "name": "python"}],
    "gpu.1.pci_address": "0000:5e:00.0",
    "gpu.1.lost": True,
}
WITHOUT_HEAD = {key: value for key, value in XML_FACTS.items() if not key.startswith("driver.")}


class TestXml:
    @pytest.mark.parametrize(
        "text",
        [XML, XML.replace("<", "&lt;").replace(">", "&gt;"), " ".join(XML.split()), f"```xml\n{XML}```\nthat is all"],
        ids=["whole", "escaped", "one line", "fenced"],
    )
    def test_whole(self, matrix: Matrix, text: str) -> None:
        assert stated(read(text, matrix).facts) == XML_FACTS

    def test_without_its_head(self, matrix: Matrix) -> None:
        assert stated(read(XML[XML.index("\t<gpu id") :], matrix).facts) == WITHOUT_HEAD

    def test_entities_are_not_expanded(self, matrix: Matrix) -> None:
        bomb = '<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b SYSTEM "file:///etc/passwd">]>\n'
        facts = read(bomb + XML.replace("NVIDIA L40S", "&a;"), matrix).facts
        assert facts["gpu.0.name"].is_unknown and facts["gpu.0.memory_total"].value == 46068 * MIB


CSV: dict[str, tuple[str, dict[str, Any]]] = {
    "with its head": (
        "index, name, driver_version, memory.total [MiB], memory.used [MiB], compute_cap, fan.speed [%]\n"
        "0, NVIDIA L4, 550.54.14, 23034 MiB, 4 MiB, 8.9, [N/A]\n",
        {
            "driver.smi_version": "550.54.14",
            "gpu.count": 1,
            "gpu.0.name": "NVIDIA L4",
            "gpu.0.lost": False,
            "gpu.0.memory_total": 23034 * MIB,
            "gpu.0.memory_used": 4 * MIB,
            "gpu.0.compute_capability": "8.9",
        },
    ),
    "without units": (
        "memory.total [MiB], power.draw [W], fan.speed [%]\n23034, 16.01, [N/A]\n23034, 16.50, [N/A]\n\nmore text",
        {
            "gpu.count": 2,
            "gpu.0.memory_total": 23034 * MIB,
            "gpu.0.power": 16.01,
            "gpu.1.memory_total": 23034 * MIB,
            "gpu.1.power": 16.5,
        },
    ),
    "a lost GPU": (
        "index, name, temperature.gpu\n0, NVIDIA L4, 41\n1, [GPU is lost], [GPU is lost]\n",
        {"gpu.count": 2, "gpu.0.name": "NVIDIA L4", "gpu.0.lost": False, "gpu.0.temperature": 41, "gpu.1.lost": True},
    ),
    "without a head, below its command": (
        "$ nvidia-smi --query-gpu=temperature.gpu,clocks_throttle_reasons.active,pstate --format=csv,noheader,nounits\n"
        "90, 0x0000000000000060, P2\n$ exit\n",
        {
            "gpu.count": 1,
            "gpu.0.temperature": 90,
            "gpu.0.throttle_reasons": ["sw_thermal_slowdown", "hw_thermal_slowdown"],
            "gpu.0.performance_state": 2,
        },
    ),
    "without head and command: what can be nothing else": (
        "0, NVIDIA A100-SXM4-80GB, 535.104.05, 81920 MiB, 1000 MiB, 61.50 W\n",
        {
            "driver.smi_version": "535.104.05",
            "gpu.count": 1,
            "gpu.0.name": "NVIDIA A100-SXM4-80GB",
            "gpu.0.memory_total": 81920 * MIB,
        },
    ),
    "without head, command and units": (
        "NVIDIA A100-SXM4-80GB, 535.104.05, 81920, 400.00\n",
        {"driver.smi_version": "535.104.05", "gpu.count": 1, "gpu.0.name": "NVIDIA A100-SXM4-80GB"},
    ),
    "a loop": (
        "timestamp, name, utilization.gpu [%]\n2026/03/10 09:15:02.100, NVIDIA L4, 3 %\n"
        "2026/03/10 09:15:03.100, NVIDIA L4, 97 %\n",
        {"gpu.count": 1, "gpu.0.name": "NVIDIA L4", "gpu.0.lost": False, "gpu.0.utilization": 97},
    ),
    "processes": (
        "pid, process_name, used_gpu_memory [MiB]\n100, /home/a b/python, 514 MiB\n101, [Not Found], [N/A]\n",
        {
            "gpu.0.processes": [
                {"pid": 100, "memory": 514 * MIB, "name": "python"},
                {"pid": 101, "memory": None, "name": None},
            ]
        },
    ),
    "processes of several GPUs, whose numbers it does not tell": (
        "gpu_bus_id, pid, used_gpu_memory [MiB]\n00000000:18:00.0, 100, 514 MiB\n00000000:3B:00.0, 101, 6 MiB\n",
        {},
    ),
    "a field that the driver does not know": ('Field "cuda_version" is not a valid field to query.\n', {}),
    "prose with commas": ("The NVIDIA driver, 550.54.14, and memory.total, I think, are fine", {}),
}


@pytest.mark.parametrize(("text", "expected"), CSV.values(), ids=CSV)
def test_csv(matrix: Matrix, text: str, expected: dict[str, Any]) -> None:
    assert stated(read(text, matrix).facts) == expected


TOPOLOGY = {
    "tabs": (
        "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tNV4\tSYS\tPIX\t0-31\n"
        "GPU1\tNV4\t X \tSYS\tSYS\t0-31\nGPU2\tSYS\tSYS\t X \tNODE\t32-63\nNIC0\tPIX\tSYS\tNODE\t X \n\nLegend:\n",
        [(0, 1, "NV4"), (0, 2, "SYS"), (1, 2, "SYS")],
    ),
    "tabs lost": (
        "     GPU0 GPU1 mlx5_0 CPU Affinity\nGPU0 X PHB SYS 0-7\nGPU1 PHB X SYS 0-7\nmlx5_0 SYS SYS X\n",
        [(0, 1, "PHB")],
    ),
    "one GPU": ("\t[4mGPU0\tCPU Affinity\tNUMA Affinity[0m\nGPU0\t X \t0-15\t0\n", []),
}


@pytest.mark.parametrize(("text", "links"), TOPOLOGY.values(), ids=TOPOLOGY)
def test_topology(matrix: Matrix, text: str, links: list[tuple[int, int, str]]) -> None:
    facts = read(text, matrix).facts
    assert [(one["first"], one["second"], one["link"]) for one in facts["smi.links"].get()] == links


def test_peer_access(matrix: Matrix) -> None:
    text = "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n"
    facts = read(text, matrix).facts
    assert facts["smi.peer_access"].get() == [{"first": 0, "second": 1, "can": "r", "status": "CNS"}]


VERSIONS = {
    "R550": (
        "NVIDIA-SMI version  : 550.54.15\nNVML version        : 550.54\n"
        "DRIVER version      : 550.54.15\nCUDA Version        : 12.4\n",
        {"driver.smi_tool_version": "550.54.15", "driver.smi_version": "550.54.15", "driver.smi_cuda": "12.4"},
    ),
    "R610": (
        "NVIDIA-SMI version  : 610.20.01\nNVML version        : 610.20\n"
        'DRIVER version      : Deprecated, see "KMD version" instead\n'
        'CUDA version        : Deprecated, see "CUDA UMD version" instead\n'
        "KMD version         : 610.20.01\nCUDA UMD version    : 13.3\n",
        {"driver.smi_tool_version": "610.20.01", "driver.smi_version": "610.20.01", "driver.smi_cuda": "13.3"},
    ),
    "one line": (
        "NVIDIA-SMI version : 550.54.15 NVML version : 550.54 DRIVER version : 550.54.15 CUDA Version : 12.4",
        {"driver.smi_tool_version": "550.54.15", "driver.smi_version": "550.54.15", "driver.smi_cuda": "12.4"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_version(matrix: Matrix, text: str, expected: dict[str, Any]) -> None:
    assert stated(read(text, matrix).facts) == expected


FAILURES = {
    "no driver": (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.",
        {"driver.smi_failure": "no-driver"},
    ),
    "no driver, wrapped": (
        "> NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make\n> sure that the latest",
        {"driver.smi_failure": "no-driver"},
    ),
    "no library": (
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
        {"driver.smi_failure": "no-library"},
    ),
    "mismatch, with NVML's number": (
        "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n",
        {"driver.smi_failure": "mismatch", "driver.smi_library_version": "550.54"},
    ),
    "mismatch in a sentence": (
        "It says Failed to initialize NVML: Driver/library version mismatch.",
        {"driver.smi_failure": "mismatch"},
    ),
    "no permission": ("Failed to initialize NVML: Insufficient Permissions", {"driver.smi_failure": "permission"}),
    "unknown error": ("Failed to initialize NVML: Unknown Error", {"driver.smi_failure": "unknown-error"}),
    "no devices": ("$ nvidia-smi\nNo devices were found\n", {"driver.smi_failure": "no-devices"}),
    "no devices, of another program": ("adb: No devices found, sorry", {}),
    "a lost GPU": (
        "Unable to determine the device handle for GPU1: GPU is lost.  Reboot the system to recover this GPU",
        {"driver.smi_failure": "gpu-lost", "gpu.1.lost": True},
    ),
    "no handle": (
        "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error",
        {"driver.smi_failure": "device-handle"},
    ),
    "an option of newer ones": ("ERROR: Option --version is not recognized. Please run 'nvidia-smi -h'.", {}),
    "a shell that knows none": ("bash: nvidia-smi: command not found", {}),
}


@pytest.mark.parametrize(("text", "expected"), FAILURES.values(), ids=FAILURES)
def test_failure(matrix: Matrix, text: str, expected: dict[str, Any]) -> None:
    facts = stated(read(text, matrix).facts)
    facts.pop("driver.smi_failure_text", None)
    assert facts == expected


# -- any input ----------------------------------------------------------------------------------------------------

WHOLE = "\n".join(
    (TREE, XML, *(text for text, _ in (*LISTS.values(), *CSV.values(), *TOPOLOGY.values(), *FAILURES.values())))
)
_MATRIX = load_matrix()


@given(st.data())
def test_pieces_of_it_in_any_order_never_fail(data: st.DataObject) -> None:
    lines = WHOLE.splitlines()
    picked = data.draw(st.lists(st.sampled_from(lines), max_size=40))
    read_report([("r", "\n".join(picked))], _MATRIX)


@given(st.data())
def test_changed_letters_never_fail(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(WHOLE) - 1))
    piece = list(WHOLE[start : start + 1500])
    for _ in range(data.draw(st.integers(0, 12))):
        place = data.draw(st.integers(0, len(piece) - 1)) if piece else 0
        piece[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                ["|", "+--+", "0", "99999999999999999999", " : ", "\n", "\t", "N/A", "ERR!", "<", ">", "é", "MiB", ","]
            )
        )
    read_report([("r", "".join(piece))], _MATRIX)
