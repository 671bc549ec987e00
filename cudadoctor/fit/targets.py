"""Where it is to run: this machine as it is now, a card by its name, or only so much memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

from cudadoctor.derive.case import Case
from cudadoctor.derive.gpus import Gpu, gpus
from cudadoctor.derive.policy import Seen, is_split, seen
from cudadoctor.derive.surroundings import in_report, in_wsl, on_jetson
from cudadoctor.fit.target import Card, Machine, Target
from cudadoctor.matrix import Matrix
from cudadoctor.matrix.tables import Gpu as Product
from cudadoctor.model import Facts
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.sizes import show_size

MACHINE, GPU, MEMORY, NONE = "machine", "gpu", "memory", "none"

# As many as one job has; a longer list is a slip of the keyboard.
MOST_CARDS = 1024
_LONGEST_NAME = 100
_GIB = 1 << 30
# The matrix's classes of products whose GPU is on the processor's chip, and has no memory of its own.
_ON_THE_CHIP = ("jetson", "soc")
# "H100x8", "RTX 4090 x2", "8xH100", "2 x RTX 4090". The x of a product's own name (GTX 970) is followed by a blank or
# by three digits.
_TIMES_BEHIND = pattern(r"(.*[^a-z\s]\s*|.*\s|.*[a-z])[x*\u00d7]\s*(\d{1,4})\Z", re.IGNORECASE)
_TIMES_BEFORE = pattern(r"(\d{1,4})\s*[x*\u00d7]\s*(.+)\Z", re.IGNORECASE)
# A MIG device's own name of its size: 1g.10gb, 3g.40gb; also without the card that it is a part of.
_MIG_SIZE = pattern(r"(\d)g\.(\d{1,3})gb", re.IGNORECASE)
_MIG_BEHIND = pattern(r"(?P<card>.*\S)[\s-]+(?P<part>\dg\.\d{1,3}gb(?:\+\S+)?)\Z", re.IGNORECASE)
_MIG_WORD = pattern(r"\bmig\b", re.IGNORECASE)
_MIG_ALONE = pattern(r"(?:mig[\s-]*)?(\dg\.\d{1,3}gb)(?:\+\w+)?\Z", re.IGNORECASE)
# So many products share no name but that of their whole line: RTX, Jetson, Quadro.
_MOST_NAMESAKES = 12
# GPUs of Apple, AMD, Intel and Google, as people call them.
_OF_OTHERS = pattern(
    r"\b(?:apple|m[1-9](?:\s*(?:pro|max|ultra))?|amd|radeon|rx\s*\d{3,4}\s*\w*|instinct|mi\d{2,3}[a-z]?|gfx\d+|strix|"
    r"ryzen|intel|arc|gaudi\s*\d?|tpu)\b",
    re.IGNORECASE,
)
# A vGPU's: the number of GB before the letter of its license.
_VGPU_SIZE = pattern(r"(\d{1,3})[A-Z]\Z")


_SPEED_OF_A_PART = "{name} is a part of a GPU: how fast its memory is, is not known"


# -- a card by its name ------------------------------------------------------------------------------------------------


def target_of_name(matrix: Matrix, text: str) -> Target:
    """ "RTX 4060", "H100x8", "2x RTX 4090", several of them with commas between. ParseError, with the nearest names,
    for what is no card, and for a bare compute capability, which says nothing about memory."""
    return target_of_names(matrix, [part for part in text.split(",") if part.strip()])


def target_of_names(matrix: Matrix, texts: Sequence[str]) -> Target:
    """The same for several: all are in one machine."""
    cards: list[Card] = []
    notes: list[str] = []
    for text in texts:
        name, number = _times(matrix, text.strip())
        card, said = _named_card(matrix, name)
        if len(cards) + number > MOST_CARDS:
            raise ParseError(f"more than {MOST_CARDS} GPUs are no machine: {text[:40]!a}")
        cards += [card] * number
        notes += [note for note in said if note not in notes]
    if not cards:
        raise ParseError("no GPU is named")
    return Target(GPU, tuple(cards), Machine(), tuple(notes))


def _times(matrix: Matrix, text: str) -> tuple[str, int]:
    """A card's name, and how many of them."""
    if len(text) > _LONGEST_NAME:
        raise ParseError(f"no GPU is called {text[:40]!a}...")
    before = _TIMES_BEFORE.match(text)
    behind = _TIMES_BEHIND.match(text)
    if before:
        name, number = before.group(2), int(before.group(1))
    elif behind and not _is_all_name(matrix, text, behind.group(1), behind.group(2)):
        name, number = behind.group(1), int(behind.group(2))
    else:
        return text, 1
    if not 0 < number <= MOST_CARDS:
        raise ParseError(f"{number} GPUs are no machine: {text!a}")
    again = _TIMES_BEHIND.match(name)
    if again and not _is_all_name(matrix, name, again.group(1), again.group(2)):
        raise ParseError(f"how many GPUs is said twice: {text!a}")
    return name.strip(), number


