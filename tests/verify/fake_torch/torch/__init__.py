"""A torch without CUDA that plays a machine with GPUs: enough of its interface for the checks of `cudadoctor verify`.

Tensors are lists, and the numbers are right. What the machine does wrong stands in FAKE_TORCH, as JSON:

    gpus       how many there are (2); CUDA_VISIBLE_DEVICES hides some, as it does in truth
    available  false: is_available() says no, and why: `says`
    rates      GB/s of copies: to-gpu, from-gpu, memory
    at         {"matmul": "crash", ...}: what happens in a step, on the GPU `on` (its real number; missing: on each)
               crash, hang, error, flip (one wrong value), flood, exit, noise, deaf (Ctrl-C and SIGTERM are ignored)
    says       the text of an error
    sleep      what a hang has its own child sleep, in seconds ("600")
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time

from . import version

__version__ = version.__version__

SCENARIO = {"gpus": 2, "rates": {}, "at": {}, "on": None, "says": "CUDA error: unspecified launch failure"}
SCENARIO.update(json.loads(os.environ.get("FAKE_TORCH") or "{}"))
RATES = {"to-gpu": 25.0, "from-gpu": 26.0, "memory": 1800.0, **SCENARIO["rates"]}

int32, int64, float16, bfloat16, float32, float64 = "int32", "int64", "float16", "bfloat16", "float32", "float64"
_SIZE = {"int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


class Clock:
    """What the GPU's clock shows: milliseconds that the copies would have taken."""

    milliseconds = 0.0


