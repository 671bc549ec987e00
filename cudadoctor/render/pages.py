"""Pages of documentation: a docstring with indented sections, laid out for the width at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.model import Rule
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.json_report import dump
from cudadoctor.render.style import Style, clean, columns, wrap


class Section(NamedTuple):
    """A heading (empty for what stands before the first one) and its lines, without their common indent."""

    heading: str
    lines: tuple[str, ...]


class Page(NamedTuple):
    """`rule` is None for a concept."""

    title: str
    sections: tuple[Section, ...]
    rule: Optional[Rule] = None


def page_of(docstring: str, rule: Optional[Rule] = None) -> Page:
    """Reads a page: its first line is the title; a line at the margin with indented lines below it is a heading, and
    any other text at the margin is a section without one."""
    title, _, body = docstring.strip("\n").partition("\n")
    sections: list[tuple[str, list[str]]] = []
    lines = body.splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        at_margin = bool(line.strip()) and not line[0].isspace()
        if at_margin and following[:1].isspace() and following.strip():
            sections.append((line.strip().rstrip(":"), []))
        else:
            if not sections or (at_margin and sections[-1][0]):
                sections.append(("", []))
            sections[-1][1].append(line)
    filled = [Section(heading, _dedented(text)) for heading, text in sections if any(text)]
    return Page(title.strip().rstrip("."), tuple(filled), rule)


def _dedented(lines: Sequence[str]) -> tuple[str, ...]:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    texts = [line[margin:].rstrip() for line in lines]
    while texts and not texts[0]:
        texts.pop(0)
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def page_text(page: Page, style: Style) -> str:
    lines = []
    rule = page.rule
    if rule is not None:
        lines.append(style.paint("command", f"{rule.id} {rule.name}") + f" ({rule.severity})")
    lines += wrap(clean(page.title), style.width)
    for section in page.sections:
        lines.append("")
        if section.heading:
            lines.append(style.paint("command", section.heading))
        indent = "  " if section.heading else ""
        lines += [indent + line if line else "" for line in _laid_out(section.lines, style.width - len(indent))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _laid_out(lines: Sequence[str], width: int) -> Iterator[str]:
    """Paragraphs and list items are wrapped anew; lines that are indented further (commands) stay as they are."""
    text = ""
    hang = ""

    def flush() -> Iterator[str]:
        if text:
            for number, piece in enumerate(wrap(clean(text), width - len(hang))):
                yield (hang if number else hang[:-2] + "- " if hang else "") + piece

    for line in lines:
        if line.startswith("- "):
            yield from flush()
            text, hang = line[2:], "  "
        elif not line:
            yield from flush()
            yield ""
            text, hang = "", ""
        elif line.startswith("  ") and hang:
            text += " " + line.strip()
        elif line.startswith("  "):
            yield from flush()
            text = ""
            yield clean(line)
        elif line.startswith(("http://", "https://")):
            yield from flush()
            text, hang = "", ""
            yield clean(line)
        else:
            text = f"{text} {line}" if text else line
    yield from flush()


def page_json(page: Page) -> str:
    rule = page.rule
    return dump(
        {
            "rule": rule.id if rule else None,
            "name": rule.name if rule else None,
            "severity": rule.severity if rule else None,
            "title": page.title,
            "sections": [{"heading": section.heading, "text": "\n".join(section.lines)} for section in page.sections],
        }
    )


def rules_text(rules: Sequence[Rule], style: Style) -> str:
    """One line a rule: id, severity, name, title; the title moves below where there is no room."""
    lines = []
    for rule in rules:
        start = f"{rule.id}  {rule.severity:<7}  {rule.name}"
        if columns(start) + 2 + columns(rule.title) <= style.width:
            lines.append(f"{start}  {rule.title}")
        else:
            lines.append(start)
            lines += [" " * 16 + text for text in wrap(rule.title, style.width - 16)]
    return "\n".join(lines) + "\n"


def rules_json(rules: Sequence[Rule]) -> str:
    return dump(
        [
            {
                "rule": rule.id,
                "name": rule.name,
                "title": rule.title,
                "severity": rule.severity,
                "blame": rule.blame,
                "chain": rule.chain,
            }
            for rule in rules
        ]
    )
