"""Reading what PyTorch's index, the default index and NVIDIA have published. Nothing is judged or written here.

The order is that of need: the pages first; wheels are looked into (by range requests, some hundred KB each) only for
releases that the matrix does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional
from urllib.parse import urljoin

from cudadoctor.actions.fetch import Answer, Fetcher, FetchError, within
from cudadoctor.actions.pip_index import PipIndex, pip_index
from cudadoctor.actions.remote_wheel import RemoteError, RemoteWheel
from cudadoctor.matrix import COMPANIONS
from cudadoctor.matrix.observed import (
    ListedWheel,
    Observed,
    ReleaseFacts,
    SeenBranch,
    new_releases,
    recent_variants,
)
from cudadoctor.matrix.versions import numbers, torch_key, variant_of_cuda
from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.dist_info import Metadata, Requirement, parse_metadata
from cudadoctor.parse.driver_redist import (
    DriverReleases,
    parse_driver_listing,
    parse_driver_redist,
    parse_driver_releases,
)
from cudadoctor.parse.fatbin import find_arch_string
from cudadoctor.parse.pip_config import without_credentials
from cudadoctor.parse.release_archs import BuildArchs, parse_release_archs, targets_of
from cudadoctor.parse.torch_version import parse_torch_version
from cudadoctor.parse.versions import satisfies
from cudadoctor.parse.wheel_index import IndexFile, parse_index_html, parse_index_json, parse_index_root
from cudadoctor.parse.wheel_name import parse_tagged_wheel

DRIVER_REDIST = "https://developer.download.nvidia.com/compute/nvidia-driver/redist/"
DRIVER_RELEASES = "https://docs.nvidia.com/datacenter/tesla/drivers/releases.json"

Section = Callable[[str], dict[str, Any]]

_JSON_FIRST = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_HTML = "text/html"
# Of so many candidates METADATA is read to find the companion of a release.
_CANDIDATES = 6
# Of so many branches the newest driver is asked for its CUDA version.
_BRANCHES = 12
_MEMBER = 8 << 20
# libtorch_python.so: some 30 MB unpacked.
_LIBRARY = 256 << 20
# What a release pins of NVIDIA's, without -cu12 or -cu13; cuda-runtime from before there was cuda-toolkit.
_PINS = ("cudnn", "nccl", "nvshmem", "cusparselt", "cuda-runtime")


class Upstream(NamedTuple):
    """Where to look. `default_index` may hold a password. `binaries`: also read each new build's own GPU list."""

    wheel_index: str
    default_index: str
    driver_redist: str = DRIVER_REDIST
    driver_releases: str = DRIVER_RELEASES
    torch: bool = True
    drivers: bool = True
    binaries: bool = False
    all_variants: bool = False


class Request(NamedTuple):
    """What to fetch, as a person asks for it. `without`: "torch" or "drivers" stay as they are; `python`: whose pip is
    asked for the default index, where `index_url` names none; `timeout`: seconds for everything; `cache`: a folder."""

    python: str
    index_url: Optional[str] = None
    mirror: Optional[str] = None
    without: Optional[str] = None
    binaries: bool = False
    all_variants: bool = False
    timeout: float = 180.0
    cache: Optional[str] = None


def fetch(request: Request, present: Section, day: str) -> Observed:
    """:func:`observe` in a session of its own that ends in time. FetchError as there."""
    if request.without == "torch" or request.index_url:
        chosen = PipIndex(request.index_url or "", True)
    else:
        chosen = pip_index(request.python)
    upstream = Upstream(
        request.mirror or str(present("meta")["wheel_index"]),
        chosen.url,
        torch=request.without != "torch",
        drivers=request.without != "drivers",
        binaries=request.binaries,
        all_variants=request.all_variants,
    )
    sections = {name: present(name) for name in ("torch", "driver_branches")}

    def work() -> Observed:
        with Fetcher(
            deadline=request.timeout, cache=request.cache, authorities=chosen.authorities, proxy=chosen.proxy
        ) as fetcher:
            return observe(fetcher, upstream, sections.__getitem__, day)

    # The session's own deadline ends nearly everything; a moment more for it to say so in its own words.
    return within(request.timeout + 2, work, asked=request.timeout)


class _File(NamedTuple):
    """One file of a page, with its whole address."""

    listed: ListedWheel
    url: str
    metadata: Optional[bool]


