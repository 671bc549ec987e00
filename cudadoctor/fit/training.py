"""What training needs: everything that lives at the moment at which most of it lives.

The same four moments decide in every framework: the loss (all activations and the logits), the backward pass of the
first layer (gradients and one layer that is computed again), the optimizer's step (gradients and its temporaries), and
loading. What each of them holds is counted from the architecture and from what the framework's code allocates
(compat/memory.toml); the largest is the peak.
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit import activations as act
from cudadoctor.fit.architecture import (
    DECODER,
    DIFFUSION,
    EMBEDDING,
    ENCODER,
    ENCODER_DECODER,
    EXPERT,
    HEAD,
    LINEAR,
    MATRIX,
    POSITION,
    SPEECH,
    VISION,
    Architecture,
    Layers,
    Model,
    Tensor,
)
from cudadoctor.fit.interval import spread, total, widened
from cudadoctor.fit.loss import Logits, logits, loss_rule
from cudadoctor.fit.need import (
    ACTIVATIONS,
    ADAPTERS,
    BUFFERS,
    CACHED,
    CONTEXT,
    GRADIENTS,
    LOGITS,
    OPTIMIZER,
    WEIGHTS,
    Interval,
    Need,
    Term,
)
from cudadoctor.fit.optimizers import largest, optimizer, state_bytes
from cudadoctor.fit.quantisation import tensor_bytes, weight_bytes
from cudadoctor.fit.sharding import ZERO, Shares, layer_parameters, outside_parameters, share_of, shares
from cudadoctor.fit.workload import CHECKPOINTINGS, FULL, PRECISIONS, QLORA, Lora, Workload
from cudadoctor.matrix.memory import Family, Framework, Loss, Optimizer, Range
from cudadoctor.matrix.query import Matrix
from cudadoctor.matrix.versions import numbers
from cudadoctor.model.fact import ParseError
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple

_VERSION = pattern(r"\d+(?:\.\d+)+")
_MOST_SHOWN = 60
_COUNTED = "counted from the architecture"
_FLAT = "DeepSpeed: ZeRO keeps an fp32 copy of its partition"
_BUCKETS = "DeepSpeed: reduce_bucket_size is 5e8 unless it is set, and one bucket fills while the other is reduced"
_GATHERED = "DeepSpeed: stage3_max_live_parameters is 1e9 unless it is set"
# How far the terms of one kind lie off what was measured, nine times of ten, as shares of themselves.
_STATES = (0.985, 1.02)
_KEPT = (0.85, 1.2)
_VAGUE = (0.6, 1.6)
_LOGITS = (0.75, 1.3)
_PASSING = (0.5, 1.6)
# What a whole level errs by beside its terms: what is not modelled, and what a published row does not say.
_ALLOCATED = (0.07, 0.06)
_RESERVED = (0.12, 0.18)


class _Case(NamedTuple):
    """A question with all that was looked up for it."""

    matrix: Matrix
    model: Model
    shape: Architecture
    workload: Workload
    framework: Framework
    family: Optional[Family]
    rule: Optimizer
    shares: Shares
    precision: str
    zero: bool
    """DeepSpeed's optimizer: 16-bit weights and gradients, and an fp32 copy beside its states."""
    width: int
    """Bytes of a trained parameter."""
    compute: int
    """Bytes of a number in matrix products."""
    residual: int
    kbit: bool
    upcast: bool


def training(matrix: Matrix, model: Model, workload: Workload) -> Need:
    """The need of one training step, of the GPU that needs most. Raises ParseError, one sentence, for what cannot be
    counted: diffusion models, whose training keeps what their published figures do not tell, and words that are not
    known."""
    case = _case(matrix, model, workload)
    adapters = _adapters(case)
    standing = _standing(case, adapters)
    layers = _layers(case)
    found = _loss(case)
    moments = _moments(case, adapters, layers, _loss_terms(case, found))
    return _need(case, standing, moments, adapters, found.kept if found else 0)


def _case(matrix: Matrix, model: Model, workload: Workload) -> _Case:
    shape = model.architecture
    if shape.kind == DIFFUSION:
        raise ParseError(
            "what training a diffusion model keeps of its blocks is not counted: measure one step of it instead"
        )
    if not shape.layers:
        raise ParseError(f"{shape.name} has no layers: there is nothing to train")
    if workload.batch < 1 or workload.context < 1:
        raise ParseError("a batch has one sequence or more, and a sequence one token or more")
    if workload.checkpointing not in CHECKPOINTINGS:
        raise ParseError(f"checkpointing {workload.checkpointing[:40]!a} is none of {', '.join(CHECKPOINTINGS)}")
    framework = matrix.training_framework(workload.framework)
    workload = _all_if_none(shape, _of_its_time(framework, workload))
    precision = workload.precision
    if framework.precision and "precision" not in workload.stated and workload.method == FULL:
        precision = framework.precision
    if precision not in PRECISIONS:
        raise ParseError(f"the precision {precision[:40]!a} is none of {', '.join(PRECISIONS)}")
    full = workload.method == FULL
    kind = workload.sharding.kind
    deepspeed = kind in ZERO or (full and bool(workload.master_bytes))
    deepspeed = deepspeed or (workload.method == QLORA and kind == "none" and framework.kbit_deepspeed)
    zero = precision != "fp32" and deepspeed
    wide = precision in ("mixed", "fp16", "fp32") and not zero
    compute = 4 if precision == "fp32" else 2
    kbit = workload.method == QLORA
    bnb = kbit and any(word in model.weights for word in ("nf4", "fp4", "bnb", "int8"))
    # What is sharded flat has to be of one type: TRL and axolotl do not upcast then.
    upcast = bnb and framework.upcasts_kbit and "gptq" not in model.weights and kind not in ("fsdp", "zero3")
    if full:
        width = 4 if wide else 2
        residual = width if kind != "fsdp" else compute
    else:
        width = 2 if zero else workload.lora.width
        residual = 4 if upcast or precision == "fp32" else 2
    return _Case(
        *(matrix, model, shape, workload, framework),
        matrix.training_family(shape.family) or (matrix.training_family("bert") if shape.kind == ENCODER else None),
        rule=optimizer(matrix, workload.optimizer),
        shares=shares(workload.sharding),
        precision=precision,
        zero=zero,
        width=width,
        compute=compute,
        residual=residual,
        kbit=kbit,
        upcast=upcast,
    )