def _is_all_name(matrix: Matrix, text: str, name: str, number: str) -> bool:
    """Whether the x belongs to the name: GTX 970, TITAN X 12."""
    if not name.strip() or not matrix.gpu(name.strip()).rows:
        return True
    return len(number) >= 3 and bool(matrix.gpu(text).rows)


def _named_card(matrix: Matrix, name: str) -> tuple[Card, list[str]]:
    alone = _MIG_ALONE.match(name)
    size = _part(alone.group(1), None) if alone else None
    if size is not None:
        usable = matrix.less_held(size)
        card = Card(f"MIG {name[alone.start(1) :].lower()}" if alone else name, int(size * _GIB), usable.bytes)
        return card._replace(source=usable.source), [_SPEED_OF_A_PART.format(name=name)]
    behind = _MIG_BEHIND.match(name)
    match = matrix.gpu(f"{_MIG_WORD.sub('', behind['card']).rstrip(' -')} MIG {behind['part']}" if behind else name)
    if match.kind == "capability":
        raise ParseError(f"{name!a} is a kind of GPU, and says nothing about memory: name a card, or give --vram")
    if not match.rows and _OF_OTHERS.search(name):
        raise ParseError(
            f"{name!a} is no NVIDIA GPU: give the memory that it may use (--vram 24), and what CUDA takes is counted"
        )
    if not match.rows:
        near = matrix.gpu_names_like(name)
        advice = f"the nearest are {', '.join(near)}" if near else "give its memory instead (--vram 24)"
        raise ParseError(f"no GPU called {name!a} is known: {advice}")
    if _MIG_WORD.search(name) and match.mig is None:
        raise ParseError(f"{name!a} does not say which part of the GPU: write it so, A100 1g.5gb")
    part = _part(match.mig, match.vgpu)
    rows = [row for row in match.rows if part is None or part <= row.memory_gib]
    if not rows:
        raise ParseError(f"{name!a} is larger than the GPU that it is a part of")
    if len(rows) > _MOST_NAMESAKES:
        some = ", ".join(row.name for row in rows[-3:])
        raise ParseError(f"{len(rows)} GPUs are called {name!a}: name one, such as {some}")
    product = _meant(matrix, rows)
    notes = []
    others = sorted({row.memory_gib for row in rows if row.memory_gib != product.memory_gib})
    if others and part is None:
        sizes = ", ".join(f"{gib:g}" for gib in others)
        notes.append(f"{name} is taken for the {product.name} ({product.memory_gib:g} GB; others have {sizes} GB)")
    card = card_of_product(matrix, product)
    if part is not None:
        usable = matrix.less_held(part)
        card = card._replace(
            name=name, total=int(part * _GIB), free=usable.bytes, bandwidth=None, tensor_rate=None, source=usable.source
        )
        notes.append(_SPEED_OF_A_PART.format(name=name))
    if card.shared:
        notes.append(f"{card.name} has no memory of its own: the system and programs take from the same pool")
    return card, notes


def _part(mig: Optional[str], vgpu: Optional[str]) -> Optional[float]:
    """GiB of a MIG device or of a vGPU by its name."""
    found = _MIG_SIZE.search(mig) if mig else None
    if found:
        return float(found.group(2))
    found = _VGPU_SIZE.search(vgpu) if vgpu else None
    return float(found.group(1)) if found else None


def _meant(matrix: Matrix, rows: Sequence[Product]) -> Product:
    """Of products that share a name: the one that people buy or rent, with several of these the smallest; else the
    first, which the matrix puts there because it has the name as its own."""
    common = {offer.gpu.name for offer in matrix.offers()}
    offered = [row for row in rows if row.name in common]
    if offered:
        return min(offered, key=lambda row: row.memory_gib)
    return rows[0]


def card_of_product(matrix: Matrix, product: Product) -> Card:
    """A card with nothing else on it. `free` is what a program can use of it."""
    usable = matrix.usable_memory(product)
    shared = product.klass in _ON_THE_CHIP
    return Card(
        name=product.name,
        total=int(product.memory_gib * _GIB),
        free=usable.bytes,
        bandwidth=_scaled(product.bandwidth_gbs, 1e9),
        tensor_rate=_scaled(product.tflops, 1e12),
        compute_capability=product.capability,
        source=f"{product.source} ({product.checked}); usable: {usable.source} ({usable.checked})",
        shared=shared,
    )


