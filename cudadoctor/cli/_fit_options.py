"""The options of `cudadoctor fit`. What their values are called is read where --spec's rows are read, too."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional, TypeVar

import click

from cudadoctor.fit.workload import ATTENTION_KINDS, ENGINES, LOSSES, PRECISIONS

F = TypeVar("F", bound=Callable[..., Any])

_MOST = 10**9

# Where a context keeps what was typed for an option: the command that asks the same again is made of it.
AS_TYPED = "cudadoctor.as_typed."


_UNITS = {"": 1 << 30, "gib": 1 << 30, "gb": 10**9, "mib": 1 << 20, "mb": 10**6, "tib": 1 << 40, "tb": 10**12}


def _count(ctx: click.Context, option: click.Parameter, value: Optional[str]) -> Optional[int]:
    """A whole number from 1 on; 8k and 32K are multiples of 1024, as contexts are."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,10})([kK]?)", value.strip().replace("_", "").replace(",", ""))
    number = int(match.group(1)) * (1024 if match.group(2) else 1) if match else 0
    if not 1 <= number <= _MOST:
        raise click.BadParameter(f"{value!r} is not a whole number from 1 on, such as 4096 or 32k", ctx, option)
    ctx.meta[f"{AS_TYPED}{option.name}"] = value
    return number


def _amount(ctx: click.Context, option: click.Parameter, value: Optional[str]) -> Optional[int]:
    """GiB as bytes. Who writes a unit is taken at their word: 24, 24GiB, 24GB."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]*)", value.strip().lower())
    unit = _UNITS.get(match.group(2)) if match else None
    number = round(float(match.group(1)) * unit) if match and unit else 0
    if not 0 < number <= 1 << 60:
        raise click.BadParameter(f"{value!r} is not an amount in GiB, such as 24 or 23.5 (or 24GB)", ctx, option)
    ctx.meta[f"{AS_TYPED}{option.name}"] = value
    return number


MODEL_OPTIONS = (
    click.option(
        "--spec",
        metavar="FILE",
        help="Answer the questions of FILE (-: standard input): a JSON object or a list of them.",
    ),
    click.option(
        "--quant",
        metavar="TYPE",
        help="Of the weights: bf16, fp8, int8, nf4, awq, q4_k_m ... [as stored; q4_k_m for llama.cpp].",
    ),
)

RUN_OPTIONS = (
    click.option("--infer", is_flag=True, help="Run the model [this is what is asked]."),
    click.option("--train", type=click.Choice(["full", "lora", "qlora"]), help="Train it: all of it, or adapters."),
    click.option("--batch", callback=_count, metavar="N", help="Sequences at once, on each GPU [1]."),
    click.option(
        "--context",
        "--seq",
        callback=_count,
        metavar="N",
        help="Tokens of a sequence, prompt and answer together, such as 32k [4096, or what the model can].",
    ),
    click.option("--prompt", callback=_count, metavar="N", help="How many of them are the prompt [all]."),
    click.option("--kv", metavar="TYPE", help="Of the KV cache: bf16, fp8, q8_0 ... [bf16]."),
    click.option(
        "--engine",
        type=click.Choice((*ENGINES, "ollama")),
        help="What runs it [transformers; llama.cpp for GGUF].",
    ),
    click.option("--attention", type=click.Choice(ATTENTION_KINDS), help="How it is computed [sdpa]."),
    click.option("--optimizer", metavar="NAME", help="Of training: adamw, adamw_8bit, adafactor, sgd ... [adamw]."),
    click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        help="Of training: all in bf16, or fp32 weights with autocast (mixed, fp16) [bf16; fp16 on GPUs without it].",
    ),
    click.option(
        "--checkpointing",
        type=click.Choice(["none", "selective", "full", "offload"]),
        help="Of activations, in training [none; full for qlora, as PEFT does].",
    ),
    click.option(
        "--loss",
        type=click.Choice(LOSSES),
        help="How the cross entropy is computed [plain: as transformers does]; fused is Liger or CCE.",
    ),
    click.option("--lora-rank", callback=_count, metavar="N", help="Rank of the adapters [16]."),
    click.option("--lora-targets", metavar="NAMES", help="What has adapters: q,v or all [all matrices of the layers]."),
    click.option("--accumulate", is_flag=True, help="Sum the gradients of several batches before a step."),
    click.option("--zero", type=click.IntRange(1, 3), metavar="STAGE", help="DeepSpeed's ZeRO, over all GPUs."),
    click.option("--fsdp", callback=_count, metavar="N", help="Shard over N GPUs."),
    click.option("--tp", callback=_count, metavar="N", help="Split every layer over N GPUs (tensor parallel)."),
    click.option("--pp", callback=_count, metavar="N", help="Spread the layers over N GPUs (pipeline, device_map)."),
    click.option(
        "--offload",
        type=click.Choice(["optimizer", "all", "layers"]),
        help="Keep this in the machine's memory: the optimizer, all, or the layers that do not fit (inference).",
    ),
    click.option("--expandable-segments", is_flag=True, help="PYTORCH_CUDA_ALLOC_CONF has expandable_segments:True."),
    click.option("--fused-optimizer", is_flag=True, help="The optimizer's step is one kernel (fused=True)."),
    click.option("--fused-kernels", is_flag=True, help="Training with torch.compile, or Liger's kernels."),
    click.option("--variable-length", is_flag=True, help="Sequences of training differ in length and are not packed."),
)

TARGET_OPTIONS = (
    click.option(
        "--gpu",
        "gpus",
        multiple=True,
        metavar="NAME[xN]",
        help='On this GPU: "RTX 4090", H100x8 [those of this machine].',
    ),
    click.option(
        "--gpus", "number", callback=_count, metavar="N", help="How many GPUs share the work [1, or N of --gpu]."
    ),
    click.option("--vram", callback=_amount, metavar="GIB", help="So much memory is free on each GPU."),
    click.option(
        "--ram", callback=_amount, metavar="GIB", help="The machine has so much memory, beside --gpu or --vram."
    ),
    click.option(
        "--os",
        "system",
        type=click.Choice(["linux", "windows", "wsl"]),
        help="The system there, beside --gpu or --vram: not every change works everywhere.",
    ),
    click.option(
        "--disk",
        type=click.Choice(["nvme", "ssd", "hdd", "network"]),
        help="What the model is read from [of this machine].",
    ),
    click.option(
        "--measure",
        is_flag=True,
        help="Ask the environment's torch, too: a dry run without weights in a process of its own.",
    ),
)


def _adding(options: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


model_options = _adding(MODEL_OPTIONS)
run_options = _adding(RUN_OPTIONS)
target_options = _adding(TARGET_OPTIONS)
