"""What the engines of inference share: the question completed, and the terms of weights, cache and process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from cudadoctor.fit.architecture import EMBEDDING, EXPERT, HEAD, MATRIX, Architecture, Model, Tensor
from cudadoctor.fit.forward import Peak
from cudadoctor.fit.interval import total, widened
from cudadoctor.fit.kv_cache import Cache, Run
from cudadoctor.fit.need import ACTIVATIONS, BUFFERS, CACHED, CONTEXT, KV_CACHE, WEIGHTS, Interval, Need, Term
from cudadoctor.fit.quantisation import Scheme, head_of_its_own, scheme, tensor_bytes
from cudadoctor.fit.sharding import Shares, share_of, shares
from cudadoctor.fit.workload import Workload
from cudadoctor.matrix.memory import Range
from cudadoctor.matrix.query import Matrix
from cudadoctor.model.record import NamedTuple

MIB = 1 << 20
# What llama.cpp, bitsandbytes and others store is laid out exactly; a shape that was guessed is not.
_GUESSED = (0.9, 1.1)
_LITTLE = 8 * MIB
# How far a count of the numbers in a layer is off, and an estimate of them: shares of it.
_COUNTED = (0.96, 1.04)
_VAGUE = (0.6, 1.6)
# What small results and the rounding of blocks come to that nobody counts: shares of the sum.
_UNCOUNTED = (0.004, 0.008)


class Setup(NamedTuple):
    """A question to an engine. `version`: of the engine, as far as the framework names one; `width`: bytes of a number
    that passes through the layers; `prompt`: tokens of a sequence that pass at once."""

    matrix: Matrix
    model: Model
    workload: Workload
    engine: str
    framework: str
    version: str
    scheme: Scheme
    width: int
    parts: Shares
    gpus: int
    prompt: int

    @property
    def shape(self) -> Architecture:
        return self.model.architecture

    @property
    def litgpt(self) -> bool:
        return self.framework == "litgpt"

    def number(self, name: str) -> Range:
        return self.matrix.engine_number(self.engine, name)

    def has(self, name: str) -> Optional[bool]:
        """Whether the engine's version has it; the newest is meant where none is named."""
        return True if not self.version else self.matrix.engine_has(self.engine, name, self.version)


class Moment(NamedTuple):
    """One time at which the need may be largest."""

    name: str
    terms: tuple[Term, ...]

    @property
    def bytes(self) -> int:
        return sum(term.bytes for term in self.terms)


def setup(matrix: Matrix, model: Model, workload: Workload) -> Setup:
    """ParseError for a sharding or a quantisation that is not known."""
    name = workload.framework.lower()
    found = scheme(matrix, model.weights)
    return Setup(
        matrix,
        model,
        workload,
        workload.engine,
        "litgpt" if "litgpt" in name or "lit-gpt" in name else "",
        _version(name),
        found,
        4 if found.kind == "plain" and found.bits == 32 else 2,
        shares(workload.sharding),
        max(workload.sharding.degree, 1) if workload.sharding.kind != "none" else 1,
        max(1, min(workload.prompt or workload.context, workload.context)),
    )


def _version(name: str) -> str:
    """ "4.46" out of "transformers-4.46", "transformers==4.46.2" and "vLLM 0.6.3"."""
    digits = ""
    for word in name.replace("=", "-").replace(" ", "-").replace("_", "-").split("-"):
        text = word.lstrip("v")
        if text[:1].isdigit() and all(part.isdigit() for part in text.split(".")):
            digits = text
    return digits


# ------------------------------------------------------------------------------------------------ weights


class Weights(NamedTuple):
    """Of one GPU. `dropped`: bytes of a head that the files hold, and that is given up after loading."""

    terms: tuple[Term, ...]
    total: int
    """Of all GPUs together."""
    dropped: int = 0

    @property
    def bytes(self) -> int:
        return sum(term.bytes for term in self.terms)


def sizes_of(run: Setup) -> tuple[tuple[tuple[Tensor, int], ...], int]:
    """Each tensor with its bytes, as the engine keeps it, and the bytes of a head that it drops."""
    sizes = list(tensor_bytes(run.matrix, run.model))
    dropped = 0
    if head_of_its_own(run.matrix, run.model) and run.matrix.engine_drops(run.engine, run.model.weights) == "head":
        dropped = sizes.pop()[1]
    if run.litgpt:
        framework = run.matrix.training_framework("litgpt")
        if framework.unties and run.shape.tied and not any(one.role == HEAD for one, _ in sizes):
            head = Tensor("output", HEAD, (run.shape.vocabulary, run.shape.hidden))
            sizes.append((head, head.elements * run.width))
        if framework.quantises_head and run.scheme.kind == "matrices":
            sizes = [(one, run.scheme.bytes_of(one.elements) if one.role == HEAD else amount) for one, amount in sizes]
    return tuple(sizes), dropped


