"""One question of `cudadoctor fit --spec`: a JSON object, its keys those of published measurements."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable, Optional

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.spec_words import (
    ABOUT,
    ALIASES,
    ATTENTION,
    BITS,
    CHECKPOINTING,
    KEYS,
    LOSS,
    MATRICES,
    METHODS,
    NO,
    OF_INFERENCE,
    OF_THE_DEVICE,
    OF_TRAINING,
    OFFLOAD,
    PARALLEL,
    PARALLEL_WORDS,
    PLAIN,
    PRECISION,
    SEVERAL,
    SHORT,
    TARGETS,
)
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


class _Said(dict[str, Any]):
    """What a row says, under the names used here. `published`: it is somebody's measurement, in words of its own; what
    is not understood of it is put down in `unread`, and what is usual is taken. A question is refused instead."""

    def __init__(self, published: bool = False) -> None:
        super().__init__()
        self.published = published
        self.unread: list[str] = []

    def refuse(self, sentence: str, key: str, instead: Any) -> Any:
        """`instead`, if the row is a published one; else ParseError."""
        if not self.published:
            raise ParseError(sentence)
        usual = "what is usual" if instead in (None, "") else ascii(instead)
        note = f"{key} {_shown(self.get(key))} is not understood: {usual} is assumed"
        if note not in self.unread:
            self.unread.append(note)
        return instead


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


def read_row(matrix: Matrix, row: Mapping[str, Any], find: Optional[Callable[[str], Model]] = None) -> Question:
    """The question that one object asks. `find` reads what stands under "model" where that may be more than a name of
    the catalogue (a path). Raises ParseError, one sentence, for a key or a value that is not understood, and for two
    that contradict each other."""
    if not isinstance(row, Mapping):
        raise ParseError("A question is a JSON object, or a list of them.")
    said, notes = _known(row)
    method = _method(said)
    _is_about(said, method)
    model = _model(matrix, said, find)
    level = _level(said, method)
    workload = _workload(matrix, said, method)
    if method in (LORA, QLORA) or method == FULL:
        if said.published:
            workload = workload._replace(framework=_who_ran_it(matrix, workload.framework, row.get("source")))
        workload = _training(matrix, said, workload)
    # Tables that spread a model's layers over several GPUs, without a word on how, print the sum.
    summed = method == INFER and workload.sharding.degree > 1 and "parallel" not in said
    per_gpu = _flag(said, "per_gpu", not summed)
    vram = _number(said, "vram", None, 10**6)
    if vram == 0:
        raise ParseError("The value of vram is to be the GiB of a GPU, and none has 0.")
    return Question(
        model,
        workload._replace(stated=frozenset(said), unread=tuple(said.unread)),
        level,
        per_gpu,
        _word(said, "gpu", "", None),
        None if vram is None else round(vram * 2**30),
        str(row.get("id", "")),
        notes,
    )


def _known(row: Mapping[str, Any]) -> tuple[_Said, tuple[str, ...]]:
    # A published measurement carries remarks of its own; what a person asks for has to be understood.
    remarks = any(key in row for key in ("id", "cls", "source", "measured_bytes"))
    said = _Said(remarks)
    notes: list[str] = []
    for key, value in row.items():
        name = str(key).strip().lower().replace("-", "_")
        name = ALIASES.get(name, name)
        if name in ABOUT or value is None or (remarks and name.endswith("_note")):
            continue
        if name not in KEYS:
            near = difflib.get_close_matches(name, (*KEYS, *ALIASES), 1, 0.8 if remarks else 0.75)
            if near:
                raise ParseError(f"The key {_shown(key)} is not known: {near[0]} is meant, perhaps.")
            if not remarks:
                raise ParseError(f"The key {_shown(key)} is not known; known are {', '.join(KEYS)}.")
            notes.append(f"the key {_shown(key)} is not known and was left out")
            continue
        if name in said and said[name] != value:
            if remarks and name != str(key):  # the key of that very name counts, or the first of the others
                said.unread.append(f"{_shown(key)} says something else than {name}: {_shown(said[name])} is assumed")
                continue
            raise ParseError(f"The key {_shown(key)} contradicts another of the same meaning ({name}).")
        said[name] = value
    if row.get("impl") == "no_prefill":
        # What is left once the prompt has passed was measured.
        said.setdefault("prefill_chunk", 1)
    return said, tuple(notes)


def _method(said: _Said) -> str:
    text = str(said.get("method", "infer")).lower()
    method = METHODS.get(text)
    if method is None:
        # dora, rslora, loftq and others are adapters of the same size.
        tuned = LORA if "lora_r" in said or "lora_targets" in said else FULL
        guess = LORA if "lora" in text or "dora" in text else FULL if "full" in text or "sft" in text else ""
        guess = guess or (tuned if {"optimizer", "ckpt", "lora_r", "seq"} & set(said) else INFER)
        sentence = f"The method {_shown(said['method'])} is none of infer, weights, full, lora and qlora."
        method = said.refuse(sentence, "method", guess)
    quantised = str(said.get("quant", "bf16")).lower() not in PLAIN
    if method == LORA and quantised:
        return QLORA
    if method == FULL and quantised:
        sentence = f"Weights in {_shown(said['quant'])} cannot be trained in full: that is what qlora is for."
        said["quant"] = said.refuse(sentence, "quant", "bf16")
    return str(method)


def _is_about(said: _Said, method: str) -> None:
    """ParseError where a question is answered as if something in it did not stand there."""
    trains = method in (FULL, LORA, QLORA)
    for name in () if said.published else OF_INFERENCE if trains else OF_TRAINING:
        if said.get(name) not in (None, False, "none", 0):
            kind = "running a model, and it is to be trained" if trains else "training: add method full, lora or qlora"
            raise ParseError(f"The key {name} is about {kind}.")


def _model(matrix: Matrix, said: _Said, find: Optional[Callable[[str], Model]]) -> Model:
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
    if isinstance(dimensions, Mapping) and (model is None or said.published):
        model = _of_dimensions(matrix, said, dimensions, name or "model", model)
    assert model is not None
    quant = said.get("quant")
    if quant is not None and model.stored is None:
        from cudadoctor.fit.quantisation import scheme

        try:
            stored = scheme(matrix, _scheme_name(quant)).name
        except ParseError as error:
            bits = BITS.search(str(quant))
            usual = {"4": "gptq-int4", "8": "int8", "16": "bf16"}.get(bits.group(1) if bits else "")
            if usual is None:
                raise
            stored = said.refuse(str(error), "quant", usual)
        model = model._replace(weights=stored)
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


# What a model of whose dimensions alone are known may be built like: with gated feed-forward parts, or without.
_ALIKE = ("llama", "gpt_neox")
_SAME = 0.01
# Further off than that, a size alone says more than dimensions of which some are missing.
_GUESS = 0.2


def _of_dimensions(
    matrix: Matrix, said: _Said, dimensions: Mapping[str, Any], name: str, named: Optional[Model]
) -> Model:
    """The model that a config.json describes, or the short form of measurements (layers, hidden, heads, ...). `named`:
    what the catalogue has under its name, which stays unless its count is not the one that is told."""
    from cudadoctor.fit.config import model_of_config

    count = dimensions.get("params", dimensions.get("total_params"))
    told = isinstance(count, int) and not isinstance(count, bool) and 0 < count < 10**14
    if "hidden_size" in dimensions or "model_type" in dimensions:
        return named or model_of_config(dimensions, name)

    def off(model: Model) -> float:
        return abs(model.architecture.parameters / count - 1) if told else 0.0

    if named is not None and off(named) <= _SAME:
        return named
    found = [named] if named is not None else []
    error: Optional[ParseError] = None
    for config in (*_towers(matrix, named), *_configs(dimensions)):
        try:
            found.append(model_of_config(config, named.architecture.name if named else name))
        except ParseError as refused:
            error = error or refused
    if named is None and told and said.published and all(off(model) > _GUESS for model in found):
        from cudadoctor.fit.typical import model_of_size

        model = model_of_size(matrix, f"{count / 10**6:.0f}m")
        said.refuse("", "arch", f"a decoder of {count:,} parameters")
        return model
    if not found:
        raise error if error is not None else ParseError("The architecture is empty.")
    best = min(found, key=off)
    if off(best) > 2 * _SAME:
        said.unread.append(
            f"the dimensions tell {best.architecture.parameters:,} parameters, and {count:,} are told: the former are "
            "counted"
        )
    return best


def _towers(matrix: Matrix, named: Optional[Model]) -> list[Mapping[str, Any]]:
    """Of a model that sees as well: what it is without that."""
    if named is None:
        return []
    row = next((row for row in matrix.models() if row.name == named.architecture.name), None)
    inner = row.config.get("text_config") if row is not None else None
    return [inner] if isinstance(inner, Mapping) else []


def _configs(dimensions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The short form of measurements as config.json's of what is commonly built."""
    config: dict[str, Any] = {
        long: dimensions[name] for name, long in SHORT.items() if dimensions.get(name) is not None
    }
    if config.get("num_local_experts"):
        return [{**config, "model_type": "mixtral"}]
    return [{**config, "model_type": family} for family in _ALIKE]


