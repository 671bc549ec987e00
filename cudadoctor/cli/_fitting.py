"""`fit` from its options to its exit status."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor import __version__
from cudadoctor.cli import _output
from cudadoctor.cli._input import Machine, read_facts, read_json
from cudadoctor.cli._program import homely, program
from cudadoctor.cli._words import InputError
from cudadoctor.fit.answer import DOES_NOT_FIT, FITS, TIGHT, Answer
from cudadoctor.fit.architecture import Model
from cudadoctor.fit.complete import completed
from cudadoctor.fit.quantisation import scheme
from cudadoctor.fit.spec import Question, read_row
from cudadoctor.fit.spec_words import ALIASES
from cudadoctor.fit.sums import capability_of
from cudadoctor.fit.target import Target
from cudadoctor.matrix import Matrix, load_matrix
from cudadoctor.model import Facts, ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.errors import clause
from cudadoctor.render.fit_view import FitView
from cudadoctor.render.view import MatrixInfo

EXIT_DOES_NOT_FIT = 1
EXIT_NOT_KNOWN = 3

# Options -> keys of a row of --spec: both are read by one reader.
_KEYS = {
    "quant": "quant",
    "train": "method",
    "batch": "batch",
    "context": "seq",
    "prompt": "prompt",
    "kv": "kv_dtype",
    "engine": "framework",
    "attention": "attn",
    "optimizer": "optimizer",
    "precision": "precision",
    "checkpointing": "ckpt",
    "loss": "ce",
    "lora_rank": "lora_r",
    "lora_targets": "lora_targets",
    "accumulate": "accum",
    "offload": "cpu_offload",
    "expandable_segments": "expandable_segments",
    "fused_optimizer": "fused_optimizer",
    "fused_kernels": "fused",
    "variable_length": "variable_length",
}
_OF_TRAINING = (
    *("optimizer", "precision", "checkpointing", "loss", "lora_rank", "lora_targets", "accumulate", "fused_optimizer"),
    *("fused_kernels", "variable_length", "zero", "fsdp"),
)
_OF_INFERENCE = ("prompt", "kv", "engine")
_SHARED_BY = ("zero", "fsdp", "tp", "pp")

# What the type of the weights is called in a row.
_WEIGHTS_KEYS = ("quant", *(alias for alias, key in ALIASES.items() if key == "quant"))

# How the name of a file of a model ends.
_ENDINGS = (".json", ".safetensors", ".gguf", ".bin", ".pt", ".pth")


class Place(NamedTuple):
    """The options that say where it is to run. Bytes."""

    gpus: Sequence[str] = ()
    number: Optional[int] = None
    vram: Optional[int] = None
    ram: Optional[int] = None
    disk: Optional[str] = None
    system: Optional[str] = None

    @property
    def is_named(self) -> bool:
        return bool(self.gpus) or self.vram is not None


def fit(word: Optional[str], options: dict[str, Any], again: Sequence[str]) -> int:
    """Answers the question, or those of --spec, writes the answers, gives the exit status."""
    machine = Machine(**{name: options.pop(name) for name in Machine._fields})
    place = Place(**{name: options.pop(name) for name in Place._fields})
    form, output, color, verbose = (options.pop(name) for name in ("form", "output", "color", "verbose"))
    explain, fail_on = options.pop("explain"), options.pop("fail_on")
    spec, measure = options.pop("spec"), options.pop("measure")
    _check_place(place, machine)
    if measure and not machine.is_this_one:
        raise InputError("--measure runs the environment's Python on this machine: leave --facts and its kind out")
    matrix = load_matrix()
    asked = Asked(matrix, machine, place)
    views = []
    if spec is None:
        if word is None or not word.strip():
            raise InputError("which model? Name one (llama-3.1-8b), a file or folder of it, or a size such as 7b")
        views.append(asked.view(row_of(word, options, asked), word if measure else None))
    else:
        _check_spec(word, options, measure)
        document = read_json(spec)
        if isinstance(document, Mapping) and isinstance(document.get("vectors"), list):
            document = document["vectors"]  # a file of measurements, which says something of itself as well
        where = "standard input" if spec == "-" else repr(spec)
        for place_in_list, row in enumerate(document if isinstance(document, list) else [document], start=1):
            try:
                views.append(asked.view(row))
            except InputError as error:
                at = f"{where}, question {place_in_list}: " if isinstance(document, list) else f"{where}: "
                raise InputError(f"{at}{error}") from None
    views = [
        view._replace(
            exit=exit_status(view.answer, fail_on),
            style=_output.style(color, verbose, to_file=output not in (None, "-")),
            explain=explain,
            program=program(),
            again="" if spec == "-" else _quoted(again),
        )
        for view in views
    ]
    if form == "json":
        from cudadoctor.render.fit_json import render, render_all
    else:
        from cudadoctor.render.fit_text import render, render_all
    is_list = spec is not None and isinstance(document, list)
    _output.write(render_all(views) if is_list else render(views[0]), output)
    return worst(view.exit for view in views)


def exit_status(answer: Answer, fail_on: Optional[str]) -> int:
    """Of one answer. Whoever does not ask with --fail-on gets 0: a number that was estimated forbids nothing."""
    if fail_on is None or answer.verdict == FITS or (answer.verdict == TIGHT and fail_on == DOES_NOT_FIT):
        return 0
    return EXIT_DOES_NOT_FIT if answer.verdict in (TIGHT, DOES_NOT_FIT) else EXIT_NOT_KNOWN


def worst(found: Any) -> int:
    """Of several: that one does not fit says more than that another is not known."""
    order = (EXIT_DOES_NOT_FIT, EXIT_NOT_KNOWN, 0)
    return min(found, key=order.index, default=0)


def _quoted(words: Sequence[str]) -> str:
    from cudadoctor.plan.shell import POSIX, POWERSHELL, quote

    try:
        return quote([homely(word) for word in words], POWERSHELL if os.name == "nt" else POSIX, home=True)
    except ParseError:
        return ""


def _check_place(place: Place, machine: Machine) -> None:
    if place.is_named and not machine._replace(python=None, timeout=None).is_this_one:
        raise InputError("--gpu and --vram describe a machine that nobody looked at: leave --facts and its kind out")
    for option, value in (("--ram", place.ram), ("--disk", place.disk), ("--os", place.system)):
        if value is not None and not place.is_named:
            raise InputError(f"{option} describes another machine than this one: name its GPU too, by --gpu or --vram")


def _check_spec(word: Optional[str], options: Mapping[str, Any], measure: bool) -> None:
    if word is not None:
        raise InputError(f"the model of --spec stands in its file: leave {word!r} out, or --spec")
    said = [name for name, value in options.items() if value not in (None, False)]
    if said:
        raise InputError(f"{_option(said[0])} stands in the file of --spec: leave it out, or --spec")
    if measure:
        raise InputError("--measure takes one model, and --spec may hold many: name the model")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def row_of(word: str, options: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """The options as a row of --spec, or InputError where two contradict each other."""
    said = {name: value for name, value in options.items() if value not in (None, False)}
    train = said.get("train")
    if train and said.pop("infer", None):
        raise InputError("--infer runs the model and --train trains it: use either")
    for name in _OF_INFERENCE if train else _OF_TRAINING:
        if name in said:
            kind = "running a model, and --train trains it" if train else "training: add --train full, lora or qlora"
            raise InputError(f"{_option(name)} is about {kind}")
    if train == "full":
        for name in ("lora_rank", "lora_targets"):
            if name in said:
                raise InputError(f"{_option(name)} is about adapters: --train lora or qlora has them")
    shared = [name for name in _SHARED_BY if name in said]
    if len(shared) > 1:
        raise InputError(
            f"{' and '.join(map(_option, shared))}: one way of sharing the work can be estimated at a time"
        )
    row = {key: said[name] for name, key in _KEYS.items() if name in said}
    if row.get("ckpt") == "offload":
        row["ckpt"] = "full_offload"
    row["model"] = word
    number = asked.place.number or (len(asked.target.cards) if asked.place.gpus else 1)
    for name in shared:
        if name == "zero":
            number = asked.place.number or len(asked.target.cards)
            row["parallel"] = f"zero{said[name]}"
            if number < 2:
                raise InputError("--zero shares the work: over how many GPUs? Add --gpus N or --gpu NAMExN")
        else:
            number = said[name]
            if number > 1:
                row["parallel"] = name
            if asked.place.number not in (None, number):
                raise InputError(f"--gpus {asked.place.number} contradicts {_option(name)} {number}")
    if number > 1:
        row["n_gpus"], row["per_gpu"] = number, True
        if "parallel" not in row and not train and said.get("engine") == "vllm":
            row["parallel"] = "tp"
    return row


class Asked:
    """Answers questions about one place. The machine is looked at when its GPUs are first needed, and once."""

    def __init__(self, matrix: Matrix, machine: Machine, place: Place) -> None:
        self.matrix = matrix
        self.machine = machine
        self.place = place
        self._target: Optional[Target] = None
        self._facts: Optional[Facts] = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = read_facts(self.machine)
        return self._facts

    @property
    def target(self) -> Target:
        """Where it is to run, as the options say; else the machine that they mean."""
        if self._target is None:
            if self.place.is_named:
                self._target = named_target(self.matrix, self.place)
            else:
                from cudadoctor.fit.targets import target_of_facts

                self._target = target_of_facts(self.matrix, self.facts)
        return self._target

    def view(self, row: Any, to_measure: Optional[str] = None) -> FitView:
        """The answer to one question, or InputError. `to_measure` is what the model is called that is to be run
        without weights; its answer then rests on the CUDA context that was measured."""
        seen = None
        try:
            question = self._read(row)
            target = self._target_for(question)
            name = row.get("model", "") if isinstance(row, Mapping) else ""
            question = completed(self.matrix, question, str(name), capability_of(target, question.workload))
            model, workload = question.model, question.workload
            if to_measure is not None:
                from cudadoctor.cli._measuring import measured

                seen = measured(self.facts, self.matrix, to_measure, workload, not self.place.is_named)
                workload = workload._replace(cuda_context=seen.cuda_context)
            from cudadoctor.fit.verdict import answer

            found = answer(self.matrix, model, workload, target)
        except ParseError as error:
            raise InputError(clause(error)) from None
        return FitView(
            found,
            question.level,
            question.per_gpu,
            id=question.id,
            measured=seen,
            quantised=seen is not None and scheme(self.matrix, model.weights).kind != "plain",
            matrix=MatrixInfo(self.matrix.revision, self.matrix.checked),
            tool_version=__version__,
            matrix_age_days=self._age(),
        )

    def _age(self) -> Optional[int]:
        from datetime import date

        return self.matrix.age_days(date.today().isoformat())

    def _read(self, row: Any) -> Question:
        """The question of a row. A quantisation that it asks for holds for a file, too: it is loaded so."""
        found: list[Model] = []

        def find(text: str) -> Model:
            found.append(model_named(self.matrix, text))
            return found[0]._replace(stored=None) if said else found[0]

        said = isinstance(row, Mapping) and any(row.get(key) is not None for key in _WEIGHTS_KEYS)
        question = read_row(self.matrix, row, find)
        if found and found[0].stored is not None and question.model.weights == found[0].weights:
            return question._replace(model=found[0])
        return question

    def _target_for(self, question: Question) -> Target:
        """Of the question's own GPU where it names one."""
        number = question.workload.sharding.degree
        if question.gpu or question.vram is not None:
            own = Place((question.gpu,) if question.gpu else (), vram=question.vram, system=self.place.system)
            try:
                return repeated(named_target(self.matrix, own), number)
            except InputError as error:
                # Tables of measurements name cards in many ways; what is needed can be told without.
                return Target("none", notes=(f"the GPU is not known, so nothing is compared: {error}",))
        return repeated(self.target, number)


