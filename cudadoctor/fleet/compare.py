"""In what nodes differ that are of the same kind: which value is the norm, and who is the odd one out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.fleet.hostlist import sort_key
from cudadoctor.fleet.model import Difference, Kind, Node, Value
from cudadoctor.fleet.traits import BY_BUS, TRAITS
from cudadoctor.matrix import Matrix


def kinds(nodes: Sequence[Node], matrix: Matrix) -> tuple[Kind, ...]:
    """The nodes by their GPU models, the most frequent kind first."""
    return tuple(Kind(_label(members, matrix), tuple(node.name for node in members)) for members in _by_kind(nodes))


def differences(nodes: Sequence[Node], matrix: Matrix) -> tuple[Difference, ...]:
    """In what the nodes of each kind differ, the traits in their order.

    A value that at least two in three nodes have is the norm, and the others are odd; where no value is so common, the
    nodes are split and nobody is odd. A node of which a value is unknown has no part in it.
    """
    found = []
    for members in _by_kind(nodes):
        if len(members) > 1:
            found += list(_among(members, _label(members, matrix)))
    return tuple(found)


def _by_kind(nodes: Sequence[Node]) -> list[list[Node]]:
    grouped: dict[str, list[Node]] = {}
    for node in nodes:
        grouped.setdefault(node.snapshot.traits.kind, []).append(node)
    return sorted(grouped.values(), key=lambda members: (-len(members), sort_key(members[0].name)))


def _label(members: Sequence[Node], matrix: Matrix) -> str:
    """What the kind is called. Where no driver answers, GPUs have no names but those that the matrix knows."""
    counted: dict[str, int] = {}
    for node in members:
        label = node.snapshot.traits.kind_label
        if label:
            counted[label] = counted.get(label, 0) + 1
    if counted:
        # A node that has lost a card of a mixed set names fewer models.
        return max(counted, key=lambda label: (counted[label], len(label)))
    word, *cards = members[0].snapshot.traits.kind.split()
    return " and ".join(_product(card, matrix) for card in cards) if word == BY_BUS else "GPUs unknown"


def _product(device_id: str, matrix: Matrix) -> str:
    product = matrix.gpu_by_pci(device_id).exact
    return f"NVIDIA {product.name}" if product is not None else f"NVIDIA GPU (PCI id 10de:{device_id})"


def _among(members: Sequence[Node], label: str) -> Iterator[Difference]:
    for number, trait in enumerate(TRAITS):
        by_value: dict[str, list[str]] = {}
        for node in members:
            text = node.snapshot.traits.values[number]
            if text is not None:
                by_value.setdefault(text, []).append(node.name)
        if len(by_value) < 2:
            continue
        values = [Value(text, tuple(names)) for text, names in by_value.items()]
        values.sort(key=lambda value: (-len(value.nodes), value.text))
        known = sum(len(value.nodes) for value in values)
        if 3 * len(values[0].nodes) >= 2 * known:
            yield Difference(trait.label, label, values[0], tuple(values[1:]), trait.should_be_alike)
        else:
            yield Difference(trait.label, label, None, tuple(values), trait.should_be_alike)