def _scaled(figure: Optional[float], unit: float) -> Optional[float]:
    return None if figure is None else figure * unit


# -- only so much memory -----------------------------------------------------------------------------------------------


def target_of_size(gib: float, number: int = 1) -> Target:
    """GPUs with so much memory that a program can use, in GiB. ParseError for what no GPU has."""
    if not 0 < gib < 4096 or not 0 < number <= MOST_CARDS:
        raise ParseError(f"no GPU has {gib:g} GiB" if not 0 < gib < 4096 else f"{number} GPUs are no machine")
    size = int(gib * _GIB)
    card = Card(name=f"a GPU with {gib:g} GiB", total=size, free=size, source="as given")
    return Target(MEMORY, (card,) * number)


# -- this machine now --------------------------------------------------------------------------------------------------


def target_of_facts(matrix: Matrix, facts: Facts) -> Target:
    """The GPUs that a program started here would see and what is free on them now, and the machine around them. Whoever
    does not tell leaves a None; where no driver answers, the cards are taken as their names have them, and the notes
    say so."""
    case = Case(facts, matrix)
    notes: list[str] = []
    visible = case.derived(seen)
    cards = _cards(case, visible, notes)
    machine = _machine(case)
    return on_system(Target(_kind(cards), tuple(cards), machine, tuple(notes)), _system(case))


def on_system(target: Target, system: str) -> Target:
    """The same GPUs under linux, windows, wsl or jetson."""
    notes = target.notes
    if target.cards and system in ("windows", "wsl"):
        notes = (*notes, "the desktop and browsers take GPU memory, and more or less of it from minute to minute")
    return target._replace(notes=notes, system=system)


def _kind(cards: Sequence[Card]) -> str:
    return MACHINE if cards else NONE


def _system(case: Case) -> str:
    if in_wsl(case):
        return "wsl"
    if on_jetson(case):
        return "jetson"
    return str(case.value("system.os", ""))


def _cards(case: Case, visible: Seen, notes: list[str]) -> list[Card]:
    found = case.derived(gpus)
    by_number = {gpu.index: gpu for gpu in found if gpu.index is not None and not gpu.lost}
    if visible.how_many.is_known and visible.how_many.get() == 0 and (by_number or visible.numbers):
        notes.append("CUDA_VISIBLE_DEVICES hides every GPU")
        return []
    numbers = [number for number in visible.numbers if number in by_number] or sorted(by_number)
    cards = [_card_now(case, number, by_number[number], notes) for number in numbers]
    if cards and not visible.sure and visible.how_many.is_known and visible.how_many.get() < len(cards):
        notes.append("CUDA_VISIBLE_DEVICES leaves some GPUs out, and it cannot be told which: the fullest are counted")
        cards.sort(key=lambda card: -1 if card.free is None else card.free)
        cards = cards[: visible.how_many.get()]
    if not cards:
        cards = _on_the_chip(case, notes) or _by_name_only(case, found, notes)
    if not cards:
        why = visible.how_many.reason if not visible.how_many.is_known else "no GPU is seen"
        notes.append(f"there is nothing to compare with: {why}")
    return cards


def _card_now(case: Case, number: int, gpu: Gpu, notes: list[str]) -> Card:
    matrix = case.matrix
    prefix = f"gpu.{number}."
    product = _product(matrix, gpu)
    capability = gpu.compute_capability.value or ""
    total: Optional[int] = gpu.memory.value
    free: Optional[int] = case.value(prefix + "memory_free")
    source = "nvml" if free is not None else ""
    listed = next((entry for entry in case.value("smi.gpus", []) if entry.get("index") == number), None)
    if free is None and listed and listed.get("memory_total") and listed.get("memory_used") is not None:
        total = listed["memory_total"]
        free = max(0, listed["memory_total"] - listed["memory_used"])
        source = "nvidia-smi"
    shared = product is not None and product.klass in _ON_THE_CHIP
    if shared and free is None:
        total, free, source = case.value("memory.total"), case.value("memory.available"), "the machine's memory"
        notes.append(f"{gpu.label} shares the machine's memory: free is what the system has free")
    card = Card(
        name=gpu.label,
        total=total,
        free=free,
        bandwidth=_scaled(product.bandwidth_gbs, 1e9) if product is not None else None,
        tensor_rate=_scaled(product.tflops, 1e12) if product is not None else None,
        compute_capability=capability,
        source=source,
        shared=shared,
    )
    if is_split(case, number):
        notes.append(f"GPU {number} is split by MIG: what its parts have is not told; name the part (--gpu 1g.10gb)")
        return card._replace(total=None, free=None, bandwidth=None, tensor_rate=None)
    if free is None:
        reason = case.fact(prefix + "memory_free").reason or "the driver does not tell"
        notes.append(f"GPU {number}: what is free on it is not known ({reason})")
        return card
    return card._replace(used_by_others=_others(case, number, card, notes))


