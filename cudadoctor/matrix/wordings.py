"""Error wordings: which symptom a text is, and what can be behind it."""

from __future__ import annotations

import re
from typing import Optional

from .sections import Sections
from .tables import Message


class WordingQuestions(Sections):
    """The words prove none of their causes."""

    def messages(self) -> tuple[Message, ...]:
        """Every wording, in the order of the file. A symptom may have several."""

        def make() -> tuple[Message, ...]:
            return tuple(
                Message(
                    row["name"],
                    row["anchor"],
                    row["pattern"],
                    row["meaning"],
                    tuple(row["causes"]),
                    row.get("hint", False),
                )
                for row in self.raw("messages")["message"]
            )

        return self.once("messages", make)

    def message(self, name: str, text: str) -> Optional[Message]:
        """The wording of the symptom ``name`` that ``text`` is: wordings of one symptom mean different things and have
        different causes. Its first wording where the text is only a part of it; None: there is no such symptom."""
        rows = [message for message in self.messages() if message.name == name]
        lowered = text.lower()
        said = [message for message in rows if message.anchor in lowered]
        whole = (message for message in said if re.search(message.pattern, text, re.IGNORECASE))
        return next(whole, next(iter(said or rows), None))
