"""`check --format junit`: JUnit XML, as Jenkins, GitLab and others read it: a test suite a node, a test case a check.

| in the report | in the file |
|---|---|
| fails, at or above `--fail-on` | `failure`, its type is the severity |
| cudadoctor's own bug | `error` of type `bug` |
| a link of the chain is undecided | `error` of type `undecided`; `skipped` where `--unknown-ok` accepts it |
| fails, below `--fail-on` | `skipped`, as it must not turn a run red that ends with 0, and is not fine either |
| undecided elsewhere, skipped, ignored | `skipped` with the reason |
| passes | a test case without anything |

So a viewer is red exactly where the exit status is not 0. Times are left out, as a check alone has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudadoctor.model import CRASH, PASS, UNDECIDED, Outcome
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.render.chain import driver_version, gpu_names, subject_of
from cudadoctor.render.sentences import hedged
from cudadoctor.render.style import clean
from cudadoctor.render.text import Screen, word_of
from cudadoctor.render.verdict import Verdict, cure_lines, evidence_lines, screen_of, shortened, titled, verdict_of
from cudadoctor.render.view import View
from cudadoctor.rules import rule_files, rule_name

_LONGEST_MESSAGE = 500
_LONGEST_LINE = 4000

# Characters that XML cannot hold, not even escaped.
_ILLEGAL = pattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """A test case. `tag` is failure, error or skipped (empty: passed); `kind` is its type (empty: none)."""

    group: str
    name: str
    tag: str = ""
    kind: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


class Suite(NamedTuple):
    """A test suite; `node` is the name of the machine (empty: it has none)."""

    name: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...] = ()
    node: str = ""

    def count(self, tag: str) -> int:
        return sum(case.tag == tag for case in self.cases)


def render(view: View) -> str:
    screen = screen_of(view)
    return document([suite_of(screen, verdict_of(screen))])


def suite_of(screen: Screen, verdict: Verdict) -> Suite:
    """The suite of one machine."""
    node = str(screen.report.facts.value("scheduler.node", ""))
    return Suite(node or "cudadoctor", tuple(_cases(screen)), tuple(_properties(screen, verdict)), node)


def document(suites: Sequence[Suite]) -> str:
    """The file that holds these suites, in ASCII."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    counts = {
        "tests": sum(len(suite.cases) for suite in suites),
        "failures": sum(suite.count("failure") for suite in suites),
        "errors": sum(suite.count("error") for suite in suites),
    }
    lines.append(f"<testsuites{_attributes(name='cudadoctor', **counts)}>")
    for suite in suites:
        lines += _suite(suite)
    lines.append("</testsuites>")
    return "".join(line + "\n" for line in lines).encode("ascii", "xmlcharrefreplace").decode()


# -- XML --------------------------------------------------------------------------------------------------------------


def _suite(suite: Suite) -> Iterator[str]:
    counts = {"tests": len(suite.cases), "failures": suite.count("failure"), "errors": suite.count("error")}
    hostname = {"hostname": suite.node} if suite.node else {}
    yield f"  <testsuite{_attributes(name=suite.name, **counts, skipped=suite.count('skipped'), **hostname)}>"
    if suite.properties:
        yield "    <properties>"
        for name, value in suite.properties:
            yield f"      <property{_attributes(name=name, value=value)}/>"
        yield "    </properties>"
    for case in suite.cases:
        start = f"    <testcase{_attributes(classname=f'cudadoctor.{case.group}', name=case.name)}"
        if not case.tag:
            yield start + "/>"
            continue
        yield start + ">"
        kind = {"type": case.kind} if case.kind else {}
        told = _attributes(message=shortened(case.message, _LONGEST_MESSAGE), **kind)
        # Not every viewer shows the message, so the text begins with it.
        text = "\n".join(_text(shortened(line, _LONGEST_LINE)) for line in (case.message, *case.lines))
        body = f">{text}</{case.tag}>" if case.lines else "/>"
        yield f"      <{case.tag}{told}{body}"
        yield "    </testcase>"
    yield "  </testsuite>"


