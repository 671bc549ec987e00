"""`cudadoctor fit` as a person or a script runs it: what it answers, how it ends, and what it says to bad input."""

from __future__ import annotations

import io
import json
import math
import shlex
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Result, Run
from render.schema_validator import mistakes

from cudadoctor.cli._fitting import Place, exit_status, named_target, worst
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix import load_matrix
from cudadoctor.render.schema import schema_of
from cudadoctor.testing import GIB, GONE, Machine, linux

SCHEMA = schema_of("cudadoctor.fit/1")

# What a config.json of the Hugging Face form says of a small model.
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}


def told(result: Result) -> Any:
    assert (result.exit, result.err) == (0, "")
    found = json.loads(result.out)
    for entry in found if isinstance(found, list) else [found]:
        assert mistakes(SCHEMA, entry, SCHEMA) == []
    return found


def first_line(result: Result) -> str:
    return " ".join(result.out.partition("\n\n")[0].split())


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """What standard input holds."""

    def pipe(value: Any) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return pipe


# -- answers ----------------------------------------------------------------------------------------------------------


def test_a_model_by_name_in_so_much_memory(run: Run) -> None:
    result = run("fit", "llama-3.1-8b", "--vram", "24")
    assert result.exit == 0 and result.err == ""
    assert first_line(result).startswith("ok llama-3.1-8b fits into 24.0 GiB (25.8 GB): it takes ")
    assert all(len(line) <= 80 for line in result.out.splitlines())


@pytest.mark.parametrize(
    "arguments, verdict, expected_gib",
    [
        # 8.03 billion parameters of 2 bytes, 0.5 GiB of cache, and what a process with CUDA takes.
        (("llama-3.1-8b", "--gpu", "RTX 4090"), "fits", (15.4, 17.0)),
        (("llama-3.1-8b", "--gpu", "RTX 4060"), "does-not-fit", (15.4, 17.0)),
        (("llama-3.1-8b", "--quant", "q4_k_m", "--gpu", "RTX 4060"), "fits", (4.8, 6.5)),
        (("meta-llama/Llama-3.1-8B-Instruct", "--vram", "80GB"), "fits", (15.4, 17.0)),
        (("7b", "--vram", "24"), "fits", (12.5, 16.5)),
        (("llama-3.1-8b", "--train", "full", "--gpu", "RTX 4090"), "does-not-fit", (60, 250)),
        (("llama-3.1-70b", "--gpu", "H100x8", "--engine", "vllm"), "fits", (16, 26)),
    ],
)
def test_verdicts(arguments: tuple[str, ...], verdict: str, expected_gib: tuple[float, float], run: Run) -> None:
    found = told(run("fit", *arguments, "--format", "json"))
    assert found["verdict"] == verdict
    low, high = expected_gib
    assert low * GIB <= found["need_bytes"]["expected"] <= high * GIB
    assert found["need_bytes"]["low"] <= found["need_bytes"]["expected"] <= found["need_bytes"]["high"]
    assert sum(term["bytes"] for term in found["breakdown"]) == found["need_bytes"]["expected"]


def test_what_does_not_fit_gets_the_cheapest_changes_that_make_it_fit(run: Run) -> None:
    arguments = ("fit", "qwen2.5-7b", "--train", "full", "--seq", "1024", "--vram", "24")
    found = told(run(*arguments, "--format", "json"))
    assert found["verdict"] == "does-not-fit" and found["cure"] is not None
    assert found["cure"]["need_bytes"]["expected"] < found["available_bytes"] == 24 * GIB
    text = run(*arguments).out
    for change in found["cure"]["changes"]:
        for line in change["lines"]:
            assert line in text


