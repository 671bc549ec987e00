"""One question of `cudadoctor fit --spec`: a JSON object, its keys those of published measurements."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable, Optional

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.workload import (
    ALLOCATED,
    DEVICE,
    FULL,
    INFER,
    LORA,
    QLORA,
    RESERVED,
    WEIGHTS,
    Lora,
    Sharding,
    Workload,
)
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.fact import ParseError
from cudadoctor.model.record import NamedTuple

FILE = "file"


class Question(NamedTuple):
    """A row, read. `level` is what the answer is about: allocated, reserved, device (what nvidia-smi shows), or file
    (the bytes of the weights on the disk). `per_gpu` False: the sum over all GPUs is asked for."""

    model: Model
    workload: Workload
    level: str = DEVICE
    per_gpu: bool = True
    gpu: str = ""
    """The card as it was named; empty: none was."""
    vram: Optional[int] = None
    """Bytes of one GPU, where only a size was given."""
    id: str = ""
    notes: tuple[str, ...] = ()


# Keys that say nothing about the need: what was measured, by whom, and what others guessed.
_ABOUT = frozenset(
    (
        *("id", "cls", "class", "measured", "measured_bytes", "unit", "unit_ambiguous", "metric_note", "source", "url"),
        *("confidence", "note", "notes", "scored", "exclude", "naive_error_pct", "impl", "date", "hardware", "torch"),
        *("comment", "name"),
    )
)
# Key -> how it is called here. Rows of measurements and the options of the command line share one vocabulary.
_ALIASES = {
    "attention": "attn",
    "checkpointing": "ckpt",
    "gradient_checkpointing": "ckpt",
    "loss": "ce",
    "context": "seq",
    "seq_len": "seq",
    "sequence": "seq",
    "max_length": "seq",
    "weights": "quant",
    "dtype": "quant",
    "quantization": "quant",
    "quantisation": "quant",
    "engine": "framework",
    "gpus": "n_gpus",
    "sharding": "parallel",
    "rank": "lora_r",
    "lora_rank": "lora_r",
    "targets": "lora_targets",
    "kv": "kv_dtype",
    "kv_cache": "kv_dtype",
    "kv_quant": "kv_dtype",
    "level": "metric",
    "offload": "cpu_offload",
    "accumulation": "accum",
    "fused_kernels": "fused",
    "compile": "fused",
    "compiled": "fused",
    "torch_compile": "fused",
    "act_ckpt": "ckpt",
    "optimizer_in_backward": "opt_in_bwd",
    "master_bytes": "master",
    "vram_gib": "vram",
    "chunk": "prefill_chunk",
}
_KEYS = (
    *("model", "method", "quant", "batch", "prompt", "gen", "seq", "n_gpus", "parallel", "per_gpu", "gpu", "vram"),
    *("framework", "attn", "ckpt", "optimizer", "lora_r", "lora_targets", "lora_dropout", "lora_bpp", "data", "accum"),
    *(
        "opt_in_bwd",
        "ce",
        "fused",
        "foreach",
        "fused_optimizer",
        "master",
        "grad",
        "cpu_offload",
        "precision",
        "metric",
        "arch",
    ),
    *("kv_dtype", "prefill_chunk", "expandable_segments", "config", "variable_length", "tp", "pp"),
)

_METHODS = {
    "infer": INFER,
    "inference": INFER,
    "weights": WEIGHTS,
    "weights_only": WEIGHTS,
    "full": FULL,
    "lora": LORA,
    "qlora": QLORA,
}
_LOSSES = {
    "bf16_ce": "bf16",
    "hf_old": "upcast",
    "fp32_full": "fp32",
    "hf": "plain",
    "hf_new": "plain",
    "liger": "fused",
    "cce": "fused",
    "cut": "fused",
    "unsloth": "fused",
}
_CHECKPOINTING = {
    "true": "full",
    "false": "none",
    "off": "none",
    "selective_op": "selective",
    "op": "selective",
    "offload": "full_offload",
    "unsloth": "full_offload",
}
_PARALLEL = {
    "": "none",
    "none": "none",
    "ddp": "ddp",
    "dp": "ddp",
    "zero1": "zero1",
    "zero2": "zero2",
    "zero3": "zero3",
    "fsdp": "fsdp",
    "fsdp1": "fsdp",
    "fsdp2": "fsdp",
    "tp": "tp",
    "pp": "pp",
}
# Weights in these can be trained in full; in all others they are quantised.
_PLAIN = ("bf16", "fp16", "fp32", "float16", "bfloat16", "float32", "f16", "f32")


def read_row(matrix: Matrix, row: Mapping[str, Any], find: Optional[Callable[[str], Model]] = None) -> Question:
    """The question that one object asks. `find` reads what stands under "model" where that may be more than a name of
    the catalogue (a path). Raises ParseError, one sentence, for a key or a value that is not understood, and for two
    that contradict each other."""
    if not isinstance(row, Mapping):
        raise ParseError("A question is a JSON object, or a list of them.")
    said, notes = _known(row)
    method = _method(said)
    model = _model(matrix, said, find)
    level = _level(said, method)
    workload = _workload(said, method)
    if method in (LORA, QLORA) or method == FULL:
        workload = _training(said, workload)
    # Tables that spread a model's layers over several GPUs, without a word on how, print the sum.
    summed = method == INFER and workload.sharding.degree > 1 and "parallel" not in said
    per_gpu = _flag(said, "per_gpu", not summed)
    vram = _number(said, "vram", None, 10**6)
    return Question(
        model,
        workload._replace(stated=frozenset(said)),
        level,
        per_gpu,
        _word(said, "gpu", "", None),
        None if vram is None else round(vram * 2**30),
        str(row.get("id", "")),
        notes,
    )


def _known(row: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    said: dict[str, Any] = {}
    notes: list[str] = []
    # A published measurement carries remarks of its own; what a person asks for has to be understood.
    remarks = any(key in row for key in ("id", "cls", "source", "measured_bytes"))
    for key, value in row.items():
        name = str(key).strip().lower().replace("-", "_")
        name = _ALIASES.get(name, name)
        if name in _ABOUT or value is None:
            continue
        if name not in _KEYS:
            near = difflib.get_close_matches(name, (*_KEYS, *_ALIASES), 1, 0.75)
            if near:
                raise ParseError(f"The key {_shown(key)} is not known: {near[0]} is meant, perhaps.")
            if not remarks:
                raise ParseError(f"The key {_shown(key)} is not known; known are {', '.join(_KEYS)}.")
            notes.append(f"the key {_shown(key)} is not known and was left out")
            continue
        if name in said and said[name] != value:
            raise ParseError(f"The key {_shown(key)} contradicts another of the same meaning ({name}).")
        said[name] = value
    return said, tuple(notes)


def _method(said: Mapping[str, Any]) -> str:
    method = _METHODS.get(str(said.get("method", "infer")).lower())
    if method is None:
        raise ParseError(f"The method {_shown(said['method'])} is none of infer, weights, full, lora and qlora.")
    quantised = str(said.get("quant", "bf16")).lower() not in _PLAIN
    if method == LORA and quantised:
        return QLORA
    if method == FULL and quantised:
        raise ParseError(f"Weights in {_shown(said['quant'])} cannot be trained in full: that is what qlora is for.")
    return method


def _model(matrix: Matrix, said: Mapping[str, Any], find: Optional[Callable[[str], Model]]) -> Model:
    model = None
    name = said.get("model", "")
    if not isinstance(name, str):
        raise ParseError("The model is to be a name.")
    dimensions = said.get("config", said.get("arch"))
    if dimensions is not None and not isinstance(dimensions, Mapping):
        raise ParseError("The architecture is to be an object, as a config.json is.")
    if name:
        try:
            model = _by_name(matrix, name, find)
        except ParseError:
            if dimensions is None:
                raise
    elif dimensions is None:
        raise ParseError("No model is named: the key model is missing.")
    if model is None:
        from cudadoctor.fit.config import model_of_config

        model = model_of_config(_config(dimensions), name or "model")
    quant = said.get("quant")
    if quant is not None and model.stored is None:
        from cudadoctor.fit.quantisation import scheme

        model = model._replace(weights=scheme(matrix, _scheme_name(quant)).name)
    return model


def _by_name(matrix: Matrix, name: str, find: Optional[Callable[[str], Model]]) -> Model:
    if find is not None:
        return find(name)
    from cudadoctor.fit.catalogue import find as find_in_catalogue

    return find_in_catalogue(matrix, name)


def _scheme_name(value: Any) -> str:
    if not isinstance(value, str):
        raise ParseError(f"The quantisation is to be a name, not {_shown(value)}.")
    return value[len("gguf:") :] if value.lower().startswith("gguf:") else value


def _config(dimensions: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config.json as it is; or the short form of measurements (layers, hidden, heads, ...) as one of a Llama."""
    if "hidden_size" in dimensions or "model_type" in dimensions:
        return dimensions
    short = {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "intermediate": "intermediate_size",
        "vocab": "vocab_size",
        "tie_embeddings": "tie_word_embeddings",
        "window": "sliding_window",
        "experts": "num_local_experts",
        "top_k": "num_experts_per_tok",
    }
    config: dict[str, Any] = {
        long: dimensions[name] for name, long in short.items() if dimensions.get(name) is not None
    }
    config["model_type"] = "mixtral" if "num_local_experts" in config else "llama"
    return config


