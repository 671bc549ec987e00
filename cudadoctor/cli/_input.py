"""Whose facts are judged: this machine's, a recorded machine's, or those of a document."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from cudadoctor.cli._words import InputError, nearest, pair
from cudadoctor.model.fact import ABSENT, Fact, Facts, ParseError, absent, known, no_number, unknown
from cudadoctor.model.record import NamedTuple

if TYPE_CHECKING:
    from cudadoctor.cli._pasted import Pasted
    from cudadoctor.matrix import Matrix
    from cudadoctor.policy import Policy
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


class Wish(NamedTuple):
    """The options that say how a machine is judged (see `check.command`), and the policy that holds for it."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    fail_on: str = "error"
    unknown_ok: bool = False
    retry_code: Optional[int] = None
    blame: Sequence[str] = ()
    policy: Optional[Policy] = None


def _matrix() -> Matrix:
    from cudadoctor.matrix import load_matrix

    return load_matrix()


def _program() -> str:
    from cudadoctor.cli._program import program

    return program()


class Reading(NamedTuple):
    """Facts that are being read: `facts()` waits for them, `stop()` leaves them be. `advance()` takes what is there by
    now and starts what can be started; it never waits, is called between whatever else is done meanwhile, and says
    whether there is still time for more. `pasted` is what was read of texts, where any were given. `matrix` gives the
    compatibility data (raising MatrixError) and `program` what calls cudadoctor again: both wait for no dead path.
    `until` is when the whole run has to be over (monotonic), where it has a deadline."""

    facts: Callable[[], Facts]
    stop: Callable[[], None] = lambda: None
    advance: Callable[[], bool] = lambda: False
    pasted: Optional[Pasted] = None
    matrix: Callable[[], Matrix] = _matrix
    program: Callable[[], str] = _program
    until: Optional[float] = None


def read_facts(machine: Machine, record: Optional[str] = None) -> Facts:
    """The facts that the options ask for, or InputError. `record`: a folder in which the live machine is kept."""
    return begin_reading(machine, record).facts()


def begin_reading(machine: Machine, record: Optional[str] = None) -> Reading:
    """Starts what `read_facts` does: a live machine is looked at, in a process of its own, while the caller loads what
    it will judge with. Call it before anything heavy is imported."""
    # Texts first: somebody may pipe in a run that takes an hour, and the machine's own time begins after it.
    asked_until = None if machine.timeout is None else time.monotonic() + machine.timeout
    texts = {}
    if machine.is_live:
        texts = {path: read_bytes(path, _until(path, asked_until)) for path in dict.fromkeys(machine.log)}
    if machine.from_files:
        from cudadoctor.cli._pasted import pasted_machine

        others = (("--facts", machine.facts_file), ("--replay", machine.replay), ("--python", machine.python))
        for option, value in (*others, ("--record", record)):
            if value is not None:
                raise InputError(f"--from judges the machine of a text, and {option} is about another one: use either")
        told = pasted_machine((*machine.from_files, *machine.log), read=lambda path: read_bytes(path, asked_until))
        reading = Reading(lambda: told.facts, pasted=told)
    elif machine.facts_file is not None:
        for option, value in (("--replay", machine.replay), ("--python", machine.python), ("--record", record)):
            if value is not None:
                raise InputError(f"{option} looks at a machine, and --facts gives what was seen on one: use either")
        facts = facts_from_file(machine.facts_file, asked_until)
        reading = Reading(lambda: facts)
    else:
        if machine.replay is not None and record is not None:
            raise InputError("--record keeps what this machine answers, and --replay is a machine already recorded")
        reading = _begin_examination(machine, record, asked_until)
    if machine.log and not machine.from_files:
        read = texts.__getitem__ if machine.is_live else lambda path: read_bytes(path, asked_until)
        reading = _with_log(reading, machine.log, read)
    return reading._replace(facts=lambda: _with_node(assumed(reading.facts(), machine.assume), machine.node))


def _until(path: str, asked_until: Optional[float]) -> Optional[float]:
    """When the reading of a text has to be over. Nobody sets a limit to what is piped in but who asks for one."""
    from cudadoctor.system.bounded import is_ours

    if asked_until is not None or path == "-" or is_ours(path):
        return asked_until
    from cudadoctor.probes.examine import RUN_SECONDS

    return time.monotonic() + RUN_SECONDS


