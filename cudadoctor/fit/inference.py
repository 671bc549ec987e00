"""What inference needs: weights, cache, and what lives while tokens pass, at the moment when that is most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from cudadoctor.fit.allocator import left_over
from cudadoctor.fit.architecture import (
    DECODER,
    DIFFUSION,
    ENCODER,
    ENCODER_DECODER,
    SPEECH,
    VISION,
    WINDOW,
    Model,
)
from cudadoctor.fit.forward import Peak, peak
from cudadoctor.fit.inference_parts import (
    MIB,
    Moment,
    Setup,
    Weights,
    buffer,
    cache_terms,
    largest_matrix,
    process_terms,
    ranged,
    setup,
    sizes_of,
    weights,
)
from cudadoctor.fit.interval import total, widened
from cudadoctor.fit.kv_cache import Cache, Held, cache
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, CACHED, KV_CACHE, LOGITS, WEIGHTS, Interval, Need, Term
from cudadoctor.fit.workload import WEIGHTS as ONLY_WEIGHTS
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.memory import Range
from cudadoctor.matrix.query import Matrix
from cudadoctor.parse.errors import ParseError

# How far a count of the numbers in a layer is off, and an estimate of them: shares of it.
_COUNTED = (0.96, 1.04)
_VAGUE = (0.6, 1.6)
# What small results and the rounding of blocks come to that nobody counts: shares of the sum.
_UNCOUNTED = (0.004, 0.008)
# Files of one name and scheme differ: a type more or less for single tensors, and what they say about themselves.
_PUBLISHED = (0.002, 0.006)
_SHARD = 5_000_000_000  # bytes of a file of weights, as they are published
_BITSANDBYTES = ("nf4", "nf4-dq", "int8")


def inference(matrix: Matrix, model: Model, workload: Workload) -> Need:
    """Bytes of the GPU that needs most. Raises ParseError where engine, quantisation or sharding is not known, and for
    a model that the engine does not run."""
    if workload.batch < 1 or workload.context < 1:
        raise ParseError("a batch has one sequence or more, and a context one token or more")
    run = setup(matrix, model, workload)
    if workload.method == ONLY_WEIGHTS:
        return _only_weights(run)
    if workload.engine == "vllm":
        from cudadoctor.fit.inference_vllm import vllm

        return vllm(run)
    if workload.engine == "llama.cpp":
        from cudadoctor.fit.inference_llama_cpp import llama_cpp

        return llama_cpp(run)
    if workload.engine != "transformers":
        raise ParseError(f"the engine {workload.engine[:40]!a} is none of transformers, vllm and llama.cpp")
    return _transformers(run)


# ------------------------------------------------------------------------------------------------ the sum


def need(
    run: Setup,
    moments: Iterable[Moment],
    beside: Iterable[Term],
    everything: int,
    host: Interval,
    assumed: Iterable[str],
    per_token: int,
) -> Need:
    """Of the moment that needs most. `beside`: what the allocator keeps and the process takes; `everything`: the
    allocated bytes of all GPUs together."""
    worst = max(moments, key=lambda moment: moment.bytes)
    kept = tuple(beside)
    allocated = total(worst.terms)
    reserved = total((*worst.terms, *(term for term in kept if term.part == CACHED)))
    device = total((*worst.terms, *kept))
    allocated, reserved, device = (widened(one, *_UNCOUNTED) for one in (allocated, reserved, device))
    share = everything / max(allocated.expected, 1)
    return Need(
        terms=(*worst.terms, *kept),
        allocated=allocated,
        reserved=reserved,
        device=device,
        all_gpus=Interval(round(allocated.low * share), everything, round(allocated.high * share)),
        host=host,
        gpus=run.gpus,
        peak=worst.name,
        assumed=tuple(assumed),
        kv_bytes_per_token=per_token,
    )


def _only_weights(run: Setup) -> Need:
    """As a file, or once loaded: nothing runs yet."""
    found = weights(run._replace(engine="", framework=""))
    amount = total(found.terms)
    if run.model.stored is None:
        amount = widened(amount, *_PUBLISHED)
    nothing = Interval(0, 0, 0)
    everything = amount if run.gpus == 1 else widened(Interval(*(found.total,) * 3), *_PUBLISHED)
    return Need(found.terms, amount, amount, amount, everything, nothing, run.gpus, "loading", _assumed_of_model(run))


def _assumed_of_model(run: Setup) -> tuple[str, ...]:
    if run.shape.guessed:
        return (f"{run.shape.name} is a typical model of that size, not a certain one.",)
    return ()


# ------------------------------------------------------------------------------------------------ transformers


def _transformers(run: Setup) -> Need:
    kind = run.shape.kind
    if kind == DECODER:
        return _decoder(run)
    if kind in (ENCODER_DECODER, SPEECH) and any(layers.side == "decoder" for layers in run.shape.layers):
        return _encoder_decoder(run)
    if kind in (ENCODER, VISION, SPEECH, DIFFUSION):
        return _one_pass(run)
    raise ParseError(f"how a model of the kind {kind!a} runs is not known")


def _decoder(run: Setup) -> Need:
    workload, matrix = run.workload, run.matrix
    batch, prompt, context = workload.batch, run.prompt, workload.context
    latent = not (run.version and run.has("grouped_experts") is False)
    held = Held(latent=latent, tensor=run.parts.tensor, stages=run.parts.stages)
    source = matrix.engine_number("transformers", "hidden_copies").source
    if run.litgpt:
        # Made at once, as long as the whole answer.
        at_prompt = at_end = cache(matrix, run.model, workload, context, held._replace(windows=False))
    else:
        # A layer with a window gives up what lies before it only when the first token of the answer comes: until then
        # what it keeps is a part of all.
        at_prompt = cache(matrix, run.model, workload, prompt, held._replace(windows=False))
        at_end = cache(matrix, run.model, workload, context, held)
    # Versions of litgpt made it as long as the model's context, whatever was asked for.
    longest = max(run.shape.max_context or context, context) if run.litgpt else context
    beyond = cache(matrix, run.model, workload, longest, held._replace(windows=False)).total - at_end.total
    streamed = workload.offload in ("layers", "all")
    loaded = weights(run, layers=_resident(run) if streamed else None)
    kept = [*loaded.terms, *_kept_buffers(run)]
    if streamed:
        kept.append(_streamed_layer(run))
    chunk = min(workload.prefill_chunk or prompt, prompt)
    first = _prefill(run, batch * chunk, chunk, prompt)
    prefill = Moment("prefill", (*kept, *cache_terms(run, at_prompt, source, beyond if run.litgpt else 0), *first))
    moments = [_loading(run, loaded), prefill, _decoding(run, kept, at_end, source)]
    if not run.litgpt and run.has("last_logits") is False:
        moments.append(_all_logits(run, kept, at_prompt, source, batch * chunk))
    worst = max(moments, key=lambda moment: moment.bytes)
    later = _prefill(run, batch * chunk, chunk, prompt, later=True) if run.parts.stages > 1 else first
    everything = _everywhere(run, worst, loaded, at_prompt if worst is prefill else at_end, first, later)
    per_token = _per_token(cache(matrix, run.model, workload._replace(batch=1), 1, held._replace(stages=1)))
    return need(
        run,
        moments,
        _beside(run, worst),
        everything,
        _host(run, loaded, streamed),
        (*_assumed_of_model(run), *_assumed(run)),
        per_token,
    )


def _resident(run: Setup) -> int:
    """Layers that stay on the GPU where the others are fetched from the machine's memory one by one."""
    return run.workload.gpu_layers or 0


