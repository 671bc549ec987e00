"""The whole answer: verdicts, what else fits where, what to mind; never an error for what nobody knows."""

from __future__ import annotations

import plain_sums
import pytest
from plain_sums import GIB, MIB, ids

from cudadoctor.fit.alternatives import GPU, MODEL, RENTED
from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, UNKNOWN, Answer
from cudadoctor.fit.catalogue import find
from cudadoctor.fit.need import Interval
from cudadoctor.fit.target import Machine, Target
from cudadoctor.fit.targets import target_of_facts, target_of_name, target_of_size
from cudadoctor.fit.verdict import answer, decide
from cudadoctor.fit.workload import FULL, LORA, QLORA, Sharding, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError
from cudadoctor.testing import linux, node

pytestmark = pytest.mark.once


RUNNING = Workload()


def asked(
    matrix: Matrix, target: Target, workload: Workload = RUNNING, weights: str = "bf16", name: str = "llama-3.1-8b"
) -> Answer:
    """A model of the catalogue, summed up plainly."""
    model = find(matrix, name)._replace(weights=weights)
    return answer(matrix, model, workload, target, plain_sums.estimate)


# -- the verdict


@pytest.mark.parametrize(
    ("room", "verdict"),
    [(None, UNKNOWN), (130, FITS), (120, FITS), (119, TIGHT), (100, TIGHT), (99, DOES_NOT_FIT), (0, DOES_NOT_FIT)],
)
def test_it_fits_when_the_upper_bound_does(room: int, verdict: str) -> None:
    assert decide(Interval(90, 100, 120), room) == verdict


def test_an_answer_says_how_much_is_left_or_missing(matrix: Matrix) -> None:
    found = asked(matrix, plain_sums.target(24))
    assert found.verdict == FITS
    assert found.available == 24 * GIB
    assert found.headroom == 24 * GIB - found.need.device.expected > 0
    assert found.cure is None and found.alternatives == ()
    missing = asked(matrix, plain_sums.target(8))
    assert missing.verdict == DOES_NOT_FIT
    assert missing.headroom is not None and missing.headroom < 0
    assert missing.cure is not None


def test_without_a_gpu_the_need_is_told_and_where_it_would_fit(matrix: Matrix) -> None:
    found = asked(matrix, Target("none"))
    assert found.verdict == UNKNOWN
    assert found.available is None and found.headroom is None
    assert found.need.device.expected > 16 * GIB
    assert found.largest_batch is None and found.longest_context is None and found.cure is None
    assert [other.kind for other in found.alternatives] == [GPU, RENTED]
    assert found.notes == ("there is nothing to compare with: no GPU is named, and none is seen here",)


def test_a_gpu_that_does_not_tell_what_is_free_is_unknown_and_said(matrix: Matrix) -> None:
    machine = linux().unknown("gpu.0.memory_free", "gpu.0.memory_used", "smi.gpus", reason="not permitted")
    found = asked(matrix, target_of_facts(matrix, machine.facts))
    assert found.verdict == UNKNOWN
    assert any("not permitted" in note for note in found.notes)


def test_what_cannot_be_summed_up_is_an_error_in_a_sentence(matrix: Matrix) -> None:
    with pytest.raises(ParseError, match="only decoders"):
        asked(matrix, plain_sums.target(24), name="bert-base-uncased")


def test_what_is_in_use_counts_as_taken(matrix: Matrix) -> None:
    machine = linux().set({"gpu.0.memory_free": 10 * GIB, "gpu.0.memory_used": 14 * GIB})
    assert asked(matrix, target_of_facts(matrix, linux().facts)).verdict == FITS
    assert asked(matrix, target_of_facts(matrix, machine.facts)).verdict == DOES_NOT_FIT


def test_what_others_hold_is_told_where_it_would_do(matrix: Matrix) -> None:
    full = linux().set({"gpu.0.memory_free": 10 * GIB, "gpu.0.memory_used": 14 * GIB})
    found = asked(matrix, target_of_facts(matrix, full.facts)).warnings
    assert found[0].startswith("other programs hold 13.")
    assert "it fits once they have ended" in found[0]
    # Where it fits anyway, or would not fit either, nobody has to end.
    assert asked(matrix, target_of_facts(matrix, full.facts), weights="q4_k_m").warnings == ()
    large = asked(matrix, target_of_facts(matrix, full.facts), name="qwen2.5-14b").warnings
    assert not any("other programs" in sentence for sentence in large)


