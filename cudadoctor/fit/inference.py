"""What inference needs: the one door to the engines, and the weights alone."""

from __future__ import annotations

from cudadoctor.fit.architecture import Model
from cudadoctor.fit.inference_parts import Setup, assumed_of_model, setup, weights
from cudadoctor.fit.interval import total, widened
from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.workload import ENGINES, WEIGHTS, Workload
from cudadoctor.matrix.query import Matrix
from cudadoctor.parse.errors import ParseError

# Files of one name and scheme differ: a type more or less for single tensors, and what they say about themselves.
_PUBLISHED = (0.002, 0.006)


def inference(matrix: Matrix, model: Model, workload: Workload) -> Need:
    """Bytes of the GPU that needs most. Raises ParseError where engine, quantisation or sharding is not known, and for
    a model that the engine does not run."""
    if workload.batch < 1 or workload.context < 1:
        raise ParseError("a batch has one sequence or more, and a context one token or more")
    run = setup(matrix, model, workload)
    if workload.method == WEIGHTS:
        return _only_weights(run)
    if workload.engine == "vllm":
        from cudadoctor.fit.inference_vllm import vllm

        return vllm(run)
    if workload.engine == "llama.cpp":
        from cudadoctor.fit.inference_llama_cpp import llama_cpp

        return llama_cpp(run)
    if workload.engine == "transformers":
        from cudadoctor.fit.inference_transformers import transformers

        return transformers(run)
    raise ParseError(f"the engine {workload.engine[:40]!a} is none of {', '.join(ENGINES)}")


def _only_weights(run: Setup) -> Need:
    """As a file, or once loaded: nothing runs yet."""
    found = weights(run._replace(engine="", framework=""))
    amount = total(found.terms)
    if run.model.stored is None:
        amount = widened(amount, *_PUBLISHED)
    nothing = Interval(0, 0, 0)
    everything = amount if run.gpus == 1 else widened(Interval(*(found.total,) * 3), *_PUBLISHED)
    return Need(found.terms, amount, amount, amount, everything, nothing, run.gpus, "loading", assumed_of_model(run))
