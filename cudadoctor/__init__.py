"""cudadoctor: says which link of GPU - driver - CUDA - PyTorch wheel - Python - system is broken, and what mends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cudadoctor import bundle

if TYPE_CHECKING:
    from cudadoctor.api import Diagnosis

__version__ = "0.1.0"

bundle.install(sys.modules[__name__])


def diagnose_text(text: bytes | str, *more: bytes | str) -> Diagnosis:
    """Diagnoses the machine that pasted texts tell of, as `cudadoctor check --from` does; looks at no machine.

    The result's `verdict`, `root_causes`, `commands` and `document` (the JSON of `check --format json`) leave out names
    of people and hosts, serials and tokens; `str(result)` is the report as text. Raises nothing for any text.
    """
    from cudadoctor.api import diagnose_texts

    return diagnose_texts((text, *more))