def _level(said: Mapping[str, Any], method: str) -> str:
    """Who prints "memory" mostly asks torch's allocator; who says nvidia-smi means what the card shows."""
    text = str(said.get("metric", "")).lower()
    if not text:
        return FILE if method == WEIGHTS else DEVICE
    if "file" in text or text == "weights":
        return FILE
    if "smi" in text or "nvml" in text or text in (DEVICE, "gpu memory", "vram", "process"):
        return DEVICE
    if RESERVED in text:
        return RESERVED
    if ALLOCATED in text or "active" in text or "peak" in text or text == "memory":
        return ALLOCATED
    raise ParseError(f"The metric {_shown(said['metric'])} is none of allocated, reserved, nvidia-smi and file size.")


def _workload(said: Mapping[str, Any], method: str) -> Workload:
    prompt, answer = _whole(said, "prompt", None), _whole(said, "gen", None)
    context = _whole(said, "seq", None)
    if context is None:
        context = (prompt or 0) + (answer or 0) or Workload().context
    elif method == INFER and prompt is not None and prompt > context:
        raise ParseError(f"The prompt ({prompt} tokens) is longer than the context ({context}).")
    framework = _word(said, "framework", "", None)
    number = _whole(said, "n_gpus", 1) or 1
    kind = _word(said, "parallel", "none", _PARALLEL, "none, ddp, zero1, zero2, zero3, fsdp, tp and pp")
    for name in ("tp", "pp"):
        degree = _whole(said, name, 1) or 1
        if degree > 1 and kind == "none":
            kind, number = name, degree
        elif degree > 1 and kind != name:
            raise ParseError(f"Two ways to share the work are said, {kind} and {name}: only one of them is counted.")
    if kind != "none" and number == 1 and "n_gpus" not in said:
        raise ParseError(f"How many GPUs share the work ({kind}) is not said: the key n_gpus is missing.")
    if kind == "none" and number > 1:
        kind = "pp" if method == INFER else "ddp"
    return Workload(
        method=method,
        batch=max(1, _whole(said, "batch", 1) or 1),
        context=max(1, context),
        prompt=prompt if prompt else None,
        engine=_engine(framework),
        framework=framework,
        attention=_word(said, "attn", "sdpa", {"flash": "flash", "fa2": "flash", "flash_attention_2": "flash",
                                               "sdpa": "sdpa", "eager": "eager", "math": "eager",
                                               "xformers": "flash", "fa3": "flash", "flex": "flash"},
                        "flash, sdpa and eager"),
        kv=_word(said, "kv_dtype", "bf16", None),
        prefill_chunk=_whole(said, "prefill_chunk", 0) or 0,
        sharding=Sharding(kind, number),
        offload=_offload(said),
    )  # fmt: skip


