"""The claims of several blocks -> the facts of one machine.

Where blocks contradict each other the one that is believed more counts (see `blocks`), among equals the later one.
Where nvidia-smi of several machines stands in one text, the last machine is meant, and the others are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cudadoctor.matrix import Matrix
from cudadoctor.model import KNOWN, Fact, Facts, absent, known, unknown
from cudadoctor.model.catalogue import FactSpec, fits, spec_of
from cudadoctor.parse.versions import split_local
from cudadoctor.reports.blocks import Block, Claim
from cudadoctor.reports.gpus import by_index, complete_details, joined_gpus
from cudadoctor.reports.text import Text

# Kinds of blocks of which each shows all GPUs.
_WHOLE_LISTS = ("nvidia-smi table", "nvidia-smi -L")

Found = Sequence["tuple[Text, Block]"]

# Trust, place in the text, and what was claimed there.
Stated = tuple[int, int, Text, Block, Claim]

# Lists that several blocks fill together: entries that agree in the key are one.
_KEYS = {"smi.gpus": "index", "pci.gpus": "address", "kernel.nvidia_module_files": "path", "windows.gpus": "name"}
_COLLECTED = ("kernel.log_events", "kernel.dkms", "device.nodes", "packages.leftovers")


def merged(
    found: Found, matrix: Matrix, named: bool = False, strict: bool = True
) -> tuple[Facts, list[bool], tuple[str, ...]]:
    """The facts, for each block whether it counted, and notes for people. `named`: sources name their text. A claim
    that no fact can be is a mistake of its reader's: with `strict` an AssertionError, else it is left out."""
    notes: list[str] = []
    used = _of_the_last_machine(found, notes)
    claims: dict[str, list[Stated]] = {}
    specs: dict[str, Optional[FactSpec]] = {}
    for place, ((text, block), use) in enumerate(zip(found, used)):
        if not use:
            continue
        notes.extend(f"line {text.number(block.first)}: {note}" for note in block.notes)
        for claim in block.claims:
            spec = specs[claim.fact] if claim.fact in specs else specs.setdefault(claim.fact, spec_of(claim.fact))
            if spec is None or (claim.state == KNOWN and not fits(spec, claim.value)):
                if strict:
                    raise AssertionError(f"{block.kind} claims {claim.fact} = {claim.value!r}, which no fact can be")
                continue
            trust = block.trust if claim.trust is None else claim.trust
            claims.setdefault(claim.fact, []).append((trust, place, text, block, claim))
    facts: dict[str, Fact[Any]] = {"examination.kind": known("report", "the report")}
    for name, stated in claims.items():
        stated.sort(key=lambda entry: entry[:2])
        facts[name] = _fact(name, stated, notes, named)
    complete_details(facts)
    _by_the_matrix(facts, matrix, notes)
    _of_one_torch(facts, notes)
    return Facts(facts), used, tuple(dict.fromkeys(notes))


def _by_the_matrix(facts: dict[str, Fact[Any]], matrix: Matrix, notes: list[str]) -> None:
    """A text that gives a GPU by name another compute capability than it has speaks of two GPUs, or is mistaken: what
    the name has counts."""
    listed = facts.get("smi.gpus")
    if listed is None or not listed.is_known:
        return
    corrected = []
    for entry in listed.get():
        name, said = str(entry.get("name") or ""), entry.get("compute_capability")
        match = matrix.gpu(name) if name and said and not entry.get("truncated") else None
        own = match.capability if match is not None and match.kind == "name" else None
        if own is not None and own != said:
            notes.append(f"{listed.source} gives the {name} compute capability {said}; it has {own}, and that counts")
            entry = {**entry, "compute_capability": own}
            detail = f"gpu.{entry.get('index')}.compute_capability"
            if detail in facts:
                facts[detail] = known(own, facts[detail].source)
        corrected.append(entry)
    facts["smi.gpus"] = known(corrected, listed.source)


_FOUND = "torch.cuda_available"