def weights(run: Setup, outside: bool = True, layers: Optional[int] = None) -> Weights:
    """`layers`: so many of them are on the GPUs, the others in the machine's memory; None: all. `outside`: embedding,
    head and what else belongs to no layer is on the GPU, too."""
    sizes, dropped = sizes_of(run)
    count = max(run.shape.layer_count, 1)
    stages = run.parts.stages
    here = -(-count // stages) if layers is None else -(-min(layers, count) // stages)
    terms = []
    parts = run.parts._replace(stages=1)
    inside = [(one, share_of(one, amount, parts)) for one, amount in sizes if one.layers is not None]
    whole = sum(amount for _, amount in inside)
    part = -(-whole * here // count)
    if part:
        elements = sum(one.elements for one, _ in inside)
        bits = 8 * sum(amount for one, amount in sizes if one.layers is not None) / max(elements, 1)
        what = f"{here} of {count} layers" if here < count else f"{count} layers"
        numbers = f"{elements:,} x {bits:.3f} / 8"
        if here < count:
            numbers += f" x {here} / {count}"
        if run.parts.tensor > 1:
            numbers += f", over {run.parts.tensor} GPUs"
        terms.append(_weight(run, what, part, numbers))
    if outside:
        terms.extend(_outside(run, sizes))
    return Weights(tuple(terms), sum(amount for _, amount in sizes), dropped)


def _outside(run: Setup, sizes: Iterable[tuple[Tensor, int]]) -> list[Term]:
    """Embedding and head. Of a pipeline the first GPU has the one, the last the other: the larger counts. litgpt keeps
    all of it on one, and whole when it splits the layers' matrices."""
    groups: dict[str, list[tuple[Tensor, int]]] = {"embedding": [], "head": [], "other": []}
    for one, amount in sizes:
        if one.layers is None:
            name = {EMBEDDING: "embedding", HEAD: "head"}.get(one.role, "other")
            whole = run.litgpt and name != "other"
            groups[name].append((one, amount if whole else share_of(one, amount, run.parts)))
    if (groups["head"] or groups["embedding"]) and sum(size for _, size in groups["other"]) < _LITTLE:
        # Not much more than the last norm, which comes before the head.
        groups["head" if groups["head"] else "embedding"] += groups.pop("other")
    if run.parts.stages > 1 and not run.litgpt and groups["head"]:
        less = min(("embedding", "head"), key=lambda name: sum(amount for _, amount in groups[name]))
        groups[less] = []
    terms = []
    titles = {"embedding": "embedding", "head": "output head", "other": "outside of the layers"}
    for name, found in groups.items():
        amount = sum(size for _, size in found)
        if amount:
            elements = sum(one.elements for one, _ in found)
            terms.append(_weight(run, titles[name], amount, f"{elements:,} parameters, {amount:,} bytes"))
    return terms


def _weight(run: Setup, name: str, amount: int, numbers: str) -> Term:
    low, high = (1.0, 1.0)
    if run.shape.guessed and run.model.stored is None:
        low, high = _GUESSED
    formula = f"parameters x bits of each as {run.model.weights} / 8"
    return Term(WEIGHTS, name, amount, formula, numbers, run.scheme.source, round(amount * low), round(amount * high))


def largest_matrix(run: Setup, head: bool = False) -> int:
    """Numbers of the largest matrix; also among embedding and head, if asked for."""
    roles = (MATRIX, EXPERT, EMBEDDING, HEAD) if head else (MATRIX, EXPERT)
    return max((one.elements // one.copies for one in run.shape.tensors if one.role in roles), default=0)


# ------------------------------------------------------------------------------------------------ the rest


def cache_terms(run: Setup, found: Cache, source: str, vague_high: int = 0) -> list[Term]:
    """One term for each kind of layers: those that alternate are taken together."""
    terms = []
    alike: dict[tuple[int, int, bool], Run] = {}
    for one in found.runs:
        before = alike.get((one.tokens, one.numbers, one.state))
        if before is not None:
            one = one._replace(layers=one.layers + before.layers, bytes=one.bytes + before.bytes)
        alike[one.tokens, one.numbers, one.state] = one
    for one in alike.values():
        if not one.bytes:
            continue
        batch = run.workload.batch
        if one.state:
            name, formula = "states", "layers x sequences x numbers of a state x 4 bytes"
            numbers = f"{one.layers} x {batch} x {one.numbers:,} x 4"
        else:
            name = f"{one.layers} layers, {one.tokens:,} tokens"
            formula = "layers x sequences x tokens x numbers of a token x bytes"
            numbers = f"{one.layers} x {batch} x {one.tokens:,} x {one.numbers:,} x {found.width:g}"
        terms.append(Term(KV_CACHE, name, one.bytes, formula, numbers, source, one.bytes, one.bytes))
    if vague_high and terms:
        terms[-1] = terms[-1]._replace(high=terms[-1].high + vague_high)
    return terms


def ranged(part: str, name: str, base: float, found: Range, formula: str, numbers: str) -> Term:
    """A number of compat/engines.toml times something that is counted."""
    low, amount, high = (round(base * one) for one in (found.low, found.expected, found.high))
    return Term(part, name, amount, formula, numbers, found.source, low, high)


def process_terms(run: Setup, nccl: bool) -> list[Term]:
    """What a process takes of a GPU beside the engine's own allocations."""
    names = ["context", "libraries", *(["nccl"] if nccl else [])]
    titles = {"context": "CUDA context", "libraries": "kernels of libraries", "nccl": "NCCL"}
    terms = []
    for name in names:
        if name == "context" and run.workload.cuda_context is not None:
            amount = run.workload.cuda_context
            terms.append(
                Term(CONTEXT, titles[name], amount, "measured on this machine", f"{amount:,}", "", amount, amount)
            )
            continue
        found = run.matrix.process_bytes(name)
        numbers = f"{round(found.low / MIB)} to {round(found.high / MIB)} MiB"
        terms.append(ranged(CONTEXT, titles[name], 1, found, "measured on other machines", numbers))
    return terms


def buffer(name: str, amount: int, formula: str, numbers: str, source: str, low: int = -1, high: int = -1) -> Term:
    return Term(
        *(BUFFERS, name, amount, formula, numbers, source),
        *(amount if low < 0 else low, amount if high < 0 else high),
    )


# ------------------------------------------------------------------------------------------------ the sum


def need(
    run: Setup,
    moments: Iterable[Moment],
    beside: Iterable[Term],
    everything: int,
    host: Interval,
    assumed: Iterable[str],
    per_token: int,
) -> Need:
    """Of the moment that needs most. `beside`: what the allocator keeps and the process takes; `everything`: the
    allocated bytes of all GPUs together."""
    worst = max(moments, key=lambda moment: moment.bytes)
    kept = tuple(beside)
    allocated = total(worst.terms)
    reserved = total((*worst.terms, *(term for term in kept if term.part == CACHED)))
    device = total((*worst.terms, *kept))
    allocated, reserved, device = (widened(one, *_UNCOUNTED) for one in (allocated, reserved, device))
    share = everything / max(allocated.expected, 1)
    return Need(
        terms=(*worst.terms, *kept),
        allocated=allocated,
        reserved=reserved,
        device=device,
        all_gpus=Interval(round(allocated.low * share), everything, round(allocated.high * share)),
        host=host,
        gpus=run.gpus,
        peak=worst.name,
        assumed=tuple(assumed),
        kv_bytes_per_token=per_token,
    )


def pass_term(found: Peak, tokens: int, width: int, source: str) -> Term:
    amount = tokens * found.numbers * width
    low, high = _VAGUE if found.vague else _COUNTED
    return Term(
        *(ACTIVATIONS, "one layer's intermediate results", amount, f"tokens x ({found.formula}) x bytes"),
        *(f"{tokens:,} x ({found.numbers_text}) x {width}", source, round(amount * low), round(amount * high)),
    )


def uncertain(term: Term) -> Term:
    low, high = _VAGUE
    return term._replace(low=round(term.bytes * low), high=round(term.bytes * high))


def assumed_of_model(run: Setup) -> tuple[str, ...]:
    if run.shape.guessed:
        return (f"{run.shape.name} is a typical model of that size, not a certain one.",)
    return ()


def layers_on_gpus(run: Setup) -> Optional[int]:
    """None: all of them."""
    if run.workload.offload != "layers":
        return None
    return run.workload.gpu_layers or 0
