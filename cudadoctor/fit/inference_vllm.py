"""What vLLM needs. What it takes is another thing: it fills the share of the card that it is given with cache."""

from __future__ import annotations

from cudadoctor.fit.architecture import DECODER, ENCODER, LINEAR, POSITION
from cudadoctor.fit.forward import peak
from cudadoctor.fit.inference_parts import Moment, Setup, cache_terms, need, pass_term, process_terms, ranged, weights
from cudadoctor.fit.kv_cache import Held, cache
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, CACHED, LOGITS, Interval, Need, Term
from cudadoctor.matrix.memory import Range
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.sizes import show_size


def vllm(run: Setup) -> Need:
    """Weights, cache for `batch` sequences, and the peak of its profiling run, which decides how much it takes for it.
    ParseError for models that it does not run as decoders or encoders."""
    shape, workload, matrix = run.shape, run.workload, run.matrix
    if shape.kind not in (DECODER, ENCODER):
        raise ParseError(f"how vLLM runs a model of the kind {shape.kind!a} is not counted: ask with transformers")
    loaded = weights(run)
    kept = [*loaded.terms, *rotary(run)]
    block = int(run.number("block").expected)
    held = Held(step=block, windows=False, tensor=run.parts.tensor, stages=run.parts.stages)
    found = cache(matrix, run.model, workload, workload.context, held)
    kept.extend(cache_terms(run, found, run.number("block").source))
    space = matrix.engine_number("transformers", "workspace")
    kept.append(ranged(BUFFERS, "cuBLAS workspace", 1, space, "one for each process", f"{round(space.expected):,}"))
    moments = [Moment("prefill", (*kept, _forward(run)))]
    if shape.vocabulary:
        moments.append(Moment("sampling", (*kept, _sampling(run))))
    worst = max(moments, key=lambda moment: moment.bytes)
    moving = sum(term.bytes for term in worst.terms if term.part in (ACTIVATIONS, LOGITS))
    share = run.number("reserve")
    graphs = run.number("graph_bytes")
    here = -(-shape.layer_count // run.parts.stages)
    beside = [
        ranged(CACHED, "kept by the allocator", moving, share, "share x what comes and goes",
               f"{share.expected:g} x {moving:,}"),
        ranged(CACHED, "CUDA graphs", here, graphs, "layers x bytes that vLLM prints for each",
               f"{here} x {round(graphs.expected):,}"),
        *process_terms(run, nccl=run.parts.tensor > 1),
    ]  # fmt: skip
    everything = worst.bytes * run.gpus
    if run.parts.stages > 1:
        everything += loaded.total - loaded.bytes * run.gpus
    taken = sum(term.bytes for term in (*worst.terms, *beside))
    said = [
        f"vLLM takes a share of the whole card for its cache (--gpu-memory-utilization): what it needs of it are about "
        f"{show_size(taken)}, the rest is room for more sequences.",
    ]
    if not workload.prefill_chunk:
        said.append(f"Up to {_tokens(run).expected:,.0f} tokens pass at once (--max-num-batched-tokens).")
    host = Interval(0, min(loaded.total, matrix.host_bytes("shard")), loaded.total)
    per_token = cache(matrix, run.model, workload._replace(batch=1), 1, held._replace(step=1, stages=1)).per_token
    return need(run, moments, beside, everything, host, said, per_token)


def rotary(run: Setup) -> list[Term]:
    """vLLM keeps the cosines and sines of every position that the model knows, among what it calls its weights."""
    shape = run.shape
    widths = {one.attention.rope_dim or one.attention.head_dim for one in shape.layers
              if one.attention is not None and one.attention.kind != LINEAR}  # fmt: skip
    if not shape.max_context or not widths or any(one.role == POSITION for one in shape.tensors):
        return []
    width = max(widths)
    size = shape.max_context * width * run.width
    numbers = f"{shape.max_context:,} x {width} x {run.width}"
    source = "vLLM: RotaryEmbedding, cos_sin_cache"
    return [Term(BUFFERS, "rotary positions", size, "positions x head x bytes", numbers, source, size // 2, 2 * size)]


def _tokens(run: Setup) -> Range:
    """That pass at once. Never more than the sequences asked for have."""
    workload = run.workload
    found = run.number("batched_tokens")
    asked = max(workload.batch * run.prompt, 1)
    if workload.prefill_chunk:
        number = float(min(workload.prefill_chunk, asked))
        return Range(number, number, number, found.source)
    if run.has("chunked_prefill") is False:
        number = float(max(workload.context, found.low))
        return Range(number, number, number, found.source)
    return found


def _forward(run: Setup) -> Term:
    copies = run.matrix.engine_number("transformers", "hidden_copies")
    found = peak(run.matrix, run.shape, "decoder" if run.shape.kind == DECODER else "", run.parts.tensor,
                 int(copies.expected))  # fmt: skip
    tokens = _tokens(run)
    term = pass_term(found, round(tokens.expected), run.width, copies.source)
    return term._replace(
        low=min(term.low, round(term.low * tokens.low / max(tokens.expected, 1))),
        high=max(term.high, round(term.high * tokens.high / max(tokens.expected, 1))),
    )


def _sampling(run: Setup) -> Term:
    """The profiling run samples for as many sequences as may run at once, over the whole vocabulary."""
    sequences, each = run.number("sequences"), run.number("sampler_bytes")
    number = max(run.workload.batch, round(sequences.expected))
    if run.workload.prefill_chunk:
        number = max(run.workload.batch, min(number, run.workload.prefill_chunk))
    vocabulary = run.shape.vocabulary
    text = f"{number} x {vocabulary:,} x {each.expected:g}"
    term = ranged(LOGITS, "sampling in the profiling run", number * vocabulary, each,
                  "max_num_seqs x vocabulary x bytes", text)  # fmt: skip
    return term._replace(high=round(term.high * max(1.0, sequences.high / sequences.expected)))
