"""powercfg /getactivescheme and /list. Only the GUID is the same in every language and code page.

Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced) *
GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from cudadoctor.matrix import Matrix
from cudadoctor.parse.windows import PowerPlan, parse_power_plans
from cudadoctor.reports.blocks import STRUCTURED, TYPED, Block, Claim
from cudadoctor.reports.text import Text

TRIGGERS = ("guid",)

_ROW = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\s{1,4}[(（]", re.IGNORECASE)
_LONGEST = 60


def read(text: Text, hits: Sequence[int], matrix: Matrix) -> Iterator[Block]:
    end = -1
    for hit in hits:
        if hit <= end or not _ROW.search(text[hit][:400]):
            continue
        end = hit
        plans: list[tuple[int, PowerPlan]] = []
        for index, line in text.lines(hit, hit + _LONGEST):
            found = parse_power_plans(line) if _ROW.search(line[:400]) else []
            if not found:
                break
            plans.append((index, found[0]))
            end = index
        claims = list(_claims(plans))
        if claims:
            yield Block("powercfg", hit, end, tuple(claims), STRUCTURED)


def _claims(plans: list[tuple[int, PowerPlan]]) -> Iterator[Claim]:
    active: Optional[tuple[int, PowerPlan]] = next((plan for plan in plans if plan[1].active), None)
    if active is None and len(plans) == 1:
        active = plans[0]  # /getactivescheme marks nothing
    if active:
        line, plan = active
        yield Claim("windows.power_plan", plan.guid, line)
        if plan.name and "\ufffd" not in plan.name:
            yield Claim("windows.power_plan_name", plan.name[:80], line)
        yield Claim("system.os", "windows", line, trust=TYPED)
    if len(plans) > 1:
        yield Claim("windows.power_plans", [plan.guid for _, plan in plans], plans[0][0])
