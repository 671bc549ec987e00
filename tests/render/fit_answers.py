"""Answers made by hand, for looking at how they are shown; nothing is estimated here."""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.fit.answer import (
    DOES_NOT_FIT,
    FITS,
    TIGHT,
    UNKNOWN,
    Alternative,
    Answer,
    Change,
    Combination,
    Speed,
)
from cudadoctor.fit.architecture import (
    DECODER,
    FULL,
    MATRIX,
    Architecture,
    Attention,
    FeedForward,
    Layers,
    Model,
    Tensor,
)
from cudadoctor.fit.need import Interval, Need, Term
from cudadoctor.fit.target import Card, Machine, Target
from cudadoctor.fit.workload import FULL as TRAIN
from cudadoctor.fit.workload import Sharding, Workload

GIB = 1 << 30

LLAMA = Model(
    Architecture(
        "llama-3.1-8b",
        DECODER,
        "llama",
        4096,
        128256,
        (Layers(0, 32, Attention(FULL, 32, 8, 128), FeedForward(14336, True)),),
        (Tensor("all", MATRIX, (8_030_261_248,)),),
        max_context=131072,
        source="its config.json",
    ),
    "bf16",
)

RTX_4090 = Card("RTX 4090", 24 * GIB, int(23.5 * GIB), 1008e9, 165e12, "8.9", source="compat/gpus.toml (techpowerup)")


def gib(value: float) -> int:
    return int(value * GIB)


def interval(low: float, expected: float, high: float) -> Interval:
    """GiB."""
    return Interval(gib(low), gib(expected), gib(high))


def term(
    part: str, size: int, formula: str = "a * b", numbers: str = "1 * 2", name: str = "", spread: float = 0.0
) -> Term:
    around = int(size * spread)
    return Term(
        part, name or part, size, formula, numbers, "transformers, modeling_llama.py", size - around, size + around
    )


WEIGHTS_TERM = term("weights", 16_060_522_496, "P * 2 bytes", "8,030,261,248 * 2")

INFERENCE_NEED = Need(
    (
        WEIGHTS_TERM,
        term("kv_cache", gib(0.5), "2 * L * k * d * tokens * bytes", "2 * 32 * 8 * 128 * 4,096 * 2", "keys and values"),
        term("activations", gib(0.3), name="prefill", spread=0.2),
        term("cached", gib(0.1), name="allocator", spread=0.5),
        term("context", gib(0.45), name="CUDA context", spread=0.3),
    ),
    interval(15.6, 15.76, 15.9),
    interval(15.7, 15.86, 16.1),
    interval(16.0, 16.31, 16.7),
    interval(15.6, 15.76, 15.9),
    interval(5, 8, 15),
    1,
    "prefill",
    ("the prompt passes at once", "a CUDA context of 0.45 GiB: `--measure` measures it"),
    131072,
)

INFERENCE_SPEED = Speed(
    62.8,
    "1,008 GB/s / 16.1 GB that every token reads",
    (2.3, 32.1),
    "16.1 GB at 0.5 to 7 GB/s (SATA to NVMe)",
    "compat/memory.toml",
)

TRAIN_NEED = Need(
    (
        WEIGHTS_TERM,
        term("gradients", 16_060_522_496, "P * 2 bytes", "8,030,261,248 * 2"),
        term("optimizer", 32_121_044_992, "P * (2 + 2) bytes", "8,030,261,248 * 4", "AdamW states"),
        term("activations", gib(28.0), name="saved for the backward pass", spread=0.1),
        term("logits", gib(7.3), name="cross entropy", spread=0.2),
        term("cached", gib(4.0), name="allocator", spread=0.8),
        term("context", gib(0.45), name="CUDA context"),
    ),
    interval(92, 95.13, 100),
    interval(94, 99.13, 110),
    interval(94.5, 99.58, 110.5),
    interval(92, 95.13, 100),
    interval(8, 16, 16),
    1,
    "backward pass",
    ("sequences of one length",),
)

CHECKPOINTING = Change(
    "checkpointing",
    "Gradient checkpointing",
    ("model.gradient_checkpointing_enable()",),
    gib(26),
    "none",
    "some",
    "layers are computed again in the backward pass instead of being kept",
    "transformers",
)
QLORA = Change(
    "qlora",
    "QLoRA instead of training all parameters",
    ('BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")', "LoraConfig(r=16)"),
    gib(70),
    "some",
    "some",
)
SEGMENTS = Change(
    "expandable_segments",
    "Let the allocator grow its segments",
    ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",),
    gib(3.5),
    "none",
    "none",
)


def answer(**changes: Any) -> Answer:
    """Llama 3.1 8B for inference on an RTX 4090."""
    made = Answer(
        LLAMA,
        Workload(),
        Target("gpu", (RTX_4090,), Machine(), ()),
        INFERENCE_NEED,
        FITS,
        RTX_4090.free,
        gib(7.19),
        14,
        61_440,
        INFERENCE_SPEED,
        (),
        None,
        (),
    )
    return made._replace(**changes)


def training(cured: bool = True) -> Answer:
    """The same model, trained in full."""
    cure: Optional[Combination] = None
    if cured:
        cure = Combination((SEGMENTS, CHECKPOINTING, QLORA), interval(9.1, 10.2, 12.4), RTX_4090.free, FITS)
    return answer(
        workload=Workload(method=TRAIN, context=2048, batch=4),
        need=TRAIN_NEED,
        verdict=DOES_NOT_FIT,
        headroom=gib(23.5 - 99.58),
        largest_batch=None,
        longest_context=None,
        speed=Speed(None, "", (2.3, 32.1), "16.1 GB at 0.5 to 7 GB/s (SATA to NVMe)", ""),
        changes=(SEGMENTS, CHECKPOINTING, QLORA),
        cure=cure,
        alternatives=(
            Alternative("model", "llama-3.2-1b", 1, interval(14, 15, 17)),
            Alternative(
                "gpu", "H200", 1, interval(94.5, 99.58, 110.5), Card("H200", gib(141), gib(140), 4800e9, 989e12)
            ),
            Alternative(
                "rented", "H100 SXM5 80GB", 2, interval(60, 64, 70), Card("H100", gib(80), gib(79), 3350e9, 989e12)
            ),
        ),
        warnings=("RAM: 32 GiB (34 GB) is less than the 64 GiB (69 GB) that loading takes at its peak",),
    )


def tight() -> Answer:
    return answer(verdict=TIGHT, available=gib(16.5), headroom=gib(0.2), largest_batch=1, longest_context=5_000)


def without_gpu() -> Answer:
    return answer(
        target=Target("none"),
        verdict=UNKNOWN,
        available=None,
        headroom=None,
        largest_batch=None,
        longest_context=None,
    )


def on_eight() -> Answer:
    return answer(
        workload=Workload(sharding=Sharding("tp", 8)),
        target=Target("gpu", (RTX_4090,) * 8),
        need=INFERENCE_NEED._replace(gpus=8, all_gpus=interval(120, 122, 126)),
    )