def _streamed_layer(run: Setup) -> Term:
    sizes, _ = sizes_of(run)
    count = max(run.shape.layer_count, 1)
    amount = sum(size for one, size in sizes if one.layers is not None) // count
    return buffer("the layer that runs", amount, "bytes of the layers / layers", f"{amount * count:,} / {count}",
                  "accelerate: hooks fetch the weights of a module when it runs")  # fmt: skip


def _loading(run: Setup, loaded: Weights) -> Moment:
    """Quantising on the GPU has a matrix in 16 bits beside; a head that turns out to be the embedding is given up."""
    terms = list(loaded.terms)
    if loaded.dropped:
        source = "AWQ files of tied models hold the head, too"
        terms.append(buffer("output head, until it is tied", loaded.dropped, "vocabulary x hidden x 2",
                            f"{run.shape.vocabulary:,} x {run.shape.hidden:,} x 2", source))  # fmt: skip
    if run.model.weights in _BITSANDBYTES and run.model.stored is None:
        copies = run.matrix.engine_number("litgpt", "load_copies") if run.litgpt else Range(1, 1, 1, "bitsandbytes")
        largest = largest_matrix(run, head=run.litgpt)
        numbers = f"{copies.expected:g} x {largest:,} x 2"
        terms.append(
            ranged(BUFFERS, "largest matrix before it is quantised", 2 * largest, copies, "copies x parameters x 2",
                   numbers)
        )  # fmt: skip
        terms.extend(_rounding(run))
    return Moment("loading", tuple(terms))


