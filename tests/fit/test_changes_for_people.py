"""What people with certain GPUs and models are told, and what would be wrong there."""

from __future__ import annotations

import re

import plain_sums
import pytest
from plain_sums import GIB, MIB

from cudadoctor.fit.catalogue import find
from cudadoctor.fit.changes import each_alone
from cudadoctor.fit.cure import cure
from cudadoctor.fit.estimate import estimate
from cudadoctor.fit.quantisation import tensor_bytes
from cudadoctor.fit.sums import Setting, Sums
from cudadoctor.fit.target import Target
from cudadoctor.fit.targets import target_of_name, target_of_size
from cudadoctor.fit.verdict import answer
from cudadoctor.fit.workload import FULL, LORA, QLORA, Sharding, Workload
from cudadoctor.matrix import Matrix

pytestmark = pytest.mark.once


def offered(matrix: Matrix, target: Target, model: str, workload: Workload) -> dict[str, tuple[str, ...]]:
    found = each_alone(Sums(matrix, target), Setting(find(matrix, model), workload))
    return {change.id: change.lines for change in found}


@pytest.mark.parametrize(
    ("card", "model", "workload", "change", "is_offered"),
    [
        # Liger's kernels are Triton's, which begins with Volta.
        ("P100", "qwen2.5-7b", Workload(method=QLORA), "fused-loss", False),
        ("T4", "qwen2.5-7b", Workload(method=LORA), "fused-loss", True),
        # bitsandbytes' NF4 runs on Pascal, LLM.int8 does not, and vLLM's AWQ begins with Turing.
        ("GTX 1060 6GB", "mistral-7b-v0.3", Workload(), "weights-4bit", True),
        ("GTX 1060 6GB", "mistral-7b-v0.3", Workload(), "weights-int8", False),
        ("V100", "mistral-7b-v0.3", Workload(engine="vllm"), "weights-4bit", False),
        ("T4", "mistral-7b-v0.3", Workload(engine="vllm"), "weights-4bit", True),
        # FlashAttention 2 knows no sinks, and no biases of ALiBi.
        ("H100", "gpt-oss-20b", Workload(), "flash-attention", False),
        ("H100", "gpt-oss-20b", Workload(method=LORA), "flash-attention", False),
        ("H100", "bloom-7b1", Workload(method=FULL), "flash-attention", False),
        ("H100", "gpt2-xl", Workload(method=FULL, attention="eager"), "flash-attention", True),
        ("T4", "gpt2-xl", Workload(method=FULL, attention="eager"), "flash-attention", False),
        # Half the bytes for nothing.
        ("T4", "bert-large-uncased", Workload(), "weights-16bit", True),
        ("T4", "whisper-large-v3", Workload(), "weights-16bit", False),
        ("T4", "bert-large-uncased", Workload(method=FULL), "weights-16bit", False),
    ],
)
def test_what_works_there(
    matrix: Matrix, card: str, model: str, workload: Workload, change: str, is_offered: bool
) -> None:
    assert (change in offered(matrix, target_of_name(matrix, card), model, workload)) is is_offered


def test_half_the_bytes_for_nothing_come_first(matrix: Matrix) -> None:
    found = cure(Sums(matrix, plain_sums.target(4)), Setting(find(matrix, "whisper-medium"), Workload(context=448)))
    assert found is not None
    assert [change.lines for change in found.changes] == [("from_pretrained(..., dtype=torch.float16)",)]


def test_what_bitsandbytes_has_quantised_stays_on_the_gpu(matrix: Matrix) -> None:
    model = find(matrix, "llama-3.1-70b")
    found = cure(Sums(matrix, target_of_name(matrix, "RTX 4090")), Setting(model, Workload()))
    assert found is not None
    ids = {change.id for change in found.changes}
    assert "offload-layers" in ids and not {"weights-4bit", "weights-int8"} & ids
    quantised = Setting(model._replace(weights="nf4"), Workload())
    assert "offload-layers" not in {
        one.id for one in each_alone(Sums(matrix, target_of_name(matrix, "RTX 4090")), quantised)
    }


def test_image_models_get_the_words_of_diffusers(matrix: Matrix) -> None:
    found = offered(matrix, target_of_name(matrix, "GTX 1060 6GB"), "flux.1-dev", Workload(batch=2))
    assert found["fewer-sequences"] == ("pipe(..., num_images_per_prompt=1)",)
    assert found["offload-layers"] == ("pipe.enable_sequential_cpu_offload()",)
    assert "diffusers.BitsAndBytesConfig" in found["weights-4bit"][0]
    assert "flash-attention" not in found


