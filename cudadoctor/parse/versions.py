"""Version numbers of the CUDA world, as strings that are compared as numbers.

    525.147.05           a Linux driver; the zero belongs to its name, yet 05 == 5 when compared
    560.94               a Windows driver
    12020                what cuDriverGetVersion and NVML say for CUDA 12.2: 1000 * major + 10 * minor
    cu126, cu92, cu130   the tag in a wheel's local version and in an index address: CUDA 12.6, 9.2, 13.0
    2.14.1+cu126         torch: public version, local version
    >=535,<600           a range

Strings stay strings: nothing here throws a leading zero or a local version away unless that was asked for.
"""

from __future__ import annotations

from cudadoctor.model.record import NamedTuple

from .digits import is_dotted, leading_dotted
from .errors import unlike

Numbers = tuple[int, ...]


def numbers(text: str) -> Numbers:
    """The numbers of a plain dotted version: "525.147.05" -> (525, 147, 5). ParseError for anything else."""
    text = text.strip()
    if not is_dotted(text):
        raise unlike("a plain dotted version", text)
    return tuple(int(part) for part in text.split("."))


def is_plain(text: str) -> bool:
    """Whether the text is digits and dots only ("535.xx" of a made-up table is not)."""
    return is_dotted(text.strip())


def is_driver_version(text: str) -> bool:
    """Whether the text has the shape of a driver number: at least two groups, a first one of two to four digits."""
    text = text.strip()
    return is_dotted(text, 2, 4, 4) and text.index(".") >= 2


def _trim(value: Numbers) -> Numbers:
    end = len(value)
    while end > 1 and value[end - 1] == 0:
        end -= 1
    return value[:end]


def compare(left: str, right: str) -> int:
    """-1, 0 or 1; missing groups count as zero, so "12" equals "12.0". ParseError when one is not plain."""
    a, b = _trim(numbers(left)), _trim(numbers(right))
    return (a > b) - (a < b)


def at_least(version: str, floor: str) -> bool:
    """version >= floor, group by group. ParseError when one is not plain."""
    return compare(version, floor) >= 0


def major(version: str) -> int:
    """The first number: major("12.6.85") is 12. ParseError when there is none."""
    return release(version)[0]


def major_minor(version: str) -> str:
    """The first two groups as written: "12.6.85" -> "12.6", "13" -> "13.0". ParseError when not plain."""
    numbers(version)
    parts = version.strip().split(".")
    return f"{parts[0]}.{parts[1] if len(parts) > 1 else '0'}"


def release(version: str) -> Numbers:
    """The leading numbers of any version: "2.9.0a0+git1" -> (2, 9, 0). ParseError when it begins with none."""
    text = version.strip()
    dotted = leading_dotted(text[1:] if text[:1] in ("v", "V") else text)
    if not dotted:
        raise unlike("a version", version)
    return tuple(int(part) for part in dotted.split("."))


class LocalSplit(NamedTuple):
    """A version in its two parts, as written; `local` is None where there is no "+"."""

    public: str
    local: str | None


def split_local(version: str) -> LocalSplit:
    """For example "2.14.1+cu126" -> ("2.14.1", "cu126"). Never fails."""
    public, plus, local = version.strip().partition("+")
    return LocalSplit(public, local if plus and local else None)


def cuda_from_int(value: int) -> str:
    """12020 -> "12.2". ParseError for 0 (what a machine without a driver says) and for negative numbers."""
    if not 1000 <= value < 1_000_000:
        raise unlike("a CUDA version number such as 12020", str(value)[:40])
    return f"{value // 1000}.{value % 1000 // 10}"


def cuda_to_int(version: str) -> int:
    """For example "12.2" -> 12020; a third group does not count. ParseError when not plain."""
    got = numbers(version)
    return got[0] * 1000 + (got[1] if len(got) > 1 else 0) * 10


