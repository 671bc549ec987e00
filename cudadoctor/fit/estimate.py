"""What a workload needs: the one door to the estimators of inference and of training."""

from __future__ import annotations

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.measured import with_context
from cudadoctor.fit.need import Need
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.query import Matrix


def estimate(matrix: Matrix, model: Model, workload: Workload) -> Need:
    """Bytes of the GPU that needs most, term by term. Raises ParseError, one sentence, where the sum cannot be made:
    a kind of model that nobody trains or runs like this."""
    if workload.trains:
        from cudadoctor.fit.training import training

        return with_context(training(matrix, model, workload), workload.cuda_context)
    from cudadoctor.fit.inference import inference

    return with_context(inference(matrix, model, workload), workload.cuda_context)
