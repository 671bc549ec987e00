"""nvidia-smi -q -x in a text.

    <nvidia_smi_log>
        <driver_version>535.183.01</driver_version>
        <gpu id="00000000:01:00.0">
            <product_name>NVIDIA A100-SXM4-80GB</product_name>

It is read tag by tag: pastes lack their head or their end, and no parser of XML that expands entities sees a stranger's
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.digits import is_digits
from cudadoctor.reports.blocks import STRUCTURED, Block
from cudadoctor.reports.readers import _nvidia_smi_tree as tree
from cudadoctor.reports.readers._nvidia_smi import lines_like
from cudadoctor.reports.text import Text

TRIGGERS = ("<nvidia_smi_log", '<gpu id="', "<product_name>", "<fb_memory_usage>", "<driver_version>")

_TAG = pattern(r'<(/?)([a-z][a-z0-9_]{0,60})(?:\s+id="([^"<>]{0,60})")?[^<>]{0,100}>([^<>]{0,200})')
_REASON = pattern(r"clocks_(?:throttle|event)_reason_([a-z_]{1,40})")
_LONGEST = 60_000
_FOREIGN = 6
_DEEPEST = 40

_VERSIONS = ("driver_version", "cuda_version", "kmd_version", "cuda_umd_version")
_ANYWHERE = {
    "product_name": "name",
    "persistence_mode": "persistence_mode",
    "display_active": "display_active",
    "addressing_mode": "addressing_mode",
    "pci_bus_id": "pci_address",
    "pci_device_id": "pci_device_id",
    "current_link_gen": "pcie_generation",
    "max_link_gen": "pcie_generation_max",
    "current_link_width": "pcie_width",
    "max_link_width": "pcie_width_max",
    "performance_state": "performance_state",
    "compute_mode": "compute_mode",
    "current_mig": "mig_mode",
    "pending_mig": tree.MIG_PENDING,
    "current_dm": "driver_model",
    "current_ecc": "ecc_mode",
    "gpu_util": "utilization",
    "pending_blacklist": "retired_pending",
    "pending_retirement": "retired_pending",
    "remapped_row_pending": "remap_pending",
    "remapped_row_failure": "remap_failure",
    "gpu_temp": "temperature",
    "gpu_temp_slow_threshold": "temperature_slowdown",
    "virtualization_mode": "virtualization",
    "gpu_recovery_action": "recovery_action",
}
_POWER = {
    "power_draw": "power",
    "average_power_draw": "power",
    "instant_power_draw": "power",
    "enforced_power_limit": "power_limit",
    "current_power_limit": "power_limit",
    "default_power_limit": "power_limit_default",
}
_UNDER = {
    "fb_memory_usage": {"total": "memory_total", "used": "memory_used", "free": "memory_free"},
    "bar1_memory_usage": {"total": "bar1_total"},
    "power_readings": _POWER,
    "gpu_power_readings": _POWER,
    "clocks": {"sm_clock": "clock_sm"},
    "max_clocks": {"sm_clock": "clock_sm_max"},
    "fabric": {"state": "fabric_state", "status": "fabric_status"},
    "process_info": {
        "pid": tree.PID,
        "type": tree.TYPE,
        "process_name": tree.PROGRAM,
        "used_memory": tree.PROGRAM_MEMORY,
    },
}


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end:
            continue
        reader = _Reader()
        end = reader.read(text, hit)
        claims = tuple(reader.tree.claims(reader.whole))
        if claims:
            yield Block("nvidia-smi -q -x", hit, end, claims, STRUCTURED, reader.tree.driver)


class _Reader:
    def __init__(self) -> None:
        self.tree = tree.Tree()
        self.whole = False
        self._open: list[str] = []

    def read(self, text: Text, first: int) -> int:
        last = first
        for index, line in lines_like(text, first, first, first + _LONGEST):
            if "<" not in line:
                if index - last >= _FOREIGN:
                    break
                continue
            begins_anew = False
            for match in _TAG.finditer(line):
                closing, name, identity, value = match.groups()
                begins_anew = name == "nvidia_smi_log" and not closing and index > first
                if begins_anew:
                    break
                last = index
                if closing:
                    self._close(name)
                    if name == "nvidia_smi_log":
                        return last
                else:
                    self._opened(name, identity, value.strip(), index)
            if begins_anew or index - last >= _FOREIGN:
                break
        return last

    def _close(self, name: str) -> None:
        if name in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(name) :]

    def _opened(self, name: str, identity: Optional[str], value: str, index: int) -> None:
        parent = self._open[-1] if self._open else ""
        if len(self._open) < _DEEPEST:
            self._open.append(name)
        if name == "gpu" and identity is not None:
            self.whole = True
            self.tree.gpu(identity, index)
        elif name == "attached_gpus":
            self.tree.count = int(value) if is_digits(value, 3) else None
        elif name in _VERSIONS:
            self.tree.version(name, value, index)
        elif name == "mig_device":
            self.tree.mig_device(index)
        elif "mig_devices" in self._open:
            return
        elif name == "processes" and not value:
            self._leaf(tree.NO_PROCESSES, "", index)
        elif value:
            self._value(name, parent, value, index)

    def _value(self, name: str, parent: str, value: str, index: int) -> None:
        reason = _REASON.fullmatch(name)
        if reason:
            self.tree.reason(reason.group(1).replace("_", " "), value, index)
        elif "volatile" in self._open:
            if "uncorrectable" in name or (parent == "double_bit" and name == "total"):
                self._leaf(tree.ECC_ERRORS, value, index)
        elif "aggregate" not in self._open:
            found = _UNDER.get(parent, {}).get(name) or _ANYWHERE.get(name)
            if found:
                self._leaf(found, value, index)

    def _leaf(self, name: str, value: str, index: int) -> None:
        if self.tree.gpus or not self.whole:
            self.tree.leaf(name, value, index)