def _level(said: _Said, method: str) -> str:
    """Who prints "memory" mostly asks torch's allocator; who says nvidia-smi means what the card shows."""
    text = str(said.get("metric", "")).lower()
    if not text:
        return FILE if method == WEIGHTS else DEVICE
    if "file" in text or text == "weights":
        return FILE
    # nvitop, nvtop, gpustat, wandb's figures and the like ask NVML.
    if any(word in text for word in OF_THE_DEVICE) or text in (DEVICE, "gpu memory", "vram", "process"):
        return DEVICE
    if RESERVED in text:
        return RESERVED
    if ALLOCATED in text or "active" in text or "peak" in text or text == "memory":
        return ALLOCATED
    sentence = f"The metric {_shown(said['metric'])} is none of allocated, reserved, nvidia-smi and file size."
    return str(said.refuse(sentence, "metric", ALLOCATED if method == WEIGHTS else DEVICE))


def _workload(matrix: Matrix, said: _Said, method: str) -> Workload:
    prompt, answer = _whole(said, "prompt", None), _whole(said, "gen", None)
    context = _whole(said, "seq", None, least=1)
    if context is None:
        context = (prompt or 0) + (answer or 0) or Workload().context
    elif method == INFER and prompt is not None and prompt > context:
        said.refuse(f"The prompt ({prompt} tokens) is longer than the context ({context}).", "seq", prompt)
        context = prompt + (answer or 0)
    framework = _word(said, "framework", "", None)
    number = _whole(said, "n_gpus", 1, least=1) or 1
    kind = _parallel(said)
    for name in ("tp", "pp"):
        degree = _whole(said, name, 1, least=1) or 1
        if degree > 1 and kind == "none":
            kind, number = name, degree
        elif degree > 1 and kind != name:
            sentence = f"Two ways to share the work are said, {kind} and {name}: only one of them is counted."
            kind = str(said.refuse(sentence, name, kind))
    if kind != "none" and number == 1 and "n_gpus" not in said:
        said.refuse(f"How many GPUs share the work ({kind}) is not said: the key n_gpus is missing.", "n_gpus", 1)
    if kind == "none" and number > 1:
        kind = "pp" if method == INFER else "ddp"
    return Workload(
        method=method,
        batch=_whole(said, "batch", 1, least=0 if method == WEIGHTS else 1) or 1,
        context=max(1, context),
        prompt=prompt if prompt else None,
        engine=_engine(framework),
        framework=framework,
        attention=_word(said, "attn", "sdpa", ATTENTION),
        kv=_cache_type(matrix, said),
        prefill_chunk=_whole(said, "prefill_chunk", 0) or 0,
        sharding=Sharding(kind, number),
        offload=_offload(said),
    )  # fmt: skip


