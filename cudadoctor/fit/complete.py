"""What follows from the model and was not said: `cudadoctor fit` and the check CD801 complete a question alike."""

from __future__ import annotations

from cudadoctor.fit.architecture import DECODER, Model
from cudadoctor.fit.catalogue import is_tag, says_weights
from cudadoctor.fit.quantisation import scheme
from cudadoctor.fit.spec import Question
from cudadoctor.fit.workload import FULL, INFER, LORA, QLORA, WEIGHTS, Workload
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError


def completed(matrix: Matrix, question: Question, name: str = "", capability: str = "") -> Question:
    """With what follows from the model: who runs GGUF files, what QLoRA quantises to, how long a sequence can be; and
    with what the tools do unless told. `name`: what the model was called. `capability`: of the GPU, empty where it is
    not known."""
    question = _as_ollama_has_it(matrix, question, name)
    model, workload = question.model, question.workload
    kind = scheme(matrix, model.weights).kind if model.stored is None or model.weights else ""
    is_gguf = kind == "mixture" or (model.stored is not None and model.stored.path.lower().endswith(".gguf"))
    if workload.trains and is_gguf:
        raise ParseError(
            f"{model.weights} is a type of GGUF files, which are for inference: train the original weights"
        )
    if workload.method in (FULL, LORA) and kind != "plain":
        if workload.method == FULL and model.stored is None and "quant" not in workload.stated:
            # So it is published, and nobody asked for it.
            said = f"{model.architecture.name} is published in {model.weights}: trained in full it is in bf16"
            plain = question._replace(model=model._replace(weights="bf16", notes=(*model.notes, said)))
            return completed(matrix, plain, "", capability)
        if workload.method == FULL:
            raise ParseError(f"weights in {model.weights} cannot be trained in full: that is what qlora is for")
        workload = workload._replace(method=QLORA)
    if workload.method == QLORA and kind == "plain":
        model = model._replace(weights=scheme(matrix, "nf4").name, stored=None)
    if workload.method in (INFER, WEIGHTS) and is_gguf and "framework" not in workload.stated:
        workload = workload._replace(engine="llama.cpp")
    if workload.method == INFER:
        workload = workload._replace(kv=scheme(matrix, workload.kv).name)
    limit = model.architecture.max_context
    if limit and workload.context > limit and not {"seq", "prompt", "gen"} & workload.stated:
        workload = workload._replace(context=limit)
    if workload.trains and not workload.framework and not question.id:  # a measurement says what it was
        model, workload = _as_trainer_has_it(matrix, model, workload, capability)
    return question._replace(model=model, workload=workload)


def _as_ollama_has_it(matrix: Matrix, question: Question, name: str) -> Question:
    """Who asks for a model by Ollama's tag, or for llama.cpp, and names no type gets the one that these fetch."""
    model, workload = question.model, question.workload
    if workload.method != INFER or model.stored is not None or model.architecture.kind != DECODER:
        return question
    if "framework" not in workload.stated and is_tag(name):
        workload = workload._replace(engine="llama.cpp", framework="ollama")
    elif workload.engine != "llama.cpp" or question.id:
        return question
    if "quant" not in workload.stated and model.weights not in _FETCHED_SO and not says_weights(matrix, name):
        usual = scheme(matrix, "gguf").name
        said = f"{usual} is what Ollama and llama.cpp fetch where no other type is named (--quant)"
        model = model._replace(weights=usual, notes=(*model.notes, said))
    return question._replace(model=model, workload=workload)


# Types of which files are made, too, by those who publish the model.
_FETCHED_SO = ("mxfp4",)


def _as_trainer_has_it(matrix: Matrix, model: Model, workload: Workload, capability: str) -> tuple[Model, Workload]:
    """What transformers' Trainer and PEFT do on such a GPU unless told; what is not shown as a setting is said."""
    stated, notes = workload.stated, list(model.notes)
    if workload.method == QLORA and "ckpt" not in stated:
        workload = workload._replace(checkpointing="full")
        notes.append("gradient checkpointing is on: PEFT's prepare_model_for_kbit_training turns it on")
    if workload.optimizer == "adamw" and not {"optimizer", "fused_optimizer", "foreach"} & stated:
        alone = workload.sharding.kind in ("none", "ddp", "fsdp") and workload.offload == "none"
        workload = workload._replace(fused_optimizer=alone and not workload.optimizer_in_backward)
    if "precision" not in stated and workload.precision == "bf16":
        if not matrix.serves("bf16", capability, "", model.architecture.family):
            workload = workload._replace(precision="fp16")
            notes.append(f"fp16=True: a GPU of compute capability {capability} has no bfloat16 of its own")
        elif workload.method == FULL and model.weights == "fp32":
            workload = workload._replace(precision="mixed")
            notes.append("it is published, loaded and trained in fp32, with bf16=True around it")
        elif workload.method == FULL and workload.sharding.kind == "fsdp":
            workload = workload._replace(precision="mixed")
            notes.append("accelerate's FSDP keeps trained weights and their states in fp32 where bf16=True")
        elif workload.method == FULL and workload.sharding.kind in ("none", "ddp"):
            notes.append("weights, gradients and states are in bf16; --precision mixed keeps them in fp32")
    return model._replace(notes=tuple(notes)), workload


__all__ = ["completed"]
