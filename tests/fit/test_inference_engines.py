"""What vLLM and llama.cpp need: held against the lines that they print when they start."""

from __future__ import annotations

from typing import Any

import pytest

from cudadoctor.fit.catalogue import find
from cudadoctor.fit.inference import inference
from cudadoctor.fit.need import ACTIVATIONS, KV_CACHE, LOGITS, WEIGHTS, Need
from cudadoctor.fit.workload import WEIGHTS as WEIGHTS_ALONE
from cudadoctor.fit.workload import Sharding, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once

GIB, MIB = 1 << 30, 1 << 20


def needs(matrix: Matrix, name: str, weights: str = "", **given: Any) -> Need:
    model = find(matrix, name)
    return inference(matrix, model._replace(weights=weights or model.weights), Workload(**given))


def part(need: Need, *parts: str) -> int:
    return sum(one.bytes for one in need.terms if one.part in parts)


# ------------------------------------------------------------------------------------------------ llama.cpp

# "compute buffer size", in MiB: model, context, flash attention, what is printed.
COMPUTE = [
    ("llama-2-7b", 512, False, 70.50, "the logits of 512 tokens"),
    ("llama-2-7b", 4096, False, 296.00, "the scores of 512 tokens with all others"),
    ("llama-3-8b", 8192, False, 560.00, "the scores"),
    ("llama-3-8b", 8192, True, 258.50, "the logits: four times the vocabulary of Llama 2"),
    ("qwen2.5-7b", 32768, True, 304.00, "the logits"),
    ("gpt-oss-20b", 16384, True, 398.38, "the logits"),
]


@pytest.mark.parametrize(("name", "context", "flash", "mib", "why"), COMPUTE, ids=[f"{r[0]}-{r[1]}" for r in COMPUTE])
def test_the_compute_buffer(matrix: Matrix, name: str, context: int, flash: bool, mib: float, why: str) -> None:
    found = needs(matrix, name, "Q8_0", engine="llama.cpp", context=context, attention="flash" if flash else "eager")
    assert part(found, ACTIVATIONS, LOGITS) / MIB == pytest.approx(mib, rel=0.001), why


# "KV self size", in MiB.
CACHES = [
    ("llama-2-7b", 4096, "bf16", 2048.0),
    ("llama-3-8b", 8192, "bf16", 1024.0),
    ("llama-3-8b", 8192, "Q8_0", 544.0),
    ("llama-3-8b", 8192, "Q4_0", 288.0),
    ("llama-3-8b", 1, "bf16", 32.0),
]


@pytest.mark.parametrize(("name", "context", "kv", "mib"), CACHES, ids=[f"{r[0]}-{r[1]}-{r[2]}" for r in CACHES])
def test_the_cache(matrix: Matrix, name: str, context: int, kv: str, mib: float) -> None:
    found = needs(matrix, name, "Q8_0", engine="llama.cpp", context=context, kv=kv)
    assert part(found, KV_CACHE) / MIB == mib


def test_the_embedding_stays_in_the_machines_memory(matrix: Matrix) -> None:
    """Unless it is the head as well: then it is in both."""
    apart = needs(matrix, "llama-3.1-8b", "Q8_0", engine="llama.cpp")
    assert part(apart, WEIGHTS) == pytest.approx((8_030_261_248 - 128256 * 4096) * 34 / 32, rel=0.001)
    assert apart.host.expected == 128256 * 4096 * 34 // 32
    both = needs(matrix, "llama-3.2-3b", "Q8_0", engine="llama.cpp")
    assert part(both, WEIGHTS) == pytest.approx(3_212_749_824 * 34 / 32, rel=0.001)


def test_layers_that_stay_behind(matrix: Matrix) -> None:
    """-ngl 16: half of the weights, and the cache of those layers only."""
    given: dict[str, Any] = {"engine": "llama.cpp", "context": 8192}
    whole = needs(matrix, "llama-3.1-8b", "Q4_K_M", **given)
    half = needs(matrix, "llama-3.1-8b", "Q4_K_M", offload="layers", gpu_layers=16, **given)
    none = needs(matrix, "llama-3.1-8b", "Q4_K_M", offload="layers", **given)
    assert part(half, KV_CACHE) * 2 == part(whole, KV_CACHE)
    assert none.allocated.expected < half.allocated.expected < whole.allocated.expected
    assert part(none, WEIGHTS, KV_CACHE) == 0
    assert none.host.expected > half.host.expected > whole.host.expected
    assert half.assumed == ("16 of 32 layers are on the GPUs (-ngl 16), the others are computed by the processor.",)
    more = needs(matrix, "llama-3.1-8b", "Q4_K_M", offload="layers", gpu_layers=99, **given)
    assert more.allocated == whole.allocated


def test_slots_share_the_cache(matrix: Matrix) -> None:
    found = needs(matrix, "llama-3.1-8b", "Q8_0", engine="llama.cpp", context=4000, batch=4)
    assert part(found, KV_CACHE) == 4 * 4096 * 131072
    assert found.assumed == ("The cache is shared by 4 slots: -c 16384 -np 4.",)


# ------------------------------------------------------------------------------------------------ vLLM

