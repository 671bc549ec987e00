"""CD802: the KV cache of an inference engine does not fit."""

from __future__ import annotations

from cudadoctor.testing import Machine, fails, linux, skips, unknown_when

RULE = "CD802"
NEVER_PASSES = "that no engine complains says nothing of the cache"

REPORT = linux().only()


def cache(**told: str) -> Machine:
    return REPORT.set({"symptom.kv_cache_too_small": {"text": "KV cache", **told}})


def share(**told: str) -> Machine:
    return REPORT.set({"symptom.engine_memory_share": {"text": "Free memory on device", **told}})


CASES = [
    fails(
        "vLLM with its numbers",
        cache(asked="131072", needed="16.00", available="6.12", longest="50112"),
        says=["131072 tokens needs 16 GiB", "6.12 GiB are left"],
        severity="error",
        certainty="certain",
        blame="environment",
        fix="manual",
    ),
    fails("an older vLLM", cache(asked="32768", longest="21840"), says="holds 21840 tokens", certainty="certain"),
    fails("no numbers", cache(), says="no memory is left for the KV cache", certainty="certain"),
    fails(
        "the share is not free",
        share(free="3.10", total="23.64", share="0.9", wanted="21.27"),
        says=["wants 21.27 GiB of 23.64", "20.5 GiB are held"],
        certainty="likely",
        fix="manual",
    ),
    skips("no engine complains", linux()),
    unknown_when("numbers that are none", share(free="much", total="more")),
]
