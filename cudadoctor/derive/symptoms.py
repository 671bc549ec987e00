"""Which error texts were reported, and what they hold. A symptom is evidence, never a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case


class Symptom(NamedTuple):
    """An error text that was reported: the fact that holds it, the line, and what its pattern caught."""

    fact: str
    text: str
    caught: dict[str, str]

    def get(self, name: str) -> str:
        """What was caught under `name`, or an empty text."""
        return str(self.caught.get(name) or "")


def symptom(case: Case, *names: str) -> Optional[Symptom]:
    """The first of these symptoms that was reported, by the names of compat/messages.toml."""
    for name in names:
        fact = case.fact(f"symptom.{name}")
        if fact.is_known:
            value = fact.get()
            return Symptom(f"symptom.{name}", str(value.get("text", "")), value)
    return None