def observe(fetcher: Fetcher, upstream: Upstream, present: Section, day: str) -> Observed:
    """Everything that is new upstream, for :func:`cudadoctor.matrix.merge.merge`. FetchError in one sentence: something
    could not be read, or is not what it should be; then nothing of it counts."""
    branches = _branches(fetcher, upstream, present("driver_branches")) if upstream.drivers else None
    if not upstream.torch:
        return Observed(day, "", None, (), {}, (), branches)
    return _Torch(fetcher, upstream, present, day).observed(branches)


class _Torch:
    def __init__(self, fetcher: Fetcher, upstream: Upstream, present: Section, day: str) -> None:
        self._fetcher, self._upstream, self._day = fetcher, upstream, day
        self._torch = present("torch")
        self._whl = upstream.wheel_index.rstrip("/")
        self._index = upstream.default_index.rstrip("/")

    def observed(self, branches: Optional[Sequence[SeenBranch]]) -> Observed:
        pages = self._pages()
        default = self._project("torch")
        if default is None:
            shown = without_credentials(self._index)
            raise FetchError(f"{shown}: this index has no torch; name another with --index-url")
        if all(file.listed.wheel.local for file in default):
            shown = without_credentials(self._index)
            raise FetchError(
                f"{shown}: this is an index of one CUDA variant, which does not tell the default one; "
                "name another with --index-url"
            )
        fresh = new_releases(self._torch, [file.listed for file in default])
        companions = {name: self._project(name) or [] for name in COMPANIONS} if fresh else {}
        days = {file.listed.wheel.release: file.listed.day for file in default if file.listed.day}
        facts = {version: self._facts(version, default, pages, companions, days) for version in fresh}
        return Observed(
            self._day,
            without_credentials(self._whl).partition("://")[2],
            {variant: [file.listed for file in files] for variant, files in pages.items()},
            [file.listed for file in default],
            facts,
            self._toolkits(),
            branches,
        )

    # -- pages

    def _pages(self) -> dict[str, list[_File]]:
        root = self._fetcher.get(self._whl + "/", accept=_HTML)
        if root is None:
            shown = without_credentials(self._whl)
            raise FetchError(f"{shown}/: no index is there (403 or 404); a filter in between may say so, too")
        try:
            offered = parse_index_root(root.text)
        except ParseError as error:
            raise FetchError(f"{root.shown}: {error}") from None
        wanted = offered if self._upstream.all_variants else recent_variants(self._torch, offered)
        pages = {}
        for variant in wanted:
            answer = self._fetcher.get(f"{self._whl}/{variant}/torch/", accept=_HTML)
            if answer is not None:  # 403: that variant has no torch
                pages[variant] = _files(answer, "torch")
        if not pages:
            raise FetchError(f"{without_credentials(self._whl)}/: none of its variants has a page of torch")
        return pages

    def _project(self, project: str) -> Optional[list[_File]]:
        """A project's wheels on the default index; None: it has no such project."""
        answer = self._fetcher.get(f"{self._index}/{project}/", accept=_JSON_FIRST)
        return None if answer is None else _files(answer, project)

    def _toolkits(self) -> list[tuple[str, Optional[str]]]:
        """(release, day) of the CUDA toolkits; a fourth number that is 0 is packaging."""
        found: dict[str, Optional[str]] = {}
        for file in self._project("cuda-toolkit") or ():
            parts = file.listed.wheel.release.split(".")
            if file.listed.counts and (len(parts) == 3 or (len(parts) == 4 and parts[3] == "0")):
                found.setdefault(".".join(parts[:3]), file.listed.day)
        return list(found.items())

    # -- what the wheels of a new release say

    def _facts(
        self,
        version: str,
        default: Sequence[_File],
        pages: Mapping[str, Sequence[_File]],
        companions: Mapping[str, Sequence[_File]],
        days: Mapping[str, str],
    ) -> ReleaseFacts:
        variants: dict[str, str] = {}
        read: dict[tuple[str, str], BuildArchs] = {}
        archs: dict[tuple[str, str], BuildArchs] = {}
        metadata: Optional[Metadata] = None
        for platform, file in _one_a_platform(default, version).items():
            wheel = self._wheel(file)
            variant = _variant(wheel)
            variants[platform] = variant
            if platform.startswith("linux"):
                archs.update(_table(wheel))
                if self._upstream.binaries and variant != "cpu":
                    read[variant, platform] = _own_archs(wheel)
            if metadata is None or platform == "linux-x86_64":
                metadata = self._metadata(file, wheel)
        if metadata is None:
            raise FetchError(f"{without_credentials(self._index)}: torch {version} has no wheel for a known platform")
        if self._upstream.binaries:
            for variant, page in pages.items():
                own = [file for file in page if file.listed.wheel.local == variant]
                for platform, file in _one_a_platform(own, version).items():
                    if platform.startswith("linux") and variant != "cpu" and (variant, platform) not in read:
                        read[variant, platform] = _own_archs(self._wheel(file))
        chosen = {name: self._companion(version, companions.get(name, ()), days) for name in COMPANIONS}
        found = {name: release for name, release in chosen.items() if release}
        triton = next((item.specifier for item in metadata.requirements if item.name == "triton"), None)
        untagged = tuple(name for name in found if not self._tagged(version, name, found[name], pages))
        return ReleaseFacts(
            version,
            variants,
            {**found, **({"triton": triton} if triton else {})},
            untagged,
            _nvidia(metadata.requirements),
            archs,
            read,
        )

    def _companion(self, version: str, files: Sequence[_File], days: Mapping[str, str]) -> Optional[str]:
        """The companion that belongs to a torch release: the newest that takes it, from before the next torch."""
        key = torch_key(version) or (0, 0, 0)
        later = [day for release, day in days.items() if (torch_key(release) or (0, 0, 0)) > key and day]
        ends = min((day for day in later if day > days.get(version, "")), default="9999")
        by_release: dict[str, list[_File]] = {}
        for file in files:
            if file.listed.counts and (file.listed.day or "") < ends:
                by_release.setdefault(file.listed.wheel.release, []).append(file)
        for release in sorted(by_release, key=lambda text: numbers(text) or (), reverse=True)[:_CANDIDATES]:
            file = by_release[release][0]
            wants = self._metadata(file).requirements
            torch = next((item.specifier for item in wants if item.name == "torch"), "")
            if not torch or satisfies(version, torch):
                return release
        return None

    def _tagged(self, version: str, name: str, release: str, pages: Mapping[str, Sequence[_File]]) -> bool:
        """Whether the companion's wheel carries the variant on the pages of those variants that have this torch."""
        for variant, page in pages.items():
            if variant == "cpu" or all(file.listed.wheel.release != version for file in page):
                continue
            answer = self._fetcher.get(f"{self._whl}/{variant}/{name}/", accept=_HTML)
            for file in _files(answer, name) if answer is not None else ():
                if file.listed.wheel.release == release and file.listed.wheel.local == variant:
                    return True
        return False

    def _wheel(self, file: _File) -> RemoteWheel:
        try:
            return RemoteWheel(self._fetcher.session, file.url, deadline=max(1.0, self._fetcher.left))
        except RemoteError as error:
            raise FetchError(str(error)) from None

    def _metadata(self, file: _File, wheel: Optional[RemoteWheel] = None) -> Metadata:
        """METADATA of a wheel: beside it where the index keeps it there, else out of it."""
        text = None
        if file.metadata is not False and wheel is None:
            answer = self._fetcher.get(file.url + ".metadata")
            text = None if answer is None else answer.text
        if text is None:
            wheel = wheel or self._wheel(file)
            name = next((name for name in wheel.names() if name.endswith(".dist-info/METADATA")), None)
            if name is None:
                raise FetchError(f"{wheel.name}: has no METADATA")
            text = _text(wheel, name)
        try:
            return parse_metadata(text)
        except ParseError as error:
            raise FetchError(f"{without_credentials(file.url)}: {error}") from None


