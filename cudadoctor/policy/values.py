"""How the values of a policy are read: each function takes what TOML (or `--require`, as text) gave and returns what is
kept, or raises ParseError with what was expected (the rest of the sentence "expected ...")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from cudadoctor.model import ParseError
from cudadoctor.model.pattern import pattern
from cudadoctor.parse.sizes import parse_size

# A value as TOML has it -> a value as the policy keeps it.
Read = Callable[[Any], Any]

_MOST = 1 << 40
# An amount in powers of 1000: GB, and not GiB or G.
_SOLD = pattern(r"\d\s*([kmgtpe])b\Z")
# Of a model, a type of weights, an optimizer: meta-llama/Llama-3.1-8B, q4_k_m, paged_adamw_8bit, 7b.
_NAME = pattern(r"[A-Za-z0-9][\w./:+-]{0,99}\Z")
_OPERATORS = ("==", "!=", "<=", ">=", "~=", "<", ">")


def count(value: Any) -> str:
    """A number of things, or a range of it: 8 is "==8", ">=4" stays."""
    if _is_integer(value) and 0 <= value < _MOST:
        return f"=={value}"
    if isinstance(value, str):
        clauses = [clause.replace(" ", "") for clause in value.split(",")]
        if clauses and all(_is_whole(clause) for clause in clauses):
            return ",".join(clause if clause[0] in "<>=!" else f"=={clause}" for clause in clauses)
    raise ParseError('a number such as 8, or a range such as ">=4"')


def _is_whole(clause: str) -> bool:
    """Whether a clause of a range is an operator (or none) and a whole number."""
    digits = clause.lstrip("<>=!")
    operator = clause[: len(clause) - len(digits)]
    return (operator in _OPERATORS or not operator) and digits.isascii() and digits.isdigit() and len(digits) < 10


def versions(example: str, numbers: int) -> Read:
    """A range of version numbers, as PEP 440 writes it. A bare one means that very version where it has all its
    `numbers`, else each version that begins so: "535" is the branch, "==535.*"."""

    def read(value: Any) -> str:
        expected = ParseError(f"a version range such as {example!r}")
        if not isinstance(value, str) or not value.strip():
            raise expected
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        clauses = [clause.strip() for clause in value.split(",")]
        spelt = [clause if clause[:1] in tuple("<>=!~") else f"=={_whole(clause, numbers)}" for clause in clauses]
        try:
            SpecifierSet(",".join(spelt))
        except (InvalidSpecifier, ValueError):
            raise expected from None
        if any(not clause.strip("<>=!~ ") for clause in clauses) or any("===" in clause for clause in clauses):
            raise expected
        # Spelt as it was written: 525.147.05 keeps its zero.
        return ",".join(clause.replace(" ", "") for clause in spelt)

    return read


def _whole(bare: str, numbers: int) -> str:
    """A bare version as what it stands for."""
    parts = bare.split(".")
    begins = all(part.isascii() and part.isdigit() for part in parts) and len(parts) < numbers
    return f"{bare}.*" if begins else bare


def capability(value: Any) -> str:
    """A compute capability ("9.0"), or a range of it."""
    if isinstance(value, str) and value.strip().isdigit() and int(value[:9]) >= 20:  # "90" is nvcc's word for 9.0
        value = None
    if isinstance(value, float):  # 9.0 without quotes means what it says; 12.10 would not, and none has two digits
        value = f"{value}"
    try:
        return str(versions(">=8.0", 2)(value))
    except ParseError:
        raise ParseError('a compute capability such as "9.0", or a range such as ">=8.0"') from None


def cuda(value: Any) -> str:
    """One CUDA version that has to be served: "12.6", or "12" for the major."""
    if isinstance(value, str):
        parts = value.strip().split(".")
        if 1 <= len(parts) <= 2 and all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
            return value.strip()
    raise ParseError('the CUDA version that programs are built with, such as "12.6", in quotes')


def size(value: Any) -> int:
    """An amount of memory, in bytes. GB are those of the shops, powers of 1000: no card that is sold with 80 GB, and no
    machine with 512, shows as many GiB. G alone is GiB, as Slurm and mount have it."""
    if isinstance(value, str) and not value.strip().isdigit():
        try:
            amount = parse_size(value.strip() + ("B" if value.strip().endswith("i") else ""))
            sold = _SOLD.search(value.strip().lower())
            return int(amount * (1000 / 1024) ** ("kmgtpe".index(sold.group(1)) + 1)) if sold else amount
        except ParseError:
            pass
    raise ParseError('an amount with its unit, such as "70 GiB"')


def size_limit(value: Any) -> str:
    """An amount of memory in bytes, as digits, or "unlimited"."""
    if isinstance(value, str) and value.strip().lower() == "unlimited":
        return "unlimited"
    try:
        return str(size(value))
    except ParseError:
        raise ParseError('"unlimited", or an amount with its unit, such as "64 GiB"') from None


def number_limit(value: Any) -> str:
    """A number, as digits, or "unlimited"."""
    if isinstance(value, str) and value.strip().lower() == "unlimited":
        return "unlimited"
    value = _from_text(value)
    if _is_integer(value) and 0 < value < _MOST:
        return str(value)
    raise ParseError('a number such as 65536, or "unlimited"')


def integer(least: int, most: int, what: str) -> Read:
    """A whole number within bounds; `what` is the rest of "expected ..."."""

    def read(value: Any) -> int:
        value = _from_text(value)
        if _is_integer(value) and least <= value <= most:
            return int(value)
        raise ParseError(what)

    return read


def seconds(value: Any) -> float:
    """A time in seconds."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    # A day is longer than anybody waits.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 86400:
        return float(value)
    raise ParseError("a number of seconds, such as 10")


