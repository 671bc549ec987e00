"""What is to be done with a model: the options of `cudadoctor fit`, read and completed."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple

INFER, FULL, LORA, QLORA, WEIGHTS = "infer", "full", "lora", "qlora", "weights"

# The words of each choice, as people give them (training frameworks and optimizers stand in compat/memory.toml).
ENGINES = ("transformers", "vllm", "llama.cpp")
ATTENTION_KINDS = ("flash", "sdpa", "eager")
PRECISIONS = ("bf16", "mixed", "fp16", "fp32")
CHECKPOINTINGS = ("none", "full", "selective", "full_offload")
LOSSES = ("plain", "upcast", "fp32", "bf16", "chunked", "fused")
OFFLOADS = ("none", "optimizer", "all", "layers")

# What a measurement or a limit is about.
ALLOCATED, RESERVED, DEVICE = "allocated", "reserved", "device"


class Lora(NamedTuple):
    rank: int = 16
    targets: tuple[str, ...] = ("q", "k", "v", "o", "gate", "up", "down")
    """Names of Tensor, or "all" (every matrix of the layers), "head"."""
    dropout: float = 0.0
    width: int = 4
    """Bytes of an adapter's parameter: PEFT keeps them in fp32."""


class Sharding(NamedTuple):
    """How the work is spread over GPUs. `kind`: none, zero1, zero2, zero3, fsdp, tp, pp, ddp."""

    kind: str = "none"
    degree: int = 1


class Workload(NamedTuple):
    """Everything that decides how much memory is needed beside the model itself. Sizes in tokens, or sequences.

    What a person did not say holds a default; `stated` names the fields that were said, so that the output can tell
    which were not."""

    method: str = INFER
    batch: int = 1
    context: int = 4096
    """Tokens of a sequence: prompt and answer together, or the length of a training sequence. For speech and vision:
    what the decoder holds."""
    prompt: Optional[int] = None
    """Inference: how many of them are the prompt (they pass at once); None: all."""
    engine: str = "transformers"
    framework: str = ""
    """As a measurement names it: litgpt, torchtune, ms-swift, ... ; empty: the engine's, for training transformers."""
    attention: str = "sdpa"
    """flash, sdpa, eager."""
    kv: str = "bf16"
    """Type of the KV cache: a name of compat/quantisations.toml."""
    prefill_chunk: int = 0
    """Prompt tokens that pass at once; 0: all of them, unless the engine has a default."""
    precision: str = "bf16"
    """Of training: bf16 (all in bf16), mixed (fp32 weights, autocast), fp32, fp16 (mixed)."""
    optimizer: str = "adamw"
    """A name of compat/memory.toml: adamw (states as wide as the parameters), adamw_fp32, adamw_8bit,
    paged_adamw_8bit, sgd, adafactor, lion_8bit, muon, ..."""
    master_bytes: Optional[int] = None
    """Bytes of an extra copy of each trained parameter; None: what the precision implies."""
    fused_optimizer: bool = False
    """One kernel for the step: without it, torch's AdamW makes copies as large as the parameters."""
    optimizer_in_backward: bool = False
    checkpointing: str = "none"
    """none, full, selective, full_offload."""
    loss: str = "plain"
    """plain (current transformers), upcast (transformers before 4.45), fp32, bf16, chunked, fused (Liger, CCE)."""
    lora: Lora = Lora()
    accumulation: bool = False
    """Gradients of several micro-batches are summed: they stay while the next one runs."""
    sharding: Sharding = Sharding()
    offload: str = "none"
    """To the machine's memory: none, optimizer, all (parameters, gradients and states), layers (inference)."""
    gpu_layers: Optional[int] = None
    """With the offload of layers: so many of them stay on the GPUs (llama.cpp's -ngl); None: as few as can be."""
    variable_length: bool = False
    expandable_segments: bool = False
    fused_kernels: bool = False
    """Training: torch.compile or Liger's kernels, whose norms and activations save their input only."""
    cuda_context: Optional[int] = None
    """Bytes that CUDA itself takes on the GPU, where somebody measured them; None: what is commonly seen."""
    stated: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    """Sentences: what was said of it and not understood, and what was taken instead."""

    @property
    def trains(self) -> bool:
        return self.method in (FULL, LORA, QLORA)