def _engine(framework: str) -> str:
    """What runs it: of the three that are told apart, the one whose name it bears."""
    lower = framework.lower()
    for words, engine in ((("vllm",), "vllm"), (("llama.cpp", "llama-cpp", "ollama", "gguf"), "llama.cpp")):
        if any(word in lower for word in words):
            return engine
    return "transformers"


def _training(said: Mapping[str, Any], workload: Workload) -> Workload:
    quant = str(said.get("quant", "bf16")).lower()
    precision = _word(
        said,
        "precision",
        "fp32" if quant in ("fp32", "f32", "float32") else "bf16",
        {
            "bf16": "bf16",
            "bfloat16": "bf16",
            "bf16-true": "bf16",
            "pure-bf16": "bf16",
            "mixed": "mixed",
            "amp": "mixed",
            "bf16-mixed": "mixed",
            "fp16": "fp16",
            "16-mixed": "fp16",
            "fp32": "fp32",
            "float32": "fp32",
            "tf32": "fp32",
        },
        "bf16, mixed, fp16 and fp32",
    )
    optimizer = _word(said, "optimizer", "adamw", None).lower()
    master = _whole(said, "master", None)
    if master is None and "fp32" in str(said.get("grad", "")):
        master = 4
    data = str(said.get("data", "")).lower()
    dropout = _number(said, "lora_dropout", 0.0, 1.0) or 0.0
    return workload._replace(
        precision=precision,
        optimizer="adamw" if optimizer == "adamw_bf16" else optimizer,
        master_bytes=master,
        fused_optimizer=_flag(said, "fused_optimizer", optimizer.endswith("_fused"))
        and not _flag(said, "foreach", False),
        fused_kernels=_flag(said, "fused", False),
        optimizer_in_backward=_flag(said, "opt_in_bwd", False),
        checkpointing=_word(
            said,
            "ckpt",
            "none",
            {**_CHECKPOINTING, **{name: name for name in ("none", "full", "selective", "full_offload")}},
            "none, full, selective and full_offload",
        ),
        loss=_word(
            said,
            "ce",
            "plain",
            {**_LOSSES, **{name: name for name in ("plain", "upcast", "fp32", "bf16", "chunked", "fused")}},
            "plain, upcast, fp32, bf16, chunked and fused",
        ),
        lora=Lora(
            rank=_whole(said, "lora_r", 16) or 16,
            targets=_targets(said.get("lora_targets")),
            dropout=dropout,
            width=_whole(said, "lora_bpp", None) or _adapter_width(workload.framework, precision),
        ),
        accumulation=_flag(said, "accum", False),
        variable_length=_flag(said, "variable_length", "variable length" in data),
        expandable_segments=_flag(said, "expandable_segments", False),
    )


