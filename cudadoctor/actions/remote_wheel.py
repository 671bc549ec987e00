"""A wheel on a server, read in pieces: its list of files and single members, without the rest.

A wheel is a zip file, and the list of its members stands at its end; so two or three range requests (RFC 9110, 14)
give that list, and few more a member: a few MB of a wheel of half a GB.

    GET .../torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl     Range: bytes=-65536
    206 Partial Content                                            Content-Range: bytes 539107249-539172784/539172785
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import requests

_KIB, _MIB = 1 << 10, 1 << 20
_TAIL = 64 * _KIB  # holds the end record, and the whole list of a small wheel
_LEAST, _MOST = 64 * _KIB, 4 * _MIB  # of one request; it grows while the reading goes straight on
_KEPT = 6  # answers that are kept: the list, and where a few members are read in turn
_TRIES = 2


class RemoteError(Exception):
    """The wheel cannot be read from where it is; the message is one sentence that names the file."""


class _Broken(Exception):
    """An answer that may be better the second time: the connection broke."""


class RemoteWheel:
    """A wheel (any zip file) that is read by range requests while it lies on its server.

    `session` makes the requests (its proxies, certificates and retries hold). `timeout`: seconds to connect and to wait
    for more of an answer. `deadline`: seconds for one whole answer. `most`: bytes that are fetched of this file at all.
    Raises RemoteError here and in every method: no such file, no ranges, no zip file, cut off, too big, changed
    meanwhile.
    """

    def __init__(
        self,
        session: requests.Session,
        url: str,
        *,
        timeout: tuple[float, float] = (10.0, 30.0),
        deadline: float = 120.0,
        most: int = 256 * _MIB,
    ) -> None:
        self._ranges = _Ranges(session, url, timeout, deadline, most)
        self.name = self._ranges.name
        """The file name at the end of the address."""
        with self._reading("its list of files"):
            self._zip = zipfile.ZipFile(self._ranges)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self._ranges.size

    @property
    def fetched(self) -> int:
        """Bytes that have come over the line."""
        return self._ranges.fetched

    def names(self) -> list[str]:
        """Every member, in the order of the wheel."""
        return self._zip.namelist()

    def member_size(self, name: str) -> int:
        """Bytes of a member once it is unpacked, as the list says. RemoteError where there is no such member."""
        return self._member(name).file_size

    def read(self, name: str, most: int = 64 * _MIB) -> bytes:
        """A whole member, its checksum verified. RemoteError where it is longer than `most` bytes."""
        member = self._member(name)
        if member.file_size > most:
            raise RemoteError(f"{self.name}: {name} has {member.file_size} bytes, more than the {most} that are read")
        with self._reading(name), self._zip.open(member) as file:
            data = file.read(most)
            if file.read(1):
                raise zipfile.BadZipFile("longer than its list says")
        return data

    def read_part(self, name: str, length: int, offset: int = 0) -> bytes:
        """`length` bytes of a member from `offset` on; fewer at its end only.

        What lies before `offset` is fetched and unpacked on the way: a packed member can only be read from its start.
        """
        with self._reading(name), self._zip.open(self._member(name)) as file:
            left = offset
            while left:
                piece = file.read(min(left, _MIB))
                if not piece:
                    return b""
                left -= len(piece)
            return _exactly(file, length)

    def pieces(self, name: str, length: int = _MIB) -> Iterator[bytes]:
        """A member from its start, piece by piece: for one too big to be held. What is not asked for is not fetched."""
        member = self._member(name)
        with self._reading(name), self._zip.open(member) as file:
            while True:
                piece = file.read(length)
                if not piece:
                    return
                yield piece

    def _member(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(name)
        except KeyError:
            raise RemoteError(f"{self.name}: has no {name}") from None

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """What zipfile and zlib raise on damaged, encrypted or exotic files, as RemoteError."""
        import struct
        import zlib

        damage = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
        try:
            yield
        except NotImplementedError as error:
            raise RemoteError(f"{self.name}: {what} is packed in a way that is not read here ({error})") from None
        except damage as error:
            raise RemoteError(f"{self.name}: {what} cannot be read: {_first_line(error)}") from None


def _exactly(file: Any, length: int) -> bytes:
    parts, left = [], length
    while left:
        piece = file.read(left)
        if not piece:
            break
        parts.append(piece)
        left -= len(piece)
    return b"".join(parts)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return ascii(lines[0][:200]).strip("'\"") if lines else type(error).__name__


class _Ranges:
    """The remote file as zipfile wants one: seek, tell, read. Each request is checked against the first."""

    def __init__(
        self, session: requests.Session, url: str, timeout: tuple[float, float], deadline: float, most: int
    ) -> None:
        self._session, self._url, self._timeout, self._deadline, self._most = session, url, timeout, deadline, most
        # The address may carry a name and password or a token: the file's name is all that is ever shown of it.
        self.name = unquote(urlsplit(url).path.rpartition("/")[2]) or "the file"
        self.fetched = 0
        self.size = 0
        self._etag: Optional[str] = None
        self._position = 0
        self._window = _LEAST
        self._kept: list[tuple[int, bytes]] = []  # (offset, bytes), the last used at the end
        self._fetch(None, _TAIL)

    # -- what zipfile calls

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        start = {0: 0, 1: self._position, 2: self.size}[whence]
        if start + offset < 0:
            raise OSError("before the start of the file")  # as a file does; zipfile takes it for "no zip file"
        self._position = start + offset
        return self._position

    def read(self, length: int = -1) -> bytes:
        left = self.size - self._position
        left = max(0, left if length is None or length < 0 else min(length, left))
        parts = []
        while left:
            piece = self._piece(self._position, left)
            parts.append(piece)
            self._position += len(piece)
            left -= len(piece)
        return b"".join(parts)

    # -- requests

    def _piece(self, offset: int, length: int) -> bytes:
        """At least one byte from `offset` on, at most `length`."""
        for number, (start, data) in enumerate(self._kept):
            if start <= offset < start + len(data):
                self._kept.append(self._kept.pop(number))
                return data[offset - start : offset - start + length]
        goes_on = any(start + len(data) == offset for start, data in self._kept)
        self._window = min(self._window * 2, _MOST) if goes_on else _LEAST
        data = self._fetch(offset, min(max(self._window, min(length, _MOST)), self.size - offset))
        return data[:length]

    def _fetch(self, offset: Optional[int], length: int) -> bytes:
        """`length` bytes from `offset` on; the last `length`, or all of a shorter file, without an offset."""
        if self.fetched + length > self._most:
            raise RemoteError(f"{self.name}: more than {self._most // _MIB} MiB of it would have to be fetched")
        for left in reversed(range(_TRIES)):
            try:
                start, data = self._ask(offset, length)
                break
            except _Broken as error:
                if not left:
                    raise RemoteError(f"{self.name}: {error}") from None
        self._kept.append((start, data))
        del self._kept[:-_KEPT]
        return data

    def _ask(self, offset: Optional[int], length: int) -> tuple[int, bytes]:
        import requests

        wanted = f"bytes=-{length}" if offset is None else f"bytes={offset}-{offset + length - 1}"
        ends = time.monotonic() + self._deadline
        try:
            with self._session.get(
                self._url,
                headers={"Range": wanted, "Accept-Encoding": "identity"},
                timeout=self._timeout,
                stream=True,
            ) as answer:
                start, expected = self._check(answer, offset, length)
                return start, self._body(answer, expected, ends)
        except requests.exceptions.SSLError:
            raise RemoteError(f"{self.name}: the server's certificate was not accepted") from None
        except requests.Timeout:
            raise _Broken("the server did not answer in time") from None
        except requests.ConnectionError:
            raise _Broken("the connection failed or broke off") from None
        except requests.RequestException as error:
            raise RemoteError(f"{self.name}: the request failed ({type(error).__name__})") from None

    def _check(self, answer: requests.Response, offset: Optional[int], length: int) -> tuple[int, int]:
        """Where the answer starts and how long it must be, from its head alone."""
        if self._url.startswith("https:") and not answer.url.startswith("https:"):
            raise RemoteError(f"{self.name}: the server leads away from https")
        if answer.status_code == 200:
            raise RemoteError(f"{self.name}: the server gives whole files only, no ranges of them")
        if answer.status_code != 206:
            raise RemoteError(f"{self.name}: the server answered {answer.status_code}")
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise RemoteError(f"{self.name}: the server packs its ranges, so they are none of the file")
        found = _content_range(answer.headers.get("Content-Range", ""))
        if found is None:
            raise RemoteError(f"{self.name}: the server does not say which range it gives")
        start, last, size = found
        # Weak tags and dates would do to tell a change too; a server that sends none is judged by the size alone.
        etag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if not self.size:
            self.size, self._etag = size, etag
        elif size != self.size or etag != self._etag:
            raise RemoteError(f"{self.name}: the file changed while it was read")
        expected = max(0, size - length) if offset is None else offset
        if start != expected or last != min(expected + length, size) - 1:
            raise RemoteError(f"{self.name}: the server gives another range than was asked for")
        return start, last - start + 1

    def _body(self, answer: requests.Response, expected: int, ends: float) -> bytes:
        """Exactly `expected` bytes, whatever the server sends after them."""
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        raw = answer.raw
        # read1 comes back with what is there; without it a trickle would be waited for until the piece is full.
        read = getattr(raw, "read1", None) or raw.read
        data = bytearray()
        try:
            while len(data) < expected:
                piece = read(min(expected - len(data), 64 * _KIB))
                if not piece:
                    raise _Broken("the answer was cut off")
                data += piece
                self.fetched += len(piece)
                if time.monotonic() > ends:
                    raise RemoteError(f"{self.name}: the answer took longer than {self._deadline:g} seconds")
        except ReadTimeoutError:
            raise _Broken("the server did not answer in time") from None
        except (HTTPError, OSError):
            raise _Broken("the connection failed or broke off") from None
        return bytes(data)


def _content_range(text: str) -> Optional[tuple[int, int, int]]:
    """ "bytes 100-199/5000" -> (100, 199, 5000); None for anything else, a size of "*" among it."""
    unit, _, rest = text.strip().partition(" ")
    span, _, size = rest.strip().partition("/")
    first, _, last = span.partition("-")
    if unit.lower() != "bytes" or not all(
        part.isascii() and part.isdigit() and len(part) < 19 for part in (first, last, size)
    ):
        return None
    found = int(first), int(last), int(size)
    return found if found[0] <= found[1] < found[2] else None
