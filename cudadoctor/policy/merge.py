"""Several policies as one: later ones over earlier ones, key by key, and what each setting took the place of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from cudadoctor.model import Fact, known
from cudadoctor.model.record import NamedTuple
from cudadoctor.policy.read import Document, Entry
from cudadoctor.policy.settings import IGNORE, RULES, SETTINGS

# For a rule, being judged and being ignored take each other's place.
_OTHER = {RULES: IGNORE, IGNORE: RULES}


class Held(NamedTuple):
    """A setting that holds, and those that it took the place of, the last one first."""

    entry: Entry
    overrode: tuple[Entry, ...] = ()


class Policy(NamedTuple):
    """What holds, by name, in the order of the vocabulary; `sources` are the texts that were read, in order."""

    held: dict[str, Held]
    sources: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Fact[Any]]:
        """What is required of the machine, as facts: `policy.gpu.count` and so on."""
        return {
            f"policy.{name}": known(held.entry.value, held.entry.source)
            for name, held in self.held.items()
            if name in SETTINGS and SETTINGS[name].rule is not None
        }

    @property
    def severities(self) -> dict[str, str]:
        """Rules whose failures have this severity."""
        rules = self._under(RULES)
        return {rule: value["severity"] for rule, value in rules.items() if value["severity"] is not None}

    @property
    def required(self) -> tuple[str, ...]:
        """Rules that have to be decided."""
        return tuple(rule for rule, value in self._under(RULES).items() if value["required"])

    def judging(self, sources: Collection[str]) -> tuple[str, ...]:
        """The rules that judge what these of its `sources` ask for, and those that they want decided."""
        found: dict[str, None] = {}
        for name, held in self.held.items():
            section, _, key = name.partition(".")
            if held.entry.source.rpartition(":")[0] in sources or held.entry.source in sources:
                if section == RULES and held.entry.value["required"]:
                    found[key] = None
                elif name in SETTINGS and SETTINGS[name].rule is not None:
                    found[str(SETTINGS[name].rule)] = None
        return tuple(found)

    @property
    def ignored(self) -> dict[str, str]:
        """Rules that are left out, with the reasons."""
        return self._under(IGNORE)

    def value(self, name: str, default: Any = None) -> Any:
        """The value of a setting that holds, else `default`."""
        held = self.held.get(name)
        return default if held is None else held.entry.value

    def _under(self, section: str) -> dict[str, Any]:
        return {
            name.partition(".")[2]: held.entry.value
            for name, held in self.held.items()
            if name.startswith(section + ".")
        }


def merged(documents: Iterable[Document]) -> Policy:
    """One policy of several, the later over the earlier."""
    held: dict[str, Held] = {}
    sources = []
    for document in documents:
        sources.append(document.source)
        for entry in document.entries:
            gone: tuple[Entry, ...] = ()
            section, _, rule = entry.name.partition(".")
            for name in (entry.name, f"{_OTHER[section]}.{rule}" if section in _OTHER else ""):
                earlier = held.pop(name, None)
                if earlier is not None:
                    gone = (earlier.entry, *earlier.overrode)
            held[entry.name] = Held(entry, gone)
    order = {name: place for place, name in enumerate(SETTINGS)}
    names = sorted(held, key=lambda name: (order.get(name, len(order)), name.startswith(IGNORE), name))
    return Policy({name: held[name] for name in names}, tuple(dict.fromkeys(sources)))