@pytest.mark.once
@pytest.mark.parametrize(
    "options, field, value",
    [
        (("--context", "32k"), "context", 32768),
        (("--seq", "1000"), "context", 1000),
        (("--batch", "4"), "batch", 4),
        (("--kv", "q8_0"), "kv", "Q8_0"),
        (("--engine", "vllm"), "engine", "vllm"),
        (("--attention", "eager"), "attention", "eager"),
        (("--prompt", "100"), "prompt", 100),
        (("--train", "full"), "method", "full"),
        (("--train", "full", "--optimizer", "adamw_8bit"), "optimizer", "adamw_8bit"),
        (("--train", "full", "--precision", "mixed"), "precision", "mixed"),
        (("--train", "full", "--checkpointing", "full"), "checkpointing", "full"),
        (("--train", "full", "--checkpointing", "offload"), "checkpointing", "full_offload"),
        (("--train", "full", "--loss", "fused"), "loss", "fused"),
        (("--train", "full", "--accumulate"), "accumulation", True),
        (("--train", "full", "--fused-optimizer"), "fused_optimizer", True),
        (("--train", "full", "--fused-kernels"), "fused_kernels", True),
        (("--train", "full", "--variable-length"), "variable_length", True),
        (("--train", "full", "--fsdp", "4"), "sharding", "fsdp"),
        (("--train", "full", "--zero", "3", "--gpus", "8"), "gpus", 8),
        (("--tp", "2"), "sharding", "tp"),
        (("--tp", "1"), "sharding", "none"),
        (("--pp", "2"), "gpus", 2),
        (("--train", "lora", "--lora-rank", "8"), "lora", {"rank": 8}),
        (("--train", "lora", "--lora-targets", "q_proj,v"), "lora", {"targets": ["q", "v"]}),
        (("--train", "full", "--expandable-segments"), "expandable_segments", True),
        (("--train", "full", "--offload", "optimizer"), "offload", "optimizer"),
    ],
)
def test_every_option_arrives(options: tuple[str, ...], field: str, value: Any, run: Run) -> None:
    workload = told(run("fit", "llama-3.2-1b", "--vram", "80", *options, "--format", "json"))["workload"]
    found = workload[field]
    if isinstance(value, dict):
        found = {key: found[key] for key in value}
    assert found == value


def test_defaults_are_those_of_the_records(run: Run) -> None:
    workload = told(run("fit", "llama-3.2-1b", "--vram", "80", "--format", "json"))["workload"]
    for name, value in Workload()._asdict().items():
        if name not in ("stated", "lora", "sharding", "unread"):
            assert workload[name] == value, name


def test_a_context_is_no_longer_than_the_model_can_unless_asked_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "max_position_embeddings": 1024}))
    for options, context in (((), 1024), (("--context", "2048"), 2048)):
        found = told(run("fit", str(path), "--vram", "24", *options, "--format", "json"))
        assert found["workload"]["context"] == context


def test_what_is_published_quantised_is_trained_in_16_bits(run: Run) -> None:
    found = told(run("fit", "gpt-oss-20b", "--train", "full", "--vram", "80", "--format", "json"))
    assert found["model"]["weights"] == "bf16"
    assert any("mxfp4" in note for note in found["model"]["notes"])


def test_formulas_are_explained(run: Run) -> None:
    text = run("fit", "llama-3.1-8b", "--vram", "24", "--explain").out
    for word in ("  formula  ", "  numbers  ", "  source   "):
        assert word in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_command_for_more_asks_the_same_question(run: Run) -> None:
    asked = ("fit", "llama-3.1-8b", "--train", "qlora", "--batch", "2", "--gpu", "RTX 4060 Ti 16 GB", "--accumulate")
    result = run(*asked)
    more = [line for line in result.out.splitlines() if line.startswith("more  ")]
    words = shlex.split(more[0].partition("  ")[2])
    again = run(*words[words.index("fit") :])
    assert first_line(again) == first_line(result) and "  formula  " in again.out


