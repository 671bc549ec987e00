"""What torch and transformers allocate while a model runs: the terms of which the moments are made up."""

from __future__ import annotations

from typing import Optional

from cudadoctor.fit.allocator import left_over
from cudadoctor.fit.architecture import WINDOW
from cudadoctor.fit.forward import peak
from cudadoctor.fit.inference_parts import (
    MIB,
    Moment,
    Setup,
    Weights,
    buffer,
    cache_terms,
    largest_matrix,
    pass_term,
    ranged,
    sizes_of,
)
from cudadoctor.fit.kv_cache import Cache
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, LOGITS, Term
from cudadoctor.matrix.memory import Range

_BITSANDBYTES = ("nf4", "nf4-dq", "int8")


def streamed_layer(run: Setup) -> Term:
    sizes, _ = sizes_of(run)
    count = max(run.shape.layer_count, 1)
    amount = sum(size for one, size in sizes if one.layers is not None) // count
    return buffer("the layer that runs", amount, "bytes of the layers / layers", f"{amount * count:,} / {count}",
                  "accelerate: hooks fetch the weights of a module when it runs")  # fmt: skip


def loading(run: Setup, loaded: Weights) -> Moment:
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


def decoding(run: Setup, kept: list[Term], found: Cache, source: str) -> Moment:
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


def all_logits(run: Setup, kept: list[Term], at_prompt: Cache, source: str, tokens: int) -> Moment:
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


def prefill(run: Setup, tokens: int, length: int, seen: int, later: bool = False, side: str = "decoder") -> list[Term]:
    """What lives while `tokens` pass at once: sequences of `length`, which look at `seen` tokens each."""
    name = "hidden_copies_later" if later else "hidden_copies"
    copies = run.matrix.engine_number("transformers", name)
    grouped = run.has("grouped_experts") is not False and not run.litgpt
    found = peak(run.matrix, run.shape, side, run.parts.tensor, int(copies.expected), grouped)
    terms = [pass_term(found, tokens, run.width, copies.source)]
    if run.model.weights in _BITSANDBYTES and tokens > 1:
        terms.append(_unpacked(run))
    return terms + _scores(run, tokens, length, seen, side)


def _unpacked(run: Setup) -> Term:
    """bitsandbytes' kernel for one token reads 4-bit matrices as they are; for more tokens they are unpacked, and cast
    to the type of computing: fp32 where nobody set bnb_4bit_compute_dtype. Of 8-bit ones only columns are."""
    largest = largest_matrix(run)
    if run.scheme.bits > 7:
        return buffer("columns of a matrix, unpacked", 0, "0 to 2 x parameters of the largest matrix", "0",
                      "bitsandbytes: MatMul8bitLt", 0, 2 * largest)  # fmt: skip
    return buffer("one matrix, unpacked", 2 * largest, "2 x parameters of the largest matrix", f"2 x {largest:,}",
                  "bitsandbytes: matmul_4bit, dequantize_4bit(...).to(A.dtype)", 2 * largest, 7 * largest)  # fmt: skip


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


def kept_buffers(run: Setup) -> list[Term]:
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
