"""The keys of a policy: what each means, how its value is read and shown. This table is the whole vocabulary."""

from __future__ import annotations

from typing import Any, Callable, Optional

from cudadoctor.model.outcome import ALLOCATION, ENVIRONMENT, MACHINE, SEVERITIES
from cudadoctor.model.record import NamedTuple
from cudadoctor.policy import values
from cudadoctor.verify.plan import CHECKS


class Setting(NamedTuple):
    """A key: how its value is read, what it asks for in words, and how a value is shown (None: as it is).

    `rule` is the id of the rule that judges it; None for a key that is no requirement.
    """

    read: values.Read
    meaning: str
    rule: Optional[str] = None
    show: Optional[Callable[[Any], str]] = None


def _size(value: Any) -> str:
    amount = int(value)
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if amount >= unit:
            return f"{amount / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{amount} bytes"


def _limit(value: Any) -> str:
    return "unlimited" if value == "unlimited" else _size(value)


def _list(value: Any) -> str:
    return ", ".join(value)


def _seconds(value: Any) -> str:
    return f"{value:g} s"


def _yes(value: Any) -> str:
    return "true" if value else "false"


SETTINGS: dict[str, Setting] = {
    # -- the GPUs that the job sees
    "gpu.count": Setting(values.count, "how many GPUs the job has to see", "CD001"),
    "gpu.names": Setting(values.gpu_names, "each GPU is one of these products", "CD002", _list),
    "gpu.compute_capability": Setting(values.capability, "compute capability of each GPU", "CD003"),
    "gpu.memory_total": Setting(values.size, "device memory of each GPU, at least", "CD004", _size),
    "gpu.memory_free": Setting(values.size, "free device memory of each GPU, at least", "CD005", _size),
    "gpu.temperature": Setting(
        values.integer(20, 150, "degrees C, from 20 to 150, such as 75"),
        "degrees C of each GPU, at most",
        "CD014",
    ),
    "gpu.pcie_generation": Setting(
        values.integer(1, 9, "a PCIe generation, such as 4"),
        "PCIe generation that card and slot can do, at least",
        "CD015",
    ),
    "gpu.pcie_width": Setting(
        values.integer(1, 32, "a number of PCIe lanes, such as 16"), "PCIe lanes of each GPU, at least", "CD015"
    ),
    "gpu.nvlink": Setting(
        values.only(True, "leave the line out where NVLink is not needed"), "each GPU's NVLinks are up", "CD016", _yes
    ),
    "gpu.mig": Setting(values.yes_or_no, "MIG mode of each GPU", "CD018", _yes),
    "gpu.mig_devices": Setting(values.count, "MIG devices of each GPU", "CD018"),
    "gpu.throttled": Setting(
        values.only(False, "leave the line out where slow clocks do not matter"), "clocks are held down", "CD019", _yes
    ),
    # -- driver, torch, NCCL
    "driver.version": Setting(values.versions(">=535,<600", 3), "version of the driver", "CD006"),
    "driver.cuda": Setting(values.cuda, "CUDA that the driver has to serve", "CD007"),
    "torch.version": Setting(values.versions(">=2.6,<2.8", 3), "version of torch", "CD008"),
    "torch.cuda": Setting(values.versions("12.6", 2), "CUDA that torch is built with", "CD008"),
    "nccl.version": Setting(values.versions(">=2.20", 3), "version of NCCL beside torch", "CD009"),
    # -- the node
    "system.memory_total": Setting(values.size, "memory that the job may use, at least", "CD013", _size),
    "system.memory_available": Setting(values.size, "memory that is free now, at least", "CD013", _size),
    "system.fabric_manager": Setting(
        values.only(True, "leave the line out where it need not run"), "the fabric manager runs", "CD017", _yes
    ),
    "limits.nofile": Setting(values.number_limit, "open files (soft limit), at least", "CD012"),
    "limits.memlock": Setting(values.size_limit, "lockable memory (soft limit), at least", "CD012", _limit),
    "disk.working": Setting(values.size, "free room in the working folder, at least", "CD010", _size),
    "disk.temporary": Setting(values.size, "free room for temporary files, at least", "CD010", _size),
    "disk.environment": Setting(values.size, "free room where packages lie, at least", "CD010", _size),
    "disk.cache": Setting(values.size, "free room where pip keeps downloads, at least", "CD010", _size),
    "disk.shm": Setting(values.size, "free room in /dev/shm, at least", "CD011", _size),
    # -- what is to be run: judged as `cudadoctor fit` judges it
    "fit.model": Setting(
        values.word('the name of a model such as "llama-3.1-8b", or a size such as "7b"'),
        "the model that has to fit into the memory of the GPUs",
        "CD801",
    ),
    "fit.train": Setting(values.one_of("full", "lora", "qlora"), "how it is trained; without: inference", "CD801"),
    "fit.quant": Setting(values.word('a type of weights such as "bf16" or "q4_k_m"'), "type of its weights", "CD801"),
    "fit.precision": Setting(
        values.one_of("bf16", "mixed", "fp16", "fp32"), "what the training computes and keeps in", "CD801"
    ),
    "fit.batch": Setting(values.integer(1, 1 << 20, "a number of sequences, such as 8"), "sequences at once", "CD801"),
    "fit.context": Setting(
        values.integer(1, 1 << 27, "a number of tokens, such as 8192"), "tokens of a sequence", "CD801"
    ),
    "fit.kv": Setting(values.word('a type of the cache such as "fp8"'), "type of the KV cache", "CD801"),
    "fit.engine": Setting(
        values.one_of("transformers", "vllm", "llama.cpp"), "what runs the model at inference", "CD801"
    ),
    "fit.attention": Setting(values.one_of("flash", "sdpa", "eager"), "how attention is computed", "CD801"),
    "fit.checkpointing": Setting(
        values.one_of("none", "full", "selective", "full_offload"), "activations that are computed again", "CD801"
    ),
    "fit.optimizer": Setting(values.word('an optimizer such as "adamw_8bit"'), "what updates the weights", "CD801"),
    "fit.loss": Setting(
        values.one_of("plain", "upcast", "fp32", "bf16", "chunked", "fused"), "how the loss is computed", "CD801"
    ),
    "fit.lora_rank": Setting(values.integer(1, 4096, "a rank such as 16"), "rank of the adapters", "CD801"),
    "fit.gpus": Setting(values.integer(1, 65536, "a number of GPUs, such as 8"), "GPUs that share the work", "CD801"),
    "fit.sharding": Setting(
        values.one_of("ddp", "zero1", "zero2", "zero3", "fsdp", "tp", "pp"), "how they share it", "CD801"
    ),
    "fit.offload": Setting(
        values.one_of("none", "optimizer", "all", "layers"), "what lies in the machine's memory instead", "CD801"
    ),
    # -- the options of check
    "check.fail_on": Setting(values.one_of(*SEVERITIES), "what exit 1 means"),
    "check.timeout": Setting(values.seconds, "deadline of the whole examination", None, _seconds),
    "check.unknown_ok": Setting(values.yes_or_no, "exit 0, not 3, where the verdict is undecided", None, _yes),
    "check.retry_code": Setting(
        values.integer(1, 255, "an exit status from 1 to 255, such as 75"),
        "exit status where all faults are the machine's",
    ),
    "check.blame": Setting(
        values.some_of(ENVIRONMENT, MACHINE, ALLOCATION), "only what these can mend counts", None, _list
    ),
    # -- cudadoctor verify
    "verify.checks": Setting(values.some_of(*CHECKS), "what `cudadoctor verify` has to prove", "CD020", _list),
    "verify.timeout": Setting(values.seconds, "deadline of that", None, _seconds),
}

# Sections whose keys are rules, not names of this table.
RULES = "rules"
IGNORE = "ignore"
SECTIONS = (*dict.fromkeys(name.partition(".")[0] for name in SETTINGS), RULES, IGNORE)


def keys_of(section: str) -> list[str]:
    """The keys of a section of the table."""
    return [name.partition(".")[2] for name in SETTINGS if name.startswith(section + ".")]


def shown(name: str, value: Any) -> str:
    """A value as the explanation shows it."""
    setting = SETTINGS[name]
    return setting.show(value) if setting.show is not None else str(value)
