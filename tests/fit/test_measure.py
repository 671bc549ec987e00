"""`fit --measure` without torch: how deep the dry run goes, what follows from its runs, and what becomes of whatever is
missing, hangs, dies or talks nonsense."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from bench.parts import clean_environ, find_python

from cudadoctor.actions import child_process
from cudadoctor.actions.measure_fit import contexts_of, dry_run_of, events_of, not_run, request_of
from cudadoctor.fit import context, dry_run
from cudadoctor.fit.measured import (
    CANNOT,
    FAILED,
    MEASURED,
    CudaContext,
    DryRun,
    Measured,
    compared,
    run_of,
    with_context,
)
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, CACHED, CONTEXT, OPTIMIZER, WEIGHTS, Interval, Need, Term
from cudadoctor.fit.workload import Lora, Sharding, Workload
from cudadoctor.render.fit_measured import document, lines

SECONDS = 60.0
MIB = 1 << 20
GIB = 1 << 30


# -- how deep --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"num_hidden_layers": 32}, [[2], [3]]),
        ({"n_layer": 12}, [[2], [3]]),
        ({"num_hidden_layers": 2}, [[2]]),
        ({"num_hidden_layers": 1}, [[1]]),
        # five layers with a window, one that sees all
        ({"num_hidden_layers": 26, "sliding_window_pattern": 6}, [[6], [12]]),
        ({"num_hidden_layers": 4, "layer_types": ["w", "f", "w", "f"]}, [[2], [4]]),
        ({"num_hidden_layers": 5, "layer_types": ["w", "w", "f", "w", "w"]}, [[3], [5]]),
        # three dense layers, then experts
        ({"num_hidden_layers": 61, "first_k_dense_replace": 3}, [[5], [6]]),
        ({"text_config": {"num_hidden_layers": 34}, "vision_config": {"num_hidden_layers": 27}}, [[2], [3]]),
        ({"num_layers": 24, "num_decoder_layers": 24}, [[2, 2], [3, 2], [2, 3]]),
        ({"encoder_layers": 6, "decoder_layers": 2, "num_hidden_layers": 6}, [[2, 2], [3, 2]]),
        ({"num_layers": 24, "attention_types": [[["global", "local"], 12]]}, [[2], [4]]),
        ({"num_hidden_layers": 10**30}, [[2], [3]]),
        ({"num_hidden_layers": "many"}, [[]]),
        ({"num_hidden_layers": True}, [[]]),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_which_depths_are_run(config: Mapping[str, Any], expected: list[list[int]]) -> None:
    assert dry_run.depths_to_run(dry_run.sides(config)) == expected


def test_a_config_is_cut_to_few_layers_and_left_as_it_was() -> None:
    config = {"text_config": {"num_hidden_layers": 8, "layer_types": ["w", "f"] * 4, "rope": [1, 2]}, "a": [0] * 8}
    (side,) = dry_run.sides(config)
    cut = dry_run.cut(config, [(side, 2)])
    assert cut["text_config"] == {"num_hidden_layers": 2, "layer_types": ["w", "f"], "rope": [1, 2]}
    assert config["text_config"]["num_hidden_layers"] == 8 and cut["a"] == [0] * 8


# -- what follows from the runs ------------------------------------------------------------------------------------


def ran(depths: list[int], **amounts: Any) -> dict[str, Any]:
    layers = sum(depths)
    found = {
        "parameters": 100 + 10 * layers, "trained": 10, "weights": 200 + 20 * layers, "adapters": 0,
        "gradients": 20, "optimizer": 40, "activations": 50 + 7 * layers, "cache": 0, "depths": depths,
        "attention": "sdpa", "model_class": "Toy", "step": True,
        "stretches": {"forward": 60 + 7 * layers, "backward loss": 500 + layers, "backward 0 first": 9 * layers,
                      "step": 30 * layers},
    }  # fmt: skip
    return {**found, **amounts}


def test_the_whole_follows_evenly_from_two_depths() -> None:
    run = run_of([ran([2]), ran([3])], [("num_hidden_layers", 40, 1)], DryRun(CANNOT))
    assert (run.status, run.layers, run.layers_run) == (MEASURED, (40,), (2, 3))
    assert (run.parameters, run.weights, run.activations) == (500, 1000, 330)
    # Of two layers the loss is the peak, of forty the optimizer's step.
    assert dict(run.phases) == {"forward": 1340, "backward": 1540, "step": 2200}
    assert (run.peak, run.phase) == (2200, "step")


def test_each_stack_has_its_own_depth() -> None:
    runs = [ran([2, 2]), ran([3, 2]), ran([2, 3])]
    run = run_of(runs, [("num_layers", 12, 1), ("num_decoder_layers", 6, 1)], DryRun(CANNOT))
    assert (run.parameters, run.layers) == (100 + 10 * 18, (12, 6))


def test_what_lies_between_two_layers_is_no_peak() -> None:
    deeper = ran([3])
    deeper["stretches"]["backward 0 between"] = 10**9
    run = run_of([ran([2]), deeper], [("n_layer", 4, 1)], DryRun(CANNOT))
    assert run.peak is not None and run.peak < 10**6


@pytest.mark.parametrize(
    "workload",
    [
        Workload(method="weights"),
        Workload(engine="vllm"),
        Workload(engine="llama.cpp"),
        Workload(method="full", sharding=Sharding("fsdp", 8)),
        Workload(method="full", offload="optimizer"),
        Workload(method="lora", checkpointing="selective"),
    ],
    ids=lambda one: f"{one.method} {one.engine} {one.sharding.kind} {one.offload} {one.checkpointing}",
)
def test_what_the_dry_run_does_not_know_is_said_and_not_run(workload: Workload) -> None:
    assert not_run(workload)
    found = dry_run_of("/no/such/python", {"model_type": "llama"}, workload)
    assert (found.status, found.reason, found.peak) == (CANNOT, not_run(workload), None)


@pytest.mark.parametrize(
    ("workload", "note"),
    [
        (Workload(method="full", optimizer="adamw_8bit"), "the step of adamw_8bit is not run"),
        (Workload(method="full", loss="fused"), "the logits and the fused loss are not run"),
        (Workload(method="qlora"), "the dry run holds 16-bit weights"),
        (Workload(method="full", framework="torchtune"), "torchtune may do otherwise"),
        (Workload(method="full", optimizer_in_backward=True), "inside the backward pass is not run"),
        (Workload(method="full", attention="flash"), "flash attention is taken as torch's own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_in_what_a_dry_run_differs_is_said(workload: Workload, note: str) -> None:
    assert any(note in one for one in request_of({}, workload)[1])
    assert not request_of({}, Workload(method="full"))[1] and not request_of({}, Workload())[1]


# -- beside the estimate -------------------------------------------------------------------------------------------


def need() -> Need:
    def term(part: str, name: str, size: int) -> Term:
        return Term(part, name, size, "", "", "", size, size)

    terms = (
        term(WEIGHTS, "weights", 4 * GIB), term(OPTIMIZER, "states", 2 * GIB), term(ACTIVATIONS, "layers", 3 * GIB),
        term(BUFFERS, "workspaces of libraries", GIB), term(CACHED, "blocks", GIB), term(CONTEXT, "context", GIB // 2),
    )  # fmt: skip
    return Need(
        terms, Interval(9 * GIB, 10 * GIB, 11 * GIB), Interval(10 * GIB, 11 * GIB, 13 * GIB),
        Interval(10 * GIB, 11 * GIB + GIB // 2, 14 * GIB), Interval(0, 0, 0), Interval(0, 0, 0), 1, "loss", (),
    )  # fmt: skip


def test_the_measured_context_takes_the_place_of_the_assumed_one() -> None:
    found = with_context(need(), 400 * MIB)
    assert [term.bytes for term in found.terms if term.part == CONTEXT] == [400 * MIB]
    assert found.device == Interval(*(edge + 400 * MIB for edge in found.reserved))
    assert sum(term.bytes for term in found.terms) == found.device.expected
    assert with_context(need(), None) == need()


def test_the_comparison_takes_from_the_estimate_what_the_dry_run_cannot_hold() -> None:
    run = DryRun(MEASURED, weights=4 * GIB, adapters=0, gradients=GIB, optimizer=2 * GIB, peak=9 * GIB)
    plain = compared(run, need())
    assert plain is not None and (plain.measured, plain.share, plain.inside) == (10 * GIB, 0.0, True)
    assert plain.taken == ()
    without_step = compared(run._replace(optimizer=None, peak=7 * GIB), need())
    assert without_step is not None and (without_step.measured, without_step.taken) == (10 * GIB, (OPTIMIZER,))
    packed = compared(run._replace(weights=8 * GIB, peak=13 * GIB), need(), quantised=True)
    assert packed is not None and (packed.measured, packed.taken) == (10 * GIB, (WEIGHTS,))
    assert compared(DryRun(CANNOT, "why"), need()) is None


def test_only_a_context_with_torchs_kernels_stands_for_a_program() -> None:
    alone, with_torch = CudaContext(0, 300 * MIB, "difference"), CudaContext(1, 420 * MIB, "process", True)
    assert Measured(DryRun(CANNOT), (alone,)).cuda_context is None
    assert Measured(DryRun(CANNOT), (alone, with_torch)).cuda_context == 420 * MIB


def test_what_is_shown() -> None:
    run = DryRun(
        MEASURED, "", "3.11.7", "2.9.1", "4.57.1", "LlamaForCausalLM", "sdpa", (32,), (2, 3), 10, 10, 4 * GIB, 0, GIB,
        2 * GIB, 3 * GIB, None, 9 * GIB, "backward", (("backward", 9 * GIB),), 7.4,
    )  # fmt: skip
    contexts = (CudaContext(0, 416 * MIB, "process", True), CudaContext(1, reason="cuInit answered 803"))
    shown = lines(Measured(run, contexts), need())
    assert shown[0].startswith("dry run: LlamaForCausalLM of transformers 4.57.1 on torch 2.9.1, 2 and 3 of 32 layers")
    assert "  most allocated    9.00 GiB (9.66 GB)      in the backward pass" in shown
    assert "  estimated         10.0 GiB (10.7 GB)      the dry run is +0.0%, within its interval" in shown
    assert shown[-2:] == [
        "CUDA context on GPU 0: 416 MiB, with torch's kernels",
        "CUDA context on GPU 1: not measured: cuInit answered 803",
    ]
    assert all(line.isascii() for line in shown)
    told = document(Measured(run, contexts), need())
    assert told["dry_run"]["peak"] == 9 * GIB and told["dry_run"]["share"] == 0.0
    assert [one["bytes"] for one in told["cuda_contexts"]] == [416 * MIB, None]
    missing = Measured(DryRun(CANNOT, "transformers is not installed in this environment"))
    assert lines(missing, need()) == ["dry run: not possible: transformers is not installed in this environment"]
    assert document(missing, need())["dry_run"]["peak"] is None


# -- the processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name not in clean_environ():
            monkeypatch.delenv(name)


def module(tmp_path: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def without_torch() -> str:
    return find_python("3.9") or sys.executable


@pytest.mark.usefixtures("bare")
def test_without_torch_that_is_what_is_said() -> None:
    found = dry_run_of(without_torch(), {"model_type": "llama", "num_hidden_layers": 2}, Workload(), SECONDS)
    assert (found.status, found.reason) == (CANNOT, "torch is not installed in this environment")
    assert found.peak is None and found.python


def test_without_a_config_nothing_is_run() -> None:
    found = dry_run_of("/no/such/python", None, Workload())
    assert (found.status, found.reason) == (CANNOT, "there is no config.json to build the model's class from")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("import os; os.abort()", "it was ended by SIGABRT"),
        ("import os; os._exit(7)", "it ended with status 7"),
        ("raise RuntimeError('libcudnn.so.9: cannot open')", "RuntimeError: libcudnn.so.9: cannot open"),
        ("raise MemoryError", "it took more memory than it may"),
        ("import absent", "torch cannot be imported: No module named 'absent'"),
    ],
)
def test_a_torch_that_cannot_even_be_imported(
    torch: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(tmp_path, "torch", torch, monkeypatch)
    found = dry_run_of(sys.executable, {"model_type": "llama"}, Workload(), SECONDS)
    assert found.status in (CANNOT, FAILED) and found.peak is None
    assert found.reason == reason or reason in found.reason


@pytest.mark.usefixtures("bare")
def test_a_hang_ends_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(tmp_path, "torch", "import time; time.sleep(600)", monkeypatch)
    found = dry_run_of(sys.executable, {"model_type": "llama"}, Workload(), 3.0)
    assert (found.status, found.reason) == (FAILED, "it did not end within 3 s")


def test_an_interpreter_that_is_not_there() -> None:
    found = dry_run_of("/no/such/python", {"model_type": "llama"}, Workload())
    assert found.status == FAILED and found.reason.startswith("the interpreter cannot be started: ")


def test_what_bears_no_mark_or_is_no_json_is_passed_over() -> None:
    output = b'x {"event": "run"}\nm {"event": "end"}\nm nonsense\nm [1]\nm {"a": NaN}\n\xff\xfe\n'
    assert events_of(output, "m") == [{"event": "end"}]


FakeNvml = Callable[..., dict[str, str]]
TORCH_WITH_CUDA = """
import ctypes
float16 = "float16"
class Matrix:
    def __matmul__(self, other): return self
