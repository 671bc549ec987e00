"""What a workload needs: the one door to the estimators of inference and of training."""

from __future__ import annotations

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.interval import widened
from cudadoctor.fit.measured import with_context
from cudadoctor.fit.need import Need
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.query import Matrix

# How far off what is usual may be from what was meant, as shares of the need.
_UNREAD = (0.15, 0.25)


def estimate(matrix: Matrix, model: Model, workload: Workload) -> Need:
    """Bytes of the GPU that needs most, term by term. Raises ParseError, one sentence, where the sum cannot be made:
    a kind of model that nobody trains or runs like this."""
    if workload.trains:
        from cudadoctor.fit.training import training

        need = training(matrix, model, workload)
    else:
        from cudadoctor.fit.inference import inference

        need = inference(matrix, model, workload)
    return _with_unread(with_context(need, workload.cuda_context), workload.unread)


def _with_unread(need: Need, unread: tuple[str, ...]) -> Need:
    """With what is not understood of the question among what is assumed, and wider bounds for it."""
    if not unread:
        return need
    return need._replace(
        allocated=widened(need.allocated, *_UNREAD),
        reserved=widened(need.reserved, *_UNREAD),
        device=widened(need.device, *_UNREAD),
        all_gpus=widened(need.all_gpus, *_UNREAD),
        assumed=(*need.assumed, *unread),
    )
