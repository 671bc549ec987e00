"""Tables of machines for the probes: what a recorded machine shows, and which facts a probe makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cudadoctor.model.catalogue import fits, spec_of
from cudadoctor.model.fact import Fact
from cudadoctor.probes.api import Probe
from cudadoctor.system.replay import ReplaySystem

DENIED = {"error": "permission denied"}


class Unknown(NamedTuple):
    """An expected fact that is unknown; `why` is a part of its reason."""

    why: str = ""


class Absent(NamedTuple):
    """An expected fact that is absent."""


ABSENT = Absent()

KERNEL = "6.8.0-79-generic"


def machine(**sections: Any) -> ReplaySystem:
    """A Linux machine with what `sections` (of a recording) list and nothing else."""
    return ReplaySystem.of(
        {
            "unlisted": "absent",
            "platform": "linux",
            "machine": "x86_64",
            "kernel_release": KERNEL,
            "libc": ["glibc", "2.39"],
            "identity": {"uid": 1000, "gid": 1000, "groups": ["user", "video"]},
            **sections,
        }
    )


def windows(**sections: Any) -> ReplaySystem:
    """A Windows machine with what `sections` list and nothing else."""
    return ReplaySystem.of({"unlisted": "absent", "platform": "windows", "machine": "AMD64", **sections})


def check(probe: Probe, system: ReplaySystem, expected: Mapping[str, Any]) -> dict[str, Fact[Any]]:
    """Runs a probe; its facts must be as expected, of the catalogue's types, declared by it, and with a source."""
    facts = dict(probe.function(system))
    for name, fact in facts.items():
        spec = spec_of(name)
        assert spec is not None, f"{name} is not in the catalogue"
        assert any(name == declared or _under(name, declared) for declared in probe.facts), f"{name} is not declared"
        assert fact.source, f"{name} has no source"
        if fact.is_known:
            assert fits(spec, fact.value), f"{name} is a {spec.type}, not {fact.value!r}"
        if fact.is_unknown:
            assert fact.reason, f"{name} is unknown without a reason"
    for name, wanted in expected.items():
        assert name in facts, f"the probe does not answer {name}"
        assert shown(facts[name], wanted) == wanted, f"{name}: {facts[name]}"
    return facts


def _under(name: str, declared: str) -> bool:
    return declared.endswith(".*") and name.startswith(declared[:-1])


def shown(fact: Fact[Any], wanted: Any) -> Any:
    """The fact in the words of a table, as far as `wanted` asks."""
    if fact.is_known:
        return fact.value
    if fact.is_absent:
        return ABSENT
    why = wanted.why if isinstance(wanted, Unknown) else ""
    return Unknown(why if why in fact.reason else fact.reason)