def ones(*shape, **where):
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)
    return Matrix()
class cuda:
    is_available = staticmethod(lambda: True)
    synchronize = staticmethod(lambda: None)
    memory_reserved = staticmethod(lambda device: 20 << 20)
"""


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("text", "torch", "expected"),
    [
        ("cuda_context_mib = 416", None, CudaContext(0, 416 * MIB, "difference")),
        # What torch's allocator holds is no part of the context.
        ("cuda_context_mib = 436", TORCH_WITH_CUDA, CudaContext(0, 416 * MIB, "difference", True)),
        ("cuda_context_mib = 0", None, CudaContext(0, reason="what is used on the GPU changed by 0 bytes, which is no "
                                                   "context's size")),
        ("cuda_context = 2", None, CudaContext(0, reason="cuDevicePrimaryCtxRetain answered 2")),
        ("cuda_init = 803", None, CudaContext(0, reason="cuInit answered 803")),
    ],
    ids=["the driver alone", "torch", "no change", "out of memory", "driver and library differ"],
)  # fmt: skip
def test_the_context_is_what_nvml_shows_more(
    text: str, torch: Optional[str], expected: CudaContext, fake_nvml: FakeNvml, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in fake_nvml(text=f"count = 1\n{text}\n").items():
        monkeypatch.setenv(name, value)
    if torch is not None:
        module(tmp_path, "torch", torch, monkeypatch)
    assert contexts_of(sys.executable, 1, seconds=SECONDS) == (expected,)


@pytest.mark.usefixtures("bare")
def test_without_a_driver_the_context_is_unknown() -> None:
    (found,) = contexts_of(sys.executable, 1, seconds=SECONDS)
    assert found.bytes is None and found.reason.startswith("CUDA's driver library cannot be loaded: ")


@pytest.mark.parametrize(
    ("count", "reason"), [(0, "there is no GPU"), (None, "it is not known whether there is a GPU")]
)
def test_without_a_gpu_nothing_is_started(count: Optional[int], reason: str) -> None:
    assert contexts_of("/no/such/python", count) == (CudaContext(None, reason=reason),)


@pytest.mark.once
@pytest.mark.parametrize("script", [dry_run, context], ids=["dry run", "context"])
def test_what_runs_in_the_patient_needs_nothing_of_ours(script: Any) -> None:
    import ast

    tree = ast.parse(child_process.source_of(script).decode("utf-8"), feature_version=(3, 9))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.partition(".")[0] in ("cudadoctor", "torch", "transformers", "peft")]


def test_lora_is_asked_for_as_it_was_said() -> None:
    asked, _ = request_of({}, Workload(method="lora", lora=Lora(8, ("q", "v"), 0.1), variable_length=True))
    assert asked["lora"] == {"rank": 8, "targets": ["q", "v"], "dropout": 0.1, "width": 4} and asked["padded"]
