"""A wheel read by ranges from a server on loopback, and what becomes of every way in which a server can go wrong."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator

import pytest
import requests
from bench.range_server import RangeServer
from bench.wheels import torch_wheel

from cudadoctor.actions.remote_wheel import RemoteError, RemoteWheel

NAME = "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"
NOISE = bytes((n * n * 31 + n // 7) & 0xFF for n in range(700_000))  # packs badly: several requests


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, data in members.items():
            how = zipfile.ZIP_STORED if name.startswith("stored") else zipfile.ZIP_DEFLATED
            packed.writestr(zipfile.ZipInfo(name), data, how)
    return buffer.getvalue()


WHEEL = archive(first=NOISE, stored=NOISE[::-1], last=b"the end")


@pytest.fixture
def server() -> Iterator[RangeServer]:
    server = RangeServer(NAME, WHEEL)
    yield server
    server.close()


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False  # a proxy of this machine is none of the test's
        yield session


def test_members_are_read_without_the_rest(server: RangeServer, session: requests.Session) -> None:
    wheel = RemoteWheel(session, server.url())
    assert wheel.names() == ["first", "stored", "last"]
    assert wheel.size == len(WHEEL)
    assert len(server.asked) == 1, "the list of a small wheel comes with its end"
    assert wheel.read("last") == b"the end"
    assert len(server.asked) == 1, "and so does what lies there"
    assert wheel.read("stored") == NOISE[::-1]
    assert wheel.read("first") == NOISE
    assert wheel.member_size("first") == len(NOISE)
    assert server.asked[0] == "bytes=-65536"
    assert wheel.fetched < 2 * len(WHEEL)


def test_a_real_wheel_s_layout(server: RangeServer, session: requests.Session) -> None:
    server.data = torch_wheel("2.14.1", "cu126", python="3.12").data
    wheel = RemoteWheel(session, server.url())
    (metadata,) = (name for name in wheel.names() if name.endswith(".dist-info/METADATA"))
    assert b"\nName: torch\n" in wheel.read(metadata)
    assert b"'2.14.1+cu126'" in wheel.read("torch/version.py")
    assert wheel.name == NAME
    assert len(server.asked) == 1


@pytest.mark.parametrize("name", ["first", "stored"])
def test_a_part_of_a_member(server: RangeServer, session: requests.Session, name: str) -> None:
    whole = {"first": NOISE, "stored": NOISE[::-1]}[name]
    wheel = RemoteWheel(session, server.url())
    assert wheel.read_part(name, 100) == whole[:100]
    assert wheel.fetched < 200_000, "the rest of it is not fetched"
    assert wheel.read_part(name, 1000, 300_000) == whole[300_000:301_000]
    assert wheel.read_part(name, 1000, len(whole) - 10) == whole[-10:]
    assert wheel.read_part(name, 1000, len(whole) + 10) == b""
    assert b"".join(wheel.pieces(name, 10_000)) == whole


def test_a_connection_that_breaks_once_is_tried_again(server: RangeServer, session: requests.Session) -> None:
    server.fault, server.times = "cut off", 1
    wheel = RemoteWheel(session, server.url())
    server.since = len(server.asked)
    assert wheel.read("first") == NOISE


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("404", "the server answered 404"),
        ("403", "the server answered 403"),
        ("416", "the server answered 416"),
        ("500", "the server answered 500"),
        ("whole", "the server gives whole files only, no ranges of them"),
        ("portal", "the server gives whole files only, no ranges of them"),
        ("cut off", "the connection failed or broke off"),
        ("no answer", "the server did not answer in time"),
        ("trickle", "the answer took longer than 3 seconds"),
        ("no range said", "the server does not say which range it gives"),
        ("size not said", "the server does not say which range it gives"),
        ("elsewhere", "the server gives another range than was asked for"),
        ("packed", "the server packs its ranges, so they are none of the file"),
    ],
)
@pytest.mark.parametrize("since", [0, 1], ids=["at once", "later"])
def test_a_server_that_goes_wrong(
    server: RangeServer, session: requests.Session, fault: str, said: str, since: int
) -> None:
    server.fault, server.since = fault, since
    # Only where slowness is the fault may the other answers be judged by the clock, with room for a busy machine.
    wait, deadline = (2.0 if fault == "no answer" else 30.0), (3.0 if fault == "trickle" else 120.0)
    with pytest.raises(RemoteError) as raised:
        RemoteWheel(session, server.url(), timeout=(10.0, wait), deadline=deadline).read("first")
    assert str(raised.value) == f"{NAME}: {said}"


@pytest.mark.parametrize("fault", ["another size", "another tag"])
def test_a_file_that_changes_while_it_is_read(server: RangeServer, session: requests.Session, fault: str) -> None:
    server.fault, server.since = fault, 1
    wheel = RemoteWheel(session, server.url())
    with pytest.raises(RemoteError, match="the file changed while it was read"):
        wheel.read("first")


def test_no_server_at_all(server: RangeServer, session: requests.Session) -> None:
    url = server.url()
    server.close()
    with pytest.raises(RemoteError, match="the connection failed or broke off"):
        RemoteWheel(session, url)


def test_what_stands_in_the_address_is_not_shown(server: RangeServer, session: requests.Session) -> None:
    server.fault = "404"
    with pytest.raises(RemoteError) as raised:
        RemoteWheel(session, server.url("me:secret@") + "?token=secret#sha256=00")
    assert "secret" not in str(raised.value)


# -- files that are no wheel, or no longer one


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<html>Not found</html>", "its list of files cannot be read: File is not a zip file"),
        (WHEEL[:-30], "its list of files cannot be read: File is not a zip file"),
        (b"\x00" * 100_000, "its list of files cannot be read: File is not a zip file"),
        (WHEEL[500_000:], "its list of files cannot be read"),
    ],
    ids=["a page", "without its end", "zeros", "without its start"],
)
def test_no_zip_file(server: RangeServer, session: requests.Session, data: bytes, said: str) -> None:
    server.data = data
    with pytest.raises(RemoteError) as raised:
        RemoteWheel(session, server.url()).read("first")
    assert str(raised.value).startswith((f"{NAME}: {said}", f"{NAME}: first cannot be read"))


def test_a_member_that_is_not_there(server: RangeServer, session: requests.Session) -> None:
    with pytest.raises(RemoteError, match=r"has no torch/version\.py"):
        RemoteWheel(session, server.url()).read("torch/version.py")


def test_a_member_whose_bytes_are_damaged(server: RangeServer, session: requests.Session) -> None:
    damaged = bytearray(WHEEL)
    place = WHEEL.index(NOISE[::-1][:100])  # in the one that is stored: nothing but its checksum can tell
    damaged[place] ^= 1
    server.data = bytes(damaged)
    with pytest.raises(RemoteError, match="stored cannot be read: Bad CRC-32"):
        RemoteWheel(session, server.url()).read("stored")


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [(8, 1, "is encrypted"), (10, 97, "is packed in a way that is not read here")],
    ids=["encrypted", "packed by another method"],
)
def test_a_member_that_cannot_be_unpacked(
    server: RangeServer, session: requests.Session, offset: int, value: int, said: str
) -> None:
    data = bytearray(archive(only=b"x" * 100))
    for start, at in ((data.index(b"PK\1\2"), offset), (0, offset - 2)):
        struct.pack_into("<H", data, start + at, value)
    server.data = bytes(data)
    with pytest.raises(RemoteError, match=said):
        RemoteWheel(session, server.url()).read("only")


def test_a_member_that_is_too_long(server: RangeServer, session: requests.Session) -> None:
    server.data = archive(bomb=b"\0" * 3_000_000)
    wheel = RemoteWheel(session, server.url())
    with pytest.raises(RemoteError, match="bomb has 3000000 bytes, more than the 1000000 that are read"):
        wheel.read("bomb", most=1_000_000)


def test_no_more_is_fetched_than_allowed(server: RangeServer, session: requests.Session) -> None:
    server.data = archive(stored=NOISE * 3)
    wheel = RemoteWheel(session, server.url(), most=1 << 20)
    with pytest.raises(RemoteError, match="more than 1 MiB of it would have to be fetched"):
        wheel.read("stored")
    assert wheel.fetched <= 1 << 20


def test_an_empty_file(server: RangeServer, session: requests.Session) -> None:
    server.fault = "416"  # what servers answer when a range is asked of nothing
    with pytest.raises(RemoteError, match="the server answered 416"):
        RemoteWheel(session, server.url())