def cuda_from_tag(tag: str) -> str | None:
    """CUDA of a tag: "cu126" -> "12.6", "cu92" -> "9.2"; None for every tag that is not `cu` and digits.

    Two digits are a one-digit major (up to CUDA 9.2); from three on the major has two digits. Longer local versions
    that begin with such a tag ("cu124.post1", "cu118_pyt201") give the tag's CUDA.
    """
    digits = _cuda_digits(tag.strip().lower())
    if not digits:
        return None
    if len(digits) == 2:
        return f"{digits[0]}.{digits[1]}"
    return f"{int(digits[:2])}.{int(digits[2:])}"


def _cuda_digits(tag: str) -> str:
    if not tag.startswith("cu"):
        return ""
    rest = tag[2:7]
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return digits if 2 <= len(digits) <= 4 else ""


def tag_from_cuda(version: str) -> str:
    """For example "12.6" or "12.6.3" -> "cu126". ParseError when not plain."""
    return "cu" + major_minor(version).replace(".", "")


def variant(local: str | None) -> str | None:
    """What a local version says about the build: "cu126", "cpu", "rocm6.2", "xpu", ...; None where it says nothing.

    "cu126.post1" and "cu118-pyt2" count as cu126 and cu118; a git hash or a distribution's own mark is nothing.
    """
    if not local:
        return None
    text = local.strip().lower()
    digits = _cuda_digits(text)
    if digits:
        return "cu" + digits
    for word in ("cpu", "xpu"):
        if text.startswith(word) and not text[3:4].isalnum():
            return word
    return "rocm" + leading_dotted(text[4:]) if text.startswith("rocm") else None


def satisfies(version: str, specifier: str) -> bool | None:
    """Whether a version lies in a range such as ">=535,<600", "==2.14.1", "~=2.6.0", "2.7.*" (a bare one means ==).

    As in PEP 440 a local version counts only where the specifier names one. None when this cannot be told (not a
    version, not a specifier). Plain numbers are decided here; pre-releases and the like ask `packaging`.
    """
    public, local = split_local(version)
    clauses = [part.strip() for part in specifier.split(",") if part.strip()]
    if not clauses:
        return True if is_plain(public) else _ask_packaging(version, specifier)
    if not is_plain(public):
        return _ask_packaging(version, specifier)
    for clause in clauses:
        verdict = _clause(_trim(numbers(public)), numbers(public), local, clause)
        if verdict is None:
            return _ask_packaging(version, specifier)
        if not verdict:
            return False
    return True


def _clause(have: Numbers, untrimmed: Numbers, have_local: str | None, clause: str) -> bool | None:
    wanted = clause.lstrip("=<>!~")
    operator = clause[: len(clause) - len(wanted)] or "=="
    wanted = wanted.strip()
    if operator not in ("==", "~=", "!=", "<=", ">=", "<", ">"):
        return None
    if wanted.endswith(".*"):
        if operator not in ("==", "!=") or not is_plain(wanted[:-2]):
            return None
        prefix = numbers(wanted[:-2])
        padded = untrimmed + (0,) * (len(prefix) - len(untrimmed))
        return (padded[: len(prefix)] == prefix) == (operator == "==")
    wanted_public, wanted_local = split_local(wanted)
    if not is_plain(wanted_public):
        return None
    want = _trim(numbers(wanted_public))
    if operator in ("==", "!="):
        same = have == want
        if wanted_local is not None:
            same = same and (have_local or "").lower() == wanted_local.lower()
        return same == (operator == "==")
    if wanted_local is not None:
        return None
    if operator == "~=":
        given = numbers(wanted_public)
        if len(given) < 2:
            return None
        stem = given[:-1]
        padded = untrimmed + (0,) * (len(stem) - len(untrimmed))
        return have >= want and padded[: len(stem)] == stem
    return {">=": have >= want, "<=": have <= want, ">": have > want, "<": have < want}[operator]


def _ask_packaging(version: str, specifier: str) -> bool | None:
    # Imported here: it costs more than everything else on the path of `check`, and plain numbers need none of it.
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    clauses = [part.strip() for part in specifier.split(",") if part.strip()]
    try:
        ranges = SpecifierSet(",".join(c if c[0] in "<>=!~" else "==" + c for c in clauses))
        return bool(ranges.contains(Version(version), prereleases=True))
    except ValueError:  # what both of packaging's errors are, and int()'s at thousands of digits
        return None
