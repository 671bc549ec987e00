"""What transformers (and litgpt, which works alike) needs to run a model: the moments at which that may be most."""

from __future__ import annotations

from cudadoctor.fit.architecture import DECODER, DIFFUSION, ENCODER, ENCODER_DECODER, SPEECH, VISION
from cudadoctor.fit.inference_parts import (
    MIB,
    Moment,
    Setup,
    Weights,
    assumed_of_model,
    cache_terms,
    need,
    process_terms,
    ranged,
    uncertain,
    weights,
)
from cudadoctor.fit.kv_cache import Cache, Held, cache
from cudadoctor.fit.need import ACTIVATIONS, CACHED, KV_CACHE, LOGITS, WEIGHTS, Interval, Need, Term
from cudadoctor.fit.transformers_terms import all_logits, decoding, kept_buffers, loading, prefill, streamed_layer
from cudadoctor.parse.errors import ParseError


def transformers(run: Setup) -> Need:
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
    loaded = weights(run, layers=(workload.gpu_layers or 0) if streamed else None)
    kept = [*loaded.terms, *kept_buffers(run)]
    if streamed:
        kept.append(streamed_layer(run))
    chunk = min(workload.prefill_chunk or prompt, prompt)
    first = prefill(run, batch * chunk, chunk, prompt)
    at_first = Moment("prefill", (*kept, *cache_terms(run, at_prompt, source, beyond if run.litgpt else 0), *first))
    moments = [loading(run, loaded), at_first, decoding(run, kept, at_end, source)]
    if not run.litgpt and run.has("last_logits") is False:
        moments.append(all_logits(run, kept, at_prompt, source, batch * chunk))
    worst = max(moments, key=lambda moment: moment.bytes)
    later = prefill(run, batch * chunk, chunk, prompt, later=True) if run.parts.stages > 1 else first
    everything = _everywhere(run, worst, loaded, at_prompt if worst is at_first else at_end, first, later)
    per_token = cache(matrix, run.model, workload._replace(batch=1), 1, held._replace(stages=1)).per_token
    return need(
        run,
        moments,
        _beside(run, worst),
        everything,
        _host(run, loaded, streamed),
        (*assumed_of_model(run), *_assumed(run)),
        per_token,
    )


# Their pipelines put the prompt and its absence into one batch; others run one after the other, or were taught to do
# without (Flux).
_GUIDED_AT_ONCE = ("UNet2DConditionModel", "SD3Transformer2DModel", "PixArtTransformer2DModel")


def _one_pass(run: Setup) -> Need:
    """Encoders, image models and denoisers: nothing is kept from one pass to the next."""
    workload, kind = run.workload, run.shape.kind
    limit = run.shape.max_context or workload.context
    length = run.shape.tokens_per_item or min(workload.context, limit)
    guided = run.shape.family in _GUIDED_AT_ONCE
    tokens = (2 if guided else 1) * workload.batch * length
    streamed = kind == DIFFUSION and workload.offload in ("layers", "all")
    loaded = weights(run, layers=(workload.gpu_layers or 0) if streamed else None)
    terms = [*loaded.terms, *kept_buffers(run), *prefill(run, tokens, length, length, side="")]
    said = list(assumed_of_model(run))
    if kind == DIFFUSION:
        said.append("Text encoders and the VAE are not counted: pipe.enable_model_cpu_offload() keeps them away while "
                    "this runs; decoding the picture can take more for a moment.")  # fmt: skip
        if guided:
            said.append("Guidance runs every step with and without the prompt: two passes at once.")
        terms = [uncertain(term) if term.part == ACTIVATIONS else term for term in terms]
    if streamed:
        terms.append(streamed_layer(run))
    if run.shape.tokens_per_item:
        said.append(f"One item is {length:,} tokens: the default size.")
    moments = [loading(run, loaded), Moment("one pass", tuple(terms))]
    worst = max(moments, key=lambda moment: moment.bytes)
    everything = worst.bytes * run.gpus if run.parts.stages == 1 else worst.bytes + loaded.total - loaded.bytes
    return need(run, moments, _beside(run, worst), everything, _host(run, loaded, streamed), said, 0)


def _encoder_decoder(run: Setup) -> Need:
    """The encoder runs once; the decoder keeps its own keys and values, and those of the encoder's output."""
    workload, matrix = run.workload, run.matrix
    source = matrix.engine_number("transformers", "hidden_copies").source
    length = run.shape.tokens_per_item or run.prompt
    limit = run.shape.max_context if run.shape.tokens_per_item else None
    answer = min(workload.context, limit) if limit else workload.context
    loaded = weights(run)
    kept = [*loaded.terms, *kept_buffers(run)]
    tokens = workload.batch * length
    encoding = Moment("encoder", (*kept, *prefill(run, tokens, length, length, side="encoder")))
    held = Held(tensor=run.parts.tensor, stages=run.parts.stages)
    found = cache(matrix, run.model, workload, answer, held, across=length)
    out = tokens * run.shape.hidden * run.width
    last = decoding(run, kept, found, source)
    last = Moment(
        "decoding",
        (
            *last.terms,
            Term(ACTIVATIONS, "the encoder's output", out, "sequences x tokens x hidden x bytes",
                 f"{workload.batch} x {length:,} x {run.shape.hidden:,} x {run.width}", source, out, out),
        ),
    )  # fmt: skip
    moments = [loading(run, loaded), encoding, last]
    worst = max(moments, key=lambda moment: moment.bytes)
    said = [f"The encoder sees {length:,} tokens, the decoder writes up to {answer:,}.", *assumed_of_model(run)]
    everything = worst.bytes * run.gpus if run.parts.stages == 1 else worst.bytes + loaded.total - loaded.bytes
    per_token = cache(matrix, run.model, workload._replace(batch=1), 1, held._replace(stages=1)).per_token
    return need(run, moments, _beside(run, worst), everything, _host(run, loaded, False), said, per_token)


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
    return Interval(0, min(loaded.total, run.matrix.host_bytes("shard")), loaded.total)


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
