"""`check --format nagios`: a plugin's output for Nagios, Icinga and their kin, and the exit status that they expect.

One line with the verdict and performance data, then as much of the report as a monitor shows. The state is that of the
verdict: what is below `--fail-on` leaves the service OK, so `--fail-on warning` makes warnings WARNING.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from cudadoctor.model import ERROR, INFO, WARNING
from cudadoctor.model.catalogue import gpu_numbers
from cudadoctor.model.fact import Facts
from cudadoctor.render.sentences import undecided_links
from cudadoctor.render.style import clean
from cudadoctor.render.text import Screen
from cudadoctor.render.verdict import (
    FAILED,
    Verdict,
    in_ascii,
    is_number,
    screen_of,
    shortened,
    size_of,
    summary,
    verdict_of,
    within,
)
from cudadoctor.render.view import View

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

# An old NRPE hands on 1024 bytes, and Nagios reads 4096 or 8192, depending on its age.
MOST_BYTES = 4096
_LONGEST_TEXT = 400
_MOST_LINES = 40
_MOST_OF_GPUS = 1500


def render(view: View) -> str:
    screen = screen_of(view)
    verdict = verdict_of(screen)
    gpus = _gpu_data(view.report.facts)
    # The service's state says "ok" already.
    first = shortened(_safe(in_ascii(verdict.line.removeprefix("ok: "))), _LONGEST_TEXT)
    lines = [f"CUDA {STATES[_status(screen, verdict)]} - {first} | {' '.join(_counts(view))}"]
    last = f"cudadoctor {view.tool_version}, exit status {view.exit}" + (f" | {gpus}" if gpus else "")
    room = MOST_BYTES - size_of(lines[0]) - size_of(last)
    lines += within(map(_safe, summary(screen, verdict)), room, _MOST_LINES)
    return "".join(line + "\n" for line in [*lines, last])


def exit_status(view: View) -> int:
    """0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (undecided, or cudadoctor's own bug)."""
    screen = screen_of(view)
    return _status(screen, verdict_of(screen))


def unusable(message: str) -> str:
    """What a monitor is told of a run that came to no verdict. Its exit status is 3, UNKNOWN: another would page."""
    return f"CUDA UNKNOWN - {shortened(_safe(in_ascii(clean(message))), _LONGEST_TEXT)}\n"


def _status(screen: Screen, verdict: Verdict) -> int:
    if verdict.state == FAILED:
        return 2 if any(outcome.severity == ERROR for outcome in screen.at_threshold()) else 1
    # What was undecided and accepted (--unknown-ok) is OK, and its text says that it is undecided.
    return 0 if screen.view.exit == 0 else 3


def _safe(text: str) -> str:
    """Text in which nothing begins the performance data."""
    return text.replace("|", "/").rstrip()


# -- performance data -----------------------------------------------------------------------------------------------


def _counts(view: View) -> Iterator[str]:
    count = view.report.facts["gpu.count"]
    if count.is_known and isinstance(count.value, int):
        yield _datum("gpus", count.value)
    failed = [outcome.severity for outcome in view.report.outcomes if outcome.failed]
    yield _datum("errors", failed.count(ERROR))
    yield _datum("warnings", failed.count(WARNING))
    yield _datum("hints", failed.count(INFO))
    yield _datum("undecided", len(undecided_links(view.report)))


def _gpu_data(facts: Facts) -> str:
    """What is measured of each GPU, while there is room for whole ones. What is not known is left out, and no zero."""
    data = ""
    for number in gpu_numbers(facts):
        told = facts.under(f"gpu.{number}").items()
        known: dict[str, Any] = {name: fact.value for name, fact in told if is_number(fact.value)}
        items = [
            _datum(f"gpu{number}_{label}", known[name], unit, known.get(most) if isinstance(most, str) else most)
            for label, name, unit, most in _MEASURED
            if name in known
        ]
        if len(data) + len(" ".join(items)) + 1 > _MOST_OF_GPUS:
            break
        data = " ".join([*([data] if data else []), *items])
    return data


# Label, the fact's last part, unit of measurement, and the maximum: a number, or the fact that has it.
_MEASURED: tuple[tuple[str, str, str, Any], ...] = (
    ("temperature", "temperature", "", None),
    ("power", "power", "", "power_limit"),
    ("utilization", "utilization", "%", 100),
    ("memory_used", "memory_used", "B", "memory_total"),
)


def _datum(label: str, value: float, unit: str = "", most: Optional[float] = None) -> str:
    """`label=value[unit];[warn];[crit];[min];[max]`; without a threshold, as the verdict is not made of these."""
    if label.endswith("temperature"):
        return f"{label}={_number(value)}{unit}"
    return f"{label}={_number(value)}{unit};;;0" + ("" if most is None else f";{_number(most)}")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")
