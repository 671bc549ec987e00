"""What llama.cpp (and what is built on it, as Ollama) needs: all is allocated, buffer by buffer, before it runs."""

from __future__ import annotations

from cudadoctor.fit.architecture import DECODER, HEAD, LATENT, WINDOW, Attention, FeedForward
from cudadoctor.fit.inference_parts import (
    MIB,
    Moment,
    Setup,
    buffer,
    cache_terms,
    layers_on_gpus,
    need,
    process_terms,
    ranged,
    weights,
)
from cudadoctor.fit.interval import spread
from cudadoctor.fit.kv_cache import Held, Run, cache
from cudadoctor.fit.need import ACTIVATIONS, CACHED, LOGITS, WEIGHTS, Interval, Need, Term
from cudadoctor.parse.errors import ParseError

_FLOAT = 4  # results between the layers are fp32


def llama_cpp(run: Setup) -> Need:
    """Model buffer, KV buffer and compute buffer of a GPU, as its log calls them. ParseError for models that it does
    not run."""
    shape, workload, matrix = run.shape, run.workload, run.matrix
    if shape.kind != DECODER:
        raise ParseError(f"how llama.cpp runs a model of the kind {shape.kind!a} is not counted")
    count = shape.layer_count
    layers = layers_on_gpus(run)
    all_of_them = layers is None or layers > count
    here = count if layers is None else min(layers, count)
    loaded = weights(run, outside=False, layers=here)
    model = [*loaded.terms, *(_output(run) if all_of_them else [])]
    ubatch = int(run.number("ubatch").expected)
    step = int(run.number("context_step").expected)
    tokens = -(-workload.context // step) * step
    held = Held(step=1, windows=True, beyond=ubatch, beyond_step=step, stages=run.parts.stages)
    found = cache(matrix, run.model, workload, tokens, held)
    runs = tuple(_part(one, here, count) for one in found.runs)
    found = found._replace(runs=tuple(one for one in runs if one.layers))
    latent = any(one.attention is not None and one.attention.kind == LATENT for one in shape.layers)
    source = run.number("hidden_copies").source
    cached = cache_terms(run, found, source, vague_high=found.total if latent else 0)
    at_once = min(workload.prefill_chunk or ubatch, ubatch, tokens)
    moments = [Moment("computing", (*model, *cached, term)) for term in _compute(run, at_once, tokens, all_of_them)]
    worst = max(moments, key=lambda moment: moment.bytes)
    whole = weights(run)
    everything = worst.bytes
    if run.gpus > 1:
        own = sum(term.bytes for term in worst.terms if term.part == WEIGHTS)
        everything = (worst.bytes - own) * run.gpus + (whole.total if all_of_them else own * run.gpus)
    away = max(0, whole.total - loaded.bytes) if not all_of_them else _embedding(run)
    share = run.number("reserve")
    pool = run.number("pool")
    beside = [
        ranged(CACHED, "pool of the kernels", 1, pool, "measured elsewhere", f"{round(pool.expected / MIB)} MiB"),
        ranged(CACHED, "rounded up", found.total, share, "share of the buffers", f"{share.expected:g}"),
        *process_terms(run, nccl=False),
    ]
    said = []
    if layers is not None:
        said.append(
            f"{here} of {count} layers are on the GPUs (-ngl {here}), the others are computed by the processor."
        )
    if workload.batch > 1:
        said.append(
            f"The cache is shared by {workload.batch} slots: -c {workload.batch * tokens} -np {workload.batch}."
        )
    per_token = cache(matrix, run.model, workload._replace(batch=1), 1).per_token
    return need(run, moments, beside, everything, Interval(away, away, whole.total), said, per_token)


def _part(one: Run, here: int, count: int) -> Run:
    """The cache of layers that the processor computes stays in the machine's memory."""
    layers = -(-one.layers * here // max(count, 1))
    return one._replace(layers=layers, bytes=one.bytes * layers // max(one.layers, 1))


def _output(run: Setup) -> list[Term]:
    """The output head is on the GPU; the embedding stays in the machine's memory, and where both are one tensor it is
    in both."""
    terms = [term for term in weights(run).terms if term.name in ("output head", "outside of the layers")]
    if not any(one.role == HEAD for one in run.shape.tensors):
        terms += [term._replace(name="output head (the embedding again)")
                  for term in weights(run).terms if term.name == "embedding"]  # fmt: skip
    return terms


def _embedding(run: Setup) -> int:
    return sum(term.bytes for term in weights(run).terms if term.name == "embedding")


def _compute(run: Setup, tokens: int, context: int, head: bool) -> list[Term]:
    """The compute buffer: what lives at once in the graph of `tokens`, at each of the places where that may be most."""
    shape = run.shape
    found = []
    if head and shape.vocabulary:
        found.append(_logits(run, tokens))
    attentions = [one.attention for one in shape.layers if one.attention]
    if attentions:
        found.append(_attention(run, max(attentions, key=lambda one: one.heads), tokens, context))
    parts = {one.feed_forward for one in shape.layers if one.feed_forward is not None}
    found.extend(_feed_forward(run, part, tokens) for part in parts)
    source = run.number("hidden_copies").source
    return found or [buffer("compute buffer", 0, "nothing is known of the layers", "0", source)]


def _logits(run: Setup, tokens: int) -> Term:
    words, hidden = run.shape.vocabulary, run.shape.hidden
    # Ollama's own runner asks for the last token's logits of each sequence only, the older one for all.
    low = 0.0 if "ollama" in run.workload.framework.lower() else 0.98
    return _term(
        *(run, LOGITS, "logits of a batch", tokens * (words + hidden) * _FLOAT, "tokens x (vocabulary + hidden) x 4"),
        *(f"{tokens} x ({words:,} + {hidden:,}) x 4", low, 1.1),
    )


def _attention(run: Setup, widest: Attention, tokens: int, context: int) -> Term:
    hidden = run.shape.hidden
    if run.workload.attention == "eager":
        copies = round(run.number("hidden_copies").expected)
        pairs = tokens * context
        return _term(
            *(
                run,
                ACTIVATIONS,
                "scores of attention",
                (copies * tokens * hidden + (widest.heads + 1) * pairs) * _FLOAT,
            ),
            "heads x tokens x context x 4, its mask, hidden states",
            f"({widest.heads} + 1) x {tokens} x {context:,} x 4 + {copies} x {tokens} x {hidden:,} x 4",
            *(0.95, 1.1),
        )
    # The fused kernel wants the mask in fp16, beside the one in fp32; layers with a window have one of their own.
    windows = any(one.attention is not None and one.attention.kind == WINDOW for one in run.shape.layers)
    masks = 6 * (2 if windows else 1)
    wide = 2 * hidden + 2 * widest.query_width
    return _term(
        *(run, ACTIVATIONS, "attention", masks * tokens * context + tokens * wide * _FLOAT),
        "masks in fp32 and fp16, hidden states and queries",
        f"{tokens} x {context:,} x {masks} + {tokens} x (2 x {hidden:,} + 2 x {widest.query_width:,}) x 4",
        *(0.7, 1.3),
    )


def _feed_forward(run: Setup, part: FeedForward, tokens: int) -> Term:
    hidden = run.shape.hidden
    chosen = max(part.experts_per_token, 1) if part.experts else 1
    width = chosen * part.intermediate * 2 + (chosen * hidden if part.experts else 0)
    return _term(
        *(run, ACTIVATIONS, "feed-forward part", tokens * (width + 2 * hidden) * _FLOAT),
        *("tokens x (2 x intermediate + 2 x hidden) x 4", f"{tokens} x ({width:,} + 2 x {hidden:,}) x 4", 0.7, 1.4),
    )


def _term(run: Setup, part: str, name: str, amount: int, formula: str, text: str, low: float, high: float) -> Term:
    source = run.number("hidden_copies").source
    return Term(part, name, amount, formula, text, source, *spread(amount, low, high))