@pytest.mark.parametrize(
    ("card", "model", "workload", "says"),
    [
        # It takes the model's whole length unless told, and does not start where that finds no room.
        ("A100 80GBx2", "llama-3.1-70b", Workload(engine="vllm", sharding=Sharding("tp", 2)), "--max-model-len 4096"),
        ("H100", "llama-3.1-8b", Workload(engine="vllm"), ""),
        ("RTX 4090", "llama-2-7b", Workload(engine="vllm"), ""),
        ("V100", "qwen2.5-1.5b", Workload(), "dtype=torch.float16"),
        ("A100", "qwen2.5-1.5b", Workload(), ""),
        ("V100", "llama-2-7b", Workload(), ""),  # published in fp16
        ("V100", "qwen2.5-1.5b", Workload(engine="vllm"), ""),  # takes fp16 by itself
    ],
)
def test_what_has_to_be_said_to_the_engine(
    matrix: Matrix, card: str, model: str, workload: Workload, says: str
) -> None:
    warned = answer(matrix, find(matrix, model), workload, target_of_name(matrix, card)).warnings
    assert any(says in sentence for sentence in warned) if says else warned == ()


def test_llama_cpp_computes_layers_for_which_there_is_no_room(matrix: Matrix) -> None:
    asked = (matrix, find(matrix, "llama-3.1-70b"), Workload())
    notes = " ".join(answer(*asked, target_of_name(matrix, "RTX 4090")).notes)
    assert "of its 80 layers on the GPU and the rest on the processor: --engine llama.cpp --quant q4_k_m" in notes
    assert "llama.cpp" not in " ".join(answer(*asked, target_of_size(2)).notes)


def test_nobody_adds_a_second_chip_to_a_board(matrix: Matrix) -> None:
    found = answer(matrix, find(matrix, "llama-3.1-8b"), Workload(), target_of_name(matrix, "Jetson Orin Nano 8GB"))
    assert all("Orin" not in other.name for other in found.alternatives)


def test_an_image_model_with_its_blocks_in_the_machines_memory_needs_little(matrix: Matrix) -> None:
    model = find(matrix, "flux.1-dev")
    whole, away = (estimate(matrix, model, Workload(offload=offload)) for offload in ("none", "layers"))
    assert away.device.expected < 4 * GIB < 20 * GIB < whole.device.expected
    assert away.host.expected > 20 * GIB


@pytest.mark.parametrize(("name", "at_once"), [("sdxl", True), ("sd3.5-medium", True), ("flux.1-dev", False)])
def test_guidance_in_one_batch_or_not(matrix: Matrix, name: str, at_once: bool) -> None:
    said = estimate(matrix, find(matrix, name), Workload()).assumed
    assert any("two passes at once" in sentence for sentence in said) is at_once


@pytest.mark.parametrize(
    ("name", "experts_away"),
    [("gpt-oss-20b", True), ("qwen3-30b-a3b", True), ("gpt-oss-120b", True), ("deepseek-v2-lite", True),
     ("qwen3-14b", False)],
)  # fmt: skip
def test_experts_leave_the_gpu_before_layers_do(matrix: Matrix, name: str, experts_away: bool) -> None:
    """As many of them as take the place that the rest of the layers that would move takes on the GPU."""
    model = find(matrix, name)
    model = model._replace(weights="Q4_K_M") if model.weights == "bf16" else model
    workload = Workload(engine="llama.cpp")
    found = cure(Sums(matrix, target_of_name(matrix, "RTX 4060")), Setting(model, workload))
    assert found is not None
    (line,) = next(change for change in found.changes if change.id == "offload-layers").lines
    assert ("-ngl 999 --n-cpu-moe" in line) is experts_away
    if not experts_away:
        return
    kept, away = (int(number) for number in re.findall(r"-ngl (\d+), .* --n-cpu-moe (\d+)", line)[0])
    layers = model.architecture.layer_count
    assert layers - kept < away <= layers
    sizes = tensor_bytes(matrix, model)
    experts = sum(size for one, size in sizes if one.role == "expert")
    on_gpu = (
        sum(size for one, size in sizes if one.role not in ("expert", "embedding"))
        + experts * (layers - away) // layers
    )
    beside = {term.part: 0 for term in estimate(matrix, model, workload).terms}
    for term in estimate(matrix, model, workload).terms:
        beside[term.part] += term.bytes
    there = sum(amount for part, amount in beside.items() if part != "weights")
    assert on_gpu + there <= found.need.expected + 300 * MIB
