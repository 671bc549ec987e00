"""The raw sections of the compatibility data, and what all questions to them share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, TypeVar

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.dates import day_number

from .tables import MatrixError

_T = TypeVar("_T")


class Origin(NamedTuple):
    """Where a matrix came from."""

    kind: str
    """"shipped" with cudadoctor; "updated": the same, with what `cudadoctor matrix update` found since; "files": out of
    a folder that was named."""
    updated: Optional[str] = None
    """When the update was fetched, "2026-12-05T10:00:00Z"."""
    path: Optional[str] = None
    """The folder of the update, also where it was not taken; of "files" the one that was named."""
    reason: Optional[str] = None
    """Why an update that is there was not taken: half a sentence. None: it was, or there is none."""


SHIPPED = Origin("shipped")
# The way out of an update that cannot be used.
REMOVE_IT = "run `cudadoctor matrix update --remove`"

# torch appears every two months: after three of them the newest choice is likely to be missing.
STALE_DAYS = 180


class Sections:
    """What every subject of the matrix is asked through.

    ``section`` gives the raw data of one section by name; it is asked once for each section that a question needs.
    ``origin`` tells where that data came from.
    """

    def __init__(self, section: Callable[[str], dict[str, Any]], origin: Origin = SHIPPED) -> None:
        self.origin = origin
        self._section = section
        self._raw: dict[str, dict[str, Any]] = {}
        self._made: dict[str, Any] = {}
        meta = self.raw("meta")
        if meta.get("schema") != 1:
            raise MatrixError(
                f"The compatibility data has schema {meta.get('schema')}, this version of cudadoctor reads schema 1."
            )

    # -- the data itself

    def raw(self, section: str) -> dict[str, Any]:
        """One section as plain data. Raises MatrixError where it is missing or damaged."""
        if section not in self._raw:
            self._raw[section] = self._section(section)
        return self._raw[section]

    def once(self, name: str, make: Callable[[], _T]) -> _T:
        if name not in self._made:
            try:
                self._made[name] = make()
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise self.damaged(name, error) from None
        found: _T = self._made[name]
        return found

    def damaged(self, name: str, error: Exception) -> MatrixError:
        """That the data has not the layout it should have, and what to do."""
        cure = REMOVE_IT if self.origin.kind == "updated" else "install cudadoctor again"
        return MatrixError(f"The compatibility data is damaged ({name}: {type(error).__name__} {error}): {cure}.")

    @property
    def revision(self) -> str:
        """ "2026.11.0": goes up with every change of the data."""
        return str(self.raw("meta")["revision"])

    @property
    def checked(self) -> str:
        """The day on which the data was last checked, "2026-11-30"."""
        return str(self.raw("meta")["checked"])

    def age_days(self, today: str) -> int:
        """Days between the check of the data and ``today`` ("2026-12-31"); never below 0. ValueError for no date."""
        return max(0, day_number(today) - day_number(self.checked))

    def is_stale(self, today: str) -> bool:
        """Whether so long has gone by since the data was checked that the newest releases are likely to be missing."""
        return self.age_days(today) > STALE_DAYS

    @property
    def sysmem_fallback_driver(self) -> str:
        """The first Windows driver that moves GPU memory into the machine's own where the card is full, "532.03"."""
        return str(self.raw("meta")["sysmem_fallback_driver"])

    def index_url(self, variant: str) -> str:
        """``https://download.pytorch.org/whl/cu126``."""
        return str(self.raw("meta")["wheel_index"]) + "/" + variant


def origin(data: Mapping[str, Any], row: Mapping[str, Any], column: str = "source") -> tuple[str, str]:
    """The row's source in words, and the day it was checked."""
    found = row.get(column) or data.get("source") or ()
    sources = data.get("sources", {})
    words = sources[found] if isinstance(found, str) else "; ".join([sources[name] for name in found])
    return words, row.get("checked") or data["checked"]
