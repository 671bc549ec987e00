"""Steps of a plan as lines that a person reads and pastes."""

from __future__ import annotations

from collections.abc import Iterator

from cudadoctor.model import Facts, FixStep, ParseError
from cudadoctor.plan.shell import quote, shell_of
from cudadoctor.render.chain import size
from cudadoctor.render.style import Style, clean, wrap

_NEEDS = {
    "root": "as root",
    "admin": "as administrator",
    "network": "network",
    "reboot": "reboot",
    "restart-shell": "a new shell",
}


def needs_text(step: FixStep) -> str:
    """What a step takes, in words: `network, downloads 2.4 GiB`."""
    words = []
    for need in step.needs:
        kind, _, amount = need.partition(":")
        if kind == step.kind:
            continue  # a reboot needs a reboot
        if kind == "download":
            words.append(f"downloads {size(int(amount))}" if amount.isdigit() else "a download")
        else:
            words.append(_NEEDS.get(need, need))
    return ", ".join(words)


def command_line(step: FixStep, facts: Facts) -> str:
    """The step's command as one line to paste, or nothing for a step by hand. A word may begin with `~` for the user's
    home, which the shell must then see outside of quotes."""
    if step.argv is None:
        return ""
    try:
        return clean(quote(step.argv, shell_of(str(facts.value("system.os", "linux"))), home=True))
    except ParseError:
        return ""


def step_lines(step: FixStep, facts: Facts, style: Style, indent: int = 6) -> Iterator[str]:
    """A comment that says what the step is, then its command unwrapped, or its instructions wrapped."""
    needs = needs_text(step)
    title = clean(step.title) + (f" ({needs})" if needs else "")
    lines = wrap(title, style.width - indent - 2)
    command = command_line(step, facts)
    if command and step.kind == "driver":
        # What must be there first (a repository, a branch) is no detail: the command fails without it.
        lines += wrap(clean(step.instructions), style.width - indent - 2) if step.instructions else []
    yield from (style.paint("source", "# " + line) for line in lines)
    if command:
        yield style.paint("command", command)
    for paragraph in [] if command else step.instructions.splitlines():
        if is_command(paragraph):
            yield style.paint("command", clean(paragraph.strip()))
        elif paragraph.strip():
            yield from wrap(clean(paragraph), style.width - indent)


# What begins a line that is a command, and must not be broken.
_PROGRAMS = ("sudo", "conda", "uv", "powercfg", "pip", "python", "&", "wsl")


def is_command(line: str) -> bool:
    """Whether a line of instructions or of an undo is one to paste: indented by four, or begun by a program."""
    if line.startswith("    "):
        return True
    word = line.split(" ", 1)[0]
    return word in _PROGRAMS or (("/" in word or "\\" in word) and " -" in line)