def _others(case: Case, number: int, card: Card, notes: list[str]) -> Optional[int]:
    """What programs hold of it now, beside the driver itself."""
    if card.total is None or card.free is None or card.shared:
        return None
    used = max(0, card.total - card.free)
    own = card.total - case.matrix.less_held(card.total / _GIB).bytes
    held = max(0, used - own)
    listed = case.value(f"gpu.{number}.processes", [])
    known = sum(entry.get("memory") or 0 for entry in listed)
    held = max(held, min(known, used))
    if held >= _GIB // 4:
        who = ", ".join(f"{entry.get('name') or 'process'} {entry.get('pid')}" for entry in listed[:3])
        more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        by = f" ({who}{more})" if who else ""
        notes.append(f"GPU {number}: {show_size(held)} are held by others now{by}")
    return held


def _product(matrix: Matrix, gpu: Gpu) -> Optional[Product]:
    """The product behind a name, where all that the name can stand for are alike in what counts here."""
    if gpu.name_is_cut:
        return None
    match = matrix.gpu(gpu.label)
    if match.mig or match.vgpu:
        return None
    rows = match.rows
    if gpu.pci_device_id:
        same = {row.name for row in matrix.gpu_by_pci(gpu.pci_device_id).rows}
        rows = tuple(row for row in rows if row.name in same) or rows
    if gpu.memory.is_known:
        gib = gpu.memory.get() / _GIB
        rows = tuple(row for row in rows if abs(row.memory_gib - gib) <= 0.12 * row.memory_gib) or rows
    if not rows:
        return None
    # Of several the slowest: what is said about its speed then holds for all.
    return min(rows, key=lambda row: row.bandwidth_gbs or 0.0)


def _on_the_chip(case: Case, notes: list[str]) -> list[Card]:
    """A Jetson's GPU, which no bus and on most no NVML shows."""
    total, free = case.value("memory.total"), case.value("memory.available")
    if not on_jetson(case) or free is None:
        return []
    notes.append("a Jetson's GPU shares the machine's memory: free is what the system has free")
    return [Card("the Jetson's GPU", total, free, source="the machine's memory", shared=True)]


def _by_name_only(case: Case, found: Sequence[Gpu], notes: list[str]) -> list[Card]:
    """Cards that a bus or a person names, and no driver shows: as they are on paper."""
    cards = []
    for gpu in found:
        product = _product(case.matrix, gpu) if not gpu.lost else None
        if product is None:
            continue
        card = card_of_product(case.matrix, product)
        if card.shared:
            card = card._replace(total=case.value("memory.total"), free=case.value("memory.available"))
        cards.append(card)
    if cards:
        who = "the text does not tell" if in_report(case) else "the driver does not tell"
        notes.append(f"{who} what is free on the GPU now: taken is what such a card has")
    return cards


def _machine(case: Case) -> Machine:
    limit: Optional[int] = case.value("memory.cgroup_limit")
    total = _least(case.value("memory.total"), limit)
    return Machine(
        memory_total=total,
        memory_available=_least(case.value("memory.available"), limit),
        swap=case.value("memory.swap_total"),
        shared_memory=case.value("memory.shm_free"),
        lockable=case.value("limits.memlock"),
        disk=str(case.value("disk.kind", "")),
    )


def _least(*amounts: Optional[int]) -> Optional[int]:
    known = [amount for amount in amounts if amount is not None]
    return min(known) if known else None


# -- what of a target a workload gets ----------------------------------------------------------------------------------


def used_cards(target: Target, number: int) -> tuple[Card, ...]:
    """The cards that `number` processes would be given: those with most free memory. Fewer where there are fewer."""
    order = sorted(target.cards, key=lambda card: -1 if card.free is None else card.free, reverse=True)
    return tuple(order[: max(1, number)])


def available(target: Target, number: int) -> Optional[int]:
    """Bytes that the fullest of these cards has free: each of `number` GPUs needs as much. None: not known. More GPUs
    than there are count as more of the same."""
    cards = used_cards(target, number)
    if not cards or cards[-1].free is None:
        return None
    return cards[-1].free
