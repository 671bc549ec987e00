"""cudadoctor: says which link of GPU - driver - CUDA - PyTorch wheel - Python - system is broken, and what mends it."""

from __future__ import annotations

import sys

from cudadoctor import bundle

__version__ = "0.1.0"

bundle.install(sys.modules[__name__])