def _files(answer: Answer, project: str) -> list[_File]:
    """The project's wheels on a page of an index. FetchError: it is no such page, or has not one."""
    kind = answer.content_type.partition(";")[0].strip().lower()
    if kind and "json" not in kind and "html" not in kind:
        raise FetchError(f"{answer.shown}: it is {kind[:60]}, not a page of a package index")
    try:
        entries = parse_index_json(answer.text) if "json" in kind else parse_index_html(answer.text)
    except ParseError as error:
        raise FetchError(f"{answer.shown}: {error}") from None
    files = [file for entry in entries for file in _file(entry, answer.url, project)]
    if not files:
        raise FetchError(f"{answer.shown}: no wheel of {project} is on this page")
    return files


def _file(entry: IndexFile, page: str, project: str) -> Iterable[_File]:
    try:
        wheel = parse_tagged_wheel(entry.filename)
    except ParseError:  # a source archive, or an egg of long ago
        return
    if wheel.name == project:
        day = entry.uploaded[:10] if entry.uploaded else None
        yield _File(
            ListedWheel(wheel, entry.yanked, day, entry.requires_python), urljoin(page, entry.href), entry.metadata
        )


def _one_a_platform(files: Sequence[_File], version: str) -> dict[str, _File]:
    """A wheel of the release for each platform."""
    found: dict[str, _File] = {}
    for file in files:
        wheel = file.listed.wheel
        if wheel.release == version and file.listed.counts and wheel.platform and wheel.python:
            found.setdefault(wheel.platform, file)
    return found