# -- notes


def test_where_no_larger_batch_was_tried_it_is_told(matrix: Matrix) -> None:
    found = asked(matrix, plain_sums.target(4000), Workload(context=16))
    assert found.largest_batch == 4096
    assert found.notes == ("larger batches than 4096 are not looked at",)
    assert asked(matrix, plain_sums.target(80)).notes == ()


@pytest.mark.parametrize(
    ("target", "degree", "says"),
    [
        (plain_sums.target(24), 4, "4 GPUs are asked for, and there is 1: the others are taken to be alike"),
        (plain_sums.target(24, 24), 4, "4 GPUs are asked for, and there are 2: the others are taken to be alike"),
        (plain_sums.target(24, 12), 2, "the GPUs differ: the one with least free memory decides"),
    ],
)
def test_what_was_assumed_about_the_gpus_is_told(matrix: Matrix, target: Target, degree: int, says: str) -> None:
    found = asked(matrix, target, Workload(sharding=Sharding("tp", degree)))
    assert says in found.notes


# -- where else


def test_a_smaller_model_of_the_same_line_comes_first_and_a_larger_other_one_after(matrix: Matrix) -> None:
    found = asked(matrix, plain_sums.target(10), name="llama-3.1-70b")
    models = [other.name for other in found.alternatives if other.kind == MODEL]
    assert models[0].startswith("llama-3.2")
    sizes = [find(matrix, name).architecture.parameters for name in models]
    assert sizes == sorted(sizes)
    for other in found.alternatives:
        if other.kind == MODEL:
            assert other.need.high <= 10 * GIB


def test_where_no_change_suffices_a_smaller_model_may_with_changes(matrix: Matrix) -> None:
    found = asked(matrix, plain_sums.target(3), Workload(method=FULL), name="llama-3.1-70b")
    assert found.cure is None
    with_changes = [other for other in found.alternatives if other.changes]
    assert [other.kind for other in with_changes] == [MODEL]
    assert with_changes[0].need.high <= 3 * GIB


def test_more_gpus_of_the_same_kind_are_counted(matrix: Matrix) -> None:
    found = asked(matrix, target_of_name(matrix, "RTX 4060"), Workload(engine="vllm"))
    more = next(other for other in found.alternatives if other.name == "GeForce RTX 4060")
    assert (more.kind, more.gpus) == (GPU, 4)
    assert more.card is not None and more.need.high <= (more.card.free or 0)


def test_the_smallest_card_to_buy_and_to_rent_stand_with_their_figures(matrix: Matrix) -> None:
    found = asked(matrix, target_of_name(matrix, "RTX 4060"))
    own, rented = (other for other in found.alternatives if other.gpus == 1 and other.kind in (GPU, RENTED))
    assert own.name == "GeForce RTX 4090"  # of 24 GB, as the RTX 3090, and faster
    assert rented.name == "A10G" or rented.name == "L4"
    for other in (own, rented):
        assert other.card is not None and other.card.bandwidth and other.card.tensor_rate
        assert other.need.high <= (other.card.free or 0)


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        # A T4 has no bfloat16 in its tensor cores.
        (Workload(method=LORA, batch=1, context=128, loss="fused", checkpointing="full"), "llama-3.2-3b"),
        (Workload(attention="flash", context=128), "llama-3.2-3b"),
    ],
)
def test_a_card_that_cannot_do_it_is_not_proposed(matrix: Matrix, workload: Workload, name: str) -> None:
    found = asked(matrix, target_of_size(1), workload, name=name)
    rented = next(other for other in found.alternatives if other.kind == RENTED)
    assert rented.card is not None
    assert float(rented.card.compute_capability) >= 8.0


