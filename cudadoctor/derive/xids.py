"""The Xids of a machine: what the driver reported about its GPUs, with what each number means and whether it still
counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from cudadoctor.matrix import Xid
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.digits import is_digits

if TYPE_CHECKING:
    from cudadoctor.derive.case import Case

# An error that no other has followed for so long is history, in seconds: the GPU has worked since, or nobody cared.
_HISTORY = 24 * 3600


class XidEvent(NamedTuple):
    """One Xid. `row` is None where the data does not know the number. `past`: the driver was loaded anew since, or it
    was long ago, so that it says nothing of the present. `fact` is where it was read."""

    number: int
    row: Optional[Xid]
    bus_id: Optional[str]
    text: str
    past: bool
    fact: str

    @property
    def words(self) -> str:
        """ "Xid 79 (the GPU has fallen off the bus ...)"."""
        return f"Xid {self.number}" + (f" ({self.row.meaning})" if self.row is not None else "")

    @property
    def family(self) -> str:
        return self.row.family if self.row is not None else ""

    @property
    def severity(self) -> str:
        """ "critical", "error", "warning" or "info"; a program's fault says nothing against the machine."""
        if self.row is None or self.row.is_programs_fault:
            return "info"
        return self.row.severity


def xids(case: Case) -> tuple[XidEvent, ...]:
    """Every Xid of the kernel log, in its order; of a report also one that is only told of ("we got Xid 79")."""
    events = case.value("kernel.log_events", [])
    loaded = max((place for place, event in enumerate(events) if event.get("kind") == "module-loaded"), default=-1)
    # Where nothing is logged nothing is old: a fleet's nodes differ in their uptimes, and are not judged anew for it.
    uptime = case.value("system.uptime") if events else None
    found = []
    for place, event in enumerate(events):
        values = event.get("values") or {}
        number = str(values.get("number", ""))
        if event.get("kind") != "xid" or not is_digits(number, 4):
            continue
        # "Ch 00000001 caused by previous Xid 149": the channel was ended for that one, whose own line may be missing.
        before = str(values.get("detail", "")).rpartition("caused by previous Xid ")[2].strip()
        number = before if is_digits(before, 4) else number
        seconds = event.get("seconds")
        old = isinstance(seconds, (int, float)) and uptime is not None and uptime - seconds > _HISTORY
        found.append(
            XidEvent(
                int(number),
                case.matrix.xid(int(number)),
                event.get("bus_id"),
                str(event.get("text", "")),
                place < loaded or old,
                "kernel.log_events",
            )
        )
    told = case.value("symptom.xid")
    number = str((told or {}).get("number", ""))
    if told and not found and is_digits(number, 4) and case.matrix.xid(int(number)) is not None:
        row = case.matrix.xid(int(number))
        found.append(XidEvent(int(number), row, None, str(told.get("text", "")), False, "symptom.xid"))
    return tuple(found)


_GRAVITY = ("critical", "error", "warning", "info")


def worst_xid(case: Case, *families: str) -> Optional[XidEvent]:
    """The gravest Xid of these families that still counts, of equally grave ones the first: the others follow."""
    counting = [event for event in case.derived(xids) if not event.past and event.family in families]
    return min(counting, key=lambda event: _GRAVITY.index(event.severity), default=None)