def _variant(wheel: RemoteWheel) -> str:
    """The variant that a wheel is: the default index does not write it into the name."""
    try:
        built = parse_torch_version(_text(wheel, "torch/version.py"))
    except ParseError as error:
        raise FetchError(f"{wheel.name}: {error}") from None
    return (variant_of_cuda(built.cuda) if built.cuda else None) or "cpu"


def _table(wheel: RemoteWheel) -> dict[tuple[str, str], BuildArchs]:
    """torch's own table of GPU lists, by (variant, platform). One that cannot be read is no reason to fail: the lists
    are then carried over, and marked."""
    try:
        table = parse_release_archs(_text(wheel, "torch/cuda/__init__.py"))
    except ParseError:
        return {}
    return {(variant_of_cuda(key.cuda) or "", f"linux-{key.machine}"): archs for key, archs in table.items()}


def _text(wheel: RemoteWheel, name: str) -> str:
    try:
        return wheel.read(name, _MEMBER).decode("utf-8", "replace")
    except RemoteError as error:
        raise FetchError(str(error)) from None


def _own_archs(wheel: RemoteWheel) -> BuildArchs:
    try:
        names = find_arch_string(wheel.read("torch/lib/libtorch_python.so", _LIBRARY))
    except RemoteError as error:
        raise FetchError(str(error)) from None
    if names is None:
        raise FetchError(f"{wheel.name}: its libtorch_python.so has no list of compiled GPU targets")
    return targets_of(names)


def _nvidia(requirements: Iterable[Requirement]) -> dict[str, str]:
    """The pins of NVIDIA's libraries as the matrix has them: {"cudnn": "==9.24.0.43", "cuda-toolkit": "==13.0.3"}."""
    found: dict[str, str] = {}
    for item in requirements:
        bare = item.name[len("nvidia-") :].rpartition("-cu") if item.name.startswith("nvidia-") else ("", "", "")
        if bare[0] in _PINS and bare[2].isdigit():
            found.setdefault(bare[0], item.specifier)
        elif item.name == "cuda-toolkit":
            found.setdefault(item.name, item.specifier)
    order = (*_PINS, "cuda-toolkit")
    return {name: found[name] for name in order if name in found}


# -- drivers


def _branches(fetcher: Fetcher, upstream: Upstream, present: Mapping[str, Any]) -> list[SeenBranch]:
    """Branches of Linux drivers, from NVIDIA's two lists; those that are news with their CUDA version."""
    releases = _document(fetcher, upstream.driver_releases, parse_driver_releases)
    listing = _document(fetcher, upstream.driver_redist, parse_driver_listing)
    found = {item.branch: item for item in releases}
    for version in listing:
        branch = int(version.partition(".")[0])
        item = found.get(branch, DriverReleases(branch, "", ()))
        if version not in dict(item.releases):
            found[branch] = item._replace(releases=(*item.releases, (version, None)))
    known = {row["linux"]: row.get("latest_linux") or row.get("first_linux") or "0" for row in present["branch"]}
    seen = []
    asked = 0
    for branch in sorted(found, reverse=True):
        item, cuda = found[branch], None
        newest = max((version for version, _ in item.releases), key=_order)
        is_news = branch > max(known) or (branch in known and _order(newest) > _order(known[branch]))
        described = [version for version, _ in item.releases if version in listing]
        if is_news and described and asked < _BRANCHES:
            asked += 1
            address = urljoin(upstream.driver_redist, f"redistrib_{max(described, key=_order)}.json")
            redist = _document(fetcher, address, parse_driver_redist)
            cuda = max(redist.cuda, key=_order, default=None)
            days = {**dict(item.releases), redist.version: redist.date or dict(item.releases).get(redist.version)}
            item = item._replace(releases=tuple(days.items()))
        seen.append(SeenBranch(branch, item.kind, item.releases, cuda))
    return seen


def _document(fetcher: Fetcher, url: str, parse: Callable[[str], Any]) -> Any:
    leave = "--without drivers leaves NVIDIA's lists out"
    try:
        answer = fetcher.get(url)
        if answer is None:
            raise FetchError(f"{without_credentials(url)}: it is not there")
        return parse(answer.text)
    except ParseError as error:
        raise FetchError(f"{without_credentials(url)}: {error}; {leave}") from None
    except FetchError as error:
        raise FetchError(f"{error}; {leave}") from None


def _order(text: str) -> tuple[int, ...]:
    return numbers(text) or ()
