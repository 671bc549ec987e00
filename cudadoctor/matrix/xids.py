"""Xids: what the numbers mean under which the driver reports errors of a GPU, and what helps."""

from __future__ import annotations

from typing import Optional

from .sections import Sections, origin
from .tables import Xid


class XidQuestions(Sections):
    """A number without a row is None: it is not known, and nothing is said about it."""

    def xids(self) -> tuple[Xid, ...]:
        """Every Xid that is known, by its number."""
        return tuple(self.once("xids", self._make_xids).values())

    def xid(self, code: int) -> Optional[Xid]:
        """The Xid of that number, or None where it is not known."""
        return self.once("xids", self._make_xids).get(code)

    def _make_xids(self) -> dict[int, Xid]:
        data = self.raw("xid")
        advice = {row["name"]: row["advice"] for row in data["action"]}
        rows = (
            Xid(
                row["code"],
                row["name"],
                row["meaning"],
                row["family"],
                row["severity"],
                tuple(row["causes"]),
                row["action"],
                advice[row["action"]],
                row.get("nvidia_action"),
                row.get("note"),
                *origin(data, row),
            )
            for row in sorted(data["xid"], key=lambda row: int(row["code"]))
        )
        return {row.code: row for row in rows}
