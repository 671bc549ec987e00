"""One policy text, or one `KEY=VALUE`, taken apart: every setting with the line that it stands in.

[gpu]
count = 8
memory_free = "70 GiB"

[rules]
CD115 = { severity = "error", required = true }
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cudadoctor.model import ParseError
from cudadoctor.model.outcome import SEVERITIES
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.policy.settings import IGNORE, RULES, SECTIONS, SETTINGS, keys_of, shown

# No policy is longer; what is will be something else.
MOST_BYTES = 1 << 20
_MOST_DOTS = 1000


class PolicyError(ValueError):
    """A policy cannot be used; the message is one sentence: file, line, what was expected."""


class Entry(NamedTuple):
    """One setting. `name` is section and key ("gpu.count", "rules.CD115"), `value` what the key's reader made of it,
    `source` where it stands ("preflight.toml:3", "--require")."""

    name: str
    value: Any
    source: str

    @property
    def text(self) -> str:
        """The value as people read it."""
        section = self.name.partition(".")[0]
        if section == RULES:
            return ", ".join(word for word in (self.value["severity"], self.value["required"] and "required") if word)
        return str(self.value) if section == IGNORE else shown(self.name, self.value)


class Document(NamedTuple):
    """What one file, or the command line, asks for, in the order of the file."""

    source: str
    entries: tuple[Entry, ...]


def read_policy(text: str, source: str, rules: Mapping[str, str]) -> Document:
    """The settings of a TOML text, or PolicyError. `rules` are the rules that exist, names by ids; `source` is how the
    text is called in front of its line numbers."""
    table = _table(text, source)
    lines = _Lines(text)
    entries = []
    for section, content in table.items():
        where = f"{source}:{lines.of((section,))}"
        if section not in SECTIONS:
            raise PolicyError(f"{where}: {_no_section(section, content)}")
        if not isinstance(content, dict):
            raise PolicyError(f"{where}: {section} is a section: write [{section}] and its keys below it")
        for key, value in content.items():
            entries.append(_entry(section, key, value, f"{source}:{lines.of((section, key))}", rules))
    _say_both_or_neither(entries)
    return Document(source, tuple(entries))


def read_requirement(text: str, rules: Mapping[str, str], option: str = "--require") -> Entry:
    """One `KEY=VALUE` of the command line, as `gpu.count=8` or `driver.version=>=535,<600`; or PolicyError."""
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    ranged = _RANGED.match(text)
    if ranged is not None and ranged.group(1) in SETTINGS:
        meant = f"{ranged.group(1)}={ranged.group(2) or ''}{ranged.group(3)}"
        raise PolicyError(f"{option} takes KEY=VALUE, not {text!r}; did you mean {option} '{meant}'?")
    if dot and key and equals and not value.strip():
        # A shell takes what follows > or < for a file.
        example = "gpu.count=>=4"
        raise PolicyError(f"{option} takes KEY=VALUE, not {text!r}; a range stands in quotes, as in '{example}'")
    if not equals or not dot or not key:
        raise PolicyError(f"{option} takes KEY=VALUE with a key of the policy, such as gpu.count=8, not {text!r}")
    if section not in SECTIONS:
        raise PolicyError(f"{option}: {_no_section(section, {})}")
    given: Any = value.strip()
    if section == RULES and given.startswith("{"):  # as in a file: { severity = "error", required = true }
        with suppress(PolicyError):
            given = _table(f"given = {given}", option)["given"]
    return _entry(section, key, given, option, rules)


def _table(text: str, source: str) -> dict[str, Any]:
    from cudadoctor.matrix.compile import toml_parser

    try:
        toml = toml_parser()
    except ImportError:
        raise PolicyError(f"{source}: to read TOML, this Python needs the package tomli") from None
    # No key has so many parts, and with very many of them the parsers take hours.
    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
        raise PolicyError(f"{source}: not TOML that a policy could be: nested too deeply")
    try:
        table: dict[str, Any] = toml.loads(text)
        return table
    except toml.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        line = found.group(1) if found else str(text.count("\n") + 1)
        said = _PLACE.sub("", str(error)).strip().rstrip(".")
        said = said.replace(" (at end of document)", ", at the end of the file")
        if any(_BARE.match(bad) for bad in text.split("\n")[int(line) - 1 : int(line)]):
            said += '; text and ranges stand in quotes, as in version = ">=535"'
        raise PolicyError(f"{source}:{line}: not TOML: {said[:1].lower()}{said[1:]}") from None
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError of its own
        raise PolicyError(
            f"{source}: not TOML that a policy could be: nested too deeply, or a number too long"
        ) from None


_PLACE = pattern(r"\s*\(at line (\d+), column \d+\)")
# A key with a value that begins as text or a range does, without quotes.
_BARE = pattern(r"""\s*[\w."'-]+\s*=\s*(?:[<>=!~]|(?!true\b|false\b|inf\b|nan\b)[A-Za-z])""")
# A requirement without its "=", as "gpu.count>=8".
_RANGED = pattern(r"\s*([a-z]+\.[a-z_]+)\s*(?:==|([<>!~]=?))\s*([\w.,<>=!~*+ -]+)\Z")
_KEY = pattern(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


class _Lines:
    """Where the keys of a text stand: TOML's parsers do not tell."""

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, ...], int] = {}
        section: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), 1):
            header, key = _header(line), _KEY.match(line)
            if header:
                section = _parts(header)
                self._found.setdefault(section, number)
            elif key is not None:
                self._found.setdefault((*section, *_parts(key.group(1))), number)

    def of(self, path: tuple[str, ...]) -> int:
        """The line of a key, of the first key below it, or of the table that it stands in; 1 where none is found."""
        below = [line for found, line in self._found.items() if found[: len(path)] == path]
        while path and not below:
            path = path[:-1]
            below = [self._found[path]] if path in self._found else []
        return min(below, default=1)


