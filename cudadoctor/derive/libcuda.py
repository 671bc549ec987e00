"""Which libcuda.so.1 a CUDA program loads, and whether that is NVIDIA's forward compatibility at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from cudadoctor.derive.gpus import Gpu
from cudadoctor.derive.left_out import within_reach
from cudadoctor.derive.surroundings import in_wsl
from cudadoctor.matrix import numbers

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

# Of these the loader takes none: it goes on to the next folder where a link leads nowhere.
_PASSED_OVER = ("dangling",)


def first_libcuda(case: Case) -> Optional[dict[str, Any]]:
    """The libcuda.so.1 that the loader takes; None where there is none that it could open."""
    for entry in case.value("driver.libcuda", []):
        if entry.get("kind") not in _PASSED_OVER:
            found: dict[str, Any] = entry
            return found
    return None


def module_fact(case: Case) -> str:
    """The name of the fact that tells the version of the driver's kernel side."""
    return "driver.module_version" if case.fact("driver.module_version").is_known else "driver.nvml_version"


def geforce(case: Case) -> tuple[Gpu, ...]:
    """The GPUs within reach that surely are GeForce cards: these may not use forward compatibility."""
    return tuple(gpu for gpu in case.derived(within_reach) if _is_geforce(case, gpu))


def _is_geforce(case: Case, gpu: Gpu) -> bool:
    product = case.matrix.gpu_by_pci(gpu.pci_device_id).exact if gpu.pci_device_id else None
    if product is not None:
        return product.klass.startswith("geforce")
    rows = case.matrix.gpu(gpu.label).rows
    return bool(rows) and all(row.klass.startswith("geforce") for row in rows)


def forward_compatibility(case: Case) -> Optional[str]:
    """The driver version of the forward-compatibility libcuda that serves CUDA programs here in place of the driver's
    own: it is found first, is newer than the driver, and no card forbids it. None: none is at work."""
    first = case.derived(first_libcuda)
    if in_wsl(case) or first is None or first.get("kind") != "compat" or not first.get("version"):
        return None
    module = case.value(module_fact(case))
    if module is None or case.derived(geforce):
        return None
    version = str(first["version"])
    return version if (numbers(version) or ()) > (numbers(module) or ()) else None
