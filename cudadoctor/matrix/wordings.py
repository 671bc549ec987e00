"""Error wordings: which symptom a text is, and what can be behind it."""

from __future__ import annotations

from .sections import Sections
from .tables import Message


class WordingQuestions(Sections):
    """The words prove none of their causes."""

    def messages(self) -> tuple[Message, ...]:
        """Every wording, in the order of the file. A symptom may have several."""

        def make() -> tuple[Message, ...]:
            return tuple(
                Message(row["name"], row["anchor"], row["pattern"], row["meaning"], tuple(row["causes"]))
                for row in self.raw("messages")["message"]
            )

        return self.once("messages", make)
