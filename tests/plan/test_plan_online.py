"""What an answer of the index changes in a choice."""

from __future__ import annotations

from cudadoctor.matrix import load_matrix
from cudadoctor.plan.online import candidates, key, settled
from cudadoctor.plan.plan import IndexAnswers
from cudadoctor.resolve import Choice, Gpu, Installed, Need, Resolution, resolve
from cudadoctor.resolve.need import PRESENT, WORKS

MATRIX = load_matrix()
NEED = Need(
    gpus=(Gpu("RTX 4090", "8.9"),),
    gpu_state=PRESENT,
    driver="580.95.05",
    driver_state=WORKS,
    python="3.12",
    glibc="2.39",
    welcome=("torchvision",),
)
FOUND = resolve(NEED, MATRIX)
assert FOUND.choice is not None
CHOICE: Choice = FOUND.choice
# A build of the same release for a CUDA that is newer than any, announced and not seen.
ANNOUNCED = CHOICE._replace(variant="cu999", cuda="99.9", local="cu999", seen=False)
OLDER = CHOICE._replace(torch="2.0.0", variant="cu998", cuda="99.8", local="cu998", seen=False)
WITH_ANNOUNCED = FOUND._replace(alternatives=(ANNOUNCED, OLDER, *FOUND.alternatives))


def answers(has: tuple[Choice, ...] = (), lacks: tuple[Choice, ...] = ()) -> IndexAnswers:
    return IndexAnswers(frozenset(map(key, has)), frozenset(map(key, lacks)))


def choice_of(found: Resolution) -> Choice:
    assert found.choice is not None
    return found.choice


def test_without_an_answer_nothing_changes() -> None:
    assert settled(WITH_ANNOUNCED, IndexAnswers(), NEED) is WITH_ANNOUNCED


def test_an_announced_build_that_is_there_and_better_is_the_choice() -> None:
    found = settled(WITH_ANNOUNCED, answers(has=(ANNOUNCED,)), NEED)
    assert key(choice_of(found)) == key(ANNOUNCED)
    assert choice_of(found).seen
    assert "was only announced, and is on the index" in choice_of(found).reasons[-1]
    assert key(CHOICE) in map(key, found.alternatives)
    assert key(ANNOUNCED) not in map(key, found.alternatives)


def test_an_announced_build_that_is_not_there_is_none() -> None:
    found = settled(WITH_ANNOUNCED, answers(has=(CHOICE,), lacks=(ANNOUNCED,)), NEED)
    assert key(choice_of(found)) == key(CHOICE)
    assert key(ANNOUNCED) not in map(key, found.alternatives)


def test_an_announced_build_that_is_no_better_is_not_asked_for() -> None:
    assert key(OLDER) not in map(key, candidates(WITH_ANNOUNCED, NEED))
    assert [key(choice) for choice in candidates(WITH_ANNOUNCED, NEED)][:2] == [key(ANNOUNCED), key(CHOICE)]


def test_a_torch_that_is_kept_is_not_exchanged_for_an_announced_one() -> None:
    need = NEED._replace(installed=Installed(CHOICE.torch, "cpu"))
    assert key(ANNOUNCED) not in map(key, candidates(WITH_ANNOUNCED, need))


def test_a_build_that_is_not_there_gives_way_to_the_next() -> None:
    found = settled(FOUND, answers(lacks=(CHOICE,)), NEED)
    first = next(other for other in FOUND.alternatives if other.seen)
    assert key(choice_of(found)) == key(first)
    assert f"torch {CHOICE.version} is not on the index (asked just now)" in choice_of(found).reasons


def test_where_nothing_is_there_the_choice_stays() -> None:
    everything = (CHOICE, *FOUND.alternatives)
    assert choice_of(settled(FOUND, answers(lacks=everything), NEED)) == CHOICE


def test_a_companion_that_is_missing_is_left_out() -> None:
    pair = CHOICE.companions[0]
    found = settled(FOUND, answers(has=(CHOICE,))._replace(without=frozenset({pair})), NEED)
    assert pair not in choice_of(found).companions


def test_what_is_installed_and_right_stays() -> None:
    nothing = FOUND._replace(nothing_to_do=True)
    assert settled(nothing, answers(lacks=(CHOICE,)), NEED) is nothing
