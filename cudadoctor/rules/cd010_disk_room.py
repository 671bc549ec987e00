"""A disk has less room than the job needs

What it checks
    The free room in the working folder, in the folder for temporary files, where the environment's packages lie and
    where pip keeps downloads, against disk.working, disk.temporary, disk.environment and disk.cache of the policy.

Why it matters
    A checkpoint that finds no room ends the run that it was to save. Triton, torch.compile and many data loaders write
    to the folder for temporary files, which on nodes is often small, or memory.

How to fix
    Delete what is left over, or point the job elsewhere: TMPDIR for temporary files, another working folder.

References
    https://docs.python.org/3/library/tempfile.html#tempfile.gettempdir
"""

from __future__ import annotations

from cudadoctor.derive.policy import NOT_ASKED
from cudadoctor.parse.sizes import show_size
from cudadoctor.rules.api import ENVIRONMENT, ERROR, MACHINE, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD010",
    name="disk-room",
    title="A disk has less room than the job needs",
    severity=ERROR,
    blame=MACHINE,
    chain=True,
    follows_from=("CD407",),
    precedence=40,
)

# Key of the policy, the fact, its words, who can mend it: a node's own disk is the machine's, packages the user's.
_PLACES = (
    ("policy.disk.working", "disk.working_free", "in the working folder", ENVIRONMENT),
    ("policy.disk.temporary", "disk.temporary_free", "for temporary files", MACHINE),
    ("policy.disk.environment", "disk.environment_free", "where the environment's packages lie", ENVIRONMENT),
    ("policy.disk.cache", "disk.cache_free", "where pip keeps downloads", ENVIRONMENT),
)

_HELP = {
    "disk.working_free": "df -h . shows the disk. Delete what is not needed, or start the job in another folder.",
    "disk.temporary_free": "Delete what is left over there, or have TMPDIR name a folder on a larger disk.",
    "disk.environment_free": "Take out packages that are not needed, or make the environment on a larger disk.",
    "disk.cache_free": "python -m pip cache purge empties it; PIP_CACHE_DIR names another folder.",
}


def judge(case: Case) -> Outcome:
    asked = [place for place in _PLACES if case.fact(place[0]).is_known]
    if not asked:
        return case.skipped(NOT_ASKED)
    for name, fact, words, blame in asked:
        wanted, free = case.value(name), case.fact(fact)
        if free.is_known and free.get() < wanted:
            path = case.value("disk.temporary_path") if fact == "disk.temporary_free" else None
            at = f" ({path})" if path else ""
            return case.failed(
                f"{show_size(free.get())} is free {words}{at}, {show_size(wanted)} is asked for",
                (name, fact),
                blame=blame,
                data={"value": free.get(), "wanted": wanted},
                fixes=(
                    Remedy(
                        "manual",
                        {
                            "title": "Make room, or use another disk",
                            "text": f"{show_size(wanted - free.get())} more is needed {words}. {_HELP[fact]}",
                            "kind": "setting",
                        },
                    ),
                ),
            )
    for name, fact, words, _ in asked:
        free = case.fact(fact)
        if not free.is_known:
            return case.undecided(
                f"cannot tell the room {words}: {free.reason or 'there is no such place'}", (name, fact)
            )
    return case.passed("the disks have the room that is asked for", tuple(fact for _, fact, _, _ in asked))