def _parallel(said: _Said) -> str:
    """Combinations are counted as the one of them that divides the states of training."""
    text = said.get("parallel", "none")
    plain = text.strip().lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(text, str) else ""
    if plain in PARALLEL:
        return PARALLEL[plain]
    if said.published:
        for word, kind in PARALLEL_WORDS.items():
            if word in plain:
                return str(said.refuse("", "parallel", kind))
    return _word(said, "parallel", "none", PARALLEL)


def _cache_type(matrix: Matrix, said: _Said) -> str:
    kv = _word(said, "kv_dtype", "bf16", None)
    if kv.lower() in ("auto", "default", "model", "16"):
        return "bf16"
    if not said.published:
        return kv
    from cudadoctor.fit.quantisation import scheme

    try:
        return scheme(matrix, kv).name
    except ParseError as error:
        return str(said.refuse(str(error), "kv_dtype", "fp8" if "8" in kv else "bf16"))


def _who_ran_it(matrix: Matrix, framework: str, source: Any) -> str:
    """Rows name the library where the program that trained is the one that their source is about."""
    library = matrix.training_framework("").name
    if not isinstance(source, str) or matrix.training_framework(framework).name != library:
        return framework
    program = matrix.training_framework(source[:200]).name
    return framework if program == library else f"{program} ({framework or library})"