def test_a_model_for_many_gpus_is_told_how_many(matrix: Matrix) -> None:
    found = asked(matrix, Target("none"), Workload(engine="vllm"), name="llama-3.1-405b")
    rented = next(other for other in found.alternatives if other.kind == RENTED)
    assert rented.gpus == 8
    assert rented.card is not None and rented.need.high <= (rented.card.free or 0)


# -- what to mind


def warned(matrix: Matrix, machine: Machine, workload: Workload = RUNNING, gib: float = 24) -> str:
    return " / ".join(asked(matrix, plain_sums.target(gib, machine=machine), workload).warnings)


HEALTHY = Machine(64 * GIB, 50 * GIB, 8 * GIB, 32 * GIB, None, "nvme")


@pytest.mark.parametrize("workload", [Workload(), Workload(method=FULL), Workload(sharding=Sharding("tp", 2))])
def test_a_healthy_machine_gets_no_warning(matrix: Matrix, workload: Workload) -> None:
    assert warned(matrix, HEALTHY, workload) == ""


def test_what_nobody_knows_gives_no_warning(matrix: Matrix) -> None:
    assert warned(matrix, Machine()) == ""
    assert asked(matrix, target_of_name(matrix, "RTX 4090")).warnings == ()


@pytest.mark.parametrize(
    ("machine", "workload", "says"),
    [
        (
            HEALTHY._replace(memory_available=8 * GIB, swap=0),
            Workload(),
            "about 15.0 GiB of RAM are needed, and 8.0 GiB are free, and no swap or page file: the system may end",
        ),
        (
            HEALTHY._replace(memory_available=8 * GIB, swap=2 * GIB),
            Workload(),
            "2.0 GiB of swap or page file do not make up: the system may end the program",
        ),
        (HEALTHY._replace(memory_available=8 * GIB, swap=32 * GIB), Workload(), "the rest goes to swap"),
        (
            HEALTHY._replace(memory_total=16 * GIB, memory_available=16 * GIB),
            Workload(),
            "less RAM (16.0 GiB) than the GPU has memory (24.0 GiB)",
        ),
        (HEALTHY._replace(shared_memory=64 * MIB), Workload(method=FULL), "/dev/shm has 64 MiB free, and DataLoader"),
        (
            HEALTHY._replace(shared_memory=64 * MIB),
            Workload(sharding=Sharding("tp", 2)),
            "/dev/shm has 64 MiB free, and the processes of several GPUs talk through it",
        ),
        (HEALTHY._replace(disk="hdd"), Workload(), "the working folder is on a turning disk: loading from it is slow"),
        (HEALTHY._replace(disk="network"), Workload(), "on a network drive"),
        (
            HEALTHY._replace(lockable=8 * MIB),
            Workload(method=FULL, offload="optimizer"),
            "a process here may lock 8 MiB (ulimit -l)",
        ),
    ],
)
def test_the_machine_around_the_gpu_is_looked_at(
    matrix: Matrix, machine: Machine, workload: Workload, says: str
) -> None:
    assert says in warned(matrix, machine, workload)


@pytest.mark.parametrize(
    ("machine", "workload"),
    [
        (HEALTHY._replace(shared_memory=64 * MIB), Workload()),  # one process, no DataLoader
        (HEALTHY._replace(lockable=8 * MIB), Workload(method=FULL)),  # nothing is pinned
        (HEALTHY._replace(disk=""), Workload()),
    ],
)
def test_what_does_not_matter_here_is_not_said(matrix: Matrix, machine: Machine, workload: Workload) -> None:
    assert warned(matrix, machine, workload) == ""


@pytest.mark.parametrize(
    ("capability", "workload", "says"),
    [
        ("7.5", Workload(method=LORA), "(compute capability 7.5) has no bfloat16 in its tensor cores"),
        ("7.5", Workload(attention="flash"), "FlashAttention 2 does not run on this GPU (compute capability 7.5)"),
        ("6.1", Workload(engine="vllm"), "vllm does not run on this GPU or system"),
        ("8.0", Workload(method=LORA, attention="flash"), ""),
        ("6.1", Workload(engine="llama.cpp", attention="flash"), ""),
        ("", Workload(method=LORA, attention="flash"), ""),
    ],
)
def test_what_a_gpu_cannot_do_is_said(matrix: Matrix, capability: str, workload: Workload, says: str) -> None:
    found = asked(matrix, plain_sums.target(80, capability=capability), workload).warnings
    assert (says in " / ".join(found)) if says else found == ()


