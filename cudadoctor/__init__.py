"""cudadoctor: says which link of GPU - driver - CUDA - PyTorch wheel - Python - system is broken, and what mends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cudadoctor import bundle

if TYPE_CHECKING:
    from cudadoctor.api import Diagnosis, Fit

__version__ = "0.1.0"

bundle.install(sys.modules[__name__])


def diagnose_text(text: bytes | str, *more: bytes | str) -> Diagnosis:
    """Diagnoses the machine that pasted texts tell of, as `cudadoctor check --from` does; looks at no machine.

    The result's `verdict`, `root_causes`, `commands` and `document` (the JSON of `check --format json`) leave out names
    of people and hosts, serials and tokens; `str(result)` is the report as text. Raises nothing for any text.
    """
    from cudadoctor.api import diagnose_texts

    return diagnose_texts((text, *more))


def will_it_fit(model: str, **question: Any) -> Fit:
    """Whether a model fits into the memory of a GPU, as `cudadoctor fit` tells it; nothing is downloaded.

    `model` is a name, a size ("7b"), or the path of a config.json, a file of weights or a folder. `question` has the
    keys of `cudadoctor fit --spec`: method ("infer", "full", "lora", "qlora"), quant, batch, seq, optimizer, gpu
    ("RTX 4090"), vram (GiB) and so on; without gpu and vram the GPUs of this machine are looked at, and what is free
    there now.
    Raises ValueError, one sentence, for a question that cannot be understood; a model that does not fit is no error.
    """
    from cudadoctor.api import fit

    return fit(model, question)
