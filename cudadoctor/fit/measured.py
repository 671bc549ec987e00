"""What `fit --measure` has found: a dry run of the model's class, and how much CUDA itself takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from cudadoctor.fit.need import BUFFERS, CONTEXT, OPTIMIZER, WEIGHTS, Interval, Need, Term
from cudadoctor.model.record import NamedTuple

# What became of a measurement.
MEASURED, CANNOT, FAILED = "measured", "cannot", "failed"


class DryRun(NamedTuple):
    """Bytes of one GPU, at allocator level, of the whole model: a few layers were run and the rest follows evenly.

    `status` is measured, cannot (something is missing, `reason` says what) or failed (it went wrong, `reason` says
    how); only a measured one has amounts. `peak` is the most that is allocated at once; `phase` says when: forward,
    backward, step, prefill, decode."""

    status: str
    reason: str = ""
    python: str = ""
    torch: str = ""
    transformers: str = ""
    model_class: str = ""
    attention: str = ""
    layers: tuple[int, ...] = ()
    """Of each stack of the model."""
    layers_run: tuple[int, ...] = ()
    """Depths of the first stack that were run."""
    parameters: Optional[int] = None
    """A count."""
    trained: Optional[int] = None
    """A count."""
    weights: Optional[int] = None
    """Parameters and buffers, adapters with them."""
    adapters: Optional[int] = None
    gradients: Optional[int] = None
    optimizer: Optional[int] = None
    activations: Optional[int] = None
    """What the forward pass leaves for the backward pass, the loss's own part with it."""
    kv_cache: Optional[int] = None
    peak: Optional[int] = None
    phase: str = ""
    phases: tuple[tuple[str, int], ...] = ()
    """The peak of each phase."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """Sentences: in what the dry run differs from what was asked for."""


class CudaContext(NamedTuple):
    """What CUDA takes on one GPU before anything is allocated. `bytes` None: `reason` says why. `how`: process (the
    driver's own figure for the process) or difference (of what is used on the GPU, before and after). `torch`: torch
    made the context and ran one multiplication, so its kernels are in it; else the driver's context alone."""

    gpu: Optional[int]
    bytes: Optional[int] = None
    how: str = ""
    torch: bool = False
    reason: str = ""


class Measured(NamedTuple):
    dry_run: DryRun
    contexts: tuple[CudaContext, ...] = ()

    @property
    def cuda_context(self) -> Optional[int]:
        """Of the GPU where it is largest, as torch makes it. None: not measured, or without torch's kernels, which is
        less than a program needs."""
        found = [one.bytes for one in self.contexts if one.bytes is not None and one.torch]
        return max(found) if found else None


class Comparison(NamedTuple):
    """The closed form beside the dry run. Bytes, allocated on one GPU."""

    estimated: Interval
    measured: int
    """The peak, with what the dry run could not hold taken from the estimate."""
    share: float
    """measured / estimated - 1."""
    inside: bool
    """Whether the measured one lies in the estimate's interval."""
    taken: tuple[str, ...] = ()
    """Parts of the breakdown that come from the estimate."""


def run_of(results: Sequence[Mapping[str, Any]], sides: Sequence[tuple[str, int, int]], about: DryRun) -> DryRun:
    """The whole model out of the runs of a few layers. `sides`: key, number of layers and period of each stack; of
    `results`, the first is the base, each further one has one stack deeper. ValueError for what is no such thing."""
    base = results[0]
    depths = list(base["depths"])
    factors: list[tuple[Mapping[str, Any], float]] = []
    for one in results[1:]:
        places = [place for place, depth in enumerate(one["depths"]) if depth != depths[place]]
        if len(places) != 1:
            raise ValueError("a run differs in more than one stack")
        place = places[0]
        factors.append((one, (sides[place][1] - depths[place]) / (one["depths"][place] - depths[place])))

    def whole(values: Sequence[int]) -> int:
        """Of the whole model, from the value of each run."""
        return round(values[0] + sum((one - values[0]) * factor for one, (_, factor) in zip(values[1:], factors)))

    def of(key: str) -> int:
        return whole([int(one[key]) for one in results])

    # A stretch that only the deeper runs have lies between two layers: never more than at their ends.
    stretches = {
        name: whole([int(one["stretches"][name]) for one in results])
        for name in base["stretches"]
        if all(name in one["stretches"] for one in results)
    }
    weights = of("weights")
    phases: dict[str, int] = {}
    for name, size in stretches.items():
        phase = name.partition(" ")[0]
        phases[phase] = max(phases.get(phase, 0), size + weights)
    phase = max(phases, key=lambda name: phases[name])
    trains = "step" in phases or "backward" in phases
    return about._replace(
        status=MEASURED,
        model_class=str(base["model_class"]),
        attention=str(base["attention"]),
        layers=tuple(side[1] for side in sides),
        layers_run=tuple(sorted({int(one["depths"][0]) for one in results if one["depths"]})),
        parameters=of("parameters"),
        trained=of("trained"),
        weights=weights,
        adapters=of("adapters"),
        gradients=of("gradients") if trains else None,
        optimizer=of("optimizer") if base["step"] else None,
        activations=of("activations") if trains else None,
        kv_cache=of("cache") if base.get("cache") else None,
        peak=phases[phase],
        phase=phase,
        phases=tuple(phases.items()),
    )


def compared(run: DryRun, need: Need, quantised: bool = False) -> Optional[Comparison]:
    """The peak against the estimate's allocated bytes. `quantised`: the dry run held 16-bit weights in place of
    quantised ones; then the estimate's weights are put in their place. None: nothing was measured. The workspaces of
    CUDA's libraries, which the CPU has not, are the estimate's."""
    if run.peak is None or run.weights is None:
        return None
    found = run.peak + sum(term.bytes for term in need.terms if term.part == BUFFERS and "workspace" in term.name)
    taken = []
    if quantised:
        found += _bytes_of(need, WEIGHTS) - (run.weights - (run.adapters or 0))
        taken.append(WEIGHTS)
    if run.gradients is not None and run.optimizer is None:
        found += _bytes_of(need, OPTIMIZER)
        taken.append(OPTIMIZER)
    estimated = need.allocated
    share = found / estimated.expected - 1 if estimated.expected else 0.0
    return Comparison(estimated, found, share, estimated.low <= found <= estimated.high, tuple(taken))


def _bytes_of(need: Need, part: str) -> int:
    return sum(term.bytes for term in need.terms if term.part == part)


def with_context(need: Need, size: Optional[int]) -> Need:
    """The need with the CUDA context as it was measured, in bytes. None: as it is."""
    if size is None:
        return need
    old = [term for term in need.terms if term.part == CONTEXT]
    assumed = sum(term.bytes for term in old)
    # What else stands between torch's allocator and nvidia-smi stays as it is.
    others = need.device.expected - need.reserved.expected - assumed
    term = Term(
        CONTEXT, "CUDA context", size, "measured", f"{size} bytes", "measured on this machine: NVML before and after",
        size, size,
    )  # fmt: skip
    terms = [one for one in need.terms if one.part != CONTEXT]
    place = next((place for place, one in enumerate(need.terms) if one.part == CONTEXT), len(terms))
    terms.insert(min(place, len(terms)), term)
    device = Interval(*(max(0, edge + size + others) for edge in need.reserved))
    return need._replace(terms=tuple(terms), device=device)
