"""Fetching small texts from the network, where a person has asked for it.

Certificates are always checked. Each answer has a size limit, each wait a time-out and all of them together a deadline;
what fails in passing is tried again; what has not changed since the last time (ETag) comes out of the user's cache
folder. Every failure is one sentence. Names and passwords in addresses are used and never shown.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from cudadoctor import __version__
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import without_credentials

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

_MIB = 1 << 20
# Statuses by which a server says that there is no such page. PyTorch's says 403.
_ABSENT = (403, 404, 410)
# Statuses that may pass.
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_REDIRECTS = 5
_LATE = "no answer in time"


class FetchError(Exception):
    """Something could not be fetched; the message is one sentence for the user."""


class _Passing(Exception):
    """A failure that may pass; the message says what happened, without the address."""


class Answer(NamedTuple):
    """What a server gave. `url`: where it came from in the end, for resolving relative addresses."""

    url: str
    content: bytes
    content_type: str
    from_cache: bool

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    @property
    def shown(self) -> str:
        return without_credentials(self.url)


class Fetcher:
    """One session of fetching.

    `deadline`: seconds for everything together. `wait`: seconds to connect, and to wait for more of an answer. `tries`:
    how often a passing failure is met before it counts. `pause`: seconds before the second try, doubled for each
    further one. `cache`: the folder for answers with an ETag; None: none is kept. `authorities`: a file of certificate
    authorities, for where REQUESTS_CA_BUNDLE names none; `proxy` likewise, for where HTTPS_PROXY names none.
    """

    def __init__(
        self,
        *,
        deadline: float = 120.0,
        wait: tuple[float, float] = (10.0, 20.0),
        tries: int = 3,
        pause: float = 0.5,
        cache: Optional[str] = None,
        authorities: Optional[str] = None,
        proxy: Optional[str] = None,
    ) -> None:
        import requests

        self._ends = time.monotonic() + deadline
        self._deadline = deadline
        self._wait, self._tries, self._pause, self._cache = wait, tries, pause, cache
        self._passwords: dict[str, tuple[str, str]] = {}
        self.session = requests.Session()
        self.session.max_redirects = _REDIRECTS
        self.session.hooks["response"].append(_no_way_down)
        self.session.headers["User-Agent"] = f"cudadoctor/{__version__} ({sys.platform}; matrix update)"
        if authorities and os.path.exists(authorities):
            self.session.verify = authorities  # requests puts REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE before it
        if proxy:
            self.session.proxies = {"http": proxy, "https": proxy}  # and HTTPS_PROXY before these

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.session.close()

    @property
    def deadline(self) -> float:
        """Seconds that everything together may take."""
        return self._deadline

    @property
    def left(self) -> float:
        """Seconds until the deadline; never below zero."""
        return max(0.0, self._ends - time.monotonic())

    def get(self, url: str, *, accept: str = "*/*", most: int = 32 * _MIB) -> Optional[Answer]:
        """What lies at `url`; None: the server says that nothing does (403, 404, 410). At most `most` bytes.

        Raises FetchError for everything else.
        """
        url = self._plain(url)
        kept = _Kept.read(self._cache, url, accept)
        for attempt in range(self._tries):
            try:
                return self._once(url, accept, most, kept)
            except _Passing as error:
                pause = self._pause * 2**attempt
                if attempt + 1 == self._tries or pause >= self.left:
                    raise FetchError(f"{without_credentials(url)}: {error}") from None
                time.sleep(pause)
        raise AssertionError("a Fetcher that never tries")

    def _once(self, url: str, accept: str, most: int, kept: Optional[_Kept]) -> Optional[Answer]:
        import requests

        shown = without_credentials(url)
        if self.left <= 0:
            raise FetchError(f"{shown}: not fetched, the {self._deadline:g} seconds for everything are over")
        headers = {"Accept": accept, **(kept.conditions if kept else {})}
        wait = (min(self._wait[0], self.left), min(self._wait[1], self.left))
        try:
            with self.session.get(url, headers=headers, timeout=wait, stream=True) as answer:
                if kept and answer.status_code == 304:
                    return Answer(kept.final, kept.content, kept.content_type, True)
                if answer.status_code in _ABSENT:
                    return None
                if answer.status_code in _PASSING:
                    raise _Passing(f"the server answered {answer.status_code}")
                if answer.status_code == 407:
                    raise FetchError(f"{shown}: the proxy wants a name and a password (407)")
                if answer.status_code == 401:
                    raise FetchError(f"{shown}: the server wants a name and a password (401)")
                if answer.status_code != 200:
                    raise FetchError(f"{shown}: the server answered {answer.status_code}")
                content = self._content(answer, most, shown)
                _Kept.write(self._cache, url, accept, answer, content)
                return Answer(answer.url, content, answer.headers.get("Content-Type", ""), False)
        except requests.exceptions.SSLError as error:
            raise FetchError(f"{shown}: {_tls(error)}") from None
        except requests.exceptions.ProxyError as error:
            why = _connection(error)
            raise _Passing(why if why == _LATE else "no connection through the proxy") from None
        except requests.exceptions.TooManyRedirects:
            raise FetchError(f"{shown}: it leads from one address to the next without end") from None
        except requests.Timeout:
            raise _Passing(_LATE) from None
        except requests.ConnectionError as error:
            raise _Passing(_connection(error)) from None
        except requests.exceptions.ChunkedEncodingError:
            raise _Passing("the answer was cut off") from None
        except requests.RequestException as error:
            # requests quotes addresses in its messages; the kind of the error says enough.
            raise FetchError(f"{shown}: it cannot be asked for ({type(error).__name__})") from None
        except OSError as error:  # a bundle of certificates that is named and not there
            raise FetchError(f"{shown}: {error.strerror or 'a file that the request needs cannot be read'}") from None

    def _content(self, answer: requests.Response, most: int, shown: str) -> bytes:
        expected = answer.headers.get("Content-Length", "")
        packed = answer.headers.get("Content-Encoding", "identity").lower() != "identity"
        too_much = FetchError(f"{shown}: more than {most / _MIB:.3g} MiB, which no such page has")
        if expected.isdigit() and int(expected) > most:
            raise too_much
        content = bytearray()
        for piece in answer.iter_content(64 << 10):
            content += piece
            if len(content) > most:  # counted after unpacking: a small answer can unpack to a huge one
                raise too_much
            if self.left <= 0:
                raise FetchError(f"{shown}: it takes longer than the {self._deadline:g} seconds for everything")
        if expected.isdigit() and not packed and len(content) < int(expected):
            raise _Passing("the answer was cut off")
        return bytes(content)

    def _plain(self, url: str) -> str:
        """The address without name and password; those go with every request to the same server."""
        from urllib.parse import unquote, urlsplit, urlunsplit

        try:
            parts = urlsplit(url)
            server = parts.netloc.rpartition("@")[2]
            hostname = parts.hostname
        except ValueError:
            hostname = None
        if not hostname or parts.scheme not in ("http", "https"):
            raise FetchError(f"{without_credentials(url)}: this is no address of a web server")
        if "@" in parts.netloc:
            self._passwords[server] = (unquote(parts.username or ""), unquote(parts.password or ""))
            self.session.auth = self._authenticate
        return urlunsplit((parts.scheme, server, parts.path, parts.query, ""))

    def _authenticate(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        from urllib.parse import urlsplit

        from requests.auth import HTTPBasicAuth

        known = self._passwords.get(urlsplit(request.url or "").netloc)
        return HTTPBasicAuth(*known)(request) if known else request


class _Kept(NamedTuple):
    """An answer in the cache. It is only ever used when the server says that it still holds."""

    conditions: Mapping[str, str]
    final: str
    content_type: str
    content: bytes

    @staticmethod
    def read(folder: Optional[str], url: str, accept: str) -> Optional[_Kept]:
        import json
        import zlib

        if folder is None:
            return None
        try:
            with open(_Kept.path(folder, url, accept), "rb") as file:
                head = json.loads(file.readline(1 << 16))
                content = file.read()
            if head["url"] != url or head["crc32"] != zlib.crc32(content):
                return None
            return _Kept(dict(head["conditions"]), str(head["final"]), str(head["type"]), content)
        except (OSError, ValueError, KeyError, TypeError):
            return None  # without a cache everything is fetched

    @staticmethod
    def write(folder: Optional[str], url: str, accept: str, answer: requests.Response, content: bytes) -> None:
        import json
        import zlib

        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        conditions = {names[name]: answer.headers[name] for name in names if answer.headers.get(name)}
        if folder is None or not conditions or "no-store" in answer.headers.get("Cache-Control", ""):
            return
        head = {
            "url": url,
            "final": answer.url,
            "type": answer.headers.get("Content-Type", ""),
            "conditions": conditions,
            "crc32": zlib.crc32(content),
        }
        path = _Kept.path(folder, url, accept)
        temporary = f"{path}.{os.getpid()}.new"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + content)
            os.replace(temporary, path)
        except OSError:
            return  # a cache that cannot be written is no reason to fail

    @staticmethod
    def path(folder: str, url: str, accept: str) -> str:
        import hashlib

        return os.path.join(folder, hashlib.sha256(f"{accept}\n{url}".encode()).hexdigest()[:32])


def cache_folder() -> Optional[str]:
    """The user's cache folder of cudadoctor, there or not; None where there is no home."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or ""
        return os.path.join(base, "cudadoctor", "cache", "fetched") if os.path.isabs(base) else None
    home = os.path.expanduser("~")
    base = os.environ.get("XDG_CACHE_HOME") or ""
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    elif not os.path.isabs(base):
        base = os.path.join(home, ".cache")
    return os.path.join(base, "cudadoctor", "fetched") if os.path.isabs(base) else None