def _decoding(run: Setup, kept: list[Term], found: Cache, source: str) -> Moment:
    terms = [*kept, *cache_terms(run, found, source)]
    again = _joined_anew(run)
    if again is not None:
        numbers = f"{again.expected:g} x {found.total:,}"
        terms.append(ranged(BUFFERS, "the cache of the token before", found.total, again, "share x cache", numbers))
    largest = 0 if again is not None else found.largest_layer // 2
    if largest and not run.litgpt:
        terms.append(
            buffer("one layer's keys, joined anew", largest, "torch.cat keeps old and new keys for a moment",
                   f"{found.largest_layer:,} / 2", source)
        )  # fmt: skip
    terms.extend(_last_logits(run))
    return Moment("decoding", tuple(terms))


def _joined_anew(run: Setup) -> Optional[Range]:
    """Caches that are tuples are copied for each token, and the old one lives until all layers have a new one."""
    if "remote" in run.workload.framework.lower():
        return run.matrix.engine_number("transformers", "tuple_cache_of_model_code")
    if not run.litgpt and run.has("cache_objects") is False:
        return run.matrix.engine_number("transformers", "tuple_cache")
    return None


def _last_logits(run: Setup) -> list[Term]:
    if not run.shape.vocabulary:
        return []
    numbers = run.workload.batch * run.shape.vocabulary
    found = run.matrix.engine_number("transformers", "logits_bytes")
    text = f"{run.workload.batch} x {run.shape.vocabulary:,} x {found.expected:g}"
    return [ranged(LOGITS, "logits of the last tokens", numbers, found, "sequences x vocabulary x bytes", text)]


def _all_logits(run: Setup, kept: list[Term], at_prompt: Cache, source: str, tokens: int) -> Moment:
    """Before 4.45 the head ran over every token of the prompt, and its numbers were turned into fp32."""
    found = run.matrix.engine_number("transformers", "all_logits_bytes")
    numbers = f"{tokens:,} x {run.shape.vocabulary:,} x {found.expected:g}"
    hidden = 2 * tokens * run.shape.hidden * run.width
    return Moment(
        "logits of the prompt",
        (
            *kept,
            *cache_terms(run, at_prompt, source),
            ranged(LOGITS, "logits of all tokens", tokens * run.shape.vocabulary, found, "tokens x vocabulary x bytes",
                   numbers),
            Term(ACTIVATIONS, "hidden states", hidden, "2 x tokens x hidden x bytes",
                 f"2 x {tokens:,} x {run.shape.hidden:,} x {run.width}", source, hidden, hidden),
        ),
    )  # fmt: skip


