"""`fix --format json`: the document `cudadoctor.plan/1`."""

from __future__ import annotations

from typing import Optional, cast

from cudadoctor.matrix import Branch
from cudadoctor.plan.index import Index
from cudadoctor.render.documents import ChoiceEntry, PlanDocument
from cudadoctor.render.json_report import dump, step_entry
from cudadoctor.render.plan import FixView
from cudadoctor.resolve import Choice, Resolution

_NONE = Resolution(None)


def text(view: FixView) -> str:
    return dump(document(view))


def document(view: FixView) -> PlanDocument:
    found = view.resolution or _NONE
    entry = {
        "schema": "cudadoctor.plan/1",
        "exit": view.exit,
        "verdict": view.verdict,
        "choice": _by_conda(view) or (None if found.choice is None else _choice(found.choice, view)),
        "alternatives": [_choice(other, view) for other in found.alternatives],
        "blocked_by": [
            {
                "by": blocker.by,
                "needed": blocker.needed,
                "change": blocker.change,
                "opens": _choice(blocker.opens, view),
            }
            for blocker in found.blocked_by
        ],
        "reasons": list(found.reasons),
        "split": [
            {"gpus": [gpu.label for gpu in part.gpus], "choice": _choice(part.choice, view)} for part in found.split
        ],
        "nothing_to_do": not view.plan.steps,
        "driver_first": found.driver_first,
        "undecided": found.undecided,
        "steps": [step_entry(step) for step in view.plan.steps],
        "advice": [step_entry(step) for step in view.plan.advice],
        "not_helping": list(view.not_helping),
        "notes": list(view.notes),
        "before": dict(view.plan.before),
        "undo": view.plan.undo,
        "download_bytes": view.plan.download,
        "moves": [
            {
                "package": move.package,
                "have": move.have,
                "to": move.to,
                "direction": move.direction,
                "reason": move.reason,
            }
            for move in found.moves
        ],
        "other_ways": [
            {
                "kind": way.kind,
                "change": way.change,
                "needed": way.needed,
                "opens": _choice(way.opens, view),
                "reason": way.reason,
            }
            for way in found.other_ways
        ],
        "drivers": _drivers(found),
        "frameworks": [
            {
                "name": item.name,
                "requirement": item.requirement,
                "cuda": item.cuda,
                "reasons": list(item.reasons),
                "better": list(item.better),
                "certainty": item.certainty,
            }
            for item in found.frameworks
        ],
        "online": None if view.asked is None else {"state": view.asked.state, "message": view.asked.words},
    }
    return cast(PlanDocument, entry)


def _choice(choice: Choice, view: FixView) -> ChoiceEntry:
    index = index_of_choice(choice, view)
    return {
        "torch": choice.torch,
        "variant": choice.variant,
        "version": choice.version,
        "index_url": index.url,
        "index_layout": "flat" if index.flat else "index",
        "companions": dict(choice.companions),
        "partners": dict(choice.partners),
        "python": choice.python,
        "pythons": list(choice.pythons),
        "requirements": list(choice.requirements),
        "reasons": list(choice.reasons),
        "certainty": "possible" if not choice.seen else "likely" if choice.certainty == "likely" else "certain",
        "assumes": list(choice.assumes),
        "breaks": list(choice.breaks),
    }


def _by_conda(view: FixView) -> Optional[ChoiceEntry]:
    """What a step installs from conda-forge, where that takes the place of pip's build."""
    found = view.resolution
    step = next((step for step in view.plan.steps if step.id == "install-torch"), None)
    if found is None or found.choice is None or step is None or step.effect.get("torch.origin") != "conda":
        return None
    words = step.argv or ()
    version = str(step.effect["torch.version"])
    entry = _choice(found.choice, view)
    entry["torch"] = entry["version"] = version
    entry["variant"] = "cuda" + str(step.effect["torch.cuda"]).replace(".", "")
    entry["index_url"] = "conda-forge"
    entry["companions"] = {}  # the solver finds the versions
    entry["requirements"] = list(words[words.index("conda-forge") + 1 :])
    entry["reasons"] = [line for line in step.instructions.split("\n") if line]
    return entry


def index_of_choice(choice: Choice, view: FixView) -> Index:
    """Where its wheels lie: on the person's mirror where they named one."""
    return view.mirror.of(choice.variant) if view.mirror is not None else Index(choice.index_url)


def _drivers(found: Resolution) -> Optional[dict[str, Optional[str]]]:
    if found.drivers is None:
        return None
    return {
        "first": _name(found.drivers.first),
        "last": _name(found.drivers.last),
        "fitting": _name(found.drivers.fitting),
        "flavour": found.drivers.flavour,
    }


def _name(branch: Optional[Branch]) -> Optional[str]:
    return None if branch is None else branch.name