def _engine(framework: str) -> str:
    """What runs it: of the three that are told apart, the one whose name it bears."""
    lower = framework.lower()
    for words, engine in ((("vllm",), "vllm"), (("llama.cpp", "llama-cpp", "ollama", "gguf"), "llama.cpp")):
        if any(word in lower for word in words):
            return engine
    return "transformers"


def _training(matrix: Matrix, said: _Said, workload: Workload) -> Workload:
    quant = str(said.get("quant", "bf16")).lower()
    precision = _word(
        said,
        "precision",
        "fp32" if quant in ("fp32", "f32", "float32") else "bf16",
        PRECISION,
    )
    optimizer = _word(said, "optimizer", "adamw", None).lower()
    master = _whole(said, "master", None)
    if master is None and "fp32" in str(said.get("grad", "")):
        master = 4
    data = str(said.get("data", "")).lower()
    dropout = _number(said, "lora_dropout", 0.0, 1.0) or 0.0
    return workload._replace(
        precision=precision,
        optimizer=_optimizer(matrix, said, optimizer),
        master_bytes=master,
        fused_optimizer=_flag(said, "fused_optimizer", optimizer.endswith("_fused"))
        and not _flag(said, "foreach", False),
        fused_kernels=_flag(said, "fused", False),
        optimizer_in_backward=_flag(said, "opt_in_bwd", False),
        checkpointing=_word(
            said,
            "ckpt",
            "none",
            CHECKPOINTING,
        ),
        loss=_word(
            said,
            "ce",
            "plain",
            LOSS,
        ),
        lora=Lora(
            rank=_whole(said, "lora_r", 16, least=1) or 16,
            targets=_targets(said),
            dropout=dropout,
            width=_whole(said, "lora_bpp", None) or _adapter_width(matrix, workload.framework, precision),
        ),
        accumulation=_flag(said, "accum", False),
        variable_length=_flag(said, "variable_length", "variable length" in data),
        expandable_segments=_flag(said, "expandable_segments", False),
    )


