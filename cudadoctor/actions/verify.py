"""Runs the checks of `cudadoctor verify` in an environment's own interpreter: one process for what needs all GPUs, then
one a GPU, each with a deadline. A process that crashes, hangs or floods costs its own checks.

The processes get a folder of their own for what they write (compiled kernels, NCCL's store), and it is gone afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Optional

from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import ERROR, SKIP, Facts
from cudadoctor.system import worker
from cudadoctor.verify import child, plan
from cudadoctor.verify.judge import expectations, judged, seen_gpu, torch_of
from cudadoctor.verify.lines import MOST_BYTES, Ending, Said, read_lines
from cudadoctor.verify.results import Proof, Result, SeenGpu

# The last words of a program; where a traceback is longer, its end says what happened.
_MOST_ERRORS = 16 << 10
# How long a process that was killed may take to end, and its pipes to close.
_GRACE = 2.0


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
    with _ended_in_order(), _folder() as folder:
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


class _Ended(BaseException):
    """A signal that ends this process: first what runs for it is ended and its folder removed."""


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP (a job's time limit, a closed terminal) end us as ever, when the block is left."""
    import signal

    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        came.append(number)
        raise _Ended

    before: dict[int, Any] = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Only the main thread may ask; an ignored signal (nohup) stays ignored.
        with contextlib.suppress(ValueError):
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, end)
    try:
        yield
    except _Ended:
        signal.signal(came[0], signal.SIG_DFL)
        os.kill(os.getpid(), came[0])
    finally:
        for number, handler in before.items():
            if number not in came:
                signal.signal(number, handler)


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
            file.write(_source())

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


def _source() -> bytes:
    """The child's own text, also where the package is a zip file."""
    spec = child.__spec__
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_source"):
        raise OSError("the source of cudadoctor.verify.child is not there")
    source: Optional[str] = spec.loader.get_source(child.__name__)
    if source is None:
        raise OSError("the source of cudadoctor.verify.child is not there")
    return source.encode("utf-8")


def _private(folder: str) -> dict[str, str]:
    """Where torch, Triton and the driver keep what they compile."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "CUDA_CACHE_PATH": os.path.join(folder, "cuda"),
        # One process less that could stay behind.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def run_process(
    command: Sequence[str], environment: Mapping[str, str], timeout: float, mark: str = ""
) -> tuple[bytes, Ending]:
    """Runs a program in a process group of its own, and ends the whole group at the deadline or when it has ended; on
    Linux also who has left the group, if `mark` stands in the environment and nobody else has such a one.

    Gives the first megabyte of its standard output, and how it ended. Never raises for what the program does.
    """
    begun = time.monotonic()
    worker.end_all_when_ended()
    try:
        with worker.signals_held():
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                start_new_session=os.name != "nt",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            worker.program_started(process.pid)
            begun_at = _stat_of(process.pid)[1]
    except OSError as error:
        return b"", Ending(refused=error.strerror or str(error), seconds=time.monotonic() - begun)
    try:
        output, errors = _Stream(process.stdout, MOST_BYTES, False), _Stream(process.stderr, _MOST_ERRORS, True)
        timed_out = not _wait(process, begun + timeout)
        status = process.returncode
    finally:
        _end(process)
        _end_strays(process.pid, begun_at, mark)
        worker.program_ended(process.pid)
    seconds = timeout if timed_out else time.monotonic() - begun
    said = errors.finished().decode("utf-8", "replace").strip()
    signal = "" if timed_out else _signal_of(status)
    return output.finished(), Ending(status if not timed_out else None, signal, timed_out, seconds, said)


def _wait(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Whether it ended in time. In steps: a Ctrl-C is looked at between them."""
    while True:
        worker.check_interrupted()
        left = limit - time.monotonic()
        if left <= 0:
            return process.poll() is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left, 0.5))
            return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills what is left of the group. What cannot be killed is left alone: it holds nothing that we wait for."""
    if os.name == "nt":
        _end_on_windows(process)
        return
    worker.kill_group(process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _end_strays(group: int, begun_at: int, mark: str) -> None:
    """Kills daemons that the program has left. Nobody of its group is asked: who of them still is there cannot be
    killed, and a question after the environment of such a one may never be answered."""
    if sys.platform != "linux" or not mark or begun_at < 0:
        return
    for _ in range(3):  # one may have started another meanwhile
        strays = [pid for pid in _younger_than(begun_at, group) if _is_marked(pid, os.fsencode(mark))]
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, worker.SIGKILL)
        if not strays:
            return


def _younger_than(begun_at: int, group: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                its_group, its_begin = _stat_of(int(name))
                if its_begin >= begun_at and its_group != group:
                    yield int(name)


def _stat_of(process: int) -> tuple[int, int]:
    """Group and start (in ticks since the machine's) of a process; -1: there is none, or nobody tells."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[2]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return -1, -1


def _is_marked(process: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def _end_on_windows(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # Its own children too, which nothing else names.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["taskkill", "/F", "/T", "/PID", str(process.pid)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_GRACE,
                check=False,
            )  # fmt: skip
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def _signal_of(status: Optional[int]) -> str:
    """ "SIGSEGV" for what a signal ended; Windows ends a process with the number of the exception."""
    if status is None:
        return ""
    if status < 0:
        import signal

        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exception 0x{status:08X}" if sys.platform == "win32" and status >= 0xC0000000 else ""


class _Stream:
    """Reads a pipe to its end beside us, and keeps its first or its last bytes."""

    def __init__(self, pipe: Optional[IO[bytes]], most: int, last: bool) -> None:
        import threading

        assert pipe is not None
        self._pipe = pipe
        self._most = most
        self._last = last
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                piece = os.read(self._pipe.fileno(), 1 << 16)
                if not piece:
                    return
                if self._last:
                    self._kept += piece
                    del self._kept[: -self._most]
                elif len(self._kept) < self._most:
                    self._kept += piece[: self._most - len(self._kept)]

    def finished(self) -> bytes:
        self._thread.join(_GRACE)
        found = bytes(self._kept)
        if not self._thread.is_alive():
            self._pipe.close()
        return found
