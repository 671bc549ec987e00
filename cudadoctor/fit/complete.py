"""What follows from the model and was not said: `cudadoctor fit` and the check CD801 complete a question alike."""

from __future__ import annotations

from cudadoctor.fit.quantisation import scheme
from cudadoctor.fit.spec import Question
from cudadoctor.fit.workload import FULL, INFER, LORA, QLORA, WEIGHTS
from cudadoctor.matrix import Matrix
from cudadoctor.parse.errors import ParseError


def completed(matrix: Matrix, question: Question) -> Question:
    """With what follows from the model: who runs GGUF files, what QLoRA quantises to, how long a sequence can be."""
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
            return completed(
                matrix, question._replace(model=model._replace(weights="bf16", notes=(*model.notes, said)))
            )
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
    return question._replace(model=model, workload=workload)


__all__ = ["completed"]
