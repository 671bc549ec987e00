import contextlib
from types import SimpleNamespace

import torch


def _version():
    torch.step("cudnn version")
    return 91002


@contextlib.contextmanager
def _flags(**flags):
    yield


cudnn = SimpleNamespace(
    is_available=lambda: torch.SCENARIO.get("cudnn", True), version=_version, flags=_flags, allow_tf32=True
)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))