def test_an_answer_is_written_to_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    result = run("fit", "7b", "--vram", "24", "--format", "json", "-o", str(path))
    assert result == (0, "", "") and json.loads(path.read_text())["schema"] == "cudadoctor.fit/1"


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of CONFIG's shape with two layers, whose tensors take room in its length alone."""
    config = {**CONFIG, "num_hidden_layers": 2, "vocab_size": 1000}
    shapes = {"model.embed_tokens": [1000, 2048], "model.norm": [2048]}
    for layer in range(2):
        for name, shape in (
            *(("self_attn.q_proj", [2048, 2048]), ("self_attn.k_proj", [512, 2048])),
            *(("self_attn.v_proj", [512, 2048]), ("self_attn.o_proj", [2048, 2048])),
            *(("mlp.gate_proj", [8192, 2048]), ("mlp.up_proj", [8192, 2048]), ("mlp.down_proj", [2048, 8192])),
            *(("input_layernorm", [2048]), ("post_attention_layernorm", [2048])),
        ):
            shapes[f"model.layers.{layer}.{name}"] = shape
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        header[f"{name}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path = tmp_path / "my-model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    with open(path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return path


def test_the_headers_of_files_tell_their_bytes(run: Run, folder: Path) -> None:
    exact = 2 * (1000 * 2048 + 2048 + 2 * (2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 8192 * 2048 + 2 * 2048))
    for path in (folder, folder / "model.safetensors"):
        found = told(run("fit", str(path), "--vram", "8", "--format", "json"))
        assert found["model"]["name"] == "my-model" and found["model"]["stored"]["total"] == exact
        assert sum(term["bytes"] for term in found["breakdown"] if term["part"] == "weights") == exact
    config_alone = told(run("fit", str(folder / "config.json"), "--vram", "8", "--format", "json"))
    assert config_alone["model"]["stored"] is None and config_alone["need_bytes"] == found["need_bytes"]


def test_files_can_be_quantised_as_they_are_loaded(run: Run, folder: Path) -> None:
    plain = told(run("fit", str(folder), "--vram", "8", "--format", "json"))
    same = told(run("fit", str(folder), "--quant", "bf16", "--vram", "8", "--format", "json"))
    fewer = told(run("fit", str(folder), "--quant", "nf4", "--vram", "8", "--format", "json"))
    trained = told(run("fit", str(folder), "--train", "qlora", "--vram", "8", "--format", "json"))
    assert same["model"]["stored"] == plain["model"]["stored"] is not None
    assert fewer["model"]["stored"] is None and fewer["model"]["weights"] == trained["model"]["weights"] == "nf4"
    assert fewer["need_bytes"]["expected"] < plain["need_bytes"]["expected"]


def test_a_bare_word_is_a_name_and_a_path_a_folder(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    folder.rename(folder.parent / "llama-3.1-8b")
    by_name = told(run("fit", "llama-3.1-8b", "--vram", "24", "--format", "json"))
    by_path = told(run("fit", "./llama-3.1-8b", "--vram", "24", "--format", "json"))
    assert by_name["model"]["layers"] == 32 and by_path["model"]["layers"] == 2


# -- where ------------------------------------------------------------------------------------------------------------


def test_the_gpus_of_a_machine_and_what_is_free_on_them(run: Run, facts_file: Callable[[Machine], str]) -> None:
    machine = linux().set({"gpu.0.memory_free": 10 * GIB, "gpu.0.memory_used": 14 * GIB})
    found = told(run("fit", "llama-3.1-8b", "--facts", facts_file(machine), "--format", "json"))
    assert found["target"]["kind"] == "machine" and found["available_bytes"] == 10 * GIB
    assert found["verdict"] == "does-not-fit"
    assert found["target"]["machine"]["memory_total"] == 64 * GIB


def test_a_machine_without_a_gpu_gives_the_need_alone(run: Run, facts_file: Callable[[Machine], str]) -> None:
    found = told(run("fit", "llama-3.1-8b", "--facts", facts_file(linux().no_gpu()), "--format", "json"))
    assert found["verdict"] == "unknown" and found["available_bytes"] is None
    assert found["target"]["kind"] == "none"


def test_what_is_free_on_a_named_gpu_can_be_said() -> None:
    target = named_target(load_matrix(), Place(gpus=("RTX 4090",), vram=20 * GIB, ram=64 * GIB, disk="nvme"))
    assert [card.free for card in target.cards] == [20 * GIB] and target.cards[0].bandwidth
    assert target.machine.memory_total == 64 * GIB and target.machine.disk == "nvme"


@pytest.mark.parametrize(
    "gpus, number", [(("H100x8",), 8), (("2x RTX 4090",), 2), (("RTX 4090", "RTX 3090"), 2), (("RTX 4090, T4",), 2)]
)
def test_several_gpus(gpus: tuple[str, ...], number: int) -> None:
    assert len(named_target(load_matrix(), Place(gpus=gpus)).cards) == number


# -- --spec -----------------------------------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"id": "a", "model": "llama-3.1-8b", "method": "infer", "quant": "bf16", "batch": 1, "prompt": 1, "gen": 2048},
    {"id": "b", "model": "qwen2.5-7b", "method": "full", "seq": 512, "batch": 1, "metric": "reserved"},
    {"id": "c", "model": "llama-2-7b", "method": "weights_only", "quant": "gguf:Q4_K_M", "metric": "file size"},
    {"id": "d", "model": "qwen2.5-7b", "method": "lora", "quant": "nf4", "seq": 512, "gpu": "A100-80GB"},
]


def test_a_list_of_questions_is_answered_in_its_order(run: Run, piped: Callable[[Any], None]) -> None:
    piped(ROWS)
    found = told(run("fit", "--spec", "-", "--vram", "24", "--format", "json"))
    assert [entry["id"] for entry in found] == ["a", "b", "c", "d"]
    assert [entry["workload"]["method"] for entry in found] == ["infer", "full", "weights", "qlora"]
    assert found[1]["need_bytes"] == found[1]["levels"]["reserved"]
    assert found[2]["level"] == "file"
    file = found[2]["need_bytes"]  # of that name and type there are several, which differ a little
    assert 0.99 * file["expected"] < file["low"] < file["expected"] < file["high"] < 1.01 * file["expected"]
    assert found[3]["target"]["cards"][0]["total"] == 80 * GIB
    assert found[0]["available_bytes"] == 24 * GIB


def test_a_file_of_measurements_is_a_list_of_questions(run: Run, piped: Callable[[Any], None]) -> None:
    piped({"about": "measured by somebody", "vectors": ROWS[:2]})
    found = told(run("fit", "--spec", "-", "--vram", "24", "--format", "json"))
    assert [entry["id"] for entry in found] == ["a", "b"]


def test_one_question_gets_one_answer(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "question.json"
    path.write_text(json.dumps(ROWS[0]))
    one = told(run("fit", "--spec", str(path), "--vram", "24", "--format", "json"))
    path.write_text(json.dumps(ROWS[:1]))
    listed = told(run("fit", "--spec", str(path), "--vram", "24", "--format", "json"))
    assert [one] == listed
    path.write_text("[]")
    assert told(run("fit", "--spec", str(path), "--vram", "24", "--format", "json")) == []


def test_questions_as_text(run: Run, piped: Callable[[Any], None]) -> None:
    piped(ROWS[:2])
    out = run("fit", "--spec", "-", "--vram", "24").out
    assert out.startswith("ok    llama-3.1-8b fits") and "\nFAIL  qwen2.5-7b, trained in full, does not fit" in out


def test_options_and_rows_that_say_the_same_get_the_same(run: Run, piped: Callable[[Any], None]) -> None:
    row = {"model": "llama-3.2-3b", "method": "qlora", "batch": 2, "seq": 1024, "lora_r": 8, "ckpt": "full"}
    piped(row)
    by_row = told(run("fit", "--spec", "-", "--vram", "16", "--format", "json"))
    words = ["--train", "qlora", "--batch", "2", "--seq", "1024", "--lora-rank", "8", "--checkpointing", "full"]
    assert told(run("fit", "llama-3.2-3b", *words, "--vram", "16", "--format", "json")) == by_row


def test_a_gpu_of_a_table_that_nobody_knows_is_no_obstacle(run: Run, piped: Callable[[Any], None]) -> None:
    piped({**ROWS[0], "gpu": "the new one in the corner"})
    found = told(run("fit", "--spec", "-", "--format", "json"))
    assert found["verdict"] == "unknown" and found["need_bytes"]["expected"] > 15 * GIB
    assert any("the new one in the corner" in note for note in found["target"]["notes"])


# -- exit status ------------------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize(
    "fail_on, gpu, status",
    [
        (None, "RTX 4060", 0),
        ("does-not-fit", "RTX 4060", 1),
        ("tight", "RTX 4060", 1),
        ("does-not-fit", "RTX 4090", 0),
        ("tight", "RTX 4090", 0),
    ],
)
def test_only_who_asks_is_stopped(fail_on: str | None, gpu: str, status: int, run: Run) -> None:
    options = () if fail_on is None else ("--fail-on", fail_on)
    result = run("fit", "llama-3.1-8b", "--gpu", gpu, *options, "--format", "json")
    assert result.exit == status == json.loads(result.out)["exit"]


@pytest.mark.parametrize(
    "verdict, statuses",
    [("fits", (0, 0, 0)), ("tight", (0, 0, 1)), ("does-not-fit", (0, 1, 1)), ("unknown", (0, 3, 3))],
)
def test_statuses(verdict: str, statuses: tuple[int, int, int]) -> None:
    from render.fit_answers import answer

    found = answer(verdict=verdict)
    assert tuple(exit_status(found, fail_on) for fail_on in (None, "does-not-fit", "tight")) == statuses


def test_of_several_answers_the_worst_decides() -> None:
    assert worst([0, 3, 1]) == 1 and worst([0, 3]) == 3 and worst([0]) == 0 and worst([]) == 0


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize(
    "arguments, says",
    [
        ((), "which model? Name one"),
        (("",), "which model? Name one"),
        (("llama-3.1-9b",), "llama-3.1-8b"),
        (("llama 3.1 8bb",), "llama-3.1-8b"),
        (("no/such/model.gguf",), "there is no file or folder 'no/such/model.gguf'"),
        (("./llama",), "there is no file or folder './llama'"),
        (("7b", "--gpu", "RTX 4909"), "GeForce RTX 4090"),
        (("7b", "--gpu", "8.9"), "says nothing about memory"),
        (("7b", "--gpu", "RTX 4090x0"), "0 GPUs"),
        (("7b", "--vram", "many"), "'many' is not an amount in GiB"),
        (("7b", "--vram", "0"), "'0' is not an amount in GiB"),
        (("7b", "--vram", "nan"), "'nan' is not an amount in GiB"),
        (("7b", "--vram", "24", "--batch", "0"), "'0' is not a whole number from 1 on"),
        (("7b", "--vram", "24", "--context", "1.5k"), "'1.5k' is not a whole number"),
        (("7b", "--vram", "24", "--context", "9" * 40), "is not a whole number"),
        (("7b", "--vram", "24", "--quant", "q4_k_n"), "Q4_K_M"),
        (("7b", "--vram", "24", "--kv", "fp9"), "fp8"),
        (("7b", "--vram", "24", "--train", "full", "--optimizer", "adamw_8bits"), "adamw_8bit"),
        (("7b", "--vram", "24", "--train", "dora"), "'dora' is not one of"),
        (("7b", "--vram", "24", "--infer", "--train", "full"), "--infer runs the model and --train trains it"),
        (("7b", "--vram", "24", "--optimizer", "sgd"), "--optimizer is about training: add --train"),
        (("7b", "--vram", "24", "--train", "full", "--kv", "fp8"), "--kv is about running a model"),
        (("7b", "--vram", "24", "--train", "full", "--lora-rank", "8"), "--lora-rank is about adapters"),
        (("7b", "--vram", "24", "--train", "full", "--quant", "nf4"), "cannot be trained in full"),
        (("7b", "--vram", "24", "--train", "lora", "--quant", "q4_k_m"), "GGUF files, which are for inference"),
        (("7b", "--vram", "24", "--tp", "2", "--pp", "2"), "one way of sharing"),
        (("7b", "--vram", "24", "--tp", "2", "--gpus", "4"), "--gpus 4 contradicts --tp 2"),
        (("7b", "--vram", "24", "--train", "full", "--zero", "3"), "over how many GPUs?"),
        (("7b", "--vram", "24", "--prompt", "5000", "--context", "4096"), "longer than the context"),
        (("7b", "--gpu", "T4", "--facts", "facts.json"), "--gpu and --vram describe a machine"),
        (("7b", "--ram", "64"), "--ram describes another machine"),
        (("7b", "--spec", "rows.json"), "leave '7b' out"),
        (("--spec", "rows.json", "--batch", "2"), "--batch stands in the file of --spec"),
        (("--spec", "rows.json", "--measure"), "--measure takes one model"),
        (("7b", "--measure", "--facts", "facts.json"), "--measure runs the environment's Python on this machine"),
        (("--spec", "no-such.json"), "cannot read 'no-such.json'"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], says: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    result = run("fit", *arguments, "-o", str(path))
    assert result.exit == 2 and result.out == "" and not path.exists()
    assert result.err.startswith("cudadoctor: error: ") and result.err.count("\n") == 1
    assert "internal error" not in result.err and says in result.err


@pytest.mark.once
@pytest.mark.parametrize(
    "rows, says",
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe\xfd", "standard input"),
        (b"[" * 100_000, "nested too deeply"),
        (b"7", "a question is a JSON object"),
        ([ROWS[0], {}], "standard input, question 2: "),
        ([ROWS[0], "llama"], "standard input, question 2: a question is a JSON object"),
        ([{**ROWS[0], "btach": 2}], "batch is meant, perhaps"),
        ({**ROWS[0], "batch": -1}, "batch"),
        ({**ROWS[0], "batch": 1e400}, "a number that is none"),
        ({**ROWS[0], "model": ["llama"]}, "name"),
        ({"model": "x", "config": {**CONFIG, "num_hidden_layers": 10**30}}, "layers"),
        ({"model": "x", "config": {**CONFIG, "hidden_size": 2047, "head_dim": None}}, "hidden_size"),
        ({"model": "x", "config": {**CONFIG, "model_type": "no_such_thing"}}, "no_such_thing"),
    ],
)
def test_bad_questions_are_one_sentence(rows: Any, says: str, run: Run, piped: Callable[[Any], None]) -> None:
    piped(rows)
    result = run("fit", "--spec", "-", "--vram", "24", "--format", "json")
    assert result.exit == 2 and result.out == ""
    assert result.err.count("\n") == 1 and len(result.err) < 600
    assert "internal error" not in result.err and says in result.err


def test_a_machine_whose_gpu_fell_off_the_bus_still_gets_a_need(run: Run, facts_file: Callable[[Machine], str]) -> None:
    machine = linux().set({"gpu.0.lost": True, "gpu.0.memory_free": GONE})
    found = told(run("fit", "7b", "--facts", facts_file(machine), "--format", "json"))
    assert found["verdict"] == "unknown" and found["need_bytes"]["expected"] > 12 * GIB


def test_what_does_not_work_on_the_system_there_is_not_offered(run: Run) -> None:
    asked = ("fit", "qwen2.5-3b", "--train=lora", "--batch=4", "--seq=2048", "--gpu", "RTX 3060", "--format=json")
    for system, expandable in (((), True), (("--os", "linux"), True), (("--os", "windows"), False)):
        ids = {change["id"] for change in told(run(*asked, *system))["cheapest_changes"]}
        assert ("expandable-segments" in ids, "fused-loss" in ids) == (expandable, expandable)
    refused = run("fit", "7b", "--os", "windows")
    assert refused.exit == 2 and "--os describes another machine" in refused.err