def yes_or_no(value: Any) -> bool:
    """True or false."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(value, bool):
        return value
    raise ParseError("true or false")


def only(wanted: bool, why: str) -> Read:
    """A requirement that can only be made or left out."""

    def read(value: Any) -> bool:
        if yes_or_no(value) is not wanted:
            raise ParseError(f"{str(wanted).lower()} ({why})")
        return wanted

    return read


def texts(example: str) -> Read:
    """A list of texts; a single one is a list of one. `--require` gives it as text, with commas or as TOML has it."""

    def read(value: Any) -> list[str]:
        found = _listed(value) if isinstance(value, str) else value
        if isinstance(found, Sequence) and found and all(isinstance(part, str) and part.strip() for part in found):
            return list(dict.fromkeys(part.strip() for part in found))
        raise ParseError(f"a list such as {example}")

    return read


def _listed(text: str) -> Sequence[Any]:
    if not text.startswith("["):
        return text.split(",")
    from json import loads

    try:
        return list(loads(text))
    except (ValueError, RecursionError):
        return ()


def gpu_names(value: Any) -> list[str]:
    """Names of products."""
    from cudadoctor.matrix.names import words

    names = texts('["H100", "H200"]')(value)
    if any(not words(name) for name in names):
        raise ParseError('names of products such as ["H100", "RTX 4090"], not a maker or a brand alone')
    return list(names)


def word(what: str) -> Read:
    """A name as people write them down, of at most 100 characters; `what` is the rest of "expected ..."."""

    def read(value: Any) -> str:
        if isinstance(value, str) and _NAME.match(value.strip()):
            return value.strip()
        raise ParseError(what)

    return read


def one_of(*choices: str) -> Read:
    """One of a few words."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value.strip() in choices:
            return value.strip()
        raise ParseError(f"one of {', '.join(choices)}")

    return read


def some_of(*choices: str) -> Read:
    """A list of some of a few words."""

    def read(value: Any) -> list[str]:
        expected = ParseError(f"a list of some of {', '.join(choices)}")
        try:
            found = texts("")(value)
        except ParseError:
            raise expected from None
        if any(word not in choices for word in found):
            raise expected
        return list(found)

    return read


def _from_text(value: Any) -> Any:
    """The whole number that `--require` gives as text; anything else as it is. What has more digits is too large in any
    case."""
    text = value.strip() if isinstance(value, str) else ""
    return int(text[:15]) if text.isascii() and text.isdigit() else value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
