"""Windows settings and numbers, in several languages."""

from __future__ import annotations

import pytest

from cudadoctor.parse import windows
from cudadoctor.parse.decode import program_text
from cudadoctor.parse.errors import ParseError

BALANCED = "381b4222-f694-41f0-9685-ff5bb260df2e"
OTHER = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
COPY = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (f"Power Scheme GUID: {BALANCED}  (Balanced)\r\n".encode(), "Balanced"),
        (f"\r\nGUID des Energieschemas: {BALANCED}  (Ausbalanciert)\r\n".encode(), "Ausbalanciert"),
        (f"GUID du mode de gestion de l'alimentation : {BALANCED}  (Usage normal)\n".encode(), "Usage normal"),
        (f"电源方案 GUID: {BALANCED}  (平衡)\n".encode(), "平衡"),
        (f"전원 구성표 GUID: {BALANCED}  (균형 조정)\n".encode("utf-16-le"), "균형 조정"),
        (f"電源設定の GUID: {BALANCED}  （バランス）\n".encode(), "バランス"),
        (f"Power Scheme GUID: {BALANCED.upper()}\n".encode(), None),
        (f"C:\\>powercfg /getactivescheme\nPower Scheme GUID: {BALANCED}  (My (own) plan)\n".encode(), "My (own) plan"),
    ],
)
def test_active_plan(data: bytes, name: str | None) -> None:
    plan = windows.parse_active_power_plan(program_text(data))
    assert (plan.guid, plan.name) == (BALANCED, name)


@pytest.mark.parametrize("encoding", ["gbk", "cp850", "cp949", "shift_jis"])
def test_a_console_code_page_leaves_the_guid(encoding: str) -> None:
    data = b"\xb5\xe7\xd4\xb4\xb7\xbd\xb0\xb8 GUID: " + BALANCED.encode() + b"  (\xc6\xbd\xba\xe2)\r\n"
    assert windows.parse_active_power_plan(program_text(data, encoding)).guid == BALANCED
    assert windows.parse_active_power_plan(program_text(data)).guid == BALANCED


def test_list_of_plans() -> None:
    text = f"""\
Existing Power Schemes (* Active)
-----------------------------------
Power Scheme GUID: {BALANCED}  (Balanced)
Power Scheme GUID: {OTHER}  (High performance)
Power Scheme GUID: {COPY}  (Ultimate Performance) *
"""
    plans = windows.parse_power_plans(text)
    assert [(one.guid, one.active) for one in plans] == [(BALANCED, False), (OTHER, False), (COPY, True)]
    assert windows.parse_active_power_plan(text) == windows.PowerPlan(COPY, "Ultimate Performance", True)


@pytest.mark.parametrize("text", ["", "'powercfg' is not recognized", "GUID: 381b4222"])
def test_no_plan(text: str) -> None:
    with pytest.raises(ParseError, match="powercfg"):
        windows.parse_active_power_plan(text)


@pytest.mark.parametrize("text", [BALANCED, BALANCED.upper(), "{" + BALANCED + "}", f" {BALANCED}\n"])
def test_guid(text: str) -> None:
    assert windows.normalise_guid(text) == BALANCED


@pytest.mark.parametrize("text", ["", "{}", BALANCED[:-1], BALANCED + "0", BALANCED.replace("-", "")])
def test_no_guid(text: str) -> None:
    with pytest.raises(ParseError):
        windows.normalise_guid(text)


PAGING = [
    # value, [(path, initial MiB, maximum MiB)]
    (["?:\\pagefile.sys"], [("?:\\pagefile.sys", None, None)]),
    (["C:\\pagefile.sys 0 0"], [("C:\\pagefile.sys", None, None)]),
    (["C:\\pagefile.sys 16384 32768"], [("C:\\pagefile.sys", 16384, 32768)]),
    (
        ["c:\\pagefile.sys 0 0", "D:\\pagefile.sys 1024 2048", ""],
        [("c:\\pagefile.sys", None, None), ("D:\\pagefile.sys", 1024, 2048)],
    ),
    ("c:\\pagefile.sys 27 77", [("c:\\pagefile.sys", 27, 77)]),
    # as reg.exe prints it
    (
        "c:\\pagefile.sys 0 0\\0D:\\pagefile.sys 1024 2048",
        [("c:\\pagefile.sys", None, None), ("D:\\pagefile.sys", 1024, 2048)],
    ),
    (
        "c:\\pagefile.sys 0 0\x00D:\\pagefile.sys 1 2\x00\x00",
        [("c:\\pagefile.sys", None, None), ("D:\\pagefile.sys", 1, 2)],
    ),
    (["C:\\my files\\pagefile.sys 10 20"], [("C:\\my files\\pagefile.sys", 10, 20)]),
    ([], []),
    ("", []),
    ([""], []),
]


@pytest.mark.parametrize(("value", "files"), PAGING)
def test_paging_files(value: str | list[str], files: list[tuple[str, int | None, int | None]]) -> None:
    got = windows.parse_paging_files(value)
    assert got == files
    assert [one.system_managed for one in got] == [initial is None for _, initial, _ in files]


@pytest.mark.parametrize("value", [["pagefile"], ["C:\\pagefile.sys big"], "8192"])
def test_no_paging_files(value: str | list[str]) -> None:
    with pytest.raises(ParseError, match="PagingFiles"):
        windows.parse_paging_files(value)


@pytest.mark.parametrize(
    ("version", "nvidia"),
    [
        ("32.0.15.6094", "560.94"),
        ("32.0.15.8129", "581.29"),
        ("31.0.15.3713", "537.13"),
        ("26.21.14.4250", "442.50"),
        ("27.21.14.6109", "461.09"),
        ("30.0.14.7212", "472.12"),
        ("32.0.16.1047", "610.47"),
        ("31.0.15.5222\n", "552.22"),
        ("21.21.13.0078", "300.78"),
    ],
)
def test_driver_number(version: str, nvidia: str) -> None:
    assert windows.nvidia_driver_version(version) == nvidia


@pytest.mark.parametrize("version", ["", "560.94", "32.0.101.", "32.0.10.94", "a.b.c.d", "32.0.15.60944444"])
def test_no_driver_number(version: str) -> None:
    with pytest.raises(ParseError):
        windows.nvidia_driver_version(version)