def model_named(matrix: Matrix, text: str) -> Model:
    """The model of a name, a size, or a file or folder. A bare word is a name where there is such a model; a
    folder that is called so is meant by `./NAME`."""
    from cudadoctor.fit.catalogue import find
    from cudadoctor.fit.typical import model_of_size, size_of

    if not text.strip() or "\0" in text:
        raise ParseError("which model? Name one (llama-3.1-8b), a file or folder of it, or a size such as 7b")
    is_path = text.lower().endswith(_ENDINGS) or text.startswith((".", "/", "~")) or os.path.isabs(text)
    has_folder = "/" in text or os.sep in text
    if is_path or (has_folder and os.path.exists(text)):
        return _of_path(matrix, text)
    if size_of(text) is not None:
        return model_of_size(matrix, text)
    try:
        return find(matrix, text)
    except ParseError:
        if os.path.exists(text):
            return _of_path(matrix, text)
        raise


def _of_path(matrix: Matrix, text: str) -> Model:
    path = os.path.expanduser(text)
    if not os.path.exists(path):
        raise ParseError(f"there is no file or folder {text!r}")
    from cudadoctor.cli._model_files import model_of_path

    return model_of_path(matrix, path)


def named_target(matrix: Matrix, place: Place) -> Target:
    """The GPUs of --gpu and --vram, and what is said of the machine around them."""
    from cudadoctor.fit.targets import on_system, target_of_names, target_of_size

    try:
        if not place.gpus:
            assert place.vram is not None
            target = target_of_size(place.vram / 2**30)
        else:
            target = target_of_names(matrix, [part for name in place.gpus for part in name.split(",") if part.strip()])
            if place.vram is not None:
                target = target._replace(cards=tuple(card._replace(free=place.vram) for card in target.cards))
    except ParseError as error:
        raise InputError(f"--gpu: {clause(error)}" if place.gpus else f"--vram: {clause(error)}") from None
    machine = target.machine
    if place.ram is not None:
        machine = machine._replace(memory_total=place.ram, memory_available=place.ram)
    if place.disk is not None:
        machine = machine._replace(disk=place.disk)
    target = target._replace(machine=machine)
    if place.system is not None:
        target = on_system(target, place.system)
    return repeated(target, place.number or 1)


def repeated(target: Target, number: int) -> Target:
    """With as many cards as share the work: who names one GPU and shares the work means that many of it. A machine has
    what it has."""
    if target.kind == "machine" or number <= len(target.cards) or not target.cards:
        return target
    return target._replace(cards=(*target.cards, *(target.cards[-1:] * (number - len(target.cards)))))


__all__ = ["Asked", "Place", "completed", "exit_status", "fit", "model_named", "named_target", "worst"]