# "PyTorch activation peak memory takes", in GiB: what the profiling run of 256 sequences needed.
PROFILED = [
    ("llama-3-8b", 1, 8192, "0.6.5", 1.26, "sampling over 128256 words"),
    ("llama-3-8b", 2, 8192, "0.6.5", 1.26, "which each of two GPUs does for all of them"),
    ("qwen3-8b", 1, 8192, "0.7.3", 1.40, "151936 words"),
    ("qwen2.5-1.5b", 1, 32768, "0.7.3", 2.02, "a prompt of 32768 tokens that passes at once"),
]


@pytest.mark.parametrize(("name", "gpus", "context", "version", "gib", "why"), PROFILED)
def test_the_profiling_run(
    matrix: Matrix, name: str, gpus: int, context: int, version: str, gib: float, why: str
) -> None:
    sharding = Sharding("tp", gpus) if gpus > 1 else Sharding()
    found = needs(matrix, name, engine="vllm", context=context, framework=f"vllm-{version}", sharding=sharding)
    terms = [one for one in found.terms if one.part in (ACTIVATIONS, LOGITS)]
    assert len(terms) == 1
    assert terms[0].bytes / GIB == pytest.approx(gib, rel=0.06), why
    assert terms[0].low <= gib * GIB <= terms[0].high


# "model weights take", in GiB.
LOADED = [("llama-3-8b", 1, 14.96), ("llama-3-8b", 2, 7.48), ("qwen3-8b", 1, 15.27), ("qwen2.5-1.5b", 1, 2.89)]


@pytest.mark.parametrize(("name", "gpus", "gib"), LOADED)
def test_the_weights(matrix: Matrix, name: str, gpus: int, gib: float) -> None:
    sharding = Sharding("tp", gpus) if gpus > 1 else Sharding()
    found = needs(matrix, name, engine="vllm", sharding=sharding)
    assert part(found, WEIGHTS) / GIB == pytest.approx(gib, rel=0.006)


def test_every_layer_of_a_hybrid_has_whole_pages(matrix: Matrix) -> None:
    """gpt-oss-120b printed a pool of 5.38 GiB for 78,384 tokens: layers with a window had as many pages."""
    found = needs(matrix, "gpt-oss-120b", engine="vllm", context=78384)
    assert part(found, KV_CACHE) / GIB == pytest.approx(5.38, abs=0.005)


def test_blocks_have_sixteen_tokens(matrix: Matrix) -> None:
    found = needs(matrix, "llama-3.1-8b", engine="vllm", context=17, batch=2)
    assert part(found, KV_CACHE) == 2 * 32 * 131072


def test_what_it_takes_is_another_thing(matrix: Matrix) -> None:
    """People take the pool for the need."""
    found = needs(matrix, "llama-3.1-8b", engine="vllm")
    assert "--gpu-memory-utilization" in found.assumed[0]
    assert found.device.expected < 20 * GIB


def test_a_small_chunk_samples_few_sequences(matrix: Matrix) -> None:
    small, usual = (needs(matrix, "llama-3.1-8b", engine="vllm", prefill_chunk=one) for one in (16, 0))
    assert part(small, LOGITS, ACTIVATIONS) < part(usual, LOGITS, ACTIVATIONS) / 8


# "Model loading took", in GiB: the cosines and sines of all positions are in it.
TOOK = [
    ("llama-3.1-8b", "bf16", 1, 14.9889),
    ("llama-3-8b", "bf16", 2, 7.48),
    ("qwen2.5-1.5b", "bf16", 1, 2.8875),
]


@pytest.mark.parametrize(("name", "weights", "gpus", "gib"), TOOK, ids=[row[0] for row in TOOK])
def test_what_vllm_calls_the_weights(matrix: Matrix, name: str, weights: str, gpus: int, gib: float) -> None:
    kind = Sharding("tp", gpus) if gpus > 1 else Sharding()
    found = needs(matrix, name, weights, method=WEIGHTS_ALONE, engine="vllm", sharding=kind)
    assert found.allocated.expected / GIB == pytest.approx(gib, rel=0.0015)


def test_ollama_may_ask_for_fewer_logits(matrix: Matrix) -> None:
    old = needs(matrix, "qwen2.5-7b", "Q4_K_M", engine="llama.cpp", attention="flash")
    new = needs(matrix, "qwen2.5-7b", "Q4_K_M", engine="llama.cpp", attention="flash", framework="ollama")
    assert new.allocated.expected == old.allocated.expected
    assert new.allocated.low < old.allocated.low - 200 * MIB


def test_matrices_of_bitsandbytes_are_unpacked_for_a_prompt(matrix: Matrix) -> None:
    """151 million numbers, in 16 bits; and in fp32 as well, where nobody says in which type to compute."""
    found = needs(matrix, "starcoder-15b", "nf4", context=100, prompt=40)
    assert found.peak == "prefill"
    unpacked = next(term for term in found.terms if term.name == "one matrix, unpacked")
    assert (unpacked.bytes, unpacked.high) == (2 * 4 * 6144 * 6144, 7 * 4 * 6144 * 6144)
