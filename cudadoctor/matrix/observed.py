"""What was seen upstream on one day, and whether it can be believed. Pure.

The pages of PyTorch's index are believed wheel by wheel, but not a page that lacks much of what it is known to have:
that is a broken page, not a removal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.release_archs import BuildArchs
from cudadoctor.parse.wheel_name import TaggedWheel

from .versions import Numbers, cuda_of_variant, numbers, torch_key

PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64", "macos-x86_64")

# A page that lacks more than one in five of the wheels that it is known to have is not believed. Not fewer: what the
# matrix has from other sources than the page may be wrong about single wheels.
_BELIEVED = 0.8


class ListedWheel(NamedTuple):
    """A wheel as a page lists it. `day`: when it was uploaded, "2026-10-28"; None where the page has no date."""

    wheel: TaggedWheel
    yanked: bool = False
    day: Optional[str] = None
    requires_python: Optional[str] = None

    @property
    def counts(self) -> bool:
        """Whether it is one to install: no candidate, not withdrawn."""
        return self.wheel.is_release and not self.yanked


class ReleaseFacts(NamedTuple):
    """What the wheels of a new release say of themselves.

    `default`: the variant that the default index gives, by platform. `companions`: torchvision, torchaudio (versions)
    and triton (a range). `archs` and `read`: GPU lists by (variant, platform), out of torch's own table and out of the
    very binary.
    """

    version: str
    default: Mapping[str, str]
    companions: Mapping[str, str]
    companions_untagged: tuple[str, ...]
    nvidia: Mapping[str, str]
    archs: Mapping[tuple[str, str], BuildArchs]
    read: Mapping[tuple[str, str], BuildArchs]


class SeenBranch(NamedTuple):
    """A branch of Linux drivers. `cuda`: what the newest of them serves; None: no source said."""

    number: int
    kind: str
    releases: tuple[tuple[str, Optional[str]], ...]
    cuda: Optional[str]


class Observed(NamedTuple):
    """Everything that was seen upstream on one day.

    `pages`: wheels of torch on the page of each variant; None: torch was left out. `default`: those of the default
    index. `facts`: one for each of :func:`new_releases`. `toolkits`: (release, day). `branches`: None: drivers were
    left out.
    """

    day: str
    upstream: str
    """Where PyTorch's index was read, without "https://"."""
    pages: Optional[Mapping[str, Sequence[ListedWheel]]]
    default: Sequence[ListedWheel]
    facts: Mapping[str, ReleaseFacts]
    toolkits: Sequence[tuple[str, Optional[str]]]
    branches: Optional[Sequence[SeenBranch]]


class SeenBuild(NamedTuple):
    """A build as its wheels show it; `on_default`: those of its Pythons that the default index has, too."""

    pythons: frozenset[str]
    on_default: frozenset[str]
    tagged: bool
    glibc: Optional[str]
    sources: frozenset[str]
    """ "index" (PyTorch's), "default"."""


Builds = dict[str, dict[tuple[str, str], SeenBuild]]


# -- what is to be asked upstream


def new_releases(torch: Mapping[str, Any], default: Iterable[ListedWheel]) -> list[str]:
    """Releases on the default index that the data has not, oldest first: newer than all of it, or the next patch of a
    minor. An old release that the data leaves out stays out."""
    known = {key for data in torch.values() for row in data["release"] for key in [torch_key(row["version"])] if key}
    found = {}
    for item in default:
        key = torch_key(item.wheel.release)
        if key is None or not item.counts or item.wheel.release.count(".") != 2 or key in known:
            continue
        minor = [other for other in known if other[:2] == key[:2]]
        if key > max(minor or known, default=(0, 0, 0)):
            found[key] = item.wheel.release
    return [found[key] for key in sorted(found)]


def recent_variants(torch: Mapping[str, Any], offered: Iterable[str], minors: int = 8) -> list[str]:
    """Those of the variants offered that the newest `minors` minors have, and newer ones that the data does not know: a
    CUDA version that ended years ago gets no new wheels."""
    known: dict[str, tuple[int, int]] = {}
    for data in torch.values():
        for row in data["release"]:
            key = torch_key(row["version"]) or (0, 0, 0)
            for item in row["builds"]:
                known[item["variant"]] = max(known.get(item["variant"], (0, 0)), key[:2])
    newest = sorted(_minors(torch), reverse=True)[:minors]
    oldest = newest[-1] if newest else (0, 0)
    first = min((cuda_numbers(name) for name, minor in known.items() if minor >= oldest and name != "cpu"), default=())
    return [
        name
        for name in sorted(offered, key=cuda_numbers)
        if name == "cpu" or (known[name] >= oldest if name in known else cuda_numbers(name) > first)
    ]


