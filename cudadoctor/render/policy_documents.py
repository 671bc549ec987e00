"""The document of `check --explain-policy --format json` as types. The shipped schema is generated from these; keys are
only ever added."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict


class OverrodeEntry(TypedDict):
    """A setting that another took the place of: its name, value and place."""

    name: str
    value: Any
    text: str
    source: str


class SettingEntry(TypedDict):
    """A setting that holds. `value` is in the units of the fact `policy.<name>`, `text` what people read; `source` is
    where it stands (file and line, or an option); `rule` judges it (null: it is an option of check, or about a rule);
    `overrode` are those that it took the place of, the last one first."""

    name: str
    value: Any
    text: str
    source: str
    meaning: str
    rule: Optional[str]
    overrode: list[OverrodeEntry]


class PolicyDocument(TypedDict):
    """What a policy asks for. `sources` in the order in which they were read, the later over the earlier."""

    schema: Literal["cudadoctor.policy/1"]
    sources: list[str]
    settings: list[SettingEntry]