def _is_before(workload: Workload, version: str) -> bool:
    """Whether the framework, as it was named, is older than that; False where no version is said."""
    found = _VERSION.search(workload.framework)
    return bool(version) and found is not None and (numbers(found.group()) or ()) < (numbers(version) or ())


def _of_its_time(framework: Framework, workload: Workload) -> Workload:
    """What an older version of the framework takes where nobody says anything."""
    if "attn" not in workload.stated and _is_before(workload, framework.sdpa_since):
        workload = workload._replace(attention="eager")
    if "ce" not in workload.stated and _is_before(workload, framework.plain_loss_since):
        workload = workload._replace(loss="upcast")
    return workload


def _all_if_none(shape: Architecture, workload: Workload) -> Workload:
    """Of a model whose matrices are called otherwise, all get an adapter, unless somebody named some."""
    lora = workload.lora
    if workload.method == FULL or lora.targets != Lora().targets:
        return workload
    if any(tensor.name in lora.targets or tensor.name in _PARTS for tensor in shape.tensors):
        return workload
    return workload._replace(lora=lora._replace(targets=("all",)))


# -- what stands through the whole step


def _standing(case: _Case, adapters: int) -> list[Term]:
    terms = [_weights(case)]
    if case.upcast:
        terms.append(_upcast(case))
    if case.framework.unties and case.shape.tied:
        terms.append(_second_head(case))
    if adapters:
        per_gpu = _divided(adapters, case.shares.weights)
        terms.append(
            _term(
                *(ADAPTERS, "adapters", per_gpu * case.width, "r x (in + out) of each target x bytes"),
                *(f"{per_gpu:,} x {case.width}", f"two thin matrices for each target ({case.framework.source})"),
            )
        )
    terms += _states(case, adapters)
    terms.append(_ranged(BUFFERS, "workspaces of libraries", case.matrix.process_bytes("workspaces")))
    return terms + _buckets(case, adapters)