def _attributes(**values: object) -> str:
    return "".join(f' {name}="{_text(str(value))}"' for name, value in values.items())


def _text(text: str) -> str:
    """One line as XML holds it, in an element or an attribute; what XML cannot hold is shown as an escape."""
    text = _ILLEGAL.sub(lambda match: f"\\u{ord(match.group()):04x}", clean(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


# -- what is in it ----------------------------------------------------------------------------------------------------


def _properties(screen: Screen, verdict: Verdict) -> Iterator[tuple[str, str]]:
    view, facts = screen.view, screen.report.facts
    yield "verdict", verdict.state
    yield "exit", str(view.exit)
    yield "root_causes", " ".join(outcome.rule for outcome in verdict.roots)
    yield "cudadoctor", view.tool_version
    yield "matrix", view.matrix.revision
    driver = driver_version(facts)
    if driver is not None:
        yield "driver", str(driver.get())
    names = gpu_names(facts)
    if names:
        yield "gpus", ", ".join(names)
    if facts["torch.version"].is_known:
        yield "torch", str(facts["torch.version"].get())


def _cases(screen: Screen) -> Iterator[Case]:
    stops = {outcome.rule for outcome in screen.at_threshold()}
    ignored = {rule: reason for rule, reason in screen.report.ignored.items() if rule not in screen.by_id}
    cases = {outcome.rule: _case(outcome, screen, outcome.rule in stops) for outcome in screen.report.outcomes}
    for rule, reason in ignored.items():
        name = f"{rule} {rule_name(rule)}" if rule in rule_files() else rule
        cases[rule] = Case(_group(rule), name, "skipped", "", f"ignored: {reason}")
    for rule in sorted(cases):
        yield cases[rule]


def _case(outcome: Outcome, screen: Screen, stops: bool) -> Case:
    case = Case(_group(outcome.rule), titled(outcome))
    message = screen.homely(hedged(outcome))
    if outcome.failed and outcome.because_of:
        message += f" (from {outcome.because_of})"
    if outcome.status == PASS:
        return case
    if outcome.status == CRASH:
        return case._replace(tag="error", kind="bug", message=message, lines=tuple(_told(outcome, screen)))
    if outcome.failed:
        lines = tuple(_told(outcome, screen))
        if stops:
            return case._replace(tag="failure", kind=outcome.severity, message=message, lines=lines)
        return case._replace(tag="skipped", message=f"{_SEVERITY[word_of(outcome)]}: {message}", lines=lines)
    if outcome.status == UNDECIDED and outcome.chain and screen.view.exit != 0:
        return case._replace(tag="error", kind="undecided", message=message, lines=tuple(_told(outcome, screen)))
    if outcome.status == UNDECIDED:
        accepted = " (accepted: --unknown-ok)" if outcome.chain else ""
        return case._replace(tag="skipped", message=f"undecided: {message}{accepted}")
    return case._replace(tag="skipped", message=message)


_SEVERITY = {"FAIL": "error", "warn": "warning", "info": "hint"}


def _group(rule: str) -> str:
    return subject_of(rule).lower()


def _told(outcome: Outcome, screen: Screen) -> Iterator[str]:
    """The text of a failure: what it rests on, what mends it and what does not."""
    facts = list(evidence_lines(outcome, screen))
    if facts:
        yield "It rests on:"
        yield from ("  " + line for line in facts)
    cures = list(cure_lines((step for step in screen.view.steps if outcome.rule in step.mends), screen))
    if cures:
        yield "What mends it:"
        yield from ("  " + line for line in cures)
    yield from (f"What does not: {screen.homely(sentence)}" for sentence in outcome.not_helping)
    yield f"{screen.view.program} explain {outcome.rule}"