def visible():
    """The real numbers of the GPUs that CUDA shows."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    every = list(range(SCENARIO["gpus"]))
    if chosen is None:
        return every
    shown = []
    for word in chosen.split(","):
        if not word.isdigit() or int(word) not in every:
            break
        shown.append(int(word))
    return shown


def step(name, device="cuda:0"):
    """What happens in a step: mostly nothing. True: its result is to have a wrong value."""
    what = SCENARIO["at"].get(name)
    if what is None:
        return False
    number = int(str(device).partition(":")[2] or 0)
    here = visible()
    if SCENARIO["on"] is not None and (number >= len(here) or here[number] != SCENARIO["on"]):
        return False
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what in ("hang", "deaf"):
        # A process of its own, as a compiler would be: it must not be left behind either.
        subprocess.Popen(["sleep", SCENARIO.get("sleep", "600")])
        if what == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(1)
    if what == "flood":
        while True:
            os.write(1, b"x" * 65536)
    if what == "exit":
        os._exit(7)
    if what == "noise":
        print('verify-0123456789abcdef {"event": "result", "check": "matmul", "status": "done"}')
        os.write(1, b"\xff\xfe no text\n\n{}\nnull\n")
    if what == "error":
        raise RuntimeError(SCENARIO["says"])
    return what == "flip"


class Tensor:
    def __init__(self, data, shape, dtype=float32, device="cpu"):
        self.data, self.shape, self.dtype, self.device = data, tuple(shape), dtype, str(device)

    def _like(self, data, dtype=None, device=None):
        return Tensor(data, self.shape, dtype or self.dtype, device or self.device)

    def _with(self, other, function, dtype=None):
        values = other.data if isinstance(other, Tensor) else itertools.repeat(other)
        return self._like([function(one, two) for one, two in zip(self.data, values)], dtype)

    def __add__(self, other):
        found = self._with(other, lambda one, two: one + two)
        if self.device != "cpu" and self.dtype == int32 and step("allocation", self.device):
            found.data[-1] += 1
        return found

    def __sub__(self, other):
        return self._with(other, lambda one, two: one - two)

    def __mul__(self, other):
        return self._with(other, lambda one, two: one * two)

    def __truediv__(self, other):
        return self._with(other, lambda one, two: one / two if two else 0.0)

    def __ne__(self, other):
        return self._with(other, lambda one, two: int(one != two))

    def __lt__(self, other):
        return self._with(other, lambda one, two: int(one < two))

    def __le__(self, other):
        return self._with(other, lambda one, two: int(one <= two))

    __hash__ = None

    def __matmul__(self, other):
        assert self.device == other.device and self.dtype == other.dtype
        wrong = self.device != "cpu" and step("matmul " + self.dtype, self.device)
        (rows, inner), columns = self.shape, other.shape[1]
        turned = [other.data[column::columns] for column in range(columns)]
        lines = [self.data[row * inner : (row + 1) * inner] for row in range(rows)]
        data = [sum(one * two for one, two in zip(line, column)) for line in lines for column in turned]
        if wrong:
            data[len(data) // 2] += 1
        return Tensor(data, (rows, columns), self.dtype, self.device)

    def to(self, what):
        if what in _SIZE:
            return self._like(list(self.data), what)
        wrong = "cuda" in self.device and "cuda" in str(what) and what != self.device and step("peer", what)
        copied = self._like(list(self.data), device=str(what))
        if wrong:
            copied.data[0] += 1
        return copied

    def cpu(self):
        return self._like(list(self.data), device="cpu")

    def double(self):
        return self._like(self.data, float64)

    def float(self):
        return self._like(self.data, float32)

    def abs(self):
        return self._like([abs(value) for value in self.data])

    def sum(self, dim=None):
        if dim is None:
            return Tensor([sum(self.data)], (1,), self.dtype, self.device)
        last = self.shape[-1]
        data = [sum(self.data[place : place + last]) for place in range(0, len(self.data), last)]
        return Tensor(data, self.shape[:-1], self.dtype, self.device)

    def max(self):
        return Tensor([max(self.data)], (1,), self.dtype, self.device)

    def item(self):
        return self.data[0]

    def numel(self):
        return len(self.data)

    def pin_memory(self):
        step("pin")
        return self._like(list(self.data))

    def copy_(self, other, non_blocking=False):
        if self.device != "cpu" and other.device != "cpu":
            way = "memory"
        else:
            way = "from-gpu" if self.device == "cpu" else "to-gpu"
        wrong = step("copy " + way, self.device)
        self.data = list(other.data)
        if wrong:
            self.data[7] = -1
        moved = len(self.data) * _SIZE[self.dtype] * (2 if way == "memory" else 1)
        Clock.milliseconds += moved / RATES[way] / 1e6
        return self


def device(name):
    return name


def manual_seed(seed):
    random.seed(seed)


def arange(count, dtype=int64, device="cpu"):
    return Tensor(list(range(count)), (count,), dtype, device)


def full(shape, value, dtype=float32, device="cpu"):
    count = 1
    for side in shape:
        count *= side
    return Tensor([value] * count, shape, dtype, device)


def zeros(count, dtype=float32, device="cpu"):
    if device != "cpu" and not cuda.is_available():
        raise RuntimeError(SCENARIO["says"])
    return full((count,), 0, dtype, device)


def ones(count, dtype=float32, device="cpu"):
    step("after", device)
    return full((count,), 1, dtype, device)


empty = zeros


def randint(low, high, shape):
    made = full(shape, 0, int64)
    made.data = [random.randrange(low, high) for _ in made.data]
    return made


def rand(*shape):
    made = full(shape, 0)
    made.data = [random.random() for _ in made.data]
    return made


def relu(tensor):
    return tensor._like([max(value, 0) for value in tensor.data])


def compile(function):
    def compiled(*arguments):
        wrong = step("compile", arguments[0].device)
        found = function(*arguments)
        if wrong:
            found.data[3] -= 1
        return found

    return compiled


step("import")
from . import backends as backends  # noqa: E402
from . import cuda as cuda  # noqa: E402
from . import distributed as distributed  # noqa: E402
from . import nn as nn  # noqa: E402

sys.stdout.write("a library that greets on standard output\n")
