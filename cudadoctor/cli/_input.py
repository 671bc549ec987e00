"""Whose facts are judged: this machine's, a recorded machine's, or those of a document."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from cudadoctor.cli._words import InputError, nearest, pair
from cudadoctor.model.fact import ABSENT, KNOWN, Fact, Facts, ParseError, absent, known, no_number, unknown
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.cli._pasted import Pasted
    from cudadoctor.system import RecordingSystem, System

# A facts document of one machine is some hundred kilobytes; more than this is something else.
_MOST_BYTES = 64 << 20


class Machine(NamedTuple):
    """The options that say which machine is meant (see `_options.machine_options`)."""

    facts_file: Optional[str] = None
    replay: Optional[str] = None
    python: Optional[str] = None
    assume: Sequence[str] = ()
    node: Optional[str] = None
    timeout: Optional[float] = None
    from_files: Sequence[str] = ()
    log: Sequence[str] = ()

    @property
    def is_live(self) -> bool:
        """The facts come from the machine that we run on."""
        return self.facts_file is None and self.replay is None and not self.from_files

    @property
    def is_this_one(self) -> bool:
        """It is judged as it is; only then may anything be changed."""
        return self.is_live and not self.assume


class Reading(NamedTuple):
    """Facts that are being read: `facts()` waits for them, `stop()` leaves them be. `advance()` takes what is there by
    now and starts what can be started; it never waits, is called between whatever else is done meanwhile, and says
    whether there is still time for more. `pasted` is what was read of texts, where any were given."""

    facts: Callable[[], Facts]
    stop: Callable[[], None] = lambda: None
    advance: Callable[[], bool] = lambda: False
    pasted: Optional[Pasted] = None


def read_facts(machine: Machine, record: Optional[str] = None) -> Facts:
    """The facts that the options ask for, or InputError. `record`: a folder in which the live machine is kept."""
    return begin_reading(machine, record).facts()


def begin_reading(machine: Machine, record: Optional[str] = None) -> Reading:
    """Starts what `read_facts` does: a live machine is looked at, in a process of its own, while the caller loads what
    it will judge with. Call it before anything heavy is imported."""
    if machine.from_files:
        from cudadoctor.cli._pasted import pasted_machine

        others = (("--facts", machine.facts_file), ("--replay", machine.replay), ("--python", machine.python))
        for option, value in (*others, ("--record", record)):
            if value is not None:
                raise InputError(f"--from judges the machine of a text, and {option} is about another one: use either")
        told = pasted_machine((*machine.from_files, *machine.log))
        reading = Reading(lambda: told.facts, pasted=told)
    elif machine.facts_file is not None:
        for option, value in (("--replay", machine.replay), ("--python", machine.python), ("--record", record)):
            if value is not None:
                raise InputError(f"{option} looks at a machine, and --facts gives what was seen on one: use either")
        facts = facts_from_file(machine.facts_file)
        reading = Reading(lambda: facts)
    else:
        if machine.replay is not None and record is not None:
            raise InputError("--record keeps what this machine answers, and --replay is a machine already recorded")
        reading = _begin_examination(machine, record)
    if machine.log and not machine.from_files:
        reading = _with_log(reading, machine.log)
    return reading._replace(facts=lambda: _with_node(assumed(reading.facts(), machine.assume), machine.node))


def _with_log(reading: Reading, files: Sequence[str]) -> Reading:
    """A machine, and what a run there has said."""
    from cudadoctor.cli._pasted import pasted_machine

    try:
        told = pasted_machine(files, named=True)
    except InputError:
        reading.stop()
        raise
    return reading._replace(facts=lambda: told.beside(reading.facts()), pasted=told)


def _begin_examination(machine: Machine, record: Optional[str]) -> Reading:
    # What a plain check of this machine does not need is imported where it is used: everything waits for this.
    from cudadoctor.probes.examine import RUN_SECONDS, begin, live_system

    recording: Optional[RecordingSystem] = None
    try:
        if machine.replay is not None:
            from cudadoctor.system.replay import ReplaySystem

            system: System = ReplaySystem(machine.replay, machine.python)
        else:
            system = live_system(RUN_SECONDS if machine.timeout is None else machine.timeout, machine.python)
        if machine.python is not None:
            from cudadoctor.probes.patient import check_asked_python

            check_asked_python(system)
        if record is not None:
            from cudadoctor.system.record import RecordingSystem, check_target

            check_target(record)
            system = recording = RecordingSystem(system)
        examination = begin(system)
    except ParseError as error:
        raise InputError(str(error)) from None

    def facts() -> Facts:
        try:
            found = examination.facts()
            if recording is not None and record is not None:
                recording.write(record)
            return found
        except ParseError as error:
            raise InputError(str(error)) from None

    return Reading(facts, examination.close, examination.advance)


def assumed(facts: Facts, assumptions: Sequence[str]) -> Facts:
    """`facts` with those of `--assume FACT=VALUE` in their place (`absent` and `unknown` are values too)."""
    if not assumptions:
        return facts
    from cudadoctor.model.catalogue import CATALOGUE, read_value, spec_of

    changes: dict[str, Fact[Any]] = {}
    for assumption in assumptions:
        name, text = pair("--assume", assumption, "FACT=VALUE")
        if spec_of(name) is None:
            close = nearest(name, [*CATALOGUE, *facts])
            hint = f"did you mean {' or '.join(close)}?" if close else "`cudadoctor facts` lists them"
            raise InputError(f"--assume: there is no fact {name!r}; {hint}")
        if text == "absent":
            changes[name] = absent("--assume")
        elif text == "unknown":
            changes[name] = unknown("assumed", "--assume")
        else:
            try:
                changes[name] = known(read_value(name, text), "--assume")
            except ParseError as error:
                raise InputError(f"--assume: {error}") from None
    return facts.updated(changes)


def _with_node(facts: Facts, node: Optional[str]) -> Facts:
    if node is None:
        return facts
    if not node.strip() or len(node) > 253 or not node.isprintable():
        raise InputError(f"--node takes the name of a machine, not {node!r}")
    return facts.updated({"scheduler.node": known(node, "--node")})


def facts_from_file(path: str) -> Facts:
    """Reads a facts document, or the facts of a report document (`-`: standard input)."""
    from cudadoctor.model.catalogue import fits, spec_of

    where = "standard input" if path == "-" else repr(path)
    document = read_json(path)
    if isinstance(document, Mapping) and str(document.get("schema", "")).startswith("cudadoctor.report/"):
        document = {"schema": "cudadoctor.facts/1", "facts": document.get("facts")}
    try:
        facts = Facts.from_json(document)
    except ParseError as error:
        raise InputError(f"{where}: {error}") from None
    for name, fact in facts.items():
        spec = spec_of(name)  # None: a fact of a later version, which no rule here asks for
        if fact.state == KNOWN and spec is not None and not fits(spec, fact.value):
            raise InputError(f"{where}: fact {name!r} must be a {spec.type}, not {_short(fact.value)}")
    if facts["examination.kind"].state != ABSENT:
        facts = facts.updated({"examination.kind": known("facts", path)})
    return facts


def read_json(path: str) -> Any:
    """The JSON of a file (`-`: standard input), or InputError with the place of the mistake."""
    import json

    where = "standard input" if path == "-" else repr(path)
    data = read_bytes(path)
    try:
        return json.loads(data.decode(json.detect_encoding(data)), parse_constant=no_number)
    except UnicodeDecodeError:
        raise InputError(f"{where} is not text; expected a JSON document") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise InputError(f"{where} is not JSON that can be read: nested too deeply, or a number that is none") from None


def read_bytes(path: str) -> bytes:
    """The content of a file (`-`: standard input), or InputError."""
    where = "standard input" if path == "-" else repr(path)
    try:
        if path == "-" and sys.stdin is None:
            raise InputError("cannot read standard input: it is closed")
        if path == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {where}: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"{where} is larger than {_MOST_BYTES >> 20} MiB, which nothing about one machine is")
    return data


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
