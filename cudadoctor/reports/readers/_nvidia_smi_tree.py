"""The tree of `nvidia-smi -q`, as text and as XML: leaves become what was printed about each GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from cudadoctor.model.catalogue import MOST_GPUS
from cudadoctor.parse.nvidia_smi import ABSENT, KNOWN, NOT_PRINTED, UNKNOWN, Cell, cell
from cudadoctor.parse.versions import is_driver_version
from cudadoctor.reports.blocks import Claim
from cudadoctor.reports.readers._nvidia_smi import (
    EVENT_REASONS,
    Printed,
    gpu_claims,
    in_order,
    process,
    version_claims,
)

# Leaves that are no fact by themselves.
ECC_ERRORS = "!ecc errors"
MIG_PENDING = "!mig pending"
PID, TYPE, PROGRAM, PROGRAM_MEMORY = "!pid", "!type", "!program", "!program memory"
NO_PROCESSES = "!no processes"


class Tree:
    """What one run of `nvidia-smi -q` printed, as far as it has been read."""

    def __init__(self) -> None:
        self.versions: dict[str, tuple[Cell, int]] = {}
        self.count: Optional[int] = None
        self.gpus: list[Printed] = []
        self._processes: list[tuple[dict[str, str], int]] = []
        self._errors = 0

    def version(self, label: str, value: str, line: int) -> None:
        """The number after "Driver Version" and the like, or its XML tag's words. R610 says behind the old labels that
        they are deprecated."""
        found = cell(value.partition(" [")[0])
        if found.text[:1].isdigit() or found.state == ABSENT:
            self.versions.setdefault(label.lower().replace("_", " "), (found, line))

    def gpu(self, bus_id: str, line: int) -> None:
        """Another GPU begins."""
        self._finish_gpu()
        if len(self.gpus) >= MOST_GPUS:
            return
        printed = Printed(len(self.gpus), line)
        if bus_id:
            printed.put("pci_address", cell(bus_id), line)
        self.gpus.append(printed)

    def leaf(self, name: str, value: str, line: int) -> None:
        """`name` is the rest of a fact's name, or one of the marks above."""
        if not self.gpus:
            self.gpu("", line)
        gpu = self.gpus[-1]
        found = cell(value)
        if name == "name":
            if found.state == UNKNOWN and found.text:
                gpu.lost = True
            elif found.state == KNOWN:
                gpu.lost = False
        if name == ECC_ERRORS:
            if found.integer is not None:
                self._errors += found.integer
                gpu.values["ecc_uncorrected"] = (self._errors, line)
        elif name == MIG_PENDING:
            mode = gpu.cells.get("mig_mode")
            if mode and mode[0].state == KNOWN and found.state == KNOWN:
                gpu.values["mig_pending"] = (mode[0].text != found.text, line)
        elif name == NO_PROCESSES:
            gpu.values["processes"] = ([], line)
        elif name == PID:
            self._processes.append(({PID: value.strip()}, line))
        elif name in (TYPE, PROGRAM, PROGRAM_MEMORY):
            if self._processes:
                self._processes[-1][0][name] = value
        else:
            gpu.put(name, found, line)

    def reason(self, words: str, value: str, line: int) -> None:
        """One of the clocks' event reasons."""
        name = EVENT_REASONS.get(words)
        if name and value in ("Active", "Not Active") and self.gpus:
            gpu = self.gpus[-1]
            gpu.reasons[name] = value == "Active"
            gpu.values["throttle_reasons"] = (in_order(gpu.reasons), gpu.values.get("throttle_reasons", ((), line))[1])

    def mig_device(self, line: int) -> None:
        if self.gpus:
            gpu = self.gpus[-1]
            gpu.values["mig_devices"] = (gpu.values.get("mig_devices", (0, line))[0] + 1, line)

    def _finish_gpu(self) -> None:
        if self._processes and self.gpus:
            rows: list[dict[str, Any]] = []
            for found, _ in self._processes:
                row = process(found[PID], found.get(PROGRAM, ""), cell(found.get(PROGRAM_MEMORY, "")))
                if row is not None and "C" in found.get(TYPE, "C"):
                    rows.append(row)
            self.gpus[-1].values["processes"] = (rows, self._processes[0][1])
        self._processes, self._errors = [], 0

    def claims(self, whole: bool) -> Iterator[Claim]:
        """`whole`: the text shows where each GPU begins, so that they are counted."""
        self._finish_gpu()
        driver, line = self._version("kmd version", "driver version")
        cuda, _ = self._version("cuda umd version", "cuda version")
        if driver.text or cuda.text:
            yield from version_claims(NOT_PRINTED, driver, cuda, line)
        for gpu in self.gpus:
            mode = gpu.cells.get("mig_mode")
            if mode and mode[0].value == "Disabled":
                gpu.values.setdefault("mig_devices", (0, mode[1]))
        if whole:
            yield from gpu_claims(self.gpus, self.count)
        else:
            told = [gpu for gpu in self.gpus if gpu.entry()["name"]]
            if told:
                yield Claim("smi.gpus", [gpu.entry() for gpu in told], told[0].line)
            for gpu in self.gpus:
                yield from gpu.claims()

    def _version(self, *labels: str) -> tuple[Cell, int]:
        return next((self.versions[label] for label in labels if label in self.versions), (NOT_PRINTED, 0))

    @property
    def driver(self) -> Optional[str]:
        """The driver's version where it was printed."""
        found = self._version("kmd version", "driver version")[0].value
        return found if found and is_driver_version(found) else None
