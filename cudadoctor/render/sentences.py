"""Sentences and values that more than one format shows."""

from __future__ import annotations

from typing import Any

from cudadoctor.model import CERTAIN, ERROR, FAIL, INFO, PASS, SKIP, UNDECIDED, WARNING, Evidence, Fact, Facts, Outcome
from cudadoctor.model.catalogue import spec_of
from cudadoctor.model.pattern import pattern
from cudadoctor.model.report import Report
from cudadoctor.render.chain import CHAIN, driver_version, gpu_names, size
from cudadoctor.render.view import Pasted, View
from cudadoctor.rules import judges_requirements

# Only where all of these were judged and passed may anybody say that torch runs on the GPU.
_RUNS = ("CD301", "CD302", "CD303", "CD304", "CD305", "CD501")


def ok_sentence(view: View) -> str:
    """What a report without a finding at the threshold may claim, and not more."""
    report, facts = view.report, view.report.facts
    passed = {outcome.rule for outcome in report.outcomes if outcome.status == PASS}
    names = gpu_names(facts)
    version = driver_version(facts)
    if passed.issuperset(_RUNS) and names and version is not None and facts["torch.version"].is_known:
        text = f"torch {facts['torch.version'].get()} runs on {_gpus(names)}, driver {version.get()}"
    elif view.is_report:
        text = "the text shows no fault of the CUDA stack" + _unjudged(facts)
    else:
        text = "nothing found that breaks CUDA" + _unjudged(facts)
    if _has_what_is_asked_for(report):
        text += "; all that is asked for is there"
    if view.blames:
        text = f"nothing found that the {' or the '.join(view.blames)} is to blame for"
    counts = [_count(report, WARNING, "warning"), _count(report, INFO, "hint")]
    noted = " and ".join(count for count in counts if count)
    return f"{text} ({noted} below)" if noted else text


def _has_what_is_asked_for(report: Report) -> bool:
    """Whether a policy asks for something, and all of it was found. (What is ignored was not looked for.)"""
    asked = [o for o in report.outcomes if judges_requirements(o.rule) and o.status != SKIP]
    looked_for = not any(map(judges_requirements, report.ignored))
    return bool(asked) and looked_for and all(outcome.status == PASS for outcome in asked)


def hedged(outcome: Outcome) -> str:
    """The message of a finding; of an error that is the likeliest cause and no certainty, saying so. What follows from
    another finding is no cause, and the message of a warning says what is there and what may come of it."""
    if outcome.failed and outcome.severity == ERROR and outcome.because_of is None and outcome.certainty != CERTAIN:
        return f"{outcome.certainty}: {outcome.message}"
    return outcome.message


def undecided_links(report: Report) -> list[Outcome]:
    """The links of the chain that could not be judged, in the order of the chain: no GPU before its driver."""
    place = {rule: number for number, link in reversed(list(enumerate(CHAIN))) for rule in link.rules}
    found = [outcome for outcome in report.outcomes if outcome.status == UNDECIDED and outcome.chain]
    return sorted(found, key=lambda outcome: place.get(outcome.rule, len(CHAIN)))


def told_too_little(view: View) -> str:
    """The verdict on a pasted text that neither shows a fault nor tells enough to say that there is none."""
    pasted = view.pasted
    if pasted is not None and not pasted.read:
        return "nothing in the text is output that cudadoctor knows, and no error that it knows"
    open_rules = {outcome.rule for outcome in undecided_links(view.report)}
    labels = [link.label for link in CHAIN if not open_rules.isdisjoint(link.rules)]
    left = f"; it does not tell: {', '.join(labels)}" if labels else ""
    said = pasted.unexplained if pasted is not None else ()
    suspect = next((item for item in said if item.causes), None)
    if suspect is not None:
        return f"the cause is not in the text: {suspect.meaning}{left}"
    if view.report.facts["torch.cuda_available"].value is False:
        return f"torch says that CUDA is not available; the cause is not in the text{left}"
    # An error that no fault of the CUDA stack stands behind: the program's own, the network's.
    other = f" ({said[0].meaning})" if said else ""
    return f"the text shows no fault of the CUDA stack{other}{left}"


def read_sentence(pasted: Pasted) -> str:
    """What was recognised, with its lines: `lines 3-20 nvidia-smi table; 31 error message`."""
    if not pasted.read:
        return "nothing that cudadoctor knows"
    parts = []
    for block in pasted.read:
        lines = str(block.first) if block.first == block.last else f"{block.first}-{block.last}"
        place = f"{block.text} " if block.text else ""
        parts.append((f"{place}{lines}", block.kind + ("" if block.used else " (another machine's)")))
    grouped: dict[str, list[str]] = {}
    for lines, kind in parts:
        grouped.setdefault(kind, []).append(lines)
    texts = []
    for kind, places in grouped.items():
        shown = ", ".join(places[:_MOST_PLACES])
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        texts.append(f"{kind} ({'line' if '-' not in shown and len(places) == 1 else 'lines'} {shown}{more})")
    return "; ".join(texts)


# Places at which the same kind of output stands, before the rest is counted.
_MOST_PLACES = 4

_HOME = pattern(r"/home/[^/]+|/root|/Users/[^/]+|[A-Za-z]:\\Users\\[^\\]+")


def home_of(facts: Facts) -> str:
    """The user's home, where the patient's interpreter lies in it; else empty."""
    found = _HOME.match(str(facts.value("python.executable", "")))
    return found.group() if found else ""


def _unjudged(facts: Facts) -> str:
    if facts["torch.version"].is_absent:
        return "; torch is not installed"
    return ""


def _gpus(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(set(names)) == 1:
        return f"{len(names)}x {names[0]}"
    return " and ".join(dict.fromkeys(names))


def _count(report: Report, severity: str, noun: str) -> str:
    number = sum(o.status == FAIL and o.severity == severity for o in report.outcomes)
    return f"{number} {noun}{'s' if number > 1 else ''}" if number else ""


def shown_value(fact: Fact[Any], item: Evidence) -> str:
    """The value of a piece of evidence for people; absent and unknown are said in words."""
    if item.value is None:
        if fact.is_unknown:
            return f"unknown ({fact.reason})" if fact.reason else "unknown"
        return "not there"
    if item.fact == "pci.other_display":
        return ", ".join(_MAKERS.get(vendor, vendor) for vendor in item.value) or "none"
    return value_text(item.fact, item.value)


# Makers of display devices by their PCI vendor ids.
_MAKERS = {"1002": "AMD (1002)", "8086": "Intel (8086)"}


# Keys of entries of facts that hold bytes.
_BYTES = {"size", "initial", "maximum", "memory", "memory_total", "memory_used"}


def _entry(key: str, value: Any) -> str:
    return size(value) if key in _BYTES and type(value) is int else value_text("", value)


def value_text(name: str, value: Any) -> str:
    """A fact's value in one line, with its unit."""
    spec = spec_of(name)
    unit = spec.unit if spec is not None else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "bytes" and isinstance(value, int):
        return size(value)
    if isinstance(value, (int, float)) and unit:
        return f"{value} {unit}"
    if isinstance(value, list):
        return ("; " if any(isinstance(entry, dict) for entry in value) else ", ").join(
            value_text("", entry) for entry in value
        ) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_entry(key, entry)}" for key, entry in value.items() if entry is not None)
    return str(value) if value != "" else "(empty)"
