"""`check --format prometheus`: metrics for node_exporter's textfile collector (the text format, version 0.0.4).

What is not known has no sample: it is neither zero nor NaN. When the check ran is the file's own time, which the
collector tells (`node_textfile_mtime_seconds`). No UUID, serial number or name of a host is among the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Optional

from cudadoctor.model import CRASH, FAIL, UNDECIDED, Facts
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.model.outcome import SEVERITIES, STATUSES
from cudadoctor.render.chain import driver_version
from cudadoctor.render.style import clean
from cudadoctor.render.verdict import STATES, Verdict, is_number, screen_of, shortened, verdict_of
from cudadoctor.render.view import View

Sample = tuple[dict[str, str], float]

_LONGEST_LABEL = 200


def render(view: View) -> str:
    screen = screen_of(view)
    return "".join(line + "\n" for line in _lines(view, verdict_of(screen)))


def _lines(view: View, verdict: Verdict) -> Iterator[str]:
    report, facts = view.report, view.report.facts
    yield from _family(
        "info",
        "cudadoctor and the compatibility data that it judged by.",
        [({"version": view.tool_version, "matrix": view.matrix.revision}, 1)],
    )
    yield from _family(
        "verdict",
        "The verdict: 1 for the state that holds. An undecided machine is neither ok nor failed.",
        [({"verdict": state}, state == verdict.state) for state in STATES],
    )
    yield from _family(
        "exit_status",
        "Exit status of cudadoctor check: 0 fine, 1 findings (or that of --retry-code), 2 its own bug, 3 undecided.",
        [({}, view.exit)],
    )
    yield from _family(
        "root_cause",
        "Root causes by their place: 1 is the likeliest.",
        [
            ({"rule": outcome.rule, "name": outcome.name, "severity": outcome.severity, "blame": outcome.blame}, place)
            for place, outcome in enumerate(verdict.roots, 1)
        ],
    )
    yield from _family(
        "rule_status",
        "Checks that failed, could not be decided or crashed.",
        [
            (
                {
                    "rule": outcome.rule,
                    "name": outcome.name,
                    "severity": outcome.severity,
                    "status": outcome.status,
                    "because_of": outcome.because_of or "",
                },
                1,
            )
            for outcome in report.outcomes
            if outcome.status in (FAIL, UNDECIDED, CRASH)
        ],
    )
    yield from _family(
        "rules",
        "Number of checks by their status.",
        [({"status": status}, sum(o.status == status for o in report.outcomes)) for status in STATUSES],
    )
    yield from _family(
        "findings",
        "Number of failing checks by their severity.",
        [
            ({"severity": severity}, sum(o.failed and o.severity == severity for o in report.outcomes))
            for severity in SEVERITIES
        ],
    )
    for name, part in (("probes_failed", "failed"), ("probes_timed_out", "timed_out")):
        found = facts[f"examination.{part}"]
        if found.is_known and isinstance(found.value, list):
            yield from _family(name, f"Number of probes that {part.replace('_', ' ')}.", [({}, len(found.value))])
    age = view.matrix_age_days
    if age is not None:
        yield from _family("matrix_age_seconds", "Age of the compatibility data.", [({}, age * 86400)])
    version = driver_version(facts)
    if version is not None:
        flavour = facts.value("driver.module_flavour", "")
        yield from _family("driver_info", "The NVIDIA driver.", [({"version": version.get(), "flavour": flavour}, 1)])
    yield from _gpus(facts)


def _gpus(facts: Facts) -> Iterator[str]:
    numbers = gpu_numbers(facts)
    if is_number(facts.value("gpu.count")):
        yield from _family("gpus", "Number of GPUs, by NVML.", [({}, facts["gpu.count"].get())])
    told = {number: facts.under(f"gpu.{number}") for number in numbers}
    known = {number: {name: f.value for name, f in parts.items() if f.is_known} for number, parts in told.items()}
    yield from _family(
        "gpu_info",
        "Name and compute capability of each GPU.",
        [
            ({"gpu": str(number), **{label: str(parts.get(label, "")) for label in ("name", "compute_capability")}}, 1)
            for number, parts in known.items()
            if "name" in parts or "compute_capability" in parts
        ],
    )
    for name, kind, part, factor, meaning in _MEASURED:
        samples = [
            ({"gpu": str(number)}, _scaled(value, factor))
            for number, parts in known.items()
            for value in [parts.get(part)]
            if isinstance(value, bool) or is_number(value)
        ]
        yield from _family(f"gpu_{name}", meaning, samples, kind)
    yield from _family(
        "gpu_throttle_reason",
        "Why the clocks of a GPU are held down now.",
        [
            ({"gpu": str(number), "reason": str(reason)}, 1)
            for number, parts in known.items()
            for reason in dict.fromkeys(parts.get("throttle_reasons") or ())
        ],
    )


# Name, kind, the fact's last part, what its unit is multiplied by, and the meaning. Truth is 1.
_MEASURED: tuple[tuple[str, str, str, Optional[float], str], ...] = (
    ("lost", "gauge", "lost", None, "Whether the GPU has fallen off the bus."),
    ("memory_total_bytes", "gauge", "memory_total", None, "Device memory."),
    ("memory_used_bytes", "gauge", "memory_used", None, "Used device memory."),
    ("memory_free_bytes", "gauge", "memory_free", None, "Free device memory."),
    ("temperature_celsius", "gauge", "temperature", None, "Temperature of the GPU."),
    (
        "temperature_slowdown_celsius",
        "gauge",
        "temperature_slowdown",
        None,
        "Temperature at which the card slows itself down.",
    ),
    ("power_watts", "gauge", "power", None, "Power draw."),
    ("power_limit_watts", "gauge", "power_limit", None, "Enforced power limit."),
    ("utilization_ratio", "gauge", "utilization", 0.01, "Share of time in which a kernel ran."),
    ("clock_sm_hertz", "gauge", "clock_sm", 1e6, "SM clock now."),
    ("clock_sm_max_hertz", "gauge", "clock_sm_max", 1e6, "Highest SM clock."),
    ("performance_state", "gauge", "performance_state", None, "Performance state, 0 (fastest) to 15."),
    ("pcie_generation", "gauge", "pcie_generation", None, "PCIe generation of the link now (a link idles down)."),
    ("pcie_generation_max", "gauge", "pcie_generation_max", None, "Highest PCIe generation of card and slot together."),
    ("pcie_width_lanes", "gauge", "pcie_width", None, "Lanes of the link now."),
    ("pcie_width_max_lanes", "gauge", "pcie_width_max", None, "Most lanes of card and slot together."),
    ("ecc_enabled", "gauge", "ecc_mode", None, "Whether ECC is on."),
    (
        "ecc_uncorrected_errors_total",
        "counter",
        "ecc_uncorrected",
        None,
        "Uncorrected ECC errors since the driver was loaded.",
    ),
    ("retired_pages_pending", "gauge", "retired_pending", None, "Whether page retirement is pending."),
    ("row_remap_pending", "gauge", "remap_pending", None, "Whether row remapping is pending."),
    ("row_remap_failed", "gauge", "remap_failure", None, "Whether a row remapping failed."),
    ("mig_enabled", "gauge", "mig_mode", None, "Whether MIG mode is on."),
    ("persistence_mode", "gauge", "persistence_mode", None, "Whether persistence mode is on."),
)


def _scaled(value: Any, factor: Optional[float]) -> float:
    # Rounded, as 7 % is 0.07 and not 0.07000000000000001.
    return float(value) if factor is None else round(float(value) * factor, 6)


def _family(name: str, meaning: str, samples: Iterable[Sample], kind: str = "gauge") -> Iterator[str]:
    """A metric with its samples; nothing where there is none."""
    name = f"cudadoctor_{name}"
    lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    if lines:
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def _labels(labels: dict[str, str]) -> str:
    """Labels in braces; an empty one is the same as none."""
    told = [f'{label}="{_value(str(value))}"' for label, value in labels.items() if value != ""]
    return "{" + ",".join(told) + "}" if told else ""


def _value(text: str) -> str:
    # In ASCII, so that no stream has to write an escape that this format does not know.
    text = shortened(clean(text), _LONGEST_LABEL).encode("ascii", "backslashreplace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