def _weights(case: _Case) -> Term:
    full = case.workload.method == FULL
    offloaded = case.workload.offload == "all"
    amount = 0
    sizes = tensor_bytes(case.matrix, case.model)
    for tensor, size in sizes:
        if full:
            size = tensor.elements * case.width
        elif tensor.role == HEAD and case.kbit and case.framework.quantises_head:
            size = _as_layers(case, sizes, tensor, size)
        amount += share_of(tensor, size, case.shares)
    amount = -(-amount // case.shares.weights)
    if offloaded:
        amount = 0
    count = case.shape.parameters
    said = f"{count:,} parameters, {case.width} bytes each" if full else f"{count:,} parameters as {case.model.weights}"
    if amount and case.shares.weights > 1:
        said += f", over {case.shares.weights} GPUs"
    return _term(WEIGHTS, "weights", amount, "parameters x bytes", said, _COUNTED)


def _as_layers(case: _Case, sizes: tuple[tuple[Tensor, int], ...], tensor: Tensor, size: int) -> int:
    """What a matrix takes when it is quantised as those of the layers are."""
    for other, stored in sizes:
        if other.role == MATRIX and other.layers is not None:
            return tensor.elements * stored // max(other.elements, 1)
    return size


def _upcast(case: _Case) -> Term:
    """What peft.prepare_model_for_kbit_training turns into fp32."""
    count = sum(
        share_of(tensor, tensor.elements, case.shares)
        for tensor in case.shape.tensors
        if tensor.role not in (MATRIX, EXPERT)
    )
    count = -(-count // case.shares.weights)
    return _term(
        *(WEIGHTS, "embeddings, norms and head in fp32", 2 * count, "2 bytes more for each unquantised parameter"),
        *(f"2 x {count:,}", "peft: prepare_model_for_kbit_training"),
    )


def _second_head(case: _Case) -> Term:
    """The framework keeps embedding and head apart."""
    count = case.shape.vocabulary * case.shape.hidden
    size = count * (case.width if case.workload.method == FULL else 2)
    if case.kbit and case.framework.quantises_head:
        sizes = tensor_bytes(case.matrix, case.model)
        size = _as_layers(case, sizes, Tensor("output", HEAD, (case.shape.vocabulary, case.shape.hidden)), size)
    said = f"{case.shape.vocabulary:,} x {case.shape.hidden:,} x {size / max(count, 1):.4g}"
    gpus = case.shares.weights * case.shares.tensor
    if gpus > 1:
        said += f" / {gpus}"
    return _term(
        *(WEIGHTS, "a head of its own", -(-size // gpus), "V x h x bytes"),
        *(said, case.framework.source),
    )


def _trained(case: _Case, adapters: int) -> int:
    """Parameters that are trained, of one GPU before states are divided."""
    if case.workload.method != FULL:
        return adapters
    count = sum(share_of(tensor, tensor.elements, case.shares) for tensor in case.shape.tensors)
    if case.framework.unties and case.shape.tied:
        count += -(-case.shape.vocabulary * case.shape.hidden // case.shares.tensor)
    return count


def _divided(count: int, by: int) -> int:
    return -(-count // by)


def _states(case: _Case, adapters: int) -> list[Term]:
    count = _trained(case, adapters)
    per_gpu = _divided(count, case.shares.states)
    width = 4 if case.zero else case.width
    terms = []
    master = case.workload.master_bytes
    if master is None:
        master = 4 if case.zero else 0
    if case.workload.offload != "none":
        return []
    if master:
        terms.append(
            _term(
                *(OPTIMIZER, "fp32 copy of the trained parameters", master * per_gpu, "bytes x trained parameters"),
                *(f"{master} x {per_gpu:,}", _FLAT if case.zero else "as asked for"),
            )
        )
    if case.workload.method == FULL:
        tensors = [(tensor.shape, tensor.copies) for tensor in case.shape.tensors]
        embeddings = sum(tensor.elements for tensor in case.shape.tensors if tensor.role == EMBEDDING)
        states = state_bytes(case.rule, tensors, width, embeddings if case.framework.autocast else 0)
        states = states * per_gpu // max(case.shape.parameters, 1)
    else:
        states = state_bytes(case.rule, [((per_gpu,), 1)], width)
    if case.rule.paged:
        terms.append(
            _term(
                *(OPTIMIZER, f"paged states of {case.rule.name}", 0, "0 to all of them on the GPU: managed memory"),
                *(f"0 to {states:,}", case.rule.source),
            )
        )
    else:
        each = states / max(per_gpu, 1)
        terms.append(
            _term(
                *(OPTIMIZER, f"states of {case.rule.name}", states, "bytes x trained parameters"),
                *(f"{each:.3g} x {per_gpu:,}", case.rule.source),
            )
        )
    return terms


def _gradients(case: _Case, adapters: int, reduced: bool = False) -> list[Term]:
    """`reduced`: those of all GPUs are added up, and each holds its part."""
    count = _trained(case, adapters)
    width = case.width
    if case.workload.offload == "all":
        layer = layer_parameters(case.shape)
        return [
            _term(
                *(GRADIENTS, "gradients on their way to the host", 2 * width * layer, "2 layers x bytes"),
                *(f"2 x {layer:,} x {width}", case.framework.source),
            )
        ]
    divisor = case.shares.gradients
    name = "gradients"
    if _keeps_whole(case) and not reduced:
        divisor, name = 1, "gradients, whole until they are reduced"
    per_gpu = _divided(count, divisor)
    return [
        _term(
            *(GRADIENTS, name, width * per_gpu, "bytes x trained parameters"),
            *(f"{width} x {per_gpu:,}", _COUNTED),
        )
    ]


def _keeps_whole(case: _Case) -> bool:
    """FSDP without synchronisation between the micro-batches of a step."""
    workload = case.workload
    return workload.sharding.kind == "fsdp" and case.framework.keeps_gradients and workload.accumulation


def _buckets(case: _Case, adapters: int) -> list[Term]:
    """What a run on several GPUs allocates once, to talk."""
    terms: list[Term] = []
    if case.workload.sharding.kind == "ddp":
        count = _trained(case, adapters)
        terms.append(
            _term(
                *(BUFFERS, "buckets of gradients", case.width * count, "bytes x trained parameters"),
                *(f"{case.width} x {count:,}", "torch DDP: gradient_as_bucket_view is off"),
            )
        )
    if case.zero:
        bucket = case.matrix.gathered("deepspeed_bucket")
        size = 2 * 2 * bucket
        terms.append(
            Term(
                *(BUFFERS, "buckets of gradients", size, "2 buckets x 2 bytes x reduce_bucket_size"),
                *(f"2 x 2 x {bucket:,}", _BUCKETS, size // 3, size * 3 // 2),
            )
        )
    return terms


def _gathered(case: _Case) -> list[Term]:
    """What of the weights lives once more while the layers run."""
    kind, matrix, shape = case.workload.sharding.kind, case.matrix, case.shape
    terms: list[Term] = []
    bytes_of = case.compute
    # Quantised matrices travel as they are stored; embeddings and head have all their bits.
    packed = _quantised_share(case) if case.kbit else 1.0
    if _keeps_whole(case) and case.workload.method == FULL:
        count = _trained(case, 0)
        terms.append(
            _term(
                *(BUFFERS, "weights kept whole between micro-batches", bytes_of * count, "bytes x parameters"),
                *(f"{bytes_of} x {count:,}", case.framework.source),
            )
        )
    elif kind in ("zero3", "fsdp"):
        layer, outside = layer_parameters(shape), outside_parameters(shape.tensors)
        if kind == "zero3":
            live = min(matrix.gathered("deepspeed_live") + largest(shape.tensors), shape.parameters)
            said, size = "stage3_max_live_parameters and the largest tensor", live * bytes_of
        else:
            if case.framework.splits_root:
                outside = min(outside, shape.vocabulary * shape.hidden)
            live = min(2 * layer + outside, shape.parameters)
            said = "2 layers and what belongs to none"
            size = bytes_of * (outside + round(packed * (live - outside)))
        terms.append(
            Term(
                *(BUFFERS, "gathered weights", size, f"({said}) x bytes", f"{live:,} x {bytes_of}"),
                *(case.framework.source if kind == "fsdp" else _GATHERED, size // 2, round(size * 1.5)),
            )
        )
    return terms


def _quantised_share(case: _Case) -> float:
    """Bytes of the layers' matrices as a share of those in 16 bits."""
    pairs = [(one, size) for one, size in tensor_bytes(case.matrix, case.model) if one.role in (MATRIX, EXPERT)]
    return min(1.0, sum(size for _, size in pairs) / max(1, 2 * sum(one.elements for one, _ in pairs)))


def _casts(case: _Case) -> list[Term]:
    """autocast keeps 16-bit copies of fp32 weights until the forward pass is over, and the backward pass those that it
    needs."""
    if case.precision not in ("mixed", "fp16") or case.workload.method != FULL or case.zero:
        return []
    if case.workload.sharding.kind in ("fsdp", "zero3") or case.framework.casts_in_step:
        return []
    count = sum(
        share_of(tensor, tensor.elements, case.shares) for tensor in case.shape.tensors if tensor.role != EMBEDDING
    )
    return [
        _term(
            *(BUFFERS, "16-bit copies of the weights", 2 * count, "2 x parameters in matrix products"),
            *(f"2 x {count:,}", "torch.autocast"),
        )
    ]


# -- what comes and goes


def _style(case: _Case) -> act.Style:
    workload, framework, family = case.workload, case.framework, case.family
    full = workload.method == FULL
    if workload.lora.width == 2 or case.zero or case.compute == 4:
        mode = "shared"
    else:
        mode = "cast" if framework.autocast or case.precision in ("mixed", "fp16") else "wide"
    kept = family if family and not framework.packs else None  # litgpt runs every model with layers of its own
    biased = case.matrix.biased_scores(case.shape.family)
    written_out = workload.attention == "sdpa" and case.matrix.without_sdpa(case.shape.family)
    eager = workload.attention == "eager" or biased or written_out
    return act.Style(
        width=case.compute,
        residual=case.residual,
        trains_all=full,
        attention="eager" if eager else workload.attention,
        fused=workload.fused_kernels or framework.fused_kernels,
        wide_norm_weight=framework.wide_norm_weight or bool(family and family.wide_norm_weight),
        packs=framework.packs,
        keeps_inputs=case.kbit and framework.keeps_inputs,
        results=act.WIDE if case.upcast else case.compute,
        lora=None if full else workload.lora,
        adapters=mode,
        scores_cap=bool(family and family.scores_cap),
        gelu=kept.gelu if kept else 0,
        relu=bool(kept and kept.relu),
        dropouts=kept.dropouts if kept else 0,
        inner_dropout=bool(kept and kept.inner_dropout),
        probability_dropout=bool(kept and kept.probability_dropout),
        wide_softmax=case.residual > case.compute or not (kept and kept.probability_dropout) or biased,
        softmax_input=_is_before(workload, framework.softmax_since),
        repeats=framework.repeats_kv or workload.batch > 1,
        copies_output=framework.packs or bool(kept and kept.copies_output),
        rotates=not any(tensor.role == POSITION for tensor in case.shape.tensors),
        experts_adapted="experts" in workload.lora.targets,
    )


def _tokens(case: _Case, run: Layers) -> tuple[int, int]:
    """Of all sequences of a micro-batch, and of one."""
    shape, workload = case.shape, case.workload
    item = shape.tokens_per_item
    if shape.kind in (VISION, SPEECH) and item and (run.side == "encoder" or shape.kind == VISION):
        return workload.batch * item, item
    length = workload.context
    if shape.kind == SPEECH and shape.max_context:
        length = min(length, shape.max_context)
    return workload.batch * length, length


class _Layers(NamedTuple):
    """What is kept of the layers until the backward pass; what lives beside while the last of them runs backwards, with
    all others kept; and while the first does, with none."""

    kept: list[Term]
    last: list[Term]
    first: list[Term]


_KEEPS = {
    "none": "activations of all layers",
    "selective": "activations that are not computed again",
    "full": "inputs of the layers",
}


def _layers(case: _Case) -> _Layers:
    style, workload, shape = _style(case), case.workload, case.shape
    whole = case.shares.tensor if case.framework.sequence_parallel else 1
    kept, one, again, passing = 0, 0, 0, 0
    said: list[str] = []
    for run in shape.layers:
        tokens, length = _tokens(case, run)
        source = 0
        if run.cross is not None:
            source = 1000 * shape.tokens_per_item // max(length, 1) if shape.tokens_per_item else 1000
        each = sum(
            -(-part.bytes // (case.shares.tensor if part.divided else whole))
            for part in act.layer_parts(shape, run, style, length, source)
        )
        each_kept = min(each, _kept_of(case, run, each, case.residual * shape.hidden // whole))
        number = _stage(case, run.number)
        # A pipeline's first stage holds as many micro-batches as there are stages, of its part of the layers.
        kept += min(number * case.shares.flights, run.number) * each_kept * tokens
        said.append(f"{number} layers x {each_kept:,} bytes x {tokens:,} tokens")
        one = max(one, each * tokens)
        again = max(again, (each if workload.checkpointing == "full" else each - each_kept) * tokens)
        passing = max(passing, -(-act.passing(run, shape.hidden, case.compute) // case.shares.tensor) * tokens)
    terms = []
    if kept:
        bounds = (0.97, 1.1) if workload.checkpointing == "full" else _KEPT
        if _is_linear(shape):
            bounds = _VAGUE
        name = _KEEPS[workload.checkpointing]
        terms.append(
            _term(
                *(ACTIVATIONS, name, kept, "layers x bytes a token x tokens", "; ".join(said), _COUNTED),
                bounds=bounds,
            )
        )
    terms.append(_last_norm(case, style))
    formula = "bytes a token x tokens"
    inside = _term(
        *(ACTIVATIONS, "gradients inside of a layer", passing, "(3 I + 2 h) x bytes x tokens"),
        *(f"{passing:,}", _COUNTED, _PASSING),
    )
    last = [_term(ACTIVATIONS, "one layer, computed again", again, formula, f"{again:,}", _COUNTED, _KEPT), inside]
    first = [_term(ACTIVATIONS, "one layer", one, formula, f"{one:,}", _COUNTED, _KEPT), inside]
    if workload.checkpointing == "full_offload":
        two = 2 * case.residual * shape.hidden * _tokens(case, shape.layers[-1])[0] // whole
        last.append(
            _term(
                *(ACTIVATIONS, "inputs of layers on their way", two, "2 x h x bytes x tokens"),
                *(f"{two:,}", _COUNTED, _PASSING),
            )
        )
    return _Layers(terms, last, first)


def _is_linear(shape: Architecture) -> bool:
    return any(run.attention is not None and run.attention.kind == LINEAR for run in shape.layers)


def _kept_of(case: _Case, run: Layers, each: int, inputs: int) -> int:
    """Bytes that one layer keeps for each token, of `each` that it would without checkpointing."""
    kind = case.workload.checkpointing
    if kind == "none":
        return each
    if kind == "full_offload":
        return 0
    if kind == "full":
        return inputs
    # Selective, as torchtitan does it: matrix products (every second one) and attention are kept.
    attention, part = run.attention, run.feed_forward
    q, g = (attention.query_width, attention.kv_width) if attention else (0, 0)
    inner = part.intermediate * max(1, part.experts_per_token) if part else 0
    return inputs + -(-case.compute * (2 * q + 2 * g + 2 * case.shape.hidden + inner) // case.shares.tensor)


def _stage(case: _Case, number: int) -> int:
    return -(-number // case.shares.stages)


def _last_norm(case: _Case, style: act.Style) -> Term:
    """The norm behind the last layer, and the head's input."""
    tokens = _tokens(case, case.shape.layers[-1])[0] if case.shape.layers else 0
    h = case.shape.hidden
    each = (case.residual if style.fused else 4) * h
    if style.trains_all:
        each += 2 * style.width * h
    elif act.targeted(style.lora, "head"):
        each += style.width * h + h
    return _term(
        ACTIVATIONS,
        "last norm and input of the head",
        each * tokens,
        "bytes x h x tokens",
        f"{each // max(h, 1)} x {h:,} x {tokens:,}",
        _COUNTED,
        _KEPT,
    )


def _moments(case: _Case, adapters: int, layers: _Layers, loss: list[Term]) -> dict[str, list[Term]]:
    workload = case.workload
    at_once = workload.optimizer_in_backward
    gradients = [_one_gradient(case, adapters)] if at_once else _gradients(case, adapters)
    before = _gradients(case, adapters) if workload.accumulation and not at_once else []
    gathered, casts, unpacked = _gathered(case), _casts(case), _dequantised(case)
    head = [_head_gradient(case)] if workload.method == FULL else []
    moments = {
        "loss": [*before, *layers.kept, *loss, *gathered, *casts],
        "backward pass, last layer": [*(before or head), *layers.kept, *layers.last, *gathered, *casts, *unpacked],
        "backward pass, first layer": [*gradients, *layers.first, *gathered, *unpacked],
    }
    if not at_once:
        moments["optimizer step"] = [*_gradients(case, adapters, reduced=True), *_step(case, adapters)]
    return moments


def _one_gradient(case: _Case, adapters: int) -> Term:
    one = largest(case.shape.tensors) if case.workload.method == FULL else adapters
    size = case.width * min(one, _trained(case, adapters))
    return _term(
        *(GRADIENTS, "gradient of the largest tensor", size, "bytes x parameters of one tensor"),
        *(f"{size:,}", "its step follows at once"),
    )


def _head_gradient(case: _Case) -> Term:
    size = case.width * case.shape.vocabulary * case.shape.hidden // case.shares.tensor
    size = size if case.shape.kind in (DECODER, ENCODER_DECODER, SPEECH) else 0
    return _term(GRADIENTS, "gradient of the head", size, "V x h x bytes", f"{size:,}", _COUNTED)


def _loss(case: _Case) -> Optional[Logits]:
    """None where there is no vocabulary to choose from."""
    shape, workload = case.shape, case.workload
    if shape.kind in (ENCODER, VISION) or not shape.vocabulary or not shape.layers:
        return None
    found = logits(
        _rule(case),
        _tokens(case, shape.layers[-1])[0],
        workload.batch,
        shape.vocabulary,
        4 if case.compute == 4 else 2,
        not case.zero and case.precision != "fp32" and (case.framework.autocast or case.precision != "bf16"),
        case.framework.holds_outputs,
        bool(case.family and case.family.logits_cap),
    )
    tensor = case.shares.tensor
    return found._replace(live=-(-found.live // tensor), kept=-(-found.kept // tensor))


def _rule(case: _Case) -> Loss:
    stated = case.workload.stated
    return loss_rule(case.matrix, case.workload.loss, "ce" in stated or "loss" in stated, case.framework)


def _loss_terms(case: _Case, found: Optional[Logits]) -> list[Term]:
    if found is None:
        return []
    shape, workload, rule = case.shape, case.workload, _rule(case)
    tokens = _tokens(case, shape.layers[-1])[0]
    said = f"{found.each:.3g} x {tokens:,} x {shape.vocabulary:,}"
    if rule.chunk:
        at_once = min(tokens, rule.chunk * workload.batch)
        said = f"({said} + {rule.chunk_bytes:g} x {at_once:,} x {shape.vocabulary:,})"
    if case.shares.tensor > 1:
        said += f" / {case.shares.tensor}"
    name = f"logits and loss ({rule.name})"
    source = f"{rule.note} ({rule.source})"
    terms = [_term(LOGITS, name, found.live, "bytes x tokens x V", said, source, _LOGITS)]
    matrix = shape.vocabulary * shape.hidden // case.shares.tensor
    if rule.head_gradients and workload.method == FULL:
        size = rule.head_gradients * case.width * matrix
        terms.append(
            _term(
                *(GRADIENTS, "gradient of the head, chunk by chunk", size, "copies x V x h x bytes"),
                *(f"{rule.head_gradients} x {matrix:,} x {case.width}", rule.source, (0.5, 1.1)),
            )
        )
    if case.upcast:
        terms.append(
            _term(
                *(BUFFERS, "the head in 16 bits", 2 * matrix, "2 x V x h"),
                *(f"2 x {matrix:,}", "torch.autocast keeps the copy of a frozen fp32 weight for the backward pass"),
            )
        )
    if case.kbit and case.framework.quantises_head:
        copies = 2 if case.framework.keeps_inputs else 1
        terms.append(
            _term(
                *(BUFFERS, "the head, unpacked", 2 * copies * matrix, "copies x 2 x V x h"),
                *(f"{copies} x 2 x {matrix:,}", case.framework.source, _PASSING),
            )
        )
    return terms


def _dequantised(case: _Case) -> list[Term]:
    """Quantised matrices are unpacked to be multiplied."""
    if not case.kbit:
        return []
    count = largest(tensor for tensor in case.shape.tensors if tensor.role in (MATRIX, EXPERT))
    copies = 2 if case.framework.keeps_inputs else 1
    name, said, size = "one matrix, unpacked", f"{copies} x 2 x parameters of the largest matrix", 2 * copies * count
    if "gptq" in case.model.weights:
        name, said = "matrices of one layer, unpacked", "2 x parameters of a layer, 8 x those of a matrix"
        size = 2 * layer_parameters(case.shape) + 8 * count
    size //= case.shares.tensor
    return [_term(BUFFERS, name, size, said, f"{size:,}", "bitsandbytes, auto-gptq", _PASSING)]


def _step(case: _Case, adapters: int) -> list[Term]:
    workload = case.workload
    if workload.offload != "none":
        return []
    count = _trained(case, adapters)
    per_gpu = _divided(count, case.shares.states)
    terms = []
    if case.zero:
        part = per_gpu
        if workload.sharding.kind == "zero3":
            part = min(per_gpu, case.matrix.gathered("deepspeed_sub_group"))
        terms.append(
            _term(
                *(GRADIENTS, "gradients in fp32 for the step", 4 * part, "4 x trained parameters"),
                f"4 x {part:,}",
                "DeepSpeed: the flat fp32 gradients of a partition",
            )
        )
        if workload.sharding.kind != "zero3":
            terms.append(
                _term(
                    *(GRADIENTS, "gradients in one piece, on their way to fp32", 2 * part, "2 x trained parameters"),
                    *(f"2 x {part:,}", "DeepSpeed: they are flattened before they are cast"),
                )
            )
        return terms
    fused = workload.fused_optimizer or case.framework.fused_optimizer
    # Before torch 2.0 its optimizers went through the tensors one by one.
    fused = fused or _is_before(workload, case.framework.foreach_since)
    if case.rule.temporaries and not fused:
        size = case.rule.temporaries * (4 if case.rule.bytes else case.width) * per_gpu
        terms.append(
            _term(
                *(OPTIMIZER, "copies that a step makes", size, "bytes x trained parameters"),
                f"{size // max(per_gpu, 1)} x {per_gpu:,}",
                case.rule.source,
            )
        )
    if case.rule.largest:
        top = largest(case.shape.tensors) if workload.method == FULL else min(per_gpu, 10**7)
        size = case.rule.largest * top
        terms.append(
            _term(
                OPTIMIZER,
                "temporaries of one tensor's step",
                size,
                "bytes x parameters of one tensor",
                f"{case.rule.largest} x {top:,}",
                case.rule.source,
            )
        )
    return terms


# -- adapters


def _adapters(case: _Case) -> int:
    """Parameters of all adapters: two thin matrices for each one that is targeted."""
    if case.workload.method == FULL:
        return 0
    lora, shape = case.workload.lora, case.shape
    count = 0
    for tensor in shape.tensors:
        if tensor.role == EXPERT and "experts" not in lora.targets:
            continue
        if tensor.role in (MATRIX, EXPERT) and tensor.layers is not None and len(tensor.shape) == 2:
            count += share_of(tensor, tensor.copies * _adapter(case, tensor), case.shares)
    count += _joined(case)
    if not count and "head" not in lora.targets:
        named = ", ".join(lora.targets)
        shown = named if len(named) <= _MOST_SHOWN and named.isprintable() else ascii(named[:_MOST_SHOWN])
        raise ParseError(f"{shape.name} has none of the matrices that LoRA is to change: {shown}")
    if "head" in lora.targets:
        count += lora.rank * (shape.vocabulary + shape.hidden)
    return count


_PARTS = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up")}


def _adapter(case: _Case, tensor: Tensor) -> int:
    lora = case.workload.lora
    out, into = tensor.shape
    name = tensor.name
    for prefix in ("shared_", "cross_", "self_"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    everything = "all" in lora.targets
    parts = _PARTS.get(name)
    if parts is None:
        return lora.rank * (into + out) if everything or name in lora.targets else 0
    named = [part for part in parts if part in lora.targets]
    if (everything or name in lora.targets) and not case.framework.splits_adapters:
        return lora.rank * (into + out)
    if everything or name in lora.targets or len(named) == len(parts):
        return lora.rank * (len(parts) * into + out)
    if not named:
        return 0
    attention = case.shape.layers[tensor.layers or 0].attention
    widths = {part: out // len(parts) for part in parts}
    if attention is not None and name == "qkv":
        widths = {
            "q": attention.query_width,
            "k": attention.kv_width,
            "v": out - attention.query_width - attention.kv_width,
        }
    return lora.rank * sum(into + widths[part] for part in named)


def _joined(case: _Case) -> int:
    """An adapter for queries, keys and values together, of a model that has them apart."""
    lora = case.workload.lora
    if "qkv" not in lora.targets or any(tensor.name == "qkv" for tensor in case.shape.tensors):
        return 0
    count = 0
    for tensor in case.shape.tensors:
        if tensor.name in ("q", "k", "v") and tensor.layers is not None and tensor.name not in lora.targets:
            out, into = tensor.shape
            count += lora.rank * tensor.copies * (out + (into if tensor.name == "q" else 0))
    return count


# -- the whole


def _need(case: _Case, standing: list[Term], moments: dict[str, list[Term]], adapters: int, blocks: int) -> Need:
    peak = max(moments, key=lambda name: sum(term.bytes for term in moments[name]))
    terms = [term for term in (*standing, *moments[peak]) if term.bytes]
    rest = _cached(case, standing, moments, blocks)
    old = _is_before(case.workload, case.framework.lazy_since)
    context = case.matrix.process_bytes("context_of_old" if old else "context")
    beside = [_ranged(CONTEXT, "CUDA context and kernels", context)]
    if case.workload.sharding.degree > 1:
        beside.append(_ranged(CONTEXT, "NCCL", case.matrix.process_bytes("nccl")))

    def level(*more: Term, errs: tuple[float, float]) -> Interval:
        """The bounds are those of the moment that reaches furthest, which need not be that of the expected peak."""
        each = [widened(total((*standing, *found, *more)), *errs) for found in moments.values()]
        return Interval(*(max(bounds) for bounds in zip(*each)))

    allocated = level(errs=_ALLOCATED)
    reserved, device = level(*rest, errs=_RESERVED), level(*rest, *beside, errs=_RESERVED)
    # Nothing is allocated that is not reserved, and nothing reserved that the device does not show.
    reserved = reserved._replace(low=max(reserved.low, allocated.low))
    device = device._replace(low=max(device.low, reserved.low))
    gpus = max(1, case.workload.sharding.degree)
    return Need(
        terms=(*terms, *rest, *beside),
        allocated=allocated,
        reserved=reserved,
        device=device,
        all_gpus=Interval(*(gpus * amount for amount in allocated)),
        host=_host(case, adapters),
        gpus=gpus,
        peak=peak,
        assumed=_assumed(case),
    )


def _cached(case: _Case, standing: list[Term], moments: dict[str, list[Term]], blocks: int) -> list[Term]:
    """What torch's allocator keeps beside what is allocated."""
    matrix, workload = case.matrix, case.workload

    def most(*parts: str) -> int:
        return max(sum(term.bytes for term in found if term.part in parts) for found in moments.values())

    if workload.expandable_segments:
        share = matrix.reserve_share("expandable")
        return [_scaled("kept by torch's allocator", most(ACTIVATIONS, LOGITS), share)]
    lasting = sum(term.bytes for term in standing if term.part in (WEIGHTS, ADAPTERS, OPTIMIZER))
    rest = [
        _scaled("blocks larger than what is in them", lasting, matrix.reserve_share("standing")),
        _scaled("blocks between their uses", most(ACTIVATIONS, LOGITS, BUFFERS), matrix.reserve_share("static")),
    ]
    beside = _blocks_of_a_layer(moments)
    if beside:
        rest.append(
            _term(
                *(CACHED, "blocks of one layer, too small for logits", beside, "the smaller of the two"),
                *(f"{beside:,}", "torch.cuda: caching allocator cannot join blocks of other segments", (0.0, 1.3)),
            )
        )
    if workload.variable_length and not case.framework.empties_cache:
        rest.append(_scaled("blocks of batches of other lengths", most(LOGITS), matrix.reserve_share("variable")))
    elif blocks:
        rest.append(
            _term(
                *(CACHED, "blocks of logits in another width", blocks, "blocks of other sizes cannot be joined"),
                *(f"{blocks:,}", "torch.cuda: caching allocator", (0.0, 1.6)),
            )
        )
    if workload.method != FULL:
        # Gradients and temporaries of adapters lie in blocks for tensors of less than 10 MiB, which larger ones cannot
        # use again: what both take at their most adds up.
        largest_moment = max(sum(term.bytes for term in found) for found in moments.values())
        small = most(ACTIVATIONS, LOGITS, BUFFERS) + most(GRADIENTS, OPTIMIZER) - largest_moment
        rest.append(
            _term(
                *(
                    CACHED,
                    "blocks of small tensors",
                    max(0, small),
                    "small and large ones at their most, less the peak",
                ),
                *(f"{max(0, small):,}", "torch.cuda: caching allocator", (0.3, 1.2)),
            )
        )
    elif case.zero and workload.sharding.kind != "zero3":
        size = 8 * largest(case.shape.tensors)
        rest.append(
            _term(
                *(CACHED, "block of the largest gradient in fp64", size, "8 x parameters of one tensor"),
                *(f"{size:,}", "DeepSpeed: get_grad_norm_direct", (0.0, 1.2)),
            )
        )
    return [term for term in rest if term.bytes]


def _blocks_of_a_layer(moments: dict[str, list[Term]]) -> int:
    """What a layer gave back in pieces does not hold the logits, which are one piece each, and comes to lie beside
    them: where both together are more than the most that lives at once, the allocator keeps so much more."""
    loss, last = moments["loss"], moments["backward pass, last layer"]
    if not any(term.part == LOGITS for term in loss):
        return 0
    both = sum(term.bytes for term in loss)
    both += sum(term.bytes for term in last if term.part == ACTIVATIONS)
    both -= sum(term.bytes for term in loss if term.part == ACTIVATIONS)
    return max(0, both - max(sum(term.bytes for term in found) for found in moments.values()))


def _host(case: _Case, adapters: int) -> Interval:
    """Loading passes the weights through the page cache, a shard at a time; offloading keeps its part pinned."""
    weights = weight_bytes(case.matrix, case.model)
    expected = min(weights, case.matrix.host_bytes("shard")) + case.matrix.host_bytes("program")
    trained = _trained(case, adapters)
    if case.workload.offload in ("optimizer", "all"):
        # DeepSpeed's optimizers for processors: parameters, gradients and states in fp32.
        expected += round((8 + (4 * case.rule.moments or case.rule.bytes)) * trained)
    if case.workload.offload == "all":
        expected += 2 * case.shape.parameters
    if case.workload.checkpointing == "full_offload":
        for run in case.shape.layers:
            expected += run.number * case.residual * case.shape.hidden * _tokens(case, run)[0]
    return Interval(round(expected * 0.6), expected, round(expected * 1.5))


def _assumed(case: _Case) -> tuple[str, ...]:
    workload, stated = case.workload, case.workload.stated
    said = []
    if workload.method == FULL and not {"optimizer"} & stated:
        said.append(f"the optimizer is {case.rule.name}")
    if not {"ckpt", "checkpointing"} & stated and workload.checkpointing == "none":
        said.append("no gradient checkpointing")
    if case.shape.kind in (ENCODER, VISION):
        said.append("a small head (classes, not the vocabulary) is trained on top")
    if case.shape.kind == ENCODER_DECODER:
        said.append(f"source and target both have {workload.context} tokens")
    if _is_linear(case.shape):
        said.append("what linear attention keeps is only roughly known")
    return tuple(said)


def _term(
    part: str,
    name: str,
    amount: int,
    formula: str,
    numbers: str,
    source: str,
    bounds: tuple[float, float] = _STATES,
) -> Term:
    low, high = spread(amount, *bounds)
    return Term(part, name, amount, formula, numbers, source, low, high)


def _scaled(name: str, base: int, share: Range) -> Term:
    low, amount, high = (round(base * one) for one in (share.low, share.expected, share.high))
    numbers = f"{share.expected:g} x {base:,}"
    return Term(CACHED, name, amount, "share x bytes", numbers, share.source, low, high)


def _ranged(part: str, name: str, found: Range) -> Term:
    low, amount, high = round(found.low), round(found.expected), round(found.high)
    return Term(part, name, amount, "measured elsewhere", f"{low:,} to {high:,}", found.source, low, high)
