"""A machine with two A100 as a stand-in torch plays it, seen through the real child script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cudadoctor.testing import linux
from cudadoctor.verify.plan import SIZES

FAKE_TORCH = str(Path(__file__).parent / "fake_torch")

SMALL: Mapping[str, Any] = {
    **SIZES,
    "allocation": 4096,
    "matmul-fp32": 12,
    "matmul-fp16": 12,
    "matmul-bf16": 12,
    "rounds": 2,
    "bandwidth": 4096,
    "memory": 4096,
    "convolution": (1, 2, 5),
    "peer": 256,
    "nccl": 256,
    "repeats": 2,
    "seconds": 0,
    "copies": 2,
}
"""What lists can do in a moment. The stand-in's clock is not the wall's, so its rates do not depend on it."""


def plays(**scenario: Any) -> dict[str, str]:
    """The variables with which Python finds the stand-in, and what it plays (see fake_torch/torch/__init__.py)."""
    return {"PYTHONPATH": FAKE_TORCH, "FAKE_TORCH": json.dumps(scenario), "PYTHONDONTWRITEBYTECODE": "1"}


def two_a100() -> Any:
    """The facts of that machine: the second card has a link of half the width."""
    changes = {"gpu.count": 2}
    for number, bus, lanes in ((0, "01", 16), (1, "41", 8)):
        changes.update(
            {
                f"gpu.{number}.name": "NVIDIA A100-SXM4-80GB",
                f"gpu.{number}.pci_address": f"0000:{bus}:00.0",
                f"gpu.{number}.pci_device_id": "20B2",
                f"gpu.{number}.pcie_generation_max": 4,
                f"gpu.{number}.pcie_width_max": lanes,
                f"gpu.{number}.mig_mode": False,
            }
        )
    return linux().set(changes).facts
