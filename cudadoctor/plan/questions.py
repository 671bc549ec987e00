"""What would decide most: the commands whose output a person should paste next, and the wordings still unexplained.

A rule that could not decide names the facts that it lacks; each fact has a command that tells it. The commands that
would settle most, weighed by how much hangs on the rule, are asked for, and no more than three of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Optional

from cudadoctor.model import CERTAIN, ERROR, UNDECIDED, Facts
from cudadoctor.model.record import NamedTuple
from cudadoctor.model.report import Report

if TYPE_CHECKING:
    from cudadoctor.matrix import Matrix

# More is not pasted, but left.
_MOST = 3


class Question(NamedTuple):
    """`command` is what to run on that machine, `tells` what its output says; `rules` are those that it would help."""

    command: str
    tells: str
    rules: tuple[str, ...]


class Unexplained(NamedTuple):
    """An error wording of which no rule could name the cause: the words, what they mean, and the rules of the causes
    that they can stand for, the likeliest first. `source` is where they stand."""

    symptom: str
    text: str
    meaning: str
    causes: tuple[str, ...]
    source: str


class _Command(NamedTuple):
    """`facts` are names, or beginnings of names that end in a dot. `windows` is the command there (empty: as `linux`,
    None: there is none). `worth`: how readily its output is got, and how much more it tells than was asked."""

    facts: tuple[str, ...]
    tells: str
    linux: str
    windows: Optional[str] = ""
    worth: int = 2


# The first line whose facts hold a name is asked for it.
_COMMANDS = (
    _Command(("pci.",), "which GPUs are on the bus, and what drives them", "lspci -nnk -d 10de:", "nvidia-smi -L"),
    _Command(
        ("kernel.log_events", "driver.nvml_error", "driver.smi_failure"),
        "what the kernel says of the GPU",
        "sudo dmesg | grep -iE 'nvrm|nvidia|nouveau'",
        "nvidia-smi",
    ),
    _Command(("kernel.secure_boot",), "whether Secure Boot is on", "mokutil --sb-state", None),
    _Command(
        ("kernel.", "driver.module", "driver.procfs"),
        "which kernel modules are loaded",
        "lsmod | grep -E 'nvidia|nouveau'; cat /proc/driver/nvidia/version; modinfo nvidia | head -3",
        None,
    ),
    _Command(("device.",), "which device files are there, and whose", "ls -l /dev/nvidia*", None, 1),
    _Command(("windows.",), "what Windows says of its GPUs and its power plan", "", "systeminfo; powercfg /list"),
    _Command(("smi.", "gpu.", "driver.", "procfs."), "the GPU, its driver and its memory", "nvidia-smi", worth=4),
    _Command(("torch.",), "torch's build, Python and system", "python -m torch.utils.collect_env", worth=4),
    _Command(("package.", "packages."), "which packages are installed", "python -m pip list"),
    _Command(("toolkit.",), "the CUDA compiler", "nvcc --version"),
    _Command(
        ("env.", "scheduler.", "libraries."),
        "variables that steer CUDA",
        "env | grep -E '^(CUDA|NVIDIA|NCCL|LD_LIBRARY_PATH|PYTORCH|SLURM|CONDA)'",
        'cmd /c "set | findstr /i cuda"',
    ),
    _Command(("disk.",), "how much room there is", "df -h", "systeminfo"),
    _Command(("memory.", "limits."), "how much memory there is", "free -h; df -h /dev/shm; ulimit -a", "systeminfo"),
    _Command(("python.", "pip.", "uv."), "which Python and pip are used", "python -VV; python -m pip --version"),
    _Command(("system.",), "the system", "uname -a; cat /etc/os-release", "systeminfo"),
)


def questions(report: Report, matrix: Matrix) -> tuple[Question, ...]:
    """What to ask about the machine of `report`; nothing where the cause is certain."""
    causes = [outcome for outcome in report.outcomes if outcome.rule in report.root_causes]
    if any(cause.severity == ERROR and cause.certainty == CERTAIN for cause in causes):
        return ()
    suspects = {rule for symptom in symptoms(report.facts, matrix) for rule in symptom.causes}
    windows = report.facts.value("system.os") == "windows"
    weights: dict[str, int] = {}
    rules: dict[str, list[str]] = {}
    tells: dict[str, str] = {}
    for outcome in report.outcomes:
        if outcome.status != UNDECIDED and outcome.rule not in report.root_causes:
            continue
        weight = (3 if outcome.chain else 1) + (4 if outcome.rule in suspects else 0)
        lacking = [item.fact for item in outcome.evidence if report.facts[item.fact].is_unknown]
        commands = {found.tells: found for fact in lacking for found in [_asks(fact)] if found is not None}
        for found in commands.values():
            command = found.linux if not windows or found.windows == "" else found.windows
            if command:
                weights[command] = weights.get(command, 0) + weight * found.worth
                rules.setdefault(command, []).append(outcome.rule)
                tells.setdefault(command, found.tells)
    order = sorted(weights, key=lambda command: (-weights[command], list(weights).index(command)))
    return tuple(Question(command, tells[command], tuple(rules[command])) for command in order[:_MOST])


def unexplained(report: Report, matrix: Matrix) -> tuple[Unexplained, ...]:
    """The error wordings of which no failing rule is a cause."""
    failed = {outcome.rule for outcome in report.outcomes if outcome.failed}
    cleared = {outcome.rule for outcome in report.outcomes if outcome.status in ("pass", "skip")}
    found = []
    for symptom in symptoms(report.facts, matrix, hints=False):
        if failed.isdisjoint(symptom.causes):
            found.append(symptom._replace(causes=tuple(rule for rule in symptom.causes if rule not in cleared)))
    return tuple(found)


def symptoms(facts: Facts, matrix: Matrix, hints: bool = True) -> Iterator[Unexplained]:
    """Every error wording that was reported, with all its causes; without `hints` only what a program printed."""
    for name in facts:
        if not name.startswith("symptom.") or not facts[name].is_known:
            continue
        value = facts[name].get()
        text = str(value.get("text", "")) if isinstance(value, Mapping) else ""
        row = matrix.message(name[len("symptom.") :], text)
        if row is not None and (hints or not row.is_hint):
            yield Unexplained(row.name, text, row.meaning, row.causes, facts[name].source)


def _asks(fact: str) -> Optional[_Command]:
    return next(
        (row for row in _COMMANDS for start in row.facts if fact == start or fact.startswith(start)),
        None,
    )