def _optimizer(matrix: Matrix, said: _Said, name: str) -> str:
    from cudadoctor.fit.optimizers import optimizer

    name = name.replace(" ", "_").replace("-", "_")
    if not said.published:
        return "adamw" if name == "adamw_bf16" else name
    try:
        return optimizer(matrix, name).name if name != "adamw_bf16" else "adamw"
    except ParseError as error:
        paged, eight = "paged" in name, "8" in name and "bit" in name
        like = "lion_8bit" if "lion" in name and eight else "adamw_8bit" if eight else "adamw"
        like = "paged_" + like if paged and like.startswith("adamw") else like
        for other in ("sgd", "adafactor", "muon", "lion", "rmsprop", "adagrad"):
            if other in name and not eight:
                like = other
        return str(said.refuse(str(error), "optimizer", like))


def _adapter_width(matrix: Matrix, framework: str, precision: str) -> int:
    """PEFT makes adapters in fp32 whatever the model is kept in; some frameworks make them as the model is."""
    as_model = matrix.training_framework(framework).adapters == "model"
    return 2 if as_model and precision == "bf16" else 4


def _targets(said: _Said) -> tuple[str, ...]:
    value = said.get("lora_targets")
    if value is None:
        return Lora().targets
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not words or not all(isinstance(word, str) for word in words):
        said.refuse("The targets of LoRA are to be a list of names, as q, v or gate.", "lora_targets", "")
        return Lora().targets
    found: list[str] = []
    for word in words:
        name = TARGETS.get(word.strip().lower(), word.strip().lower())
        found += SEVERAL.get(name, (name,))
    if said.published and not MATRICES.intersection(found):
        said.refuse("", "lora_targets", Lora().targets)
        return Lora().targets
    return tuple(dict.fromkeys(found))


def _offload(said: _Said) -> str:
    value = said.get("cpu_offload", False)
    if isinstance(value, bool):
        return "all" if value else "none"
    return _word(
        said,
        "cpu_offload",
        "none",
        OFFLOAD,
    )


def _word(said: _Said, key: str, default: str, known: Optional[Mapping[str, str]]) -> str:
    value = said.get(key, default)
    if isinstance(value, bool) and known is not None and str(value).lower() in known:
        value = str(value).lower()
    if not isinstance(value, str):
        return str(said.refuse(f"The value of {key} is to be a word, not {_shown(value)}.", key, default))
    word = value.strip()
    if known is None:
        return word
    if word.lower() not in known:
        *most, last = dict.fromkeys(known.values())
        sentence = f"The value of {key}, {_shown(value)}, is none of {', '.join(most)} and {last}."
        return str(said.refuse(sentence, key, default))
    return known[word.lower()]


def _whole(said: _Said, key: str, default: Optional[int], most: int = 10**9, least: int = 0) -> Optional[int]:
    value = said.get(key, default)
    if value is None:
        return None
    least = 0 if said.published else least  # tables write 0 for what does not apply
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or not least <= value <= most:
        raise ParseError(f"The value of {key} is to be a number from {least} to {most}, not {_shown(value)}.")
    if int(value) != value:
        raise ParseError(f"The value of {key} is to be a whole number, not {_shown(value)}.")
    return int(value)


def _number(said: _Said, key: str, default: Optional[float], most: float) -> Optional[float]:
    value = said.get(key, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ParseError(f"The value of {key} is to be a number from 0 to {most:g}, not {_shown(value)}.")
    return float(value)


def _flag(said: _Said, key: str, default: bool) -> bool:
    value = said.get(key, default)
    if value in (0, 1):
        return bool(value)
    if said.published and isinstance(value, (int, float)) and value > 1:
        return True  # so many steps of accumulation, for one
    if said.published and isinstance(value, str) and value.strip().lower() in NO:
        return False
    instead = bool(value) if isinstance(value, str) else default
    return bool(said.refuse(f"The value of {key} is to be true or false, not {_shown(value)}.", key, instead))


def _shown(value: Any) -> str:
    """A value out of somebody's file, short enough for a sentence."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