def _prefill(run: Setup, tokens: int, length: int, seen: int, later: bool = False, side: str = "decoder") -> list[Term]:
    """What lives while `tokens` pass at once: sequences of `length`, which look at `seen` tokens each."""
    name = "hidden_copies_later" if later else "hidden_copies"
    copies = run.matrix.engine_number("transformers", name)
    grouped = run.has("grouped_experts") is not False and not run.litgpt
    found = peak(run.matrix, run.shape, side, run.parts.tensor, int(copies.expected), grouped)
    terms = [pass_term(found, tokens, run.width, copies.source)]
    return terms + _scores(run, tokens, length, seen, side)


def pass_term(found: Peak, tokens: int, width: int, source: str) -> Term:
    amount = tokens * found.numbers * width
    low, high = _VAGUE if found.vague else _COUNTED
    return Term(
        *(ACTIVATIONS, "one layer's intermediate results", amount, f"tokens x ({found.formula}) x bytes"),
        *(f"{tokens:,} x ({found.numbers_text}) x {width}", source, round(amount * low), round(amount * high)),
    )


def _scores(run: Setup, tokens: int, length: int, seen: int, side: str) -> list[Term]:
    """Every token with every other: only without a fused kernel, or where a mask is needed."""
    layers = [one for one in run.shape.layers if one.attention is not None and (not side or one.side == side)]
    if not layers:
        return []
    asked, family = run.workload.attention, run.shape.family
    eager = asked == "eager" or (asked == "sdpa" and run.matrix.without_sdpa(family))
    if eager or run.matrix.biased_scores(family):
        heads = -(-max(one.attention.heads for one in layers if one.attention) // run.parts.tensor)
        name = "bias_bytes" if not eager else "eager_bytes" if layers[0].rms_norm else "eager_bytes_narrow"
        found = run.matrix.engine_number("transformers", name)
        numbers = f"{heads} x {tokens:,} x {seen:,} x {found.expected:g}"
        formula = "heads x tokens x tokens x bytes"
        return [ranged(ACTIVATIONS, "scores of attention", heads * tokens * seen, found, formula, numbers)]
    if run.workload.attention == "flash" or run.litgpt:
        return []
    found = run.matrix.engine_number("transformers", "mask_bytes")
    windows = [one.attention.window for one in layers if one.attention and one.attention.kind == WINDOW]
    pairs = tokens * seen
    if windows and seen > min(windows):
        numbers = f"{tokens:,} x {seen:,} x {found.expected:g}"
        return [ranged(ACTIVATIONS, "mask of the window", pairs, found, "tokens x tokens x bytes", numbers)]
    if tokens > length:
        text = "0: the prompts are equally long"
        return [Term(ACTIVATIONS, "mask of the padding", 0, "tokens x tokens x bytes", text, found.source, 0,
                     pairs)]  # fmt: skip
    return []


def _kept_buffers(run: Setup) -> list[Term]:
    """From loading on."""
    space = run.matrix.engine_number("transformers", "workspace")
    terms = [ranged(BUFFERS, "cuBLAS workspace", 1, space, "one for each process", f"{round(space.expected):,}")]
    terms.extend(_rounding(run))
    if run.model.weights == "gptq-int4" and not run.litgpt:
        terms.append(_exllama(run))
    return terms


def _rounding(run: Setup) -> list[Term]:
    """What blocks of torch's allocator hold beside the weights in them. Since all weights are cut out of one block
    there is next to nothing."""
    if run.model.stored is not None and not run.shape.tensors:
        return []
    counted = run.litgpt or run.has("one_block") is False
    sizes = _in_order(run) if counted else ()
    amount = left_over(sizes) // (run.parts.stages * run.parts.tensor)
    source = "torch: c10/cuda/CUDACachingAllocator.cpp, should_split"
    formula = "what blocks of 2 and 20 MiB leave with the tensors in them, at most 1 MiB each"
    low, high = (amount // 2, amount + amount // 2) if counted else (0, 8 * MIB)
    return [buffer("rests of blocks", amount, formula, f"{amount:,}", source, low, high)]


def _in_order(run: Setup) -> tuple[int, ...]:
    """Bytes of the tensors as they are loaded, layer by layer; numbers of a quantised matrix apart from its scales."""
    outside: list[int] = []
    runs: dict[int, list[int]] = {}
    bits = int(run.scheme.bits)
    for one, amount in sizes_of(run)[0]:
        size = amount // max(one.copies, 1)
        codes = one.elements // max(one.copies, 1) * bits // 8
        parts = (codes, size - codes) if run.scheme.kind == "matrices" and 0 < size - codes < codes // 2 else (size,)
        if one.layers is None:
            outside.extend(parts * one.copies)
        else:
            number = max(run.shape.layers[one.layers].number, 1)
            runs.setdefault(one.layers, []).extend(parts * max(one.copies // number, 1))
    inside = [
        size for place in sorted(runs) for _ in range(run.shape.layers[place].number) for size in runs[place]
    ]  # fmt: skip
    return (*outside, *inside)


def _exllama(run: Setup) -> Term:
    """The buffer that AutoGPTQ's kernels unpack a 4-bit matrix into; models quantised with reordered columns have one
    for their input, too. The kernels of today hold none."""
    tokens = run.matrix.engine_number("transformers", "exllama_tokens")
    sides = [max(one.shape) for one in run.shape.tensors if one.layers is not None and len(one.shape) == 2]
    largest = largest_matrix(run)
    full, reordered = 2 * largest, round(2 * tokens.expected * max(sides, default=0))
    amount = full if run.has("gptqmodel") is False else 0
    return buffer("buffer of ExLlama", amount, "2 x parameters of the largest matrix", f"2 x {largest:,}" if amount
                  else "0", tokens.source, amount, full + reordered if amount else full)  # fmt: skip


def _everywhere(run: Setup, worst: Moment, loaded: Weights, found: Cache, first: list[Term], later: list[Term]) -> int:
    """Allocated on all GPUs together."""
    if run.gpus == 1:
        return worst.bytes
    if run.parts.stages == 1:
        return worst.bytes * run.gpus
    own = sum(term.bytes for term in worst.terms if term.part in (WEIGHTS, KV_CACHE))
    whole = cache(run.matrix, run.model, run.workload, 1, Held()).total
    kv = sum(term.bytes for term in worst.terms if term.part == KV_CACHE)
    if whole:
        layers, here = run.shape.layer_count, -(-run.shape.layer_count // run.parts.stages)
        kv = kv * layers // max(here, 1)
    more = sum(term.bytes for term in later) if worst.name == "prefill" else 0
    rest = worst.bytes - own
    return loaded.total + kv + rest + (run.gpus - 1) * more


def _per_token(found: Cache) -> int:
    return sum(one.bytes for one in found.runs if not one.state)


def _beside(run: Setup, worst: Moment) -> list[Term]:
    """What torch's allocator keeps, and the process."""
    moving = sum(term.bytes for term in worst.terms if term.part in (ACTIVATIONS, LOGITS, KV_CACHE))
    share = run.number("reserve")
    terms = [
        ranged(CACHED, "kept by the allocator", moving, share, "share x what comes and goes",
               f"{share.expected:g} x {moving:,}"),
        Term(CACHED, "unused parts of blocks", 12 * MIB, "blocks of 2 and 20 MiB that are not full", "12 MiB",
             share.source, 2 * MIB, 48 * MIB),
    ]  # fmt: skip
    return terms + process_terms(run, nccl=run.parts.tensor > 1)


def _host(run: Setup, loaded: Weights, streamed: bool) -> Interval:
    """Files are mapped and read piece by piece; what stays in the machine's memory stays whole."""
    if streamed:
        away = max(0, loaded.total - loaded.bytes)
        return Interval(away, away, loaded.total)
    return Interval(0, min(loaded.total, _SHARD), loaded.total)


def _assumed(run: Setup) -> list[str]:
    workload = run.workload
    said = []
    if workload.prompt is None and not workload.prefill_chunk:
        said.append("The whole context passes at once, as a prompt.")
    if workload.batch > 1:
        said.append("All sequences of a batch are equally long.")
    if workload.offload in ("layers", "all"):
        said.append("The layers stay in the machine's memory and are fetched one by one: this is the least that a GPU "
                    "needs.")  # fmt: skip
    return said


# ------------------------------------------------------------------------------------------------ other models


def _one_pass(run: Setup) -> Need:
    """Encoders, image models and denoisers: nothing is kept from one pass to the next."""
    workload, kind = run.workload, run.shape.kind
    limit = run.shape.max_context or workload.context
    length = run.shape.tokens_per_item or min(workload.context, limit)
    times = 2 if kind == DIFFUSION else 1
    tokens = times * workload.batch * length
    loaded = weights(run)
    terms = [*loaded.terms, *_kept_buffers(run), *_prefill(run, tokens, length, length, side="")]
    said = list(_assumed_of_model(run))
    if kind == DIFFUSION:
        said.append("Text encoders and the VAE are not counted: decoding the picture can take more for a moment.")
        said.append("Guidance runs every step with and without the prompt: two passes at once.")
        terms = [_uncertain(term) if term.part == ACTIVATIONS else term for term in terms]
    if run.shape.tokens_per_item:
        said.append(f"One item is {length:,} tokens: the default size.")
    moments = [_loading(run, loaded), Moment("one pass", tuple(terms))]
    worst = max(moments, key=lambda moment: moment.bytes)
    everything = worst.bytes * run.gpus if run.parts.stages == 1 else worst.bytes + loaded.total - loaded.bytes
    return need(run, moments, _beside(run, worst), everything, _host(run, loaded, False), said, 0)


def _uncertain(term: Term) -> Term:
    low, high = _VAGUE
    return term._replace(low=round(term.bytes * low), high=round(term.bytes * high))


def _encoder_decoder(run: Setup) -> Need:
    """The encoder runs once; the decoder keeps its own keys and values, and those of the encoder's output."""
    workload, matrix = run.workload, run.matrix
    source = matrix.engine_number("transformers", "hidden_copies").source
    length = run.shape.tokens_per_item or run.prompt
    limit = run.shape.max_context if run.shape.tokens_per_item else None
    answer = min(workload.context, limit) if limit else workload.context
    loaded = weights(run)
    kept = [*loaded.terms, *_kept_buffers(run)]
    tokens = workload.batch * length
    encoding = Moment("encoder", (*kept, *_prefill(run, tokens, length, length, side="encoder")))
    held = Held(tensor=run.parts.tensor, stages=run.parts.stages)
    found = cache(matrix, run.model, workload, answer, held, across=length)
    out = tokens * run.shape.hidden * run.width
    decoding = _decoding(run, kept, found, source)
    decoding = Moment(
        "decoding",
        (
            *decoding.terms,
            Term(ACTIVATIONS, "the encoder's output", out, "sequences x tokens x hidden x bytes",
                 f"{workload.batch} x {length:,} x {run.shape.hidden:,} x {run.width}", source, out, out),
        ),
    )  # fmt: skip
    moments = [_loading(run, loaded), encoding, decoding]
    worst = max(moments, key=lambda moment: moment.bytes)
    said = [f"The encoder sees {length:,} tokens, the decoder writes up to {answer:,}.", *_assumed_of_model(run)]
    everything = worst.bytes * run.gpus if run.parts.stages == 1 else worst.bytes + loaded.total - loaded.bytes
    per_token = _per_token(cache(matrix, run.model, workload._replace(batch=1), 1, held._replace(stages=1)))
    return need(run, moments, _beside(run, worst), everything, _host(run, loaded, False), said, per_token)


def layers_on_gpus(run: Setup) -> Optional[int]:
    """None: all of them."""
    if run.workload.offload != "layers":
        return None
    return run.workload.gpu_layers or 0
