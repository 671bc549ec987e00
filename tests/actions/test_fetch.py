"""Fetching: what is met on the way, and that each failure is one sentence."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import upstream as bench
from bench.upstream import Entry, Fault, Pages, Upstream

import cudadoctor
from cudadoctor.actions.fetch import Fetcher, FetchError, cache_folder, within

PAGE = "/whl/cu132/torch/"


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Upstream]:
    pages = Pages()
    pages.add("cu132", Entry("torch", "2.15.0", "cu132", "cp312", "manylinux_2_28_x86_64"))
    folder = tmp_path / "upstream"
    folder.mkdir()
    server = Upstream(folder, pages)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def fetcher(**settings: Any) -> Fetcher:
    return Fetcher(**{"pause": 0.01, "deadline": 20.0, "wait": (2.0, 1.0), **settings})


def error_of(fetching: Fetcher, url: str, **options: Any) -> str:
    with fetching, pytest.raises(FetchError) as caught:
        fetching.get(url, **options)
    message = str(caught.value)
    assert "\n" not in message and message.isascii() and len(message) < 300
    return message


def test_a_page_with_its_type_and_who_asked(upstream: Upstream) -> None:
    with fetcher() as fetching:
        answer = fetching.get(upstream.url + PAGE)
    assert answer is not None
    assert "torch-2.15.0+cu132-cp312" in answer.text and answer.content_type == "text/html"
    (agent,) = upstream.user_agents
    assert agent.startswith("cudadoctor/")


@pytest.mark.parametrize("status", [403, 404, 410])
def test_what_is_not_there_is_an_answer_and_not_tried_again(upstream: Upstream, status: int) -> None:
    upstream.faults[PAGE] = Fault(bench.status(status))
    with fetcher() as fetching:
        assert fetching.get(upstream.url + PAGE) is None
    assert len(upstream.requests) == 1


PASSING = {
    "500": bench.status(500),
    "503": bench.status(503),
    "429": bench.status(429),
    "cut off": bench.cut_off,
    "reset": bench.reset,
    "silence": bench.silence,
}


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_tried_again(upstream: Upstream, fault: str) -> None:
    upstream.faults[PAGE] = Fault(PASSING[fault], times=2)
    with fetcher(wait=(2.0, 0.3)) as fetching:
        answer = fetching.get(upstream.url + PAGE)
    assert answer is not None and answer.text.endswith("-->")
    assert len(upstream.requests) == 3


LASTING = {
    "500": (bench.status(500), "the server answered 500", 3),
    "401": (bench.status(401), "wants a name and a password", 1),
    "418": (bench.status(418), "the server answered 418", 1),
    "cut off": (bench.cut_off, "cut off|broke off", 3),
    "reset": (bench.reset, "broke off", 3),
    "silence": (bench.silence, "no answer in time", 3),
    "huge": (bench.huge, "more than 1 MiB", 1),
    "endless": (bench.endless, "more than 1 MiB", 1),
}


@pytest.mark.parametrize("fault", LASTING)
def test_what_lasts_is_one_sentence_that_names_the_address(upstream: Upstream, fault: str) -> None:
    answer, words, asked = LASTING[fault]
    upstream.faults[PAGE] = Fault(answer)
    message = error_of(fetcher(wait=(2.0, 0.3)), upstream.url + PAGE, most=1 << 20)
    assert message.startswith(upstream.url + PAGE + ": ")
    assert any(word in message for word in words.split("|")), message
    assert len(upstream.requests) == asked


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert "the connection was refused" in error_of(fetcher(), f"http://127.0.0.1:{port}/")


def test_a_name_that_does_not_exist() -> None:
    assert "its name is not found" in error_of(fetcher(tries=1), "http://no-such-host.invalid/")


@pytest.mark.parametrize("url", ["ftp://host/x", "file:///etc/passwd", "torch", "http://", "https://[broken/"])
def test_no_web_address(url: str) -> None:
    assert "no address of a web server" in error_of(fetcher(), url)


def test_a_byte_now_and_then_ends_at_the_deadline(upstream: Upstream) -> None:
    upstream.faults[PAGE] = Fault(bench.trickle)
    fetching = fetcher(deadline=1.0)
    with pytest.raises(FetchError, match=r"not done within|takes longer than the 1 seconds|broke off|cut off"):
        within(3.0, lambda: fetching.get(upstream.url + PAGE))


def test_after_the_deadline_nothing_is_asked(upstream: Upstream) -> None:
    message = error_of(fetcher(deadline=0.0), upstream.url + PAGE)
    assert "the 0 seconds for everything are over" in message
    assert not upstream.requests


def test_work_that_never_ends_is_left() -> None:
    forever = threading.Event()
    with pytest.raises(FetchError, match=r"^not done within 0\.1 seconds"):
        within(0.1, lambda: forever.wait(30))
    with pytest.raises(FetchError, match=r"^not done within 8 seconds"):
        within(0.1, lambda: forever.wait(30), asked=8.0)  # what was asked for, not what was waited
    forever.set()


def test_what_the_work_raises_comes_through() -> None:
    def fails() -> None:
        raise FetchError("as it is")

    with pytest.raises(FetchError, match=r"^as it is$"):
        within(5.0, fails)


# -- certificates


def internet(monkeypatch: pytest.MonkeyPatch, upstream: Upstream, trusted: bool = True) -> None:
    for name, value in upstream.as_internet(trusted).items():
        monkeypatch.setenv(name, value)


def test_https_through_a_proxy_with_a_certificate_that_is_trusted(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream
) -> None:
    internet(monkeypatch, upstream)
    with fetcher() as fetching:
        assert fetching.get("https://download.pytorch.org" + PAGE) is not None
    assert upstream.requests == ["download.pytorch.org " + PAGE]


def test_a_certificate_of_nobody_is_refused(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    internet(monkeypatch, upstream, trusted=False)
    message = error_of(fetcher(), "https://download.pytorch.org" + PAGE)
    assert "its certificate is not accepted" in message and "REQUESTS_CA_BUNDLE" in message
    assert not upstream.requests, "nothing was asked over it"


def test_a_certificate_of_another_host_is_refused(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    internet(monkeypatch, upstream)
    monkeypatch.setattr(upstream, "tls", lambda host: Upstream.tls(upstream, "other.example"))
    assert "its certificate is not accepted" in error_of(fetcher(), "https://download.pytorch.org" + PAGE)
    assert not upstream.requests


def test_pips_own_authorities_serve_where_the_environment_names_none(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream
) -> None:
    internet(monkeypatch, upstream)
    authority = os.environ["REQUESTS_CA_BUNDLE"]
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with fetcher(authorities=authority) as fetching:
        assert fetching.get("https://download.pytorch.org" + PAGE) is not None


def test_a_bundle_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    internet(monkeypatch, upstream)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/authorities.pem")
    message = error_of(fetcher(), "https://download.pytorch.org" + PAGE)
    assert message.startswith("https://download.pytorch.org") and "cannot be read" in message


def test_https_that_leads_to_http_is_refused(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    internet(monkeypatch, upstream)
    upstream.faults[PAGE] = Fault(bench.downgrade)
    assert "leads away from https" in error_of(fetcher(), "https://download.pytorch.org" + PAGE)
    assert upstream.requests == ["download.pytorch.org " + PAGE], "it was not followed"


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert "no connection through the proxy" in error_of(fetcher(tries=1), "https://download.pytorch.org" + PAGE)


def test_verification_is_never_off() -> None:
    with fetcher() as fetching:
        assert fetching.session.verify is True
    package = Path(cudadoctor.__file__).parent
    texts = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    assert not [path for path, text in texts.items() if "verify=False" in text or "verify = False" in text]
    assert not [path for path, text in texts.items() if "disable_warnings" in text]


# -- names and passwords


def test_a_password_goes_to_its_server_alone_and_is_never_shown(upstream: Upstream) -> None:
    address = upstream.url.replace("http://", "http://me:s3cret@")
    with fetcher() as fetching:
        answer = fetching.get(address + PAGE)
        assert answer is not None and "s3cret" not in answer.url
        fetching.get(upstream.url + "/whl/")
        other = upstream.url.replace("127.0.0.1", "localhost")
        fetching.get(other + "/whl/")
    basic = "Basic bWU6czNjcmV0"
    assert upstream.authorizations == [(PAGE, basic), ("/whl/", basic)]
    upstream.faults[PAGE] = Fault(bench.status(500))
    message = error_of(fetcher(), address + PAGE)
    assert "s3cret" not in message and "me" not in message.split(":")[1]


# -- the cache


def test_what_has_not_changed_comes_out_of_the_cache(upstream: Upstream, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    answers = []
    for _ in range(2):
        with fetcher(cache=cache) as fetching:
            answers.append(fetching.get(upstream.url + PAGE))
    first, second = answers
    assert first is not None and second is not None
    assert second.content == first.content and second.content_type == first.content_type
    assert (first.from_cache, second.from_cache) == (False, True)
    assert upstream.requests == [PAGE, PAGE + " 304"]


def test_what_has_changed_does_not(upstream: Upstream, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    with fetcher(cache=cache) as fetching:
        fetching.get(upstream.url + PAGE)
    upstream.pages.add("cu132", Entry("torch", "2.16.0", "cu132", "cp312", "win_amd64"))
    with fetcher(cache=cache) as fetching:
        answer = fetching.get(upstream.url + PAGE)
    assert answer is not None and "2.16.0" in answer.text and not answer.from_cache


@pytest.mark.parametrize("damage", [b"", b"rubbish", b'{"url": 1}\nbody'])
def test_a_damaged_cache_is_fetched_anew(upstream: Upstream, tmp_path: Path, damage: bytes) -> None:
    cache = tmp_path / "cache"
    with fetcher(cache=str(cache)) as fetching:
        fetching.get(upstream.url + PAGE)
    (kept,) = cache.iterdir()
    kept.write_bytes(damage or kept.read_bytes()[:-5])
    with fetcher(cache=str(cache)) as fetching:
        answer = fetching.get(upstream.url + PAGE)
    assert answer is not None and not answer.from_cache and answer.text.endswith("-->")


def test_a_cache_that_cannot_be_written_does_no_harm(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with fetcher(cache=str(tmp_path / "file" / "cache")) as fetching:
        assert fetching.get(upstream.url + PAGE) is not None


def test_the_cache_lies_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert cache_folder() == "/var/cache/me/cudadoctor/fetched"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == "/home/me/.cache/cudadoctor/fetched"
