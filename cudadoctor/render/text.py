"""`check --format text`: the verdict, the chain a line a link, what else was found, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from cudadoctor.model import (
    CRASH,
    ERROR,
    FAIL,
    PASS,
    SKIP,
    UNDECIDED,
    WARNING,
    Evidence,
    FixStep,
    Outcome,
)
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import EXIT_UNUSABLE, counts, rank
from cudadoctor.render.chain import CHAIN, Described, Link, named_on_the_bus, subject_of
from cudadoctor.render.sentences import (
    hedged,
    home_of,
    ok_sentence,
    read_sentence,
    shown_value,
    told_too_little,
    undecided_links,
)
from cudadoctor.render.steps import step_lines
from cudadoctor.render.style import Style, clean, columns, hanging, wrap
from cudadoctor.render.view import Pasted, View
from cudadoctor.rules import rule_files, rule_name

# From the worst to the most harmless; an undecided link of the chain weighs more than a warning.
_WORDS = ("FAIL", "BUG", "????", "warn", "info", "ok", "skip")

# More steps than this are left to `cudadoctor fix`, and more lines of one value to `cudadoctor facts`.
_MOST_STEPS = 5
_MOST_EXPLAINED = 3
_MOST_VALUE_LINES = 3
_MOST_SUSPECTS = 5
_MOST_NOTES = 4


class Note(NamedTuple):
    """A hanging text with what stands at its right: dropped for want of room, unless `keep` (then it goes below) or
    `tight` (then the text makes room for it)."""

    text: str
    right: str = ""
    keep: bool = False
    tight: bool = False


class Line(NamedTuple):
    word: str
    label: str
    notes: tuple[Note, ...]


def render(view: View) -> str:
    return "".join(line.rstrip() + "\n" for line in Screen(view).lines())


def word_of(outcome: Outcome) -> str:
    """The word of the first column."""
    if outcome.status == FAIL:
        return {ERROR: "FAIL", WARNING: "warn"}.get(outcome.severity, "info")
    return {PASS: "ok", SKIP: "skip", UNDECIDED: "????", CRASH: "BUG"}[outcome.status]


class Screen:
    """A report as lines: the verdict, the chain, what else was found, what mends it. Other formats take its parts."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.style: Style = view.style
        self.report = view.report
        self.by_id = {outcome.rule: outcome for outcome in view.report.outcomes}
        self.headline, self.verdict = self._verdict()
        self.shown: set[str] = set()
        self.untold: list[str] = []
        self.home = home_of(view.report.facts)

    def lines(self) -> Iterator[str]:
        yield from self._head()
        checked = self.checked()
        width = max((columns(line.label) for line in checked), default=0)
        if checked:
            yield ""
        for line in checked:
            yield from self._checked(line, width)
        yield from self._tally()
        yield from self._cure()

    def checked(self) -> list[Line]:
        """The links of the chain, then what else was found."""
        chain = [line for link in CHAIN for line in [self._link(link)] if line is not None]
        if self.untold:
            chain.append(Line("????", "rest", (Note(f"not in the text: {', '.join(self.untold)}"),)))
        return [*chain, *self._others()]

    # -- verdict --------------------------------------------------------------------------------------------------

    def _verdict(self) -> tuple[tuple[str, str], Optional[Outcome]]:
        """The first line's word and text, and the outcome that it states (None: none in particular)."""
        undecided = undecided_links(self.report)
        found = self.at_threshold()
        if found:
            return ("FAIL", hedged(found[0])), found[0]
        if self.view.exit == EXIT_UNUSABLE:
            crashed = next((o for o in self.report.outcomes if o.status == CRASH), None)
            return ("BUG", crashed.message if crashed else "cudadoctor itself failed"), crashed
        if self.view.is_report and self.report.root_causes:
            # Of a machine that nobody can touch the likeliest thing that was found is the answer, if it is no error.
            root = self.by_id[self.report.root_causes[0]]
            return (word_of(root), root.message), root
        if undecided and self.view.is_report:
            return ("????", told_too_little(self.view)), None
        if undecided:
            text = f"undecided: {undecided[0].message}"
            if len(undecided) > 1:
                text += f" (and {len(undecided) - 1} more below)"
            if self.view.exit == 0:
                text += " (accepted: --unknown-ok)"
            return ("????", text), undecided[0]
        return ("OK", ok_sentence(self.view)), None

    def at_threshold(self) -> list[Outcome]:
        """What makes the verdict a failure, the likeliest cause first."""
        failed = [outcome for outcome in self.report.outcomes if counts(outcome, self.view.fail_on)]
        order = {rule: place for place, rule in enumerate(self.report.root_causes)}
        return sorted(failed, key=lambda o: (order.get(o.rule, len(order)), o.because_of is not None, rank(o)))

    def _head(self) -> Iterator[str]:
        word, text = self.headline
        role = {"OK": "ok"}.get(word, word)
        lines = wrap(clean(self.homely(text)), self.style.width - 6)
        yield self.style.paint(role, f"{word:<4}") + "  " + lines[0]
        for line in lines[1:]:
            yield "      " + line

    # -- the chain ------------------------------------------------------------------------------------------------

    def _link(self, link: Link) -> Optional[Line]:
        outcomes = [self.by_id[rule] for rule in link.rules if rule in self.by_id]
        beside = [self.by_id[rule] for rule in link.beside if rule in self.by_id]
        outcomes += [outcome for outcome in beside if word_of(outcome) not in ("ok", "skip")]
        if not outcomes:
            return None
        described = link.facts(self.report.facts) if link.facts is not None else None
        if link.answers is not None:
            return self._answer(link, outcomes, described)
        weight = min(_weight(outcome) for outcome in outcomes)
        deciding = [outcome for outcome in outcomes if _weight(outcome) == weight]
        first, word = deciding[0], word_of(deciding[0])
        if described is not None and first.rule == "CD501" and word == "ok":
            described = named_on_the_bus(self.report.facts, first.message)
        missing = word == "ok" and link.missing is not None and link.missing(self.report.facts)
        word = "skip" if missing else word
        if link.quiet and word in ("ok", "skip"):
            return None
        if self.view.is_report and word in ("????", "skip") and not self.style.verbose:
            return self._untold(link, outcomes, described)
        self.shown.update(outcome.rule for outcome in deciding)
        notes: list[Note] = []
        stated: Optional[Outcome] = None
        if word == "skip" and first.because_of is not None:
            notes.append(Note(described.text if described else first.message, f"see {first.because_of}"))
        elif described is not None and (missing or word != "skip") and not (word == "ok" and link.pass_says):
            notes.append(Note(described.text, described.source))
        elif not self._is_verdict(first):
            notes.append(self._message(first))
            stated = first
        for outcome in [] if word in ("ok", "skip") else sorted(deciding, key=self._rank):
            # Two checks that lack the same thing say so in the same words.
            said = hedged(outcome) in [note.text for note in notes]
            if outcome is not stated and not self._is_verdict(outcome) and not said:
                notes.append(self._message(outcome))
            notes += [note for note in self._evidence(outcome) if note not in notes]
        return Line(word, link.label, tuple(notes or [self._message(first)]))

    def _untold(self, link: Link, outcomes: list[Outcome], described: Optional[Described]) -> Optional[Line]:
        """A link of which a pasted text tells nothing, or something that decides nothing: what is missing is asked for
        below, and not gone through here."""
        is_open = any(outcome.status == UNDECIDED and outcome.chain for outcome in outcomes)
        self.shown.update(outcome.rule for outcome in outcomes if outcome.status == UNDECIDED and outcome.chain)
        if described is not None:
            return Line("????" if is_open else "info", link.label, (Note(described.text, described.source),))
        if is_open:
            self.untold.append(link.label)
        return None

    def _answer(self, link: Link, outcomes: list[Outcome], described: Optional[Described]) -> Optional[Line]:
        answer = link.answers(self.report.facts) if link.answers is not None else None
        if described is None or answer is None:
            return None
        failed = any(outcome.failed and outcome.severity == ERROR for outcome in outcomes)
        word = "ok" if answer else "FAIL" if failed else "info"
        return Line(word, link.label, (Note(described.text, described.source),))

    def _message(self, outcome: Outcome) -> Note:
        follows = outcome.because_of if outcome.failed else None
        right = f"{outcome.rule}, from {follows}" if follows else outcome.rule
        return Note(hedged(outcome), right, tight=True)

    def _rank(self, outcome: Outcome) -> tuple[bool, int]:
        """The verdict's own outcome first, then the other root causes in their order."""
        roots = self.report.root_causes
        place = roots.index(outcome.rule) if outcome.rule in roots else len(roots)
        return not self._is_verdict(outcome), place

    def _is_verdict(self, outcome: Outcome) -> bool:
        return self.verdict is not None and outcome.rule == self.verdict.rule

    def _evidence(self, outcome: Outcome) -> list[Note]:
        wanted = outcome.rule in self.report.root_causes or self._is_verdict(outcome)
        if self.style.verbose and outcome.status in (FAIL, UNDECIDED):
            wanted = True
        return self.evidence(outcome) if wanted else []

    def evidence(self, outcome: Outcome) -> list[Note]:
        """What an outcome rests on: each fact in words, with its source at the right."""
        # What a text does not tell is no evidence: it is asked for, if it matters.
        items = [
            item for item in outcome.evidence if not (self.view.is_report and self.report.facts[item.fact].is_unknown)
        ]
        return [self._fact(item) for item in items]

    def _fact(self, item: Evidence) -> Note:
        if item.fact.startswith("symptom.") and isinstance(item.value, dict) and item.value.get("text"):
            return Note(f'"{self._cut(str(item.value["text"]))}"', item.source, keep=True)
        told = self._told(item)
        if told is not None:
            text = self._entries(item.fact, told)
        else:
            value = shown_value(self.report.facts[item.fact], item)
            text = f"{item.fact}: {value}"
            if item.fact == "driver.nvml_error" and item.value is not None:
                text += _in_brackets(self.report.facts.value("driver.nvml_error_text"))
            if self._is_long(text):
                listed = isinstance(item.value, (list, dict))
                count = f"{len(item.value)} entries" if listed else f"{len(value)} letters"
                text = f"{item.fact}: {count} (see `cudadoctor facts`)"
        # Of a fact that is unknown without a source, the reason is all there is, and it is said already.
        reason = self.report.facts[item.fact].reason
        source = item.source if item.value is not None or item.source != reason else ""
        return Note(text, source, keep=True)

    def _told(self, item: Evidence) -> Optional[list[str]]:
        if not isinstance(item.value, (list, dict)):
            return None
        from cudadoctor.render.evidence import entries_of

        return entries_of(item.fact, item.value)

    def _cut(self, text: str) -> str:
        """A program's words as far as there is room for them."""
        most = 2 * (self.style.width - 22)
        if self.style.verbose or columns(text) <= most:
            return text
        return text[: most - 3].rstrip() + "..."

    def _is_long(self, text: str) -> bool:
        return not self.style.verbose and len(wrap(text, self.style.width - 20)) > _MOST_VALUE_LINES

    def _entries(self, name: str, told: list[str]) -> str:
        """As many entries as there is room for, and how many there are beside them."""
        for count in range(len(told), 1, -1):
            left = len(told) - count
            text = f"{name}: " + "; ".join(told[:count]) + (f"; and {left} more" if left else "")
            if not self._is_long(text):
                return text
        return f"{name}: {told[0]}" + (f"; and {len(told) - 1} more" if told[1:] else "")

    # -- what else was found ----------------------------------------------------------------------------------------

    def _others(self) -> Iterator[Line]:
        left = [outcome for outcome in self.report.outcomes if outcome.rule not in self.shown]
        if not self.style.verbose:
            # A text tells little of a machine: what it leaves open besides the chain is counted, not listed.
            silent = (PASS, SKIP, UNDECIDED) if self.view.is_report else (PASS, SKIP)
            left = [outcome for outcome in left if outcome.status not in silent and not self._is_asked(outcome)]
        order = {rule: place for place, rule in enumerate(self.report.root_causes)}
        left.sort(key=lambda o: (order.get(o.rule, len(order)), _WORDS.index(word_of(o)), o.rule))
        for outcome in left:
            self.shown.add(outcome.rule)
            notes: list[Note] = []
            if not self._is_verdict(outcome) or not outcome.evidence:
                notes.append(self._message(outcome))
            notes += self._evidence(outcome)
            yield Line(word_of(outcome), subject_of(outcome.rule), tuple(notes))

    def _is_asked(self, outcome: Outcome) -> bool:
        """Whether the outcome says what is missing, where that is asked for below."""
        return self.view.is_report and outcome.rule == "CD904"

    def _checked(self, line: Line, width: int) -> Iterator[str]:
        start = "  " + self.style.paint(line.word, f"{line.word:<4}") + "  " + line.label
        start += " " * (width - columns(line.label) + 2)
        indent = 2 + 4 + 2 + width + 2
        for note in line.notes:
            for text in self._laid_out(note, indent):
                yield start + text
                start = " " * indent

    def _laid_out(self, note: Note, indent: int) -> Iterator[str]:
        room = self.style.width - indent
        right = clean(self.homely(self._place(note.right)))
        note = note._replace(text=self.homely(note.text))
        lines = wrap(clean(note.text), room)
        if note.tight and columns(lines[-1]) + 2 + columns(right) > room:
            lines = wrap(clean(note.text), max(room - 2 - columns(right), room // 2))
        gap = room - columns(lines[-1]) - columns(right)
        yield from lines[:-1]
        if right and gap >= 2:
            yield lines[-1] + " " * gap + self.style.paint("source", right)
            return
        yield lines[-1]
        if right and (note.keep or note.tight or self.style.verbose):
            # A path that is too long for one line is cut up, and gains nothing from a word before it.
            below = "from " + right if columns(right) + 5 <= room - 2 else right
            for text in wrap(below, room - 2):
                yield "  " + self.style.paint("source", text)

    def homely(self, text: str) -> str:
        """The user's home as `~`."""
        home = self.view.home or self.home
        return text.replace(home + "/", "~/").replace(home + "\\", "~\\") if home else text

    def _place(self, source: str) -> str:
        """A source with the environment's own folder left out, which the line about Python names."""
        for folder in self.report.facts.value("python.site_packages", []):
            if not self.style.verbose and source.startswith((folder + "/", folder + "\\")):
                return "site-packages" + source[len(folder) :]
        return source

    def _tally(self) -> Iterator[str]:
        left = [outcome for outcome in self.report.outcomes if outcome.rule not in self.shown]
        passed = sum(outcome.status == PASS for outcome in left)
        skipped = sum(outcome.status == SKIP for outcome in left)
        parts = [f"{passed} more ok"] if passed else []
        parts += [f"{skipped} skipped"] if skipped else []
        open_ones = sum(outcome.status == UNDECIDED for outcome in left)
        parts += [f"{open_ones} that the text does not decide"] if open_ones else []
        if parts:
            yield f"  {self.style.ellipsis:<4}  {', '.join(parts)} (--verbose)"
        for rule, reason in self.report.ignored.items():
            yield from hanging("  skip  ", f"{rule} ignored: {reason}", self.style.width)

    # -- the cure -----------------------------------------------------------------------------------------------------

    def roots(self) -> list[Outcome]:
        """The root causes, the verdict's own first."""
        roots = [self.by_id[rule] for rule in self.report.root_causes if rule in self.by_id]
        if self.verdict is not None and self.verdict not in roots:
            roots.insert(0, self.verdict)
        return roots

    def cures(self, roots: list[Outcome]) -> list[FixStep]:
        """The steps that mend the root causes, and those that belong to no finding. Who only has a job on the machine
        is not told to reboot it."""
        rules = {outcome.rule for outcome in roots}
        steps = [step for step in self.view.steps if not step.mends or not rules.isdisjoint(step.mends)]
        return [step for step in steps if not _is_the_admins(step)] if self.view.hand_over is not None else steps

    def _cure(self) -> Iterator[str]:
        roots = self.roots()
        if not roots and not self.view.steps:
            if self.view.pasted is not None:
                yield ""
                yield from self._texts(self.view.pasted)
            return
        yield ""
        if self.view.hand_over is not None:
            yield from hanging("you   ", self.view.hand_over.yours, self.style.width)
            yield from hanging("send  ", f"to your admins: {self.view.hand_over.message}", self.style.width)
        cures = self.cures(roots)
        for place, step in enumerate(cures[:_MOST_STEPS]):
            for number, text in enumerate(step_lines(step, self.report.facts, self.style)):
                yield ("fix   " if place == number == 0 else "      ") + text
        left = len(self.view.steps) - len(cures[:_MOST_STEPS])
        if cures and left:
            yield self.style.paint("source", f"      # and {left} more step{'s' if left > 1 else ''}")
        for sentence in unique(text for outcome in roots for text in outcome.not_helping):
            yield from hanging("not   ", self.homely(sentence), self.style.width)
        if self.view.pasted is not None:
            yield from self._texts(self.view.pasted)
        more = [f"{self.view.program} explain {outcome.rule}" for outcome in roots[:_MOST_EXPLAINED]]
        if self.view.steps and (cures or self.view.hand_over is None):
            more.append(" ".join(word for word in (self.view.program, "fix", self.view.again) if word))
        # Commands must stay in one piece: on one line together, or one on each.
        lines = ["; ".join(more)] if len("; ".join(more)) <= self.style.width - 6 else more
        for number, line in enumerate(lines):
            yield ("more  " if number == 0 else "      ") + clean(line)

    # -- pasted texts -------------------------------------------------------------------------------------------------

    def _texts(self, pasted: Pasted) -> Iterator[str]:
        """What was recognised, what no check explains, and what to paste next."""
        width = self.style.width
        for item in pasted.unexplained:
            yield from hanging("says  ", f'"{item.text}" ({item.source}): {item.meaning}', width)
            causes = [f"{rule} {rule_name(rule)}" for rule in item.causes if rule in rule_files()]
            if causes:
                yield from hanging("      ", "can be " + "; ".join(causes[:_MOST_SUSPECTS]), width)
        yield from hanging("read  ", read_sentence(pasted), width)
        for note in pasted.notes if self.style.verbose else pasted.notes[:_MOST_NOTES]:
            yield from hanging("note  ", self.homely(note), width)
        for number, question in enumerate(pasted.questions):
            start = "next  " if number == 0 else "      "
            yield from hanging(start, f"paste what this prints there ({question.tells}):", width)
            yield "        " + self.style.paint("command", clean(question.command))


def _weight(outcome: Outcome) -> int:
    """Place in the order of badness; an unknown that is no link of the chain counts for little."""
    word = word_of(outcome)
    if word == "????" and not outcome.chain:
        return _WORDS.index("ok") * 10 + 5
    return _WORDS.index(word) * 10


def _in_brackets(text: Optional[str]) -> str:
    return f" ({text})" if text else ""


def _is_the_admins(step: FixStep) -> bool:
    return not {"root", "admin", "reboot"}.isdisjoint(step.needs)


def unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