def _minors(torch: Mapping[str, Any]) -> set[tuple[int, int]]:
    return {(torch_key(row["version"]) or (0, 0, 0))[:2] for data in torch.values() for row in data["release"]}


# -- whether the pages can be believed


def vanished(torch: Mapping[str, Any], observed: Observed) -> list[str]:
    """Pages that lack more of the known wheels than single mistakes explain, as sentences; empty: all are believed."""
    if observed.pages is None:
        return []
    on_pages: dict[str, set[tuple[str, str, str]]] = {}
    for variant, page in observed.pages.items():
        on_pages[variant] = {
            (item.wheel.release, platform, python) for item in page for platform, python in _places(item.wheel)
        }
    on_default = {(item.wheel.release, platform) for item in observed.default for platform, _ in _places(item.wheel)}
    expected: dict[str, list[tuple[str, str, str]]] = {}
    defaults: list[tuple[str, str]] = []
    for data in torch.values():
        for row in data["release"]:
            defaults += [(row["version"], platform) for platform in row["default"]]
            for item in row["builds"]:
                if item.get("seen", True) and not item.get("guessed", False) and item["variant"] in on_pages:
                    inferred = item.get("pythons_inferred", "").split(" ")
                    expected.setdefault(item["variant"], []).extend(
                        (row["version"], item["platform"], python)
                        for python in item["pythons"].split(" ")
                        if python not in inferred
                    )
    found = []
    for variant in sorted(expected, key=cuda_numbers):
        have = sum(wheel in on_pages[variant] for wheel in expected[variant])
        if have < _BELIEVED * len(expected[variant]):
            known = len(expected[variant])
            found.append(f"the page of {variant} has {have} of the {known} torch wheels that are known to be there")
    have = sum(wheel in on_default for wheel in defaults)
    if have < _BELIEVED * len(defaults):
        found.append(f"the default index has {have} of the {len(defaults)} builds of torch that are known to be there")
    return found


def _places(wheel: TaggedWheel) -> Iterator[tuple[str, str]]:
    if wheel.platform in PLATFORMS and wheel.python is not None and wheel.python.startswith("3."):
        yield str(wheel.platform), wheel.python


def seen_builds(
    pages: Mapping[str, Sequence[ListedWheel]],
    default: Sequence[ListedWheel],
    defaults: Mapping[str, Mapping[str, str]],
) -> Builds:
    """Release -> (variant, platform) -> what its wheels show.

    A page of PyTorch's index also holds wheels that do not belong to its variant: only those that carry its name count
    and, of a release that carries it there at all, those for aarch64 that carry none.
    """
    found: Builds = {}

    def add(item: ListedWheel, variant: str, tagged: bool, source: str) -> None:
        for platform, python in _places(item.wheel):
            had = found.setdefault(item.wheel.release, {}).get((variant, platform))
            had = had or SeenBuild(frozenset(), frozenset(), False, None, frozenset())
            floors = [floor for floor in (had.glibc, item.wheel.glibc) if floor]
            found[item.wheel.release][variant, platform] = SeenBuild(
                had.pythons | {python},
                had.on_default | ({python} if source == "default" else set()),
                had.tagged or tagged,
                min(floors, key=_order, default=None),
                had.sources | {source},
            )

    for variant, page in pages.items():
        tagged = {item.wheel.release for item in page if item.wheel.local == variant}
        for item in page:
            local = item.wheel.local
            if not item.counts:
                continue
            if local == variant:
                add(item, variant, True, "index")
            elif local is None and (
                variant == "cpu" or (item.wheel.release in tagged and item.wheel.platform == "linux-aarch64")
            ):
                add(item, variant, False, "index")
    for item in default:
        chosen = defaults.get(item.wheel.release, {}).get(item.wheel.platform or "")
        if chosen is not None and item.counts and item.wheel.local is None:
            add(item, chosen, False, "default")
    return found


def cuda_numbers(variant: str) -> Numbers:
    """ "cu126" -> (12, 6); "cpu" -> (0,), before every other."""
    return numbers(cuda_of_variant(variant) or "0") or ()


def _order(text: str) -> Numbers:
    return numbers(text) or ()
