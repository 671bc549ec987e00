"""Secure Boot, by the firmware's variable and by mokutil."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.secure_boot import parse_efi_flag, parse_mokutil


@pytest.mark.parametrize(("data", "value"), [(b"\x06\x00\x00\x00\x01", True), (b"\x06\x00\x00\x00\x00", False)])
def test_efi_variable(data: bytes, value: bool) -> None:
    assert parse_efi_flag(data) is value


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x06\x00\x00\x00", b"\x06\x00\x00\x00\x02", b"\x06\x00\x00\x00\x01\x00"]
)
def test_another_efi_variable(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_efi_flag(data)


@pytest.mark.parametrize(
    ("text", "enabled", "enforced"),
    [
        ("SecureBoot enabled\n", True, True),
        ("SecureBoot disabled\n", False, False),
        ("SecureBoot disabled\nPlatform is in Setup Mode\n", False, False),
        ("SecureBoot enabled\nSecureBoot validation is disabled in shim\n", True, False),
        ("EFI variables are not supported on this system\n", False, False),
        ("This system doesn't support Secure Boot\n", False, False),
        ("Platform is in Setup Mode\n", None, None),
    ],
)
def test_mokutil(text: str, enabled: bool | None, enforced: bool | None) -> None:
    state = parse_mokutil(text)
    assert (state.enabled, state.enforced) == (enabled, enforced)


def test_mokutil_details() -> None:
    assert parse_mokutil("EFI variables are not supported on this system\n").supported is False
    assert parse_mokutil("SecureBoot disabled\nPlatform is in Setup Mode\n").setup_mode is True


@pytest.mark.parametrize("text", ["", "mokutil: command not found", "Failed to read SecureBoot"])
def test_mokutil_says_nothing(text: str) -> None:
    with pytest.raises(ParseError):
        parse_mokutil(text)
