"""Runs the checks of `cudadoctor verify` in an environment's own interpreter: one process for what needs all GPUs, then
one a GPU, each with a deadline. A process that crashes, hangs or floods costs its own checks.

The processes get a folder of their own for what they write (compiled kernels, NCCL's store), and it is gone afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from cudadoctor.actions.child_process import ended_in_order, run_process, source_of
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import ERROR, SKIP, Facts
from cudadoctor.verify import child, plan
from cudadoctor.verify.judge import expectations, judged, seen_gpu, torch_of
from cudadoctor.verify.lines import Ending, Said, read_lines
from cudadoctor.verify.results import Proof, Result, SeenGpu


def run(
    python: str,
    checks: Sequence[str] = (),
    gpus: Sequence[int] = (),
    timeout: float = plan.SECONDS,
    facts: Optional[Facts] = None,
) -> list[dict[str, Any]]:
    """The results as plain data (see `verify.results.Result`): check, gpu, variant, status (pass, fail, skip), severity
    (error, warning), rule, certainty, suspects, message, value, unit, expected, seconds, ...

    `python` is the interpreter, a path; `checks` are names of `verify.plan.CHECKS` (none: all), `gpus` numbers as
    nvidia-smi counts (none: all). `timeout` is in seconds, for the process of each GPU and for that of all. `facts` of
    this machine give the PCIe links; without them their rates are shown and not judged. Raises ParseError for a check
    or a GPU that is not there.
    """
    return [result.plain() for result in prove(python, checks, gpus, timeout, facts).results]


def prove(
    python: str,
    checks: Sequence[str] = (),
    gpus: Sequence[int] = (),
    timeout: float = plan.SECONDS,
    facts: Optional[Facts] = None,
    matrix: Optional[Matrix] = None,
    sizes: Optional[Mapping[str, Any]] = None,
) -> Proof:
    """`run`, with all that was seen."""
    wanted = plan.chosen(checks)
    matrix = matrix or load_matrix()
    sizes = plan.SIZES if sizes is None else sizes
    visible = os.environ.get(plan.VISIBLE)
    results: list[Result] = []
    seen: list[SeenGpu] = []
    with ended_in_order(), _folder() as folder:
        run_child = _Runner(python, folder, timeout, sizes)
        known = None if facts is None else facts.value("gpu.count")
        subset = plan.devices(visible, known, gpus) if gpus and known is not None else ()
        said, ending = run_child("all", wanted, plan.environment(visible, [one.entry for one in subset]))
        results += judged(said, ending, wanted, None)
        torch = torch_of(said)
        stuck = any(result.failed and result.severity == ERROR and result.check == plan.VERSIONS for result in results)
        of_one = [check for check in plan.OF_ONE_GPU if check in wanted]
        if not stuck and of_one:
            count = len(subset) if subset else torch.gpus
            for device in subset or plan.devices(visible, count, gpus):
                said_one, ending = run_child("gpu", wanted, plan.environment(visible, [device.entry]))
                expected = expectations(facts, matrix, _by_nvml(device, visible))
                results += judged(said_one, ending, of_one, device.number, expected, matrix)
                gpu = seen_gpu(said_one, device.number)
                seen += [] if gpu is None else [gpu]
        elif stuck:
            results += [Result(check, SKIP, f"not run: {plan.VERSIONS} failed") for check in of_one]
    return Proof(python, wanted, tuple(results), said.python, torch, tuple(seen))


def _by_nvml(device: plan.Device, visible: Optional[str]) -> Optional[int]:
    """The number that NVML gives the GPU, as far as the variable tells."""
    if visible is None:
        return device.number
    return int(device.entry) if device.entry is not None and device.entry.isdigit() else None


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A folder for what the children write. Where the person keeps Inductor's kernels elsewhere, there: the usual place
    may not take programs."""
    import shutil
    import tempfile

    chosen = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    folder = tempfile.mkdtemp(prefix="cudadoctor-verify-", dir=chosen if chosen and os.path.isdir(chosen) else None)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Runner:
    """Runs children, one after the other: beside each other they would share the links that they measure."""

    def __init__(self, python: str, folder: str, timeout: float, sizes: Mapping[str, Any]) -> None:
        self._python = python
        self._folder = folder
        self._timeout = timeout
        self._sizes = sizes
        self._script = os.path.join(folder, "verify.py")
        self._number = 0
        with open(self._script, "wb") as file:
            file.write(source_of(child))

    def __call__(self, role: str, checks: Sequence[str], environment: Mapping[str, str]) -> tuple[Said, Ending]:
        self._number += 1
        folder = os.path.join(self._folder, str(self._number))
        os.mkdir(folder)
        mark = "verify-" + os.urandom(8).hex()
        request: dict[str, Any] = {"role": role, "checks": list(checks), "sizes": dict(self._sizes), "folder": folder}
        request["caller"] = os.getpid()
        # -B: a check leaves no compiled files in the environment. Not -I: what PYTHONPATH and the user's own packages
        # bring is what the person's programs get.
        command = [self._python, "-B", self._script, mark, json.dumps(request)]
        added = {**environment, **_private(folder)}
        output, ending = run_process(command, {**os.environ, **added}, self._timeout, folder)
        return read_lines(output, mark), ending


def _private(folder: str) -> dict[str, str]:
    """Where torch, Triton and the driver keep what they compile."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "CUDA_CACHE_PATH": os.path.join(folder, "cuda"),
        # One process less that could stay behind.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