def _with_log(reading: Reading, files: Sequence[str], read: Callable[[str], bytes]) -> Reading:
    """A machine, and what a run there has said."""
    from cudadoctor.cli._pasted import pasted_machine

    try:
        told = pasted_machine(files, named=True, read=read, matrix=reading.matrix)
    except InputError:
        reading.stop()
        raise
    return reading._replace(facts=lambda: told.beside(reading.facts()), pasted=told)


def _begin_examination(machine: Machine, record: Optional[str], asked_until: Optional[float]) -> Reading:
    # What a plain check of this machine does not need is imported where it is used: everything waits for this.
    from cudadoctor.probes.examine import RUN_SECONDS, begin, live_system

    recording: Optional[RecordingSystem] = None
    try:
        if machine.replay is not None:
            from cudadoctor.system.replay import ReplaySystem

            system: System = ReplaySystem(machine.replay, machine.python)
            if machine.python is not None:
                from cudadoctor.probes.patient import check_asked_python

                check_asked_python(system)
        else:
            system = live_system(RUN_SECONDS if asked_until is None else asked_until - time.monotonic(), machine.python)
        if record is not None:
            from cudadoctor.system.record import RecordingSystem, check_target

            check_target(record)
            system = recording = RecordingSystem(system)
        questions: Mapping[str, Callable[[System], Any]] = {}
        if machine.is_live:
            from cudadoctor.cli._in_time import QUESTIONS as questions
        examination = begin(system, beside=questions)
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

    reading = Reading(facts, examination.close, examination.advance)
    if not machine.is_live:
        return reading
    from cudadoctor.cli._in_time import matrix_in_time, program_in_time

    until = time.monotonic() + system.remaining()
    return reading._replace(
        matrix=lambda: matrix_in_time(examination, until), program=lambda: program_in_time(examination), until=until
    )


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


def facts_from_file(path: str, until: Optional[float] = None) -> Facts:
    """Reads a facts document, or the facts of a report document (`-`: standard input)."""
    from cudadoctor.model import catalogue

    where = "standard input" if path == "-" else repr(path)
    document = read_json(path, until)
    if isinstance(document, Mapping) and str(document.get("schema", "")).startswith("cudadoctor.report/"):
        document = {"schema": "cudadoctor.facts/1", "facts": document.get("facts")}
    try:
        facts = catalogue.read_facts(document)
    except ParseError as error:
        raise InputError(f"{where}: {error}") from None
    if facts["examination.kind"].state != ABSENT:
        facts = facts.updated({"examination.kind": known("facts", path)})
    return facts


def read_json(path: str, until: Optional[float] = None) -> Any:
    """The JSON of a file (`-`: standard input), or InputError with the place of the mistake."""
    import json

    where = "standard input" if path == "-" else repr(path)
    data = read_bytes(path, until)
    try:
        return json.loads(data.decode(json.detect_encoding(data)), parse_constant=no_number)
    except UnicodeDecodeError:
        raise InputError(f"{where} is not text; expected a JSON document") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise InputError(f"{where} is not JSON that can be read: nested too deeply, or a number that is none") from None


def read_bytes(path: str, until: Optional[float] = None) -> bytes:
    """The content of a file (`-`: standard input), or InputError; also where it has not come by `until` (monotonic)."""
    where = "standard input" if path == "-" else repr(path)
    try:
        if path == "-" and sys.stdin is None:
            raise InputError("cannot read standard input: it is closed")
        if until is None:
            data = read_now(path, _MOST_BYTES + 1)
        else:
            from cudadoctor.cli._in_time import read_in_time

            data = read_in_time(path, _MOST_BYTES + 1, until)
    except OSError as error:
        raise InputError(f"cannot read {where}: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"{where} is larger than {_MOST_BYTES >> 20} MiB, which nothing about one machine is")
    return data


def read_now(path: str, limit: int) -> bytes:
    """At most `limit` bytes of a file or of standard input (`-`), however long that takes. Raises OSError."""
    if path == "-":
        return sys.stdin.buffer.read(limit)
    with open(path, "rb") as file:
        return file.read(limit)
