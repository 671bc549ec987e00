"""What inference needs: the one door to the engines, and the weights alone."""

from __future__ import annotations

from cudadoctor.fit.architecture import DECODER, Model
from cudadoctor.fit.inference_parts import Setup, assumed_of_model, setup, weights
from cudadoctor.fit.interval import total, widened
from cudadoctor.fit.need import Interval, Need
from cudadoctor.fit.workload import ENGINES, WEIGHTS, Workload
from cudadoctor.matrix.query import Matrix
from cudadoctor.parse.errors import ParseError

# Files of one name and scheme differ: a type more or less for single tensors, and what they say about themselves.
PUBLISHED = (0.002, 0.006)
# What blocks and libraries add to them on a GPU, as a share.
_ROUNDED = 0.04


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
    terms = found.terms
    if run.engine == "vllm" and run.shape.kind == DECODER:
        from cudadoctor.fit.inference_vllm import rotary

        terms = (*terms, *rotary(run))
    amount = total(terms)
    if run.model.stored is None:
        amount = widened(amount, *PUBLISHED)
    nothing = Interval(0, 0, 0)
    reserved = widened(amount, 0.0, _ROUNDED)
    everything = amount if run.gpus == 1 else widened(Interval(*(found.total,) * 3), *PUBLISHED)
    return Need(terms, amount, reserved, reserved, everything, nothing, run.gpus, "loading", assumed_of_model(run))
