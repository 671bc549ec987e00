"""cudadoctor: says which link of GPU - driver - CUDA - PyTorch wheel - Python - system is broken, and what mends it."""

from __future__ import annotations

__version__ = "0.1.0"