def _of_one_torch(facts: dict[str, Fact[Any]], notes: list[str]) -> None:
    """A CPU build has no CUDA and finds no GPU: where the text says so of one, it shows two environments, and nothing
    tells which of them is meant."""
    version, cuda, found = (facts.get(name) for name in ("torch.version", "torch.cuda", _FOUND))
    if version is None or not version.is_known or split_local(version.get()).local != "cpu":
        return
    against = [fact for fact in (cuda, found) if fact is not None and fact.is_known and fact.get() is not False]
    if not against:
        return
    stated = f"torch {version.get()} ({version.source}) is a CPU build, and {against[0].source} shows one with CUDA"
    # That it finds no GPU, or was not compiled for one, is said of the CPU build.
    agrees = (found is not None and found.value is False) or "symptom.torch_not_compiled_with_cuda" in facts
    notes.append(f"{stated}: two environments, of which {'the former' if agrees else 'neither'} counts")
    torch = ("torch.cuda",) if agrees else ("torch.version", "torch.metadata_version", "torch.cuda", _FOUND)
    for name in torch:
        if name in facts:
            facts[name] = unknown("the text contradicts itself", facts[name].source)


# Versions of which one program prints less than another.
_VERSIONS = ("torch.version", "torch.metadata_version")


def source(text: Text, block: Block, claim: Claim, named: bool = False) -> str:
    """Where a fact was read, for people: "line 12 (nvidia-smi table)", with the text's name where it is `named`."""
    place = f"{text.name}, " if named else ""
    return f"{place}line {text.number(claim.line)} ({block.kind})"


def _fact(name: str, stated: list[Stated], notes: list[str], named: bool) -> Fact[Any]:
    if name in _VERSIONS or (name.startswith("package.") and name.endswith(".version")):
        stated = _of_the_fullest_version(stated)
    *_, (_, _, text, block, claim) = stated
    where = source(text, block, claim, named)
    if name in _KEYS:
        stated = _of_the_last_table(stated)
        return known(_joined(name, [c.value for *_, c in stated if c.state == KNOWN]), where)
    if name in _COLLECTED:
        return known([entry for *_, c in stated if c.state == KNOWN for entry in c.value], where)
    if claim.state != KNOWN:
        return absent(where)
    others = {
        str(c.value): source(t, b, c, named) for _, _, t, b, c in stated if c.state == KNOWN and c.value != claim.value
    }
    if others and isinstance(claim.value, (str, int, bool)):
        said = "; ".join(f"{place} says {value}" for value, place in others.items())
        notes.append(f"{name}: {where} says {claim.value}, and counts; {said}")
    return known(claim.value, where)


def _of_the_last_table(stated: list[Stated]) -> list[Stated]:
    """Of several whole lists (`nvidia-smi -l` prints many, a container shows fewer GPUs than its host) the last."""
    last = {entry[3].kind: entry[3] for entry in stated}
    return [entry for entry in stated if entry[3].kind not in _WHOLE_LISTS or entry[3] is last[entry[3].kind]]


def _of_the_fullest_version(stated: list[Stated]) -> list[Stated]:
    """pip's list says 2.6.0 where torch itself says 2.6.0+cu124: both are right, and the latter says more. That a list
    lacks a package does not undo what a program says that ran with it: the list was of another environment."""
    stated = [entry for entry in stated if entry[4].state == KNOWN] or stated
    best = stated[-1][4].value
    if stated[-1][4].state != KNOWN:
        return stated
    same = [entry for entry in stated if split_local(entry[4].value).public == split_local(best).public]
    fuller = [entry for entry in same if split_local(entry[4].value).local] or same
    return [*(entry for entry in stated if entry not in same), fuller[-1]]


def _joined(name: str, lists: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    if name == "smi.gpus":
        return joined_gpus(lists)
    return by_index((entry for entries in lists for entry in entries), _KEYS[name])


def _of_the_last_machine(found: Found, notes: list[str]) -> list[bool]:
    """For each block whether it is of the machine that the text is about: the last whose driver is shown."""
    drivers = [block.driver for _, block in found if block.driver is not None]
    if len(set(drivers)) < 2:
        return [True] * len(found)
    last = drivers[-1]
    used = [block.driver in (None, last) for _, block in found]
    passed = [text.number(block.first) for (text, block), use in zip(found, used) if not use]
    lines = ", ".join(map(str, passed[:6]))
    notes.append(f"the text shows more than one machine: the last one counts (driver {last}), not that of line {lines}")
    return used
