"""Another libcuda than the driver's is found first

What it checks
    Whether the libcuda.so.1 that the loader finds first belongs to the loaded driver, or comes from NVIDIA's forward
    compatibility package (cuda-compat) or from an image, and whether that can work on this card and driver.

Why it matters
    A libcuda that is older than the driver's module, or of another branch, fails with error 803 ("unsupported display
    driver / cuda driver combination"). Forward compatibility on a card that may not use it (GeForce) fails with 804.
    Both look as if the driver were at fault; "update the driver" is then the wrong advice.

How to fix
    Take the folder (usually /usr/local/cuda/compat) out of LD_LIBRARY_PATH or of /etc/ld.so.conf.d in the image, so
    that the host's own libcuda is found.

References
    https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
"""

from __future__ import annotations

from typing import Any

from cudadoctor.derive.gpus import gpus
from cudadoctor.derive.surroundings import in_wsl
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule
from cudadoctor.rules.causes import NO_ANSWERING_DRIVER

RULE = Rule(
    id="CD208",
    name="compat-libcuda-conflict",
    title="Another libcuda than the driver's is found first",
    severity=ERROR,
    blame=ENVIRONMENT,
    blocked_by=NO_ANSWERING_DRIVER,
    precedence=21,
)


def judge(case: Case) -> Outcome:
    if case.value("system.os") != "linux" or in_wsl(case):
        return case.skipped("a foreign libcuda is a matter of Linux machines and containers")
    found = case.fact("driver.libcuda")
    if found.is_unknown:
        return case.undecided(f"cannot tell which libcuda.so.1 there are: {found.reason}", ("driver.libcuda",))
    libraries = case.value("driver.libcuda", [])
    if not libraries or libraries[0].get("kind") not in ("compat", "driver"):
        return case.skipped("no libcuda of another driver is found first")
    first = libraries[0]
    version = first.get("version")
    module = case.value("driver.module_version") or case.value("driver.nvml_version")
    if first.get("kind") == "driver":
        if version and module and version != module:
            return _failed(
                case, first, f"libcuda {version} is found first, and the loaded driver is {module} (error 803)", LIKELY
            )
        return case.passed("libcuda is the loaded driver's", ("driver.libcuda", "driver.module_version"))
    if version and module and _numbers(version) < _numbers(module):
        return _failed(
            case,
            first,
            f"an older libcuda ({version}, forward compatibility) is found before that of driver {module} (error 803)",
            CERTAIN,
        )
    consumer = [gpu.label for gpu in case.derived(gpus) if _is_geforce(case, gpu.label, gpu.pci_device_id)]
    if consumer:
        return _failed(
            case,
            first,
            f"the forward-compatibility libcuda is found first, and the {consumer[0]} may not use it (error 804)",
            LIKELY,
        )
    if module is None or version is None:
        return case.undecided(
            "a forward-compatibility libcuda is found first; whether it fits is not known",
            ("driver.libcuda", "driver.module_version"),
        )
    return case.passed("forward compatibility: a newer libcuda on a card that may use it", ("driver.libcuda",))


def _is_geforce(case: Case, label: str, device_id: str | None) -> bool:
    product = case.matrix.gpu_by_pci(device_id).exact if device_id else None
    if product is None:
        rows = case.matrix.gpu(label).rows
        return bool(rows) and all(row.klass.startswith("geforce") for row in rows)
    return product.klass.startswith("geforce")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in str(text).split(".") if part.isdigit())


def _failed(case: Case, entry: dict[str, Any], message: str, certainty: str) -> Outcome:
    path = str(entry.get("path"))
    rest = [other for other in case.value("driver.libcuda", []) if other.get("path") != path]
    if entry.get("found_by") == "LD_LIBRARY_PATH":
        remedy = Remedy(
            "change-variable",
            {"name": "LD_LIBRARY_PATH", "without": [path.rpartition("/")[0]], "effect": {"driver.libcuda": rest}},
        )
    else:
        remedy = Remedy("remove-library", {"paths": [path], "effect": {"driver.libcuda": rest}})
    return case.failed(
        message,
        ("driver.libcuda", "driver.module_version"),
        certainty=certainty,
        data={"path": path, "version": entry.get("version")},
        fixes=(remedy,),
        not_helping=("a driver update: the driver is fine, and another library stands before its own",),
    )
