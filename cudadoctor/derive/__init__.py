"""Questions that many rules ask of the same facts and matrix: which GPUs, which driver, which torch build.

Each is a pure function of a `Case`; rules ask with `case.derived(question)`, so it is worked out once a run.
"""

from __future__ import annotations
