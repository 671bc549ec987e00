"""Measures what `fit` otherwise counts or assumes: a dry run of the model's class on the CPU, and the CUDA context of
each GPU. Both run in the patient's own interpreter, in a process with a deadline; what is missing there is said, and
nothing is made up for it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Optional

from cudadoctor.actions.child_process import ended_in_order, run_process, source_of
from cudadoctor.fit import context, dry_run
from cudadoctor.fit.measured import CANNOT, FAILED, CudaContext, DryRun, run_of
from cudadoctor.fit.workload import INFER, LORA, QLORA, WEIGHTS, Workload
from cudadoctor.verify import child
from cudadoctor.verify.lines import Ending, text, whole
from cudadoctor.verify.plan import devices, environment

# Seconds for each process. Importing torch and transformers from a slow disk takes half a minute.
SECONDS = 180.0
# Bytes that the dry run may allocate: torch and transformers themselves, and shapes.
MOST_MEMORY = 8 << 30
# Longer texts of errors say nothing more.
_LONGEST = 300

_NAMES = {"adamw": "adamw", "adam": "adamw", "adamw_torch": "adamw", "sgd": "sgd", "sgd_momentum": "sgd_momentum"}
_FUSED = {"adamw_fused": "adamw", "adamw_torch_fused": "adamw"}


def dry_run_of(
    python: str, config: Optional[Mapping[str, Any]], workload: Workload, seconds: float = SECONDS
) -> DryRun:
    """Runs the class that the Hugging Face config describes, with tensors that have no memory. `python` is the
    patient's interpreter; `config` None: there is none to build the class from. Never raises for what goes wrong
    there."""
    reason = "" if config is not None else "there is no config.json to build the model's class from"
    reason = reason or not_run(workload)
    if reason or config is None:
        return DryRun(CANNOT, reason)
    request, notes = request_of(config, workload)
    events, ending = _run(python, dry_run, request, {}, seconds)
    return _read(events, ending, DryRun(CANNOT, seconds=ending.seconds, notes=notes))


def not_run(workload: Workload) -> str:
    """Why there is no dry run of such a workload; empty: there is one."""
    sharding = workload.sharding
    if workload.method == WEIGHTS:
        return "only the weights are asked for"
    if sharding.degree > 1 and sharding.kind not in ("none", "ddp"):
        return f"the dry run knows one GPU, and the work is shared by {sharding.kind}"
    if workload.offload != "none":
        return "the dry run knows no offloading"
    if workload.method == INFER and workload.engine != "transformers":
        return f"the dry run shows what transformers needs, and {workload.engine} works otherwise"
    if workload.trains and workload.checkpointing not in ("none", "full"):
        return f"the dry run knows no {workload.checkpointing} checkpointing"
    return ""


def request_of(config: Mapping[str, Any], workload: Workload) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the child is asked, and in what that differs from the workload, as sentences."""
    notes = []
    lora = None
    if workload.method in (LORA, QLORA):
        wanted = workload.lora
        lora = {"rank": wanted.rank, "targets": list(wanted.targets), "dropout": wanted.dropout, "width": wanted.width}
    if workload.method == QLORA:
        notes.append("the dry run holds 16-bit weights: those of the estimate are put in their place")
    optimizer = _NAMES.get(workload.optimizer) or _FUSED.get(workload.optimizer)
    if workload.trains and workload.optimizer_in_backward:
        optimizer = None
        notes.append("the optimizer's step inside the backward pass is not run: its states are the estimate's")
    elif workload.trains and optimizer is None:
        notes.append(f"the step of {workload.optimizer} is not run: its states are the estimate's")
    plain = workload.loss == "plain"
    if workload.trains and not plain:
        notes.append(f"the logits and the {workload.loss} loss are not run: what the layers hold is")
    if workload.trains and workload.framework and "transformers" not in workload.framework:
        notes.append(f"the dry run shows what transformers does, and {workload.framework} may do otherwise")
    if workload.attention == "flash":
        notes.append("flash attention is taken as torch's own, which keeps the same")
    prompt = workload.prompt if workload.prompt is not None else workload.context
    request = {
        "config": dict(config),
        "mode": "train" if workload.trains else "infer",
        "batch": workload.batch,
        "tokens": workload.context,
        "prompt": prompt,
        # The Trainer of transformers runs adapters under autocast.
        "precision": "mixed" if lora is not None and workload.precision == "bf16" else workload.precision,
        "attention": workload.attention,
        "checkpointing": workload.checkpointing == "full",
        "loss": "plain" if plain else "none",
        "lora": lora,
        "quantised": "" if workload.method != QLORA else "upcast" if _upcasts(workload.framework) else "plain",
        "optimizer": optimizer,
        "fused": workload.fused_optimizer or workload.optimizer in _FUSED,
        "accumulation": workload.accumulation,
        "padded": workload.variable_length,
        "memory": MOST_MEMORY,
    }
    return request, tuple(notes)


