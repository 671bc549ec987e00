"""Words for mistakes on the command line: the nearest names, rule ids, pairs such as FACT=VALUE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class InputError(Exception):
    """What a person gave cannot be used; the message is one sentence: what, where, what was expected."""


def nearest(word: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names that look most like `word`, the likest first."""
    from difflib import get_close_matches

    by_lowered = {name.lower(): name for name in names}
    return [by_lowered[name] for name in get_close_matches(word.lower(), by_lowered, count, 0.5)]


def no_such(kind: str, word: str, names: Sequence[str], how_to_list: str = "") -> str:
    """The sentence for a name that does not exist, with the nearest ones or, failing these, where they are listed."""
    close = nearest(word, names)
    if close:
        return f"there is no {kind} {word!r}; did you mean {' or '.join(close)}?"
    if how_to_list:
        return f"there is no {kind} {word!r}; {how_to_list}"
    return f"there is no {kind} {word!r}; there are {', '.join(names)}"


def rule_id(word: str) -> str:
    """The rule that an id or a name means, or InputError."""
    from cudadoctor.rules import find_rule, rule_files, rule_name

    found = find_rule(word)
    if found is None:
        names = [name for known in rule_files() for name in (known, rule_name(known))]
        raise InputError(no_such("rule", word, names, "`cudadoctor rules` lists them"))
    return found


def rule_ids(words: Sequence[str]) -> list[str]:
    """The rules of a repeated option whose values may be lists with commas; none of them may be empty."""
    found: list[str] = []
    for word in words:
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if not parts:  # an unset variable of a script would otherwise select nothing, and nothing finds no fault
            raise InputError(f"rules are named by ids or names, such as CD101, not {word!r}")
        found += [rule_id(part) for part in parts]
    return found


def ignored_rules(texts: Sequence[str]) -> dict[str, str]:
    """The rules of `--ignore ID=REASON` with their reasons."""
    pairs = (pair("--ignore", text, "ID=REASON, and the reason is shown in the report") for text in texts)
    return {rule_id(word): reason for word, reason in pairs}


def pair(option: str, text: str, form: str) -> tuple[str, str]:
    """The two halves of `LEFT=RIGHT`, neither empty, or InputError that shows the `form`."""
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise InputError(f"{option} takes {form}, not {text!r}")
    return left.strip(), right.strip()
