"""What is left beside the weights does not hold the KV cache

What it checks
    Whether an inference engine (vLLM, SGLang, llama.cpp) reported that its cache of keys and values does not fit, or
    that the share of the GPU which it was to take is not free, and what its numbers say.

Why it matters
    An engine takes a share of the card (vLLM nine tenths) for weights, working space and cache. What is left for the
    cache bounds how long a request may be: one of the model's full length must fit, or the engine does not start.

How to fix
    A smaller --max-model-len (the message often names the longest), a larger --gpu-memory-utilization, a cache in FP8
    (--kv-cache-dtype fp8), quantised weights, more GPUs (--tensor-parallel-size); and nothing else on the card.

References
    https://docs.vllm.ai/en/latest/configuration/conserving_memory.html
"""

from __future__ import annotations

from typing import Any, Optional

from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD802",
    name="kv-cache-too-small",
    title="What is left beside the weights does not hold the KV cache",
    severity=ERROR,
    blame=ENVIRONMENT,
    follows_from=("CD614", "CD505", "CD607"),
    precedence=56,
)

_CACHE, _SHARE = "symptom.kv_cache_too_small", "symptom.engine_memory_share"
# What an engine may be told to take of what is free, so that the driver and others keep a little.
_OF_FREE = 0.95


def judge(case: Case) -> Outcome:
    if case.fact(_CACHE).is_known:
        return _cache(case, case.value(_CACHE))
    if case.fact(_SHARE).is_known:
        return _share(case, case.value(_SHARE))
    return case.skipped("no inference engine reported that its cache does not fit")


def _cache(case: Case, told: dict[str, Any]) -> Outcome:
    asked, longest = _whole(told.get("asked")), _whole(told.get("longest"))
    needed, available = _number(told.get("needed")), _number(told.get("available"))
    if needed is not None and available is not None:
        message = (
            f"a request of {asked or 'full'} tokens needs {needed:g} GiB of KV cache, and {available:g} GiB are left"
        )
        return _failed(case, message, _CACHE, CERTAIN, _shorter(longest))
    if asked is not None and longest is not None:
        message = f"the KV cache holds {longest} tokens, and the model's requests may have {asked}"
        return _failed(case, message, _CACHE, CERTAIN, _shorter(longest))
    return _failed(case, "no memory is left for the KV cache beside the weights", _CACHE, CERTAIN, _shorter(longest))


def _share(case: Case, told: dict[str, Any]) -> Outcome:
    free, total = _number(told.get("free")), _number(told.get("total"))
    share, wanted = _number(told.get("share")), _number(told.get("wanted"))
    if not free or not total:
        return case.undecided("the engine's share of the GPU is not free; its numbers cannot be read", (_SHARE,))
    held = f"{total - free:.1f} GiB are held by something else"
    message = f"the engine wants {wanted or 0:g} GiB of {total:g} (share {share or 0:g}), and {free:g} are free: {held}"
    fits = int(free / total * _OF_FREE * 100) / 100
    text = "Free the card first: nvidia-smi lists who holds it."
    if fits >= 0.05:
        text = (
            f"Free the card (nvidia-smi lists who holds it), or take what is free: --gpu-memory-utilization {fits:.2f}"
        )
    return _failed(case, message, _SHARE, LIKELY, _manual("Free the card, or let the engine take less", text, _SHARE))


def _failed(case: Case, message: str, symptom: str, certainty: str, fix: Remedy) -> Outcome:
    return case.failed(
        message,
        (symptom,),
        certainty=certainty,
        fixes=(fix,),
        not_helping=("another driver or torch build: neither makes memory",),
    )


def _shorter(longest: Optional[int]) -> Remedy:
    length = f"--max-model-len {longest}" if longest else "a smaller --max-model-len"
    text = (
        f"In the order of what it costs: {length}; --gpu-memory-utilization 0.95 where nothing else uses the card; "
        "--kv-cache-dtype fp8; --enforce-eager; quantised weights; --tensor-parallel-size over several GPUs. SGLang: "
        "--context-length and --mem-fraction-static."
    )
    return _manual("Let the cache need less, or give it more", text, _CACHE)


def _manual(title: str, text: str, symptom: str) -> Remedy:
    slug = "smaller-kv-cache" if symptom == _CACHE else "smaller-engine-share"
    return Remedy("manual", {"title": title, "text": text, "kind": "setting", "id": slug, "effect": {symptom: None}})


def _whole(text: object) -> Optional[int]:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None


def _number(text: object) -> Optional[float]:
    """A number out of a text that another program wrote."""
    if not isinstance(text, str) or len(text) > 12:
        return None
    try:
        return float(text)
    except ValueError:
        return None
