"""What `fit --measure` found, beside the estimate: lines for people, and the value of "measured" in a document."""

from __future__ import annotations

from typing import Optional, TypedDict

from cudadoctor.fit.measured import FAILED, MEASURED, Comparison, CudaContext, DryRun, Measured, compared
from cudadoctor.fit.need import Need
from cudadoctor.render.fit_sizes import both

_ROWS = (
    ("weights", "weights"),
    ("gradients", "gradients"),
    ("optimizer", "optimizer"),
    ("activations", "activations"),
    ("kv_cache", "KV cache"),
)
_PHASES = {
    "forward": "the forward pass",
    "backward": "the backward pass",
    "step": "the optimizer's step",
    "prefill": "the prompt's pass",
    "decode": "decoding the last token",
}


class DryRunDocument(TypedDict):
    """Bytes, allocated on one GPU; null where it was not measured. `status`: measured, cannot (something is missing)
    or failed; `reason` says what. `estimated` and `share` compare the peak with the estimate: share is
    peak / estimate - 1."""

    status: str
    reason: str
    python: str
    torch: str
    transformers: str
    model_class: str
    attention: str
    layers: list[int]
    layers_run: list[int]
    parameters: Optional[int]
    trained: Optional[int]
    weights: Optional[int]
    gradients: Optional[int]
    optimizer: Optional[int]
    activations: Optional[int]
    kv_cache: Optional[int]
    peak: Optional[int]
    phase: str
    phases: dict[str, int]
    compared_bytes: Optional[int]
    estimated: Optional[int]
    share: Optional[float]
    inside: Optional[bool]
    taken_from_estimate: list[str]
    seconds: float
    notes: list[str]


class CudaContextDocument(TypedDict):
    """Bytes that CUDA takes on a GPU before anything is allocated; null: `reason` says why. `how`: process or
    difference; `torch`: torch's kernels are in it."""

    gpu: Optional[int]
    bytes: Optional[int]
    how: str
    torch: bool
    reason: str


class MeasuredDocument(TypedDict):
    dry_run: DryRunDocument
    cuda_contexts: list[CudaContextDocument]


def document(found: Measured, need: Need, quantised: bool = False) -> MeasuredDocument:
    """`quantised`: the weights of the estimate are, those of the dry run are not."""
    run = found.dry_run
    beside = compared(run, need, quantised)
    return {
        "dry_run": {
            "status": run.status,
            "reason": run.reason,
            "python": run.python,
            "torch": run.torch,
            "transformers": run.transformers,
            "model_class": run.model_class,
            "attention": run.attention,
            "layers": list(run.layers),
            "layers_run": list(run.layers_run),
            "parameters": run.parameters,
            "trained": run.trained,
            "weights": run.weights,
            "gradients": run.gradients,
            "optimizer": run.optimizer,
            "activations": run.activations,
            "kv_cache": run.kv_cache,
            "peak": run.peak,
            "phase": run.phase,
            "phases": dict(run.phases),
            "compared_bytes": None if beside is None else beside.measured,
            "estimated": None if beside is None else beside.estimated.expected,
            "share": None if beside is None else round(beside.share, 4),
            "inside": None if beside is None else beside.inside,
            "taken_from_estimate": [] if beside is None else list(beside.taken),
            "seconds": round(run.seconds, 3),
            "notes": list(run.notes),
        },
        "cuda_contexts": [
            {"gpu": one.gpu, "bytes": one.bytes, "how": one.how, "torch": one.torch, "reason": one.reason}
            for one in found.contexts
        ],
    }


def lines(found: Measured, need: Need, quantised: bool = False) -> list[str]:
    """The section of the text: what was run, its amounts, and the estimate beside. Lines are not cut: whoever shows
    them wraps those that do not begin with a space. `quantised` as for `document`."""
    run = found.dry_run
    shown = list(_dry_run(run, compared(run, need, quantised)))
    shown += [_context(one) for one in found.contexts]
    return shown


def _dry_run(run: DryRun, beside: Optional[Comparison]) -> list[str]:
    if run.status != MEASURED or run.peak is None:
        return [f"dry run: {'failed' if run.status == FAILED else 'not possible'}: {run.reason}"]
    depth = " and ".join(str(number) for number in run.layers_run)
    whole = "+".join(str(number) for number in run.layers)
    ran = f"{depth} of {whole} layers" if tuple(run.layers_run) != tuple(run.layers) else f"{whole} layers"
    shown = [
        f"dry run: {run.model_class} of transformers {run.transformers} on torch {run.torch}, {ran}, without weights "
        f"and GPU, {run.seconds:.0f} s"
    ]
    rows = [(title, getattr(run, key), "") for key, title in _ROWS]
    rows.append(("most allocated", run.peak, f"in {_PHASES.get(run.phase, run.phase)}"))
    if beside is not None:
        if beside.taken:
            rows.append(("to compare", beside.measured, f"with {' and '.join(beside.taken)} as estimated"))
        where = "within its interval" if beside.inside else "OUTSIDE its interval"
        rows.append(("estimated", beside.estimated.expected, f"the dry run is {beside.share:+.1%}, {where}"))
    shown += [f"  {title:<16}  {both(size):<22}  {said}".rstrip() for title, size, said in rows if size]
    return [*shown, *(f"  {note}" for note in run.notes)]


def _context(one: CudaContext) -> str:
    where = "" if one.gpu is None else f" on GPU {one.gpu}"
    if one.bytes is None:
        return f"CUDA context{where}: not measured: {one.reason}"
    kernels = "with torch's kernels" if one.torch else "the driver's alone: torch with CUDA is not there"
    return f"CUDA context{where}: {one.bytes / 2**20:.0f} MiB, {kernels}"
