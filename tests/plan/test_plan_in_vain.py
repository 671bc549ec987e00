"""Why what people try first would not help."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from cudadoctor.matrix import load_matrix
from cudadoctor.plan.in_vain import in_vain
from cudadoctor.resolve import Gpu, Need, resolve
from cudadoctor.resolve.need import NONE, PRESENT, WORKS

MATRIX = load_matrix()


def lines(*gpus: tuple[str, str], driver: Optional[str], **more: Any) -> str:
    need = Need(
        gpus=tuple(Gpu(label, capability) for label, capability in gpus),
        gpu_state=PRESENT if gpus else NONE,
        driver=driver,
        driver_state=WORKS,
        python="3.12",
        **more,
    )
    return "\n".join(in_vain(need, resolve(need, MATRIX), MATRIX))


PASCAL = ("GTX 1080 Ti", "6.1")
ADA = ("RTX 4090", "8.9")
BLACKWELL = ("RTX 5090", "12.0")

WINDOWS = {"platform": "windows-x86_64", "numbering": "windows"}

UPGRADE = "`pip install -U torch`: "

TABLE = [
    ("a card that newer builds left out", [PASCAL], "580.95.05", {}, "has no code for GTX 1080 Ti (sm_61)"),
    ("a driver that is too old for the newest", [ADA], "550.54.14", {}, "CUDA 13.x needs driver 580.65.06"),
    ("Windows, where the default index has no CUDA", [ADA], "581.57", WINDOWS, "without CUDA, as always on Windows"),
    ("unlike cards", [BLACKWELL, PASCAL], "580.95.05", {}, "has no code for GTX 1080 Ti (sm_61)"),
]  # fmt: skip


@pytest.mark.parametrize(("gpus", "driver", "more", "says"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_plain_upgrade_does_not_help(
    gpus: list[tuple[str, str]], driver: str, more: dict[str, Any], says: str
) -> None:
    found = lines(*gpus, driver=driver, **more)
    line = next(line for line in found.splitlines() if line.startswith(UPGRADE))
    assert says in line


def test_a_plain_upgrade_that_does_help_is_not_spoken_against() -> None:
    assert UPGRADE not in lines(ADA, driver="580.95.05")
    assert UPGRADE not in lines(BLACKWELL, driver="610.43.02")


def test_an_older_python_gets_an_older_torch_by_default() -> None:
    """What pip would bring is the newest torch that has a wheel for that Python, not the newest of all."""
    need_39 = Need(gpus=(Gpu(*ADA),), gpu_state=PRESENT, driver="550.54.14", driver_state=WORKS, python="3.9")
    found = "\n".join(in_vain(need_39, resolve(need_39, MATRIX), MATRIX))
    assert "2.15.0" not in found


def test_a_machine_without_a_gpu_has_nothing_to_try() -> None:
    assert lines(driver=None) == ""