def _header(line: str) -> str:
    """The name in a line such as `[gpu]`, empty where it is another line."""
    text = line.partition("#")[0].strip()
    name = text.strip("[] \t")
    is_one = text.startswith("[") and text.endswith("]") and not {*"[]=,"}.intersection(name)
    return name if is_one else ""


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.split(r"\s*\.\s*", name))


def _entry(section: str, key: str, value: Any, source: str, rules: Mapping[str, str]) -> Entry:
    if section in (RULES, IGNORE):
        rule = _rule(key, source, rules)
        read = _judged if section == RULES else _reason
        return Entry(f"{section}.{rule}", _read(read, value, f"{section}.{key}", source), source)
    name = f"{section}.{key}"
    if name not in SETTINGS:
        raise PolicyError(f"{source}: [{section}] has no key {key!r}; {_hint(key, keys_of(section))}")
    return Entry(name, _read(SETTINGS[name].read, value, name, source), source)


def _read(read: Any, value: Any, name: str, source: str) -> Any:
    try:
        return read(value)
    except ParseError as error:
        raise PolicyError(f"{source}: {name} is {_short(value)}, expected {error}") from None


def _judged(value: Any) -> dict[str, Any]:
    """What a rule counts as: a severity, or a table with `severity` and `required`."""
    expected = ParseError(f'one of {", ".join(SEVERITIES)}, or {{ severity = "error", required = true }}')
    if isinstance(value, str) and value in SEVERITIES:
        return {"severity": value, "required": False}
    if not isinstance(value, dict) or not value:
        raise expected
    for key in value:
        if key not in ("severity", "required"):
            raise ParseError(f"severity and required in it, not {key!r}")
    severity, required = value.get("severity"), value.get("required", False)
    if (severity is not None and severity not in SEVERITIES) or not isinstance(required, bool):
        raise expected
    return {"severity": severity, "required": required}


def _reason(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ParseError("a reason in quotes, which the report shows")


def _rule(word: str, source: str, rules: Mapping[str, str]) -> str:
    """The id of a rule by its id or its name."""
    wanted = word.strip()
    by_name = {name: rule for rule, name in rules.items()}
    if wanted.upper() in rules:
        return wanted.upper()
    if wanted.lower() in by_name:
        return by_name[wanted.lower()]
    names = [*rules, *by_name]
    close = _nearest(wanted, names)
    hint = f"did you mean {' or '.join(close)}?" if close else "`cudadoctor rules` lists them"
    raise PolicyError(f"{source}: there is no rule {wanted!r}; {hint}")


def _no_section(section: str, content: Any) -> str:
    if not isinstance(content, dict):
        return f"{section!r} stands in no section; expected [{'], ['.join(SECTIONS)}] above it"
    close = _nearest(section, SECTIONS)
    if close:
        return f"there is no section [{section}]; did you mean [{'] or ['.join(close)}]?"
    return f"there is no section [{section}]; expected one of {', '.join(SECTIONS)}"


def _hint(word: str, names: Sequence[str]) -> str:
    close = _nearest(word, names)
    return f"did you mean {' or '.join(close)}?" if close else f"expected one of {', '.join(names)}"


def _nearest(word: str, names: Iterable[str]) -> list[str]:
    """The names that a person may have meant: those that hold the word, else those that look like it."""
    from difflib import get_close_matches

    lowered = word.lower().replace("-", "_")
    by_lowered = {name.lower().replace("-", "_"): name for name in names}
    holding = [name for key, name in by_lowered.items() if len(lowered) > 2 and lowered in key]
    return holding[:3] or [by_lowered[key] for key in get_close_matches(lowered, by_lowered, 2, 0.6)]


def _say_both_or_neither(entries: Sequence[Entry]) -> None:
    """A rule that one text both asks for and leaves out is a mistake of its author's."""
    named = {entry.name: entry for entry in entries}
    for entry in entries:
        section, _, rule = entry.name.partition(".")
        if section == IGNORE and f"{RULES}.{rule}" in named:
            other = named[f"{RULES}.{rule}"]
            place = other.source.rpartition(":")[2]
            raise PolicyError(f"{entry.source}: {rule} is ignored here and asked for in line {place}; expected one")


def _short(value: Any) -> str:
    text = " ".join(_as_toml(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _as_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_as_toml(entry)}' for key, entry in value.items())} }}"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