@pytest.mark.parametrize(
    ("free", "total", "says"),
    [
        (23.5, 24, ""),
        (17.6, 18, "vllm takes 0.9 of the GPU unless told otherwise: start it with --gpu-memory-utilization 0.97"),
        (20, 24, "start it with --gpu-memory-utilization 0.83"),  # others hold what it would take
        (16, 18, ""),  # it does not fit anyway
    ],
)
def test_an_engine_that_takes_a_share_is_told_which(matrix: Matrix, free: float, total: float, says: str) -> None:
    target = plain_sums.target(free)
    card = target.cards[0]._replace(total=int(total * GIB))
    found = " / ".join(asked(matrix, target._replace(cards=(card,)), Workload(engine="vllm", context=1024)).warnings)
    assert (says in found) if says else "gpu-memory-utilization" not in found


# -- with the real estimators


@pytest.mark.parametrize(
    ("name", "weights", "workload", "gpu", "verdict"),
    [
        ("llama-3.1-8b", "q4_k_m", Workload(context=4096, engine="llama.cpp"), "RTX 4060", FITS),
        ("llama-3.1-8b", "bf16", Workload(context=4096), "RTX 4090", FITS),
        ("llama-3.1-8b", "bf16", Workload(context=4096), "RTX 4060", DOES_NOT_FIT),
        ("llama-3.1-70b", "bf16", Workload(context=4096), "H100", DOES_NOT_FIT),
        ("llama-3.1-70b", "q4_k_m", Workload(context=4096, engine="llama.cpp"), "RTX A6000", FITS),
        ("llama-3.1-8b", "bf16", Workload(method=FULL, context=2048), "RTX 4090", DOES_NOT_FIT),
        ("llama-3.2-1b", "nf4-dq", Workload(method=QLORA, context=512, checkpointing="full"), "RTX 4060", FITS),
    ],
)
def test_what_everybody_knows(
    matrix: Matrix, name: str, weights: str, workload: Workload, gpu: str, verdict: str
) -> None:
    model = find(matrix, name)._replace(weights=weights)
    assert answer(matrix, model, workload, target_of_name(matrix, gpu)).verdict == verdict


def test_where_transformers_would_crawl_llama_cpp_is_named(matrix: Matrix) -> None:
    target = target_of_name(matrix, "RTX 4090")
    found = answer(matrix, find(matrix, "qwen3-30b-a3b"), Workload(), target)
    assert found.cure is not None and ids(found.cure.changes)[-1] == "offload-layers"
    assert found.notes[-1].startswith("llama.cpp runs a Q4_K_M file of it here, and takes about 1")
    assert found.notes[-1].endswith("--engine llama.cpp --quant q4_k_m")
    # A model that 4 bits of its own make fit needs no other engine.
    assert not answer(matrix, find(matrix, "llama-3.1-8b"), Workload(), target_of_name(matrix, "RTX 4060")).notes


def test_a_node_of_eight_trains_what_one_gpu_cannot(matrix: Matrix) -> None:
    machine = node(8).set({"limits.memlock": 1 << 40})
    workload = Workload(method=FULL, batch=1, context=4096, precision="mixed", checkpointing="full")
    found = answer(matrix, find(matrix, "llama-3.1-8b"), workload, target_of_facts(matrix, machine.facts))
    assert found.verdict == DOES_NOT_FIT
    assert found.cure is not None
    assert ids(found.cure.changes)[-1] == "shard"
    assert "--num_processes 8" in found.cure.changes[-1].lines[0]


def test_nothing_of_an_answer_depends_on_the_order_of_questions(matrix: Matrix) -> None:
    target = target_of_name(matrix, "RTX 4060")
    model = find(matrix, "llama-3.1-8b")
    first = answer(matrix, model, Workload(), target)
    answer(matrix, find(matrix, "qwen2.5-7b"), Workload(method=FULL), target)
    assert answer(matrix, model, Workload(), target) == first
