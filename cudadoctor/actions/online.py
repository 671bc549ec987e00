"""Asking an index whether exactly these wheels are there, where a person has said so (`fix --online`).

What the index cannot be asked leaves the offline plan as it is: the network may be closed, and the plan is none the
worse for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional

from cudadoctor.actions.fetch import Answer, Fetcher, FetchError, within
from cudadoctor.matrix import numbers
from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.wheel_index import parse_index_html, parse_index_json
from cudadoctor.parse.wheel_name import TaggedWheel, parse_tagged_wheel
from cudadoctor.plan.index import Index
from cudadoctor.resolve import Choice, Need

if TYPE_CHECKING:
    from cudadoctor.parse.wheel_index import IndexFile

# A page of one project; a flat page lists everything that a mirror has of a variant.
_MOST = 32 << 20
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.6, text/html;q=0.5"

# All questions together; a person waits for them.
DEADLINE = 30.0


class Wheels(NamedTuple):
    """What an index has of a choice. `torch`: the torch wheel itself is there; `lacking`: companions that are not;
    `download`: bytes of the wheels that are (None: the server does not say)."""

    torch: bool
    lacking: tuple[tuple[str, str], ...] = ()
    download: Optional[int] = None


class Asker:
    """One session of asking. Use it as a context manager."""

    def __init__(self, fetcher: Optional[Fetcher] = None) -> None:
        self._fetcher = fetcher or Fetcher(deadline=DEADLINE, wait=(5.0, 10.0), tries=2)
        self._pages: dict[str, Optional[Answer]] = {}

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *error: object) -> None:
        self._fetcher.session.close()

    def wheels(self, choice: Choice, index: Index, need: Need) -> Wheels:
        """What `index` has of `choice` for the Python and system of `need`. Raises `FetchError` where it cannot be
        asked."""
        asked = self._fetcher.deadline
        return within(self._fetcher.left + 1.0, lambda: self._wheels(choice, index, need), asked=asked)

    def _wheels(self, choice: Choice, index: Index, need: Need) -> Wheels:
        found, lacking = [], []
        for requirement in choice.requirements:
            name, _, version = requirement.partition("==")
            wheel = self._wheel(name, version, choice, index, need)
            if wheel is not None:
                found.append(wheel)
            elif name == "torch":
                return Wheels(False)
            else:
                lacking.append((name, version))
        sizes = [self._size(address, size) for address, size in found]
        known = [size for size in sizes if size is not None]
        return Wheels(True, tuple(lacking), sum(known) if len(known) == len(sizes) else None)

    def _wheel(
        self, name: str, version: str, choice: Choice, index: Index, need: Need
    ) -> Optional[tuple[str, Optional[int]]]:
        """Address and size of the wheel that an installer would take; None: there is none."""
        from urllib.parse import urljoin

        page = self._page(index.url if index.flat else f"{index.url}/{name}/")
        if page is None:
            return None
        for file in _files(page):
            wheel = _tagged(file)
            if wheel is not None and wheel.name == name and _fits(wheel, version, choice, need):
                return urljoin(page.url, file.href), file.size
        return None

    def _page(self, url: str) -> Optional[Answer]:
        if url not in self._pages:
            self._pages[url] = self._fetcher.get(url, accept=_ACCEPT, most=_MOST)
        return self._pages[url]

    def _size(self, url: str, known: Optional[int]) -> Optional[int]:
        """Bytes of a file, as its server gives them for a HEAD request."""
        import requests

        if known is not None or self._fetcher.left <= 0:
            return known
        try:
            wait = min(5.0, self._fetcher.left)
            with self._fetcher.session.head(url, timeout=(wait, wait), allow_redirects=True) as answer:
                text = answer.headers.get("Content-Length", "")
                return int(text) if answer.status_code == 200 and text.isdigit() else None
        except (requests.RequestException, OSError):
            return None


def _files(page: Answer) -> Sequence[IndexFile]:
    """The wheels on a page; none on one that lists nothing. Raises `FetchError` for what is no index page."""
    try:
        is_json = "json" in page.content_type
        return parse_index_json(page.text) if is_json else parse_index_html(page.text)
    except ParseError as error:
        raise FetchError(f"{page.shown}: {error}") from None


def _tagged(file: IndexFile) -> Optional[TaggedWheel]:
    if file.yanked:
        return None
    try:
        return parse_tagged_wheel(file.filename)
    except ParseError:
        return None  # a source archive, or another project's oddly named file on a flat page


def _fits(wheel: TaggedWheel, version: str, choice: Choice, need: Need) -> bool:
    release, _, local = version.partition("+")
    if numbers(wheel.release) != numbers(release) or (wheel.local or "") != local:
        return False
    if wheel.python is not None:
        if choice.python is not None and wheel.python != choice.python:
            return False
        if choice.python is None and wheel.python not in choice.pythons:
            return False
    if wheel.platform is not None and wheel.platform != choice.platform:
        return False
    have = numbers(need.glibc) if need.glibc else None
    return have is None or wheel.glibc is None or have >= (numbers(wheel.glibc) or ())
