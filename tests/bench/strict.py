"""pytest plugin: tests that need a real part.

`@pytest.mark.real_part("name")` marks them; a test that asks for one of the bench's real-part fixtures is marked by
itself. With CUDADOCTOR_TESTS_STRICT=1 such a test fails where it would be skipped: `.ci/run` runs so, and a part
that has gone missing cannot pass unseen.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from .parts import STRICT

# Fixtures that need something that a checkout does not hold.
REAL_PART_OF_FIXTURE = {
    "fake_nvml": "C compiler",
    "fake_cuda": "C compiler",
    "real_nvidia_smi": "nvidia-smi",
    "real_nvidia_libraries": "nvidia-smi",
    "real_nvcc": "nvcc",
    "real_torch_venv": "torch",
    "real_uv": "uv",
    "windows_python": "wine",
    "fake_root": "mount namespaces",
    "dead_path": "dead mounts",
    "deaf_path": "dead mounts",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "once: what Python it runs on does not matter; CI runs it on the newest alone")
    config.addinivalue_line("markers", "every_row: each row runs code of its own; `--rows` leaves them all")
    config.addinivalue_line("markers", "real_part(name): needs a real part; in strict mode a failure, not a skip")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = {name for mark in item.iter_markers("real_part") for name in mark.args}
        for fixture in getattr(item, "fixturenames", ()):
            part = REAL_PART_OF_FIXTURE.get(fixture)
            if part and part not in marked:
                item.add_marker(pytest.mark.real_part(part))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, None, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if not (STRICT and report.skipped) or hasattr(report, "wasxfail"):
        return
    parts = [str(name) for mark in item.iter_markers("real_part") for name in mark.args]
    if parts:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"strict mode: skipped, but it needs the real part {', '.join(parts)}. {reason}"


def pytest_report_header() -> str:
    if STRICT:
        return "real parts: strict mode, a missing one fails"
    return "real parts: a missing one skips its tests (CUDADOCTOR_TESTS_STRICT=1: it fails them)"