def _adapter_width(framework: str, precision: str) -> int:
    """PEFT makes adapters in fp32 whatever the model is kept in; litgpt and torchtune make them as the model is."""
    lower = framework.lower()
    own = any(name in lower for name in ("litgpt", "torchtune"))
    return 2 if own and precision == "bf16" else 4


_TARGETS = {
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "o",
    "out_proj": "o",
    "output_proj": "o",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "qkv_fused": "qkv",
    "qkv_proj": "qkv",
    "c_attn": "qkv",
    "query_key_value": "qkv",
    "all-linear": "all",
    "all_linear": "all",
    "mlp": "all_mlp",
    "lm_head": "head",
    "query": "q",
    "key": "k",
    "value": "v",
    "w1": "gate",
    "w2": "down",
    "w3": "up",
}


def _targets(value: Any) -> tuple[str, ...]:
    if value is None:
        return Lora().targets
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not words or not all(isinstance(word, str) for word in words):
        raise ParseError("The targets of LoRA are to be a list of names, as q, v or gate.")
    found: list[str] = []
    for word in words:
        name = _TARGETS.get(word.strip().lower(), word.strip().lower())
        found += ("gate", "up", "down") if name == "all_mlp" else (name,)
    return tuple(dict.fromkeys(found))


def _offload(said: Mapping[str, Any]) -> str:
    value = said.get("cpu_offload", False)
    if isinstance(value, bool):
        return "all" if value else "none"
    return _word(
        said,
        "cpu_offload",
        "none",
        {"none": "none", "optimizer": "optimizer", "all": "all", "layers": "layers", "cpu": "all", "params": "all"},
        "none, optimizer, all and layers",
    )


def _word(said: Mapping[str, Any], key: str, default: str, known: Optional[Mapping[str, str]], listed: str = "") -> str:
    value = said.get(key, default)
    if isinstance(value, bool) and known is not None and str(value).lower() in known:
        value = str(value).lower()
    if not isinstance(value, str):
        raise ParseError(f"The value of {key} is to be a word, not {_shown(value)}.")
    word = value.strip()
    if known is None:
        return word
    if word.lower() not in known:
        raise ParseError(f"The value of {key}, {_shown(value)}, is none of {listed}.")
    return known[word.lower()]


def _whole(said: Mapping[str, Any], key: str, default: Optional[int], most: int = 10**9) -> Optional[int]:
    value = said.get(key, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or not 0 <= value <= most:
        raise ParseError(f"The value of {key} is to be a number from 0 to {most}, not {_shown(value)}.")
    if int(value) != value:
        raise ParseError(f"The value of {key} is to be a whole number, not {_shown(value)}.")
    return int(value)


def _number(said: Mapping[str, Any], key: str, default: Optional[float], most: float) -> Optional[float]:
    value = said.get(key, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ParseError(f"The value of {key} is to be a number from 0 to {most:g}, not {_shown(value)}.")
    return float(value)


def _flag(said: Mapping[str, Any], key: str, default: bool) -> bool:
    value = said.get(key, default)
    if value in (0, 1):
        return bool(value)
    raise ParseError(f"The value of {key} is to be true or false, not {_shown(value)}.")


def _shown(value: Any) -> str:
    """A value out of somebody's file, short enough for a sentence."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
