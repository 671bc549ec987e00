"""What `cudadoctor fit --measure` runs for one GPU, in the patient's own interpreter: it makes a CUDA context there and
asks NVML how much memory that took.

Where torch is, torch makes the context and multiplies two small matrices, so that the kernels of a program are in it,
too; what torch's own allocator holds is taken off. Else the driver makes the context alone, and that is said.

    CUDA_VISIBLE_DEVICES=0 python context.py MARK '{}'

It stands alone like verify's child, whose reporter it uses. Amounts are bytes.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time

# NVML's word for "not available".
NOT_AVAILABLE = 2**64 - 1
SMALL = 256


class Cannot(Exception):
    """It cannot be measured here: what is missing, and why."""


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def library(linux, windows, what):
    names = [windows] if sys.platform == "win32" else [linux]
    if sys.platform == "win32" and windows == "nvml.dll":
        system = os.path.join(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", windows)
        names = [system, windows]
    for name in names:
        try:
            # On Windows the driver's functions are called in its own way.
            return getattr(ctypes, "WinDLL", ctypes.CDLL)(name)
        except OSError as error:
            said = error
    raise Cannot(f"{what} cannot be loaded: {said}")


class Cuda:
    """The first GPU that this process sees, by the driver's own functions. Asking alone makes no context."""

    def __init__(self):
        self.library = library("libcuda.so.1", "nvcuda.dll", "CUDA's driver library")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)

    def call(self, name, *arguments):
        function = getattr(self.library, name, None)
        if function is None:
            raise Cannot(f"CUDA's driver library has no {name}")
        answer = function(*arguments)
        if answer:
            raise Cannot(f"{name} answered {answer}")

    def address(self):
        text = ctypes.create_string_buffer(32)
        self.call("cuDeviceGetPCIBusId", text, len(text), self.device)
        return text.value

    def make_context(self):
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)


class Nvml:
    """The same GPU as NVML sees it."""

    def __init__(self, address):
        self.library = library("libnvidia-ml.so.1", "nvml.dll", "NVML")
        self.call("nvmlInit_v2")
        self.device = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByPciBusId_v2", ctypes.c_char_p(address), ctypes.byref(self.device))

    def call(self, name, *arguments):
        function = getattr(self.library, name, None)
        if function is None:
            raise Cannot(f"NVML has no {name}")
        answer = function(*arguments)
        if answer:
            raise Cannot(f"{name} answered {answer}")

    def memory(self):
        found = Memory()
        self.call("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(found))
        return found

    def settled(self):
        """What is used on the GPU once it does not change any more, or None where it does not settle."""
        last = self.memory().used
        for _ in range(20):
            time.sleep(0.05)
            now = self.memory().used
            if now == last:
                return now
            last = now
        return None

    def of_process(self):
        """The driver's own figure for this process; None where it has none (Windows, containers)."""
        room = 1024
        rows = (Process * room)()
        count = ctypes.c_uint(room)
        try:
            self.call("nvmlDeviceGetComputeRunningProcesses_v3", self.device, ctypes.byref(count), rows)
        except Cannot:
            return None
        for row in rows[: count.value]:
            if row.pid == os.getpid() and 0 < row.used < NOT_AVAILABLE:
                return int(row.used)
        return None


def torch_with_cuda():
    try:
        torch = importlib.import_module("torch")
        return torch if torch.cuda.is_available() else None
    except Exception:
        return None


def measured():
    cuda = Cuda()
    nvml = Nvml(cuda.address())
    torch = torch_with_cuda()
    before = nvml.settled()
    reserved = 0
    if torch is not None:
        matrix = torch.ones(SMALL, SMALL, dtype=torch.float16, device="cuda:0")
        matrix @ matrix
        torch.cuda.synchronize()
        reserved = int(torch.cuda.memory_reserved(0))
    else:
        cuda.make_context()
    after = nvml.settled()
    own = nvml.of_process()
    if own is not None:
        taken, how = own - reserved, "process"
    elif before is None or after is None:
        raise Cannot("others use memory on this GPU meanwhile, so the difference tells nothing")
    else:
        taken, how = after - before - reserved, "difference"
    total = int(nvml.memory().total)
    if not 0 < taken < total:
        raise Cannot(f"what is used on the GPU changed by {taken} bytes, which is no context's size")
    return {"bytes": int(taken), "how": how, "torch": torch is not None, "total": total}


def main(arguments):
    # The file beside this one: verify's child, for how it reports.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    child = importlib.import_module("verify_child")
    del sys.path[0]
    mark, request = arguments[0], json.loads(arguments[1])
    reporter = child.Reporter(mark)
    child.die_with_caller(request.get("caller", 1))

    def run():
        try:
            return measured()
        except Cannot as reason:
            return {"status": "cannot", "reason": str(reason)[: child.LONGEST]}

    reporter.run("context", run)
    reporter.say(event="end")
    return 0


if __name__ == "__main__":
    # The folder of this file holds nothing that anybody wants to import.
    sys.path[:1] = []
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
