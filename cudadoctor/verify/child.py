"""What `cudadoctor verify` runs in the patient's own interpreter: it uses CUDA and reports what came of it.

It stands alone: cudadoctor need not be there, Python may be as old as 3.7 and torch as old as 1.8. It decides nothing
but what only it can see: whether the numbers that the GPU gives are those of the CPU. Each check is announced before
it begins and reported when it has ended, so that a crash or a hang leaves what was proven, and the name of what was at
hand. A report is one line on what was standard output, the mark that the caller chose in front of it; torch and its
libraries print on standard error from the first line on.

    python child.py MARK '{"role": "gpu", "checks": ["allocation", "matmul"], "sizes": {...}, "folder": "/tmp/x"}'

The exact checks use whole numbers that are small enough for the type: every sum in whatever order is then exact, and a
single wrong bit is a wrong result.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# (Of what is used here, torch, there are no types where this is checked.)

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback

# Longer texts of errors say nothing more.
LONGEST = 4000


class Skip(Exception):
    """The check cannot be made here, and that is no fault. `kind` says why in a word."""

    def __init__(self, reason, kind=""):
        Exception.__init__(self, reason)
        self.kind = kind


class RankFailed(Exception):
    """One process of several failed, as the text says."""


class RankCrashed(RankFailed):
    """It was ended by a signal."""


class Reporter:
    """Writes a line an event, at once."""

    def __init__(self, mark):
        self.mark = mark
        self.lost = ""  # the check after which CUDA answers no more
        # Whatever prints on standard output from here on goes to standard error.
        self.stream = os.dup(1)
        os.dup2(2, 1)

    def say(self, **event):
        line = f"\n{self.mark} {json.dumps(event)}\n"
        data = line.encode("ascii")
        while data:
            data = data[os.write(self.stream, data) :]

    def run(self, check, function, variant="", recovers=None):
        """One check from its announcement to its result. `recovers` tells whether CUDA works on after an error."""
        if self.lost:
            self.say(
                event="result", check=check, variant=variant, status="skip", kind="lost", after=self.lost, seconds=0.0
            )
            return None
        self.say(event="start", check=check, variant=variant)
        begun = time.time()
        try:
            found = function()
            found.setdefault("status", "done")
        except Skip as reason:
            found = {"status": "skip", "reason": str(reason), "kind": reason.kind}
        except Exception as error:
            traceback.print_exc()
            found = {"status": "error", "error": text_of(error), "type": type(error).__name__}
            if recovers is not None and not recovers():
                self.lost = (check + " " + variant).strip()
        seconds = round(time.time() - begun, 3)
        self.say(event="result", check=check, variant=variant, seconds=seconds, **found)
        return found


def text_of(error):
    said = str(error).strip()
    if isinstance(error, RankFailed):
        return said
    return (f"{type(error).__name__}: {said}" if said else type(error).__name__)[:LONGEST]


def tell(function, *arguments):
    """What a question gives that not every torch can answer, or None."""
    try:
        return function(*arguments)
    except Exception:
        return None


def attribute(thing, path):
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return thing


# -- all GPUs: what is there -----------------------------------------------------------------------------------------


def versions():
    """Imports torch, and asks whether it can use CUDA."""
    import warnings

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            return {"status": "missing", "error": text_of(error)}, None
        available = bool(torch.cuda.is_available())
        count = int(torch.cuda.device_count())
    why = ""
    if not available:
        # The reason, in CUDA's own words.
        try:
            torch.zeros(1, device="cuda")
        except Exception as refused:
            why = text_of(refused)
    nccl = tell(lambda: torch.cuda.nccl.version()) if available else None
    if isinstance(nccl, (tuple, list)):
        nccl = ".".join(str(part) for part in nccl)
    cudnn = tell(torch.backends.cudnn.version)
    found = {
        "status": "done" if available else "unavailable",
        "torch": str(torch.__version__),
        "cuda": attribute(torch, "version.cuda"),
        "hip": attribute(torch, "version.hip"),
        "cudnn": cudnn if isinstance(cudnn, (int, str)) else None,
        "nccl": None if nccl is None else str(nccl),
        "path": os.path.dirname(str(attribute(torch, "__file__") or "")),
        "archs": tell(lambda: [str(arch) for arch in torch.cuda.get_arch_list()]) if available else None,
        "count": count,
        "error": why,
        "warnings": [str(one.message)[:LONGEST] for one in warned][:20],
    }
    return found, torch


def about(torch, number):
    """Name, capability and memory of a GPU; amounts are bytes."""
    properties = torch.cuda.get_device_properties(number)
    free = tell(lambda: torch.cuda.mem_get_info(number)[0])
    bus = [attribute(properties, name) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    return {
        "name": str(properties.name),
        "capability": f"{properties.major}.{properties.minor}",
        "total": int(properties.total_memory),
        "free": None if free is None else int(free),
        "allocated": int(torch.cuda.memory_allocated(number)),
        "reserved": int(torch.cuda.memory_reserved(number)),
        "pci": "{:04x}:{:02x}:{:02x}.0".format(*tuple(bus)) if all(isinstance(part, int) for part in bus) else None,
    }


# -- one GPU ---------------------------------------------------------------------------------------------------------


class Gpu:
    """The checks of the one GPU that this process sees."""

    def __init__(self, torch, sizes):
        self.torch = torch
        self.sizes = sizes
        self.device = "cuda:0"

    def begin(self):
        torch = self.torch
        if torch.cuda.device_count() < 1:
            raise RuntimeError("CUDA shows no GPU here")
        torch.manual_seed(20)
        # TensorFloat-32 rounds what is compared here.
        for where in ("backends.cuda.matmul", "backends.cudnn"):
            tell(setattr, attribute(torch, where), "allow_tf32", False)

    def answers(self):
        """Whether CUDA still works in this process; after most errors of a kernel it does not."""
        try:
            self.torch.cuda.synchronize()
            return int(self.torch.ones(4, device=self.device).sum().item()) == 4
        except Exception:
            return False

    def room(self, wanted):
        """Bytes to work with: what is asked for, or less on a card that is nearly full."""
        free = tell(lambda: self.torch.cuda.mem_get_info(0)[0])
        return wanted if free is None else min(wanted, max(1 << 20, free // 4))

    def pattern(self, size):
        return self.torch.arange(size // 4, dtype=self.torch.int32)

    def different(self, one, other):
        return int((one != other).sum().item())

    def allocation(self):
        size = self.room(self.sizes["allocation"])
        expected = self.pattern(size)
        there = expected.to(self.device)
        there = there + 1
        self.torch.cuda.synchronize()
        wrong = self.different(there.cpu(), expected + 1)
        return {"value": float(size), "unit": "bytes", "wrong": wrong, "of": size // 4}

    def whole_numbers(self, limit, *shape):
        return self.torch.randint(-limit, limit + 1, shape)

    def matmul(self, kind):
        torch = self.torch
        if kind == "bf16" and not self.has_bf16():
            raise Skip("this GPU has no bfloat16", "hardware")
        name, limit = {"fp32": ("float32", 7), "fp16": ("float16", 1), "bf16": ("bfloat16", 1)}[kind]
        size = self.sizes["matmul-" + kind]
        left, right = self.whole_numbers(limit, size, size), self.whole_numbers(limit, size, size)
        expected = left.double() @ right.double()
        dtype = getattr(torch, name)
        there, other = left.to(dtype).to(self.device), right.to(dtype).to(self.device)
        product = there @ other
        torch.cuda.synchronize()
        wrong = self.different(product.cpu().double(), expected)
        # The same again and again: a fault that comes and goes shows under load.
        for _ in range(self.sizes["rounds"]):
            wrong = max(wrong, self.different(there @ other, product))
        found = {"unit": "wrong values", "of": size * size, "wrong": wrong}
        if kind == "fp32":
            found.update(self.rounded(size))
            found["wrong"] = max(wrong, found.pop("beyond"))
        found["value"] = float(found["wrong"])
        return found

    def has_bf16(self):
        ask = attribute(self.torch, "cuda.is_bf16_supported")
        if ask is None:
            return False
        try:
            return bool(ask(including_emulation=False))
        except TypeError:
            return bool(ask())

    def rounded(self, size):
        """Numbers that have to be rounded. Each sum of `size` products may be off by `size` roundings of what it adds
        up, whatever the order; the largest error is given as a share of that."""
        torch = self.torch
        left, right = torch.rand(size, size) * 2 - 1, torch.rand(size, size) * 2 - 1
        exact = left.double() @ right.double()
        bound = (left.abs().double() @ right.abs().double()) * (size * 2.0**-24)
        product = (left.to(self.device) @ right.to(self.device)).cpu().double()
        share = (product - exact).abs() / bound
        beyond = size * size - int((share <= 1.0).sum().item())  # NaN is beyond, too
        return {"beyond": beyond, "error_share": float(share.max().item()) if not beyond else None}

    def bandwidth(self, way):
        """Copies from and to pinned memory of the host, in GB/s (10^9 bytes)."""
        torch = self.torch
        size = self.room(self.sizes["bandwidth"])
        host = self.pattern(size).pin_memory()
        there = torch.empty(size // 4, dtype=torch.int32, device=self.device)
        if way == "to-gpu":
            rate = self.rate(lambda: there.copy_(host, non_blocking=True), size)
            wrong = self.different(there.cpu(), host)
        else:
            there.copy_(host)
            back = torch.zeros(size // 4, dtype=torch.int32).pin_memory()
            rate = self.rate(lambda: back.copy_(there, non_blocking=True), size)
            wrong = self.different(back, host)
        return {"value": rate, "unit": "GB/s", "wrong": wrong, "of": size // 4}

    def memory_bandwidth(self):
        """A copy within the GPU's memory reads every byte and writes it."""
        torch = self.torch
        size = self.room(self.sizes["memory"])
        source = self.pattern(size).to(self.device)
        target = torch.zeros(size // 4, dtype=torch.int32, device=self.device)
        rate = self.rate(lambda: target.copy_(source), 2 * size)
        return {"value": rate, "unit": "GB/s", "wrong": self.different(target, source), "of": size // 4}

    def rate(self, copy, size):
        """The best of several runs, for some time at least: others may use the machine, too, and clocks and link of
        an idle card need a moment to rise."""
        torch = self.torch
        copies = self.sizes["copies"]
        copy()
        torch.cuda.synchronize()
        best, runs, begun = 0.0, 0, time.time()
        while runs < self.sizes["repeats"] or time.time() - begun < self.sizes["seconds"]:
            runs += 1
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(copies):
                copy()
            end.record()
            end.synchronize()
            milliseconds = float(begin.elapsed_time(end))
            if milliseconds > 0.0:
                best = max(best, size * copies / milliseconds / 1e6)
        if best == 0.0:
            raise Skip("CUDA's clock measured no time", "clock")
        return best

    def cudnn(self):
        torch = self.torch
        if not torch.backends.cudnn.is_available():
            raise Skip("this torch was built without cuDNN", "build")
        torch.backends.cudnn.version()  # raises where another cuDNN is loaded than torch was built with
        batch, channels, side = self.sizes["convolution"]
        image = self.whole_numbers(1, batch, channels, side, side)
        weight = self.whole_numbers(1, 2 * channels, channels, 3, 3)
        convolve = torch.nn.functional.conv2d
        expected = convolve(image.float(), weight.float(), padding=1)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            found = convolve(image.float().to(self.device), weight.float().to(self.device), padding=1).cpu()
        # Some of cuDNN's ways are not exact; a whole number off is wrong with any of them.
        wrong = found.numel() - int(((found - expected).abs() < 0.05).sum().item())
        return {"value": float(wrong), "unit": "wrong values", "wrong": wrong, "of": int(found.numel())}

    def compile(self):
        torch = self.torch
        if not hasattr(torch, "compile"):
            raise Skip("this torch has no torch.compile", "build")
        try:
            importlib.import_module("triton")
        except ImportError as error:
            missing = getattr(error, "name", "") == "triton"
            said = "Triton is not installed" if missing else f"Triton cannot be imported: {text_of(error)}"
            raise Skip(said, "triton") from None
        if not compiler():
            raise Skip("there is no C compiler, which Triton needs", "triton")
        if not headers():
            raise Skip("there is no Python.h of this Python, which Triton needs", "triton")

        def function(one, other):
            return torch.relu(one * 2 + other).sum(dim=-1)

        one, other = self.whole_numbers(3, 64, 64).float(), self.whole_numbers(3, 64, 64).float()
        try:
            compiled = torch.compile(function)(one.to(self.device), other.to(self.device)).cpu()
        except Exception as error:
            if "too old" in str(error):
                said = text_of(error).splitlines()[0][:200]
                raise Skip(f"Triton does not serve this GPU: {said}", "hardware") from None
            # Dynamo needs a release for each new Python, and for Windows.
            if "not supported" in str(error) or "not yet supported" in str(error):
                raise Skip(text_of(error).splitlines()[0][:200], "build") from None
            raise
        wrong = self.different(compiled, function(one, other))
        return {"value": float(wrong), "unit": "wrong values", "wrong": wrong, "of": 64}


def compiler():
    """The C compiler as Triton looks for it."""
    import shutil

    return os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cl")


def headers():
    import sysconfig

    folder = sysconfig.get_path("include")
    return bool(folder) and os.path.isfile(os.path.join(folder, "Python.h"))


def check_gpu(reporter, torch, request):
    gpu = Gpu(torch, request["sizes"])

    def allocation():
        gpu.begin()
        found = gpu.allocation()
        found["about"] = about(torch, 0)
        return found

    first = reporter.run("allocation", allocation)
    if first["status"] != "done":
        reporter.lost = "allocation"
    steps = [("matmul", kind, functools.partial(gpu.matmul, kind)) for kind in ("fp32", "fp16", "bf16")]
    steps += [("bandwidth", way, functools.partial(gpu.bandwidth, way)) for way in ("to-gpu", "from-gpu")]
    steps += [("memory-bandwidth", "", functools.partial(gpu.memory_bandwidth))]
    steps += [("cudnn", "", functools.partial(gpu.cudnn)), ("compile", "", functools.partial(gpu.compile))]
    for check, variant, function in steps:
        if check in request["checks"]:
            reporter.run(check, function, variant, gpu.answers)
            tell(lambda: torch.cuda.empty_cache())


# -- what needs all GPUs ---------------------------------------------------------------------------------------------


def peer(torch, sizes):
    """Copies between all pairs, directly where the driver says that they can."""
    count = torch.cuda.device_count()
    if count < 2:
        raise Skip("there is one GPU" if count else "there is no GPU", "single")
    expected = torch.arange(sizes["peer"] // 4, dtype=torch.int32)
    direct, wrong = 0, []
    for source in range(count):
        there = expected.to(f"cuda:{source}")
        for target in range(count):
            if source == target:
                continue
            can = bool(torch.cuda.can_device_access_peer(source, target))
            direct += can
            copied = there.to(f"cuda:{target}")
            torch.cuda.synchronize(target)
            if int((copied.cpu() != expected).sum().item()):
                wrong.append({"from": source, "to": target, "direct": can})
    pairs = count * (count - 1)
    return {"value": float(direct), "unit": "direct pairs", "of": pairs, "wrong": len(wrong), "pairs": wrong[:16]}


def nccl(torch, request, mark):
    """An all-reduce of one process a GPU, as distributed training does it."""
    count = torch.cuda.device_count()
    if count < 2:
        raise Skip("there is one GPU" if count else "there is no GPU", "single")
    distributed = attribute(torch, "distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_nccl_available():
        raise Skip("this torch was built without NCCL", "build")
    store = os.path.join(request["folder"], "store")
    processes = []
    for rank in range(count):
        told = {"role": "rank", "rank": rank, "world": count, "store": store, "sizes": request["sizes"], "checks": []}
        told["caller"] = os.getpid()
        command = [sys.executable, "-B", os.path.abspath(__file__), mark, json.dumps(told)]
        processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
    try:
        first = None
        running = processes
        while running and first is None:
            time.sleep(0.05)
            running = [process for process in processes if process.poll() is None]
            first = next((number for number, process in enumerate(processes) if process.returncode), None)
        if running:
            time.sleep(2.0)  # the others notice, and may say more
    finally:
        stopped = [process for process in processes if process.poll() is None]
        for process in stopped:
            process.kill()
    results, errors, crashed = [], [], []
    for number, process in enumerate(processes):
        found = result_of(process.communicate()[0], mark)
        results.append(found)
        if found is not None and found.get("status") == "done":
            continue
        said = (found or {}).get("error") or f"ended with status {process.returncode}"
        if process in stopped and not found:
            continue  # it waited for the others
        if number == first and process.returncode < 0:
            crashed.append(number)
            said = f"ended by {signal.Signals(-process.returncode).name}"
        errors.append((number != first, f"rank {number}: {said}"))
    if errors:
        text = "; ".join(text for _, text in sorted(errors))[:LONGEST]
        raise (RankCrashed if crashed else RankFailed)(text)
    return {
        "value": min(found["value"] for found in results),
        "unit": "GB/s",
        "wrong": sum(found["wrong"] for found in results),
        "of": sum(found["of"] for found in results),
        "ranks": count,
    }


def result_of(output, mark):
    for line in output.decode("ascii", "replace").splitlines():
        if line.startswith(mark + " "):
            event = json.loads(line[len(mark) + 1 :])
            if event.get("event") == "result":
                return event
    return None


def reduce_as_rank(torch, request):
    from datetime import timedelta

    distributed = torch.distributed
    rank, world, size = request["rank"], request["world"], request["sizes"]["nccl"] // 4
    torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl", init_method="file://" + request["store"], rank=rank, world_size=world, timeout=timedelta(minutes=30)
    )
    wrong, seconds = 0, 0.0
    for _ in range(3):  # the first makes the connections
        tensor = torch.full((size,), float(rank + 1), device=f"cuda:{rank}")
        torch.cuda.synchronize()
        begun = time.time()
        distributed.all_reduce(tensor)
        torch.cuda.synchronize()
        seconds = time.time() - begun
        wrong = max(wrong, int((tensor != world * (world + 1) / 2.0).sum().item()))
    tell(distributed.destroy_process_group)
    return {"value": 4.0 * size / max(seconds, 1e-9) / 1e9, "wrong": wrong, "of": size}


# -- from the first line to the last -----------------------------------------------------------------------------------


def die_with_caller(caller):
    """Linux: nothing of this outlives who asked for it. And no crash leaves its memory in a file. What the caller held
    back while it started us comes through again."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if os.getppid() == 1 != caller:
                os._exit(1)  # the caller has been ended before that
        except (ImportError, OSError, AttributeError):
            pass


def main(arguments):
    mark, request = arguments[0], json.loads(arguments[1])
    reporter = Reporter(mark)
    die_with_caller(request.get("caller", 1))
    try:
        import faulthandler

        faulthandler.enable()  # where a crash happened goes to standard error
    except (ImportError, RuntimeError, ValueError, AttributeError):
        pass
    reporter.say(event="python", version=".".join(str(part) for part in sys.version_info[:3]))
    if request["role"] == "rank":
        found = reporter.run("nccl", lambda: reduce_as_rank(importlib.import_module("torch"), request))
        return 0 if found is not None and found["status"] == "done" else 1
    state = {}

    def look():
        found, state["torch"] = versions()
        return found

    found = reporter.run("versions", look)
    torch = state.get("torch")
    if found is not None and found["status"] == "done":
        if request["role"] == "gpu":
            check_gpu(reporter, torch, request)
        else:
            if "peer" in request["checks"]:
                reporter.run("peer", lambda: peer(torch, request["sizes"]))
            if "nccl" in request["checks"]:
                reporter.run("nccl", lambda: nccl(torch, request, mark))
    reporter.say(event="end")
    return 0


if __name__ == "__main__":
    # The folder of this file holds nothing that anybody wants to import.
    sys.path[:1] = []
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # what libraries do at the end of a process is not under test
