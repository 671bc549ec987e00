r"""Is Secure Boot on?

/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c: four bytes of attributes, one of value

    06 00 00 00 01

`mokutil --sb-state`, one of

    SecureBoot enabled
    SecureBoot disabled
    EFI variables are not supported on this system
    This system doesn't support Secure Boot

and sometimes a second line

    SecureBoot validation is disabled in shim
    Platform is in Setup Mode
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

from .errors import unlike


def parse_efi_flag(data: bytes) -> bool:
    """The value of a one-byte EFI variable (SecureBoot, SetupMode) as efivarfs shows it.

    ParseError for another shape.
    """
    if len(data) != 5 or data[4] not in (0, 1):
        raise unlike("an EFI variable of one byte", data[:16])
    return data[4] == 1


class SecureBootState(NamedTuple):
    """`enabled` is None when the text does not say. `enforced`: kernel modules need a known signature."""

    enabled: bool | None
    setup_mode: bool
    validation_off: bool  # shim's own switch: modules are not checked although the firmware says enabled
    supported: bool

    @property
    def enforced(self) -> bool | None:
        if self.enabled is None:
            return None
        return self.enabled and not self.setup_mode and not self.validation_off


def parse_mokutil(text: str) -> SecureBootState:
    """`mokutil --sb-state`. ParseError when it says nothing about Secure Boot."""
    enabled: bool | None = None
    setup_mode = validation_off = False
    supported = True
    known = False
    for line in text.lower().splitlines():
        line = line.strip()
        if line in ("secureboot enabled", "secure boot enabled"):
            enabled = known = True
        elif line in ("secureboot disabled", "secure boot disabled"):
            enabled, known = False, True
        elif "setup mode" in line:
            setup_mode = known = True
        elif "validation is disabled" in line:
            validation_off = known = True
        elif "not supported on this system" in line or "doesn't support secure boot" in line:
            supported, enabled, known = False, False, True
    if not known:
        raise unlike("the output of mokutil --sb-state", text.strip())
    return SecureBootState(enabled, setup_mode, validation_off, supported)