def within(seconds: float, work: Callable[[], T], asked: Optional[float] = None) -> T:
    """What `work` gives or raises, if it is done in that time; else FetchError, which names the seconds that were
    `asked` for.

    A name server that never answers, or a server that sends a byte a minute, holds a request longer than any time-out
    of its own. `work` then goes on in a thread that does not keep the process alive.
    """
    import threading

    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not result:
        raise FetchError(f"not done within {seconds if asked is None else asked:g} seconds, so nothing was changed")
    return result[0]


def _no_way_down(answer: requests.Response, *_: Any, **__: Any) -> None:
    """Called for every answer, before a redirect is followed."""
    target = answer.headers.get("Location", "") if answer.is_redirect else ""
    if answer.url.startswith("https:") and target.lower().startswith("http:"):
        raise FetchError(f"{without_credentials(answer.url)}: it leads away from https")


def _connection(error: Any) -> str:
    """What kept a connection from being made, or broke it; requests wraps it several times over."""
    seen: list[Any] = []
    todo: list[Any] = [error]
    while todo and len(seen) < 20:
        current = todo.pop()
        seen.append(current)
        todo += [item for item in (*getattr(current, "args", ()), getattr(current, "reason", None)) if _is_error(item)]
        todo += [item for item in (current.__cause__, current.__context__) if item is not None]
    names = {type(item).__name__ for item in seen}
    if names & {"NameResolutionError", "gaierror"}:
        return "its name is not found (no network, or a wrong name)"
    if "ConnectionRefusedError" in names:
        return "the connection was refused"
    if names & {"ReadTimeoutError", "ConnectTimeoutError", "TimeoutError"}:
        return _LATE
    if names & {"IncompleteRead", "ProtocolError", "ConnectionResetError", "RemoteDisconnected"}:
        return "the connection broke off"
    return "no connection"


def _is_error(item: object) -> bool:
    return isinstance(item, BaseException)


def _tls(error: Exception) -> str:
    """Why no secure connection came to be, from the words of OpenSSL, Python or urllib3."""
    text = str(error)
    words = (
        ("has expired", "it has expired"),
        ("self-signed", "nobody vouches for it"),
        ("self signed", "nobody vouches for it"),
        ("unable to get local issuer", "nobody here knows who vouches for it"),
        ("Hostname mismatch", "it is another host's"),
        ("doesn't match", "it is another host's"),
        ("CERTIFICATE_VERIFY_FAILED", ""),
    )
    for known, why in words:
        if known in text:
            because = f" ({why})" if why else ""
            return f"its certificate is not accepted{because}; your own authorities go into REQUESTS_CA_BUNDLE"
    return "no secure connection can be made"