def _upcasts(framework: str) -> bool:
    """Whether who trains on quantised weights calls peft's prepare_model_for_kbit_training."""
    return not framework or any(word in framework for word in ("transformers", "peft", "trl", "swift"))


def contexts_of(
    python: str, count: Optional[int], gpus: Sequence[int] = (), seconds: float = SECONDS
) -> tuple[CudaContext, ...]:
    """The CUDA context of each GPU, or of those asked for (numbers as nvidia-smi counts), one after the other. `count`
    is how many NVML shows."""
    if not count:
        said = "it is not known whether there is a GPU" if count is None else "there is no GPU"
        return (CudaContext(None, reason=said),)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = []
    for device in devices(visible, count, gpus):
        events, ending = _run(python, context, {}, environment(visible, [device.entry]), seconds)
        result = _result(events)
        size = whole(result, "bytes")
        if text(result, "status") == "done" and size is not None and size > 0:
            how = text(result, "how")
            found.append(CudaContext(device.number, size, how, result.get("torch") is True))
        else:
            found.append(CudaContext(device.number, reason=_reason(result, ending)))
    return tuple(found) or (CudaContext(None, reason="CUDA_VISIBLE_DEVICES hides every GPU"),)


def _run(
    python: str, script: ModuleType, request: Mapping[str, Any], added: Mapping[str, str], seconds: float
) -> tuple[list[Mapping[str, Any]], Ending]:
    """Runs the script, with verify's child beside it for how it reports. Its events, and how it ended."""
    with ended_in_order():
        folder = tempfile.mkdtemp(prefix="cudadoctor-measure-")
        try:
            for name, module in (("measure.py", script), ("verify_child.py", child)):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(source_of(module))
            mark = "measure-" + os.urandom(8).hex()
            asked = json.dumps({**request, "caller": os.getpid()})
            command = [python, "-B", os.path.join(folder, "measure.py"), mark, asked]
            private = {"CUDA_CACHE_PATH": os.path.join(folder, "cuda"), "CUDADOCTOR_MEASURE": folder}
            private["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")
            output, ending = run_process(command, {**os.environ, **private, **added}, seconds, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return events_of(output, mark), ending


def events_of(output: bytes, mark: str) -> list[Mapping[str, Any]]:
    """What the child has said, line by line. Never fails: what is no event of the child's is passed over."""
    from cudadoctor.model.fact import no_number

    found: list[Mapping[str, Any]] = []
    for line in output.decode("ascii", "replace").splitlines():
        if line.startswith(mark + " "):
            try:
                event = json.loads(line[len(mark) + 1 :], parse_constant=no_number)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                found.append(event)
    return found


def _read(events: Sequence[Mapping[str, Any]], ending: Ending, about: DryRun) -> DryRun:
    for event in events:
        if event.get("event") == "python":
            about = about._replace(python=text(event, "version"))
        elif event.get("event") == "versions":
            about = about._replace(torch=text(event, "torch"), transformers=text(event, "transformers"))
    result = _result(events)
    status = text(result, "status")
    if status == "cannot":
        return about._replace(status=CANNOT, reason=_reason(result, ending))
    if status != "done":
        return about._replace(status=FAILED, reason=_reason(result, ending))
    runs = [event for event in events if event.get("event") == "run"]
    try:
        sides = [(str(key), int(number), int(period)) for key, number, period in result["sides"]]
        return run_of(runs, sides, about)
    except (KeyError, ValueError, TypeError, IndexError, ZeroDivisionError):
        return about._replace(status=FAILED, reason="what the dry run reported makes no sense")


def _result(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((event for event in reversed(events) if event.get("event") == "result"), {})


def _reason(result: Mapping[str, Any], ending: Ending) -> str:
    """One sentence: what the child said, or how it ended without a word."""
    said = text(result, "reason") or text(result, "error")
    if said:
        return said.splitlines()[0][:_LONGEST]
    if ending.refused:
        return f"the interpreter cannot be started: {ending.refused}"
    if ending.timed_out:
        return f"it did not end within {ending.seconds:.0f} s"
    if ending.signal:
        return f"it was ended by {ending.signal}"
    last = ending.errors.splitlines()[-1:] or [f"it ended with status {ending.status}"]
    return last[0][:_LONGEST]
