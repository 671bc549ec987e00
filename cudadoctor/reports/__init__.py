"""What people paste -> facts: any mixture of program output, package lists, tracebacks and prose.

Pure: texts in, `Reading` out. Nothing here judges: a wording is a symptom, a table is a few facts, and each remembers
the line that it was read from.
"""

from __future__ import annotations

from cudadoctor.reports.blocks import Block, Claim
from cudadoctor.reports.reading import Reading, Recognised, read_report

__all__ = ["Block", "Claim", "Reading", "Recognised", "read_report"]
