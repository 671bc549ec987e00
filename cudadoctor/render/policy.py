"""`check --explain-policy`: what holds, where it came from, and what it took the place of."""

from __future__ import annotations

from cudadoctor.policy import Entry, Held, Policy
from cudadoctor.policy.settings import IGNORE, SETTINGS
from cudadoctor.render.json_report import dump
from cudadoctor.render.policy_documents import OverrodeEntry, PolicyDocument, SettingEntry
from cudadoctor.render.style import Style, clean, columns, hanging, wrap

_INDENT = 2
# Values up to this width have the sources beside them stand under each other.
_VALUE = 26


def policy_text(policy: Policy, style: Style) -> str:
    """The policy for people, ending with a newline."""
    lines = list(hanging(f"{'policy':8}", _summary(policy), style.width))
    holding = list(policy.held.values())
    names = max((columns(clean(held.entry.name)) for held in holding), default=0)
    values = [columns(clean(held.entry.text)) for held in holding]
    value = max((width for width in values if width <= _VALUE), default=0)
    if holding:
        lines.append("")
    for held in holding:
        lines += _setting(held, names + 2, value, style)
    if policy.sources:
        lines += ["", "read in this order, the later over the earlier, key by key:"]
        for source in policy.sources:
            lines += [" " * _INDENT + line for line in wrap(clean(source), style.width - _INDENT)]
        lines += ["", *hanging(f"{'more':8}", "cudadoctor explain policy", style.width)]
    return "\n".join(lines) + "\n"


def _summary(policy: Policy) -> str:
    if not policy.sources:
        return "nothing is asked for: no --policy, no --require, no file of the site"
    count, over = len(policy.held), sum(bool(held.overrode) for held in policy.held.values())
    places = len(policy.sources)
    text = f"{count} {'setting holds' if count == 1 else 'settings hold'}"
    text += f", out of {places} places" if places > 1 else ""
    return text + (f"; {over} took the place of {'another' if over == 1 else 'others'}" if over else "")


def _setting(held: Held, width: int, value: int, style: Style) -> list[str]:
    """A setting, where it stands, and below it what it took the place of."""
    text, source = clean(held.entry.text), clean(held.entry.source)
    left = " " * _INDENT + clean(held.entry.name)
    left += " " * max(_INDENT + width - columns(left), 1)
    margin = " " * (_INDENT + width)
    beside = text + " " * max(value - columns(text), 0) + "  "
    if columns(left) + columns(beside) + columns(source) <= style.width:
        lines = [left + beside + style.paint("source", source)]
    else:
        body = wrap(text, style.width - columns(margin))
        lines = [left + body[0], *(margin + line for line in body[1:])]
        lines += [margin + style.paint("source", line) for line in wrap(source, style.width - columns(margin))]
    for gone in held.overrode:
        what = clean(gone.text) if gone.name == held.entry.name else f"{clean(gone.name)}: {clean(gone.text)}"
        words = f"instead of {what} ({clean(gone.source)})"
        lines += [margin + line for line in wrap(words, style.width - columns(margin))]
    return lines


def policy_json(policy: Policy) -> str:
    """The policy as a document, ending with a newline."""
    document: PolicyDocument = {
        "schema": "cudadoctor.policy/1",
        "sources": list(policy.sources),
        "settings": [_entry(held) for held in policy.held.values()],
    }
    return dump(document)


def _entry(held: Held) -> SettingEntry:
    name = held.entry.name
    setting = SETTINGS.get(name)
    about = "left out, for this reason" if name.startswith(IGNORE) else "what this rule counts as"
    return {
        "name": name,
        "value": held.entry.value,
        "text": held.entry.text,
        "source": held.entry.source,
        "meaning": about if setting is None else setting.meaning,
        "rule": None if setting is None else setting.rule,
        "overrode": [_overrode(entry) for entry in held.overrode],
    }


def _overrode(entry: Entry) -> OverrodeEntry:
    return {"name": entry.name, "value": entry.value, "text": entry.text, "source": entry.source}
