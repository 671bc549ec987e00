"""From outcomes to a verdict: crashes, folding, root causes, the exit status; and which cause comes first on machines
that people have reported."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cudadoctor import diagnose as diagnosis
from cudadoctor.derive.case import Case
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import (
    CRASH,
    ERROR,
    FAIL,
    INFO,
    LIKELY,
    PASS,
    POSSIBLE,
    SKIP,
    UNDECIDED,
    WARNING,
    Fact,
    Facts,
    Outcome,
    Rule,
    absent,
    known,
    unknown,
)
from cudadoctor.model.catalogue import CATALOGUE, fits, spec_of
from cudadoctor.model.outcome import CERTAIN, CERTAINTIES, SEVERITIES, STATUSES
from cudadoctor.model.report import Report, exit_status
from cudadoctor.rules import rule_files, rule_of
from cudadoctor.testing import (
    Machine,
    container,
    jetson,
    linux,
    windows,
    wsl,
)

MATRIX = load_matrix()


# -- rules made up for the purpose ----------------------------------------------------------------------------------


class Stage:
    """Rules that say what a test tells them to, in the place of the real ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rules: dict[str, tuple[Rule, Any]] = {}
        monkeypatch.setattr(diagnosis, "rule_files", lambda: {rule_id: rule_id.lower() for rule_id in self.rules})
        monkeypatch.setattr(diagnosis, "rule_name", str.lower)
        monkeypatch.setattr(diagnosis, "rule_module", self._module)

    def _module(self, rule_id: str) -> Any:
        rule, answer = self.rules[rule_id]
        if isinstance(answer, ImportError):
            raise answer

        def judge(case: Case) -> Outcome:
            if isinstance(answer, BaseException):
                raise answer
            status, severity, certainty = answer
            if status == FAIL:
                return case.failed("it is broken", ("system.os",), severity=severity, certainty=certainty)
            return {PASS: case.passed, SKIP: case.skipped, UNDECIDED: case.undecided}[status]("as it should be")

        return SimpleNamespace(RULE=rule, judge=judge)

    def add(
        self,
        rule_id: str,
        status: str = FAIL,
        severity: str = ERROR,
        certainty: str = CERTAIN,
        *,
        raises: Optional[BaseException] = None,
        **more: Any,
    ) -> None:
        rule = Rule(rule_id, rule_id.lower(), "title", ERROR, "machine", **more)
        self.rules[rule_id] = (rule, raises or (status, severity, certainty))

    def report(self, **options: Any) -> Report:
        return diagnose(linux().facts, MATRIX, **options)

    def status(self, rule_id: str) -> tuple[str, Optional[str]]:
        outcome = self.report().outcome(rule_id)
        assert outcome is not None
        return outcome.status, outcome.because_of


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


class TestCrashes:
    def test_a_rule_that_crashes_is_its_own_result_and_no_other_s(self, stage: Stage) -> None:
        stage.add("CD101", raises=KeyError("driver"), chain=True)
        stage.add("CD102", PASS)
        stage.add("CD103")
        report = stage.report()
        crashed, fine, broken = report.outcomes
        assert (crashed.status, crashed.blame, crashed.chain) == (CRASH, "tool", True)
        assert "CD101" in crashed.message and "KeyError" in crashed.message
        assert (fine.status, broken.status) == (PASS, FAIL)
        assert report.root_causes == ("CD103",)

    def test_a_rule_that_cannot_be_imported(self, stage: Stage) -> None:
        stage.add("CD101", raises=ImportError("no module"))
        assert stage.status("CD101") == (CRASH, None)
        assert exit_status(stage.report().outcomes) == 2

    def test_what_a_crashed_rule_would_explain_stands_for_itself(self, stage: Stage) -> None:
        stage.add("CD101", raises=ValueError())
        stage.add("CD106", follows_from=("CD101",), blocked_by=("CD101",))
        assert stage.status("CD106") == (FAIL, None)


class TestFolding:
    def test_what_is_blocked_is_skipped_because_of_the_first_failure_of_its_list(self, stage: Stage) -> None:
        stage.add("CD101")
        stage.add("CD102")
        stage.add("CD303", UNDECIDED, blocked_by=("CD102", "CD101"))
        assert stage.status("CD303") == (SKIP, "CD102")
        assert stage.report().root_causes == ("CD101", "CD102")

    @pytest.mark.parametrize("status", [PASS, FAIL, UNDECIDED])
    def test_whatever_it_said_itself(self, stage: Stage, status: str) -> None:
        stage.add("CD101")
        stage.add("CD303", status, blocked_by=("CD101",))
        assert stage.status("CD303") == (SKIP, "CD101")

    def test_a_reason_of_its_own_to_skip_is_kept(self, stage: Stage) -> None:
        stage.add("CD101")
        stage.add("CD303", SKIP, blocked_by=("CD101",))
        assert stage.status("CD303") == (SKIP, None)

    @pytest.mark.parametrize("severity", [WARNING, INFO])
    def test_only_an_error_blocks(self, stage: Stage, severity: str) -> None:
        """A card that is left out beside one that works leaves enough to judge."""
        stage.add("CD108", FAIL, severity)
        stage.add("CD303", blocked_by=("CD108",))
        assert stage.status("CD303") == (FAIL, None)

    def test_what_is_blocked_itself_blocks_and_explains_nothing(self, stage: Stage) -> None:
        stage.add("CD101", blocked_by=("CD501",))
        stage.add("CD106", blocked_by=("CD101",))
        stage.add("CD107", follows_from=("CD101",))
        stage.add("CD501")
        assert stage.status("CD101") == (SKIP, "CD501")
        assert stage.status("CD106") == (FAIL, None)
        assert stage.status("CD107") == (FAIL, None)

    def test_what_follows_from_another_stays_a_failure_and_names_it(self, stage: Stage) -> None:
        stage.add("CD101")
        stage.add("CD106", follows_from=("CD105", "CD101"))
        assert stage.status("CD106") == (FAIL, "CD101")
        assert stage.report().root_causes == ("CD101",)

    @pytest.mark.parametrize(("cause", "explained"), [(ERROR, True), (WARNING, False), (INFO, False)])
    def test_nothing_is_explained_by_what_is_milder(self, stage: Stage, cause: str, explained: bool) -> None:
        stage.add("CD101", FAIL, cause)
        stage.add("CD106", FAIL, ERROR, follows_from=("CD101",))
        assert stage.status("CD106") == (FAIL, "CD101" if explained else None)

    def test_rules_that_block_each_other_end(self, stage: Stage) -> None:
        stage.add("CD101", blocked_by=("CD102",))
        stage.add("CD102", blocked_by=("CD101",))
        assert len(stage.report().outcomes) == 2


class TestRootCauses:
    def test_errors_before_warnings_and_the_surer_first(self, stage: Stage) -> None:
        stage.add("CD101", FAIL, ERROR, POSSIBLE)
        stage.add("CD102", FAIL, ERROR, LIKELY)
        stage.add("CD103", FAIL, ERROR, CERTAIN)
        stage.add("CD104", FAIL, WARNING, CERTAIN)
        assert stage.report().root_causes == ("CD103", "CD102", "CD101")

    def test_warnings_that_are_at_least_likely_where_there_is_no_error(self, stage: Stage) -> None:
        stage.add("CD101", FAIL, WARNING, POSSIBLE)
        stage.add("CD102", FAIL, WARNING, LIKELY)
        stage.add("CD103", FAIL, INFO, CERTAIN)
        assert stage.report().root_causes == ("CD102",)

    def test_among_equals_the_rule_s_own_place_and_then_the_id(self, stage: Stage) -> None:
        stage.add("CD101", precedence=9)
        stage.add("CD102", precedence=3)
        stage.add("CD103", precedence=3)
        assert stage.report().root_causes == ("CD102", "CD103", "CD101")

    def test_none_where_nothing_is_wrong(self, stage: Stage) -> None:
        stage.add("CD101", PASS)
        stage.add("CD102", UNDECIDED)
        assert stage.report().root_causes == ()


class TestChoice:
    def test_a_selection(self, stage: Stage) -> None:
        for rule_id in ("CD101", "CD102", "CD103"):
            stage.add(rule_id)
        report = stage.report(select=iter(["CD103", "CD101", "CD999"]))
        assert [outcome.rule for outcome in report.outcomes] == ["CD101", "CD103"]

    def test_an_ignored_rule_is_silent_and_what_it_would_explain_is_judged(self, stage: Stage) -> None:
        stage.add("CD101")
        stage.add("CD106", follows_from=("CD101",))
        report = stage.report(ignore={"CD101": "known", "CD999": "no such rule"})
        assert report.root_causes == ("CD106",)
        assert report.ignored == {"CD101": "known"}


# -- the exit status --------------------------------------------------------------------------------------------------


def outcome(status: str, severity: str = ERROR, certainty: str = CERTAIN, chain: bool = False) -> Outcome:
    return Outcome("CD101", "name", status, severity, certainty, "machine", "message", chain=chain)


OUTCOMES = st.lists(
    st.builds(
        outcome,
        st.sampled_from(STATUSES),
        st.sampled_from(SEVERITIES),
        st.sampled_from(CERTAINTIES),
        st.booleans(),
    ),
    max_size=6,
).map(tuple)


class TestExitStatus:
    @pytest.mark.parametrize(
        ("status", "outcomes"),
        [
            (0, ()),
            (0, (outcome(PASS), outcome(SKIP))),
            (0, (outcome(FAIL, WARNING), outcome(FAIL, INFO))),
            (1, (outcome(FAIL), outcome(CRASH), outcome(UNDECIDED, chain=True))),
            (1, (outcome(FAIL, certainty=POSSIBLE),)),
            (2, (outcome(CRASH), outcome(UNDECIDED, chain=True))),
            (3, (outcome(UNDECIDED, chain=True), outcome(FAIL, WARNING))),
            (0, (outcome(UNDECIDED),)),
        ],
    )
    def test_precedence(self, status: int, outcomes: tuple[Outcome, ...]) -> None:
        assert exit_status(outcomes) == status

    def test_unknown_ok(self) -> None:
        assert exit_status((outcome(UNDECIDED, chain=True),), unknown_ok=True) == 0

    @given(OUTCOMES, st.sampled_from(SEVERITIES), st.booleans(), st.randoms())
    def test_is_a_function_of_what_was_found_in_any_order(
        self, outcomes: tuple[Outcome, ...], fail_on: str, unknown_ok: bool, random: Any
    ) -> None:
        shuffled = list(outcomes)
        random.shuffle(shuffled)
        status = exit_status(outcomes, fail_on, unknown_ok)
        assert status == exit_status(tuple(shuffled), fail_on, unknown_ok)
        bad = [o for o in outcomes if o.failed and SEVERITIES.index(o.severity) <= SEVERITIES.index(fail_on)]
        assert (status == 1) is bool(bad)
        if not bad:
            assert (status == 2) is any(o.status == CRASH for o in outcomes)

    @given(OUTCOMES)
    def test_a_stricter_threshold_never_makes_it_better(self, outcomes: tuple[Outcome, ...]) -> None:
        failing = [exit_status(outcomes, severity) == 1 for severity in (ERROR, WARNING, INFO)]
        assert failing == sorted(failing)

    @given(OUTCOMES)
    def test_something_that_passes_changes_nothing(self, outcomes: tuple[Outcome, ...]) -> None:
        assert exit_status(outcomes) == exit_status((*outcomes, outcome(PASS, chain=True), outcome(SKIP, chain=True)))


# -- all rules, on anything -------------------------------------------------------------------------------------------

GPUS = ("0", "1")
PACKAGES = ("torch", "torchvision", "torchaudio", "triton", "xformers", "nvidia-cublas-cu12", "nvidia-cudnn-cu12")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
SYMPTOMS = ("cuda_unknown_error", "paging_file_too_small", "shm_exhausted")


def names() -> Iterator[str]:
    """Every fact of the catalogue, those of a kind for some members of it."""
    for template in CATALOGUE:
        if "{n}" in template:
            yield from (template.replace("{n}", number) for number in GPUS)
        elif template.startswith("package.{name}"):
            yield from (template.replace("{name}", name) for name in PACKAGES)
        elif template.startswith("env.{name}"):
            yield from (template.replace("{name}", name) for name in VARIABLES)
        elif template.startswith("symptom.{name}"):
            yield from (template.replace("{name}", name) for name in SYMPTOMS)
        else:
            yield template


# What machines say, and what nobody ever says.
WORDS = (
    "", " ", "0", "1", "-1", "0,1", "7", "0,0", "GPU-*", "NoDevFiles", "void", "\u00b2", "9" * 5000,
    "linux", "windows", "darwin", "x86_64", "aarch64", "glibc", "musl", "docker", "kubernetes", "apptainer", "R36.4.3",
    "580.95.05", "535.183.01", "418.87.00", "999.1", "not a version", "12.4", "13.0", "12", "8.9", "6.1", "12.0",
    "99.9",
    "2.14.1+cu130", "2.6.0+cpu", "2.6.0", "1.13.1", "2.15.0.dev20260101", "2.9.0a0+git123", "3.12.3", "3.15.0", "2.7",
    "2.17", "6.8.0-85-generic", "5.15.148-tegra", "open", "proprietary", "no-driver", "no-devices", "mismatch",
    "permission",
    "timed-out", "gpu-lost", "venv", "conda", "system", "tool", "pip", "slurm", "2684", "1b06", "2b85", "ffff", "zz",
    "0000:01:00.0", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce GTX 1080 Ti", "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    "381b4222-f694-41f0-9685-ff5bb260df2e", "2026-11-30", "30.11.2026", "live", "report", "/usr/local/cuda-12.4/lib64",
    "sm_86", "compute_90", "cu126", "manylinux_2_28_x86_64", "caf\u00e9\n",
)  # fmt: skip

# Keys of the entries that the catalogue's meanings list, and the values that matter to them.
KEYS = (
    "path", "mode", "uid", "gid", "group", "usable", "device", "address", "device_id", "class", "driver", "model",
    "excluded", "index", "name", "truncated", "memory_total", "compute_capability", "lost", "kind", "text", "bus_id",
    "values", "version", "kernel", "flavour", "status", "real_path", "found_by", "vendor_id", "driver_version", "root",
    "nvcc", "variable", "exists", "has_nvcc", "probe", "reason", "seconds", "size", "initial", "maximum", "directory",
    "soname", "file", "versions", "locations", "executable", "torch", "interpreter",
)  # fmt: skip
MARKS = (
    "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg", "/dev/nvgpu/igpu0/ctrl", "660", "video", "nvidia",
    "nouveau", "vfio-pci", "stub", "compat", "wsl", "empty", "dangling", "xid", "key-rejected", "device-taken",
    "api-mismatch", "needs-legacy-driver", "init-failed", "wrong-kernel", "off-the-bus", "process-killed", "fixed",
    "system-managed", "10de", "8086", "libcudart.so.12", "libnvJitLink.so.12", "gcc", "msvc",
)  # fmt: skip

text = st.sampled_from(WORDS + MARKS) | st.text(max_size=8)
number = st.sampled_from((0, 1, 2, 4, 9, 18, 64, -1, 2**63)) | st.integers(0, 2**50)
scalar = st.none() | st.booleans() | number | text
entry = st.dictionaries(
    st.sampled_from(KEYS), scalar | st.lists(text, max_size=2) | st.dictionaries(text, text, max_size=2), max_size=12
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": number,
    "float": st.floats(allow_nan=True, allow_infinity=True) | number,
    "str": text,
    "list[str]": st.lists(text, max_size=3),
    "list[dict]": st.lists(entry, max_size=3),
    "dict": entry,
}


def machines_of_the_tables() -> list[Facts]:
    """Every machine of tests/rules: what a fact is there, it may be beside any other."""
    found: list[Facts] = []
    for path in sorted((Path(__file__).parent / "rules").glob("cd[0-9][0-9][0-9]_*.py")):
        spec = importlib.util.spec_from_file_location(f"machines_of_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [case.facts for case in module.CASES]
    return found


def values_of(machines: list[Facts]) -> dict[str, list[Fact[Any]]]:
    found: dict[str, dict[str, Fact[Any]]] = {}
    for machine in machines:
        for name, fact in machine.items():
            found.setdefault(name, {})[repr(fact)] = fact
    return {name: list(by_text.values()) for name, by_text in found.items()}


MACHINES = machines_of_the_tables()
SEEN = values_of(MACHINES)
NAMES = tuple(dict.fromkeys((*names(), *sorted(SEEN))))
HEALTHY = (linux(), windows(), wsl(), container(), jetson())


def fact_of(name: str) -> st.SearchStrategy[Fact[Any]]:
    spec = spec_of(name)
    assert spec is not None
    anything = VALUES[spec.type].map(lambda value: known(value, "made up"))
    plausible = st.sampled_from([*SEEN.get(name, ()), absent("made up"), unknown("made up")])
    return plausible | anything


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """A machine of the tables of which some facts are those of others, or what nobody has ever seen."""
    base = draw(st.sampled_from(MACHINES))
    changed = draw(st.lists(st.sampled_from(NAMES), max_size=60, unique=True))
    return base.updated({name: draw(fact_of(name)) for name in changed})


def crashes(report: Report) -> list[str]:
    return [outcome.message for outcome in report.outcomes if outcome.status == CRASH]


class TestAllRules:
    def test_the_values_are_of_the_catalogue_s_types(self) -> None:
        for name in NAMES:
            spec = spec_of(name)
            assert spec is not None
            assert spec.type in VALUES and not fits(spec, object())

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(facts())
    @example(Facts())
    @example(Facts({name: absent("nowhere") for name in NAMES}))
    def test_no_mixture_of_facts_crashes_a_rule(self, machine: Facts) -> None:
        report = diagnose(machine, MATRIX)
        assert crashes(report) == []
        assert [outcome.rule for outcome in report.outcomes] == list(rule_files())
        failing = [o for o in report.outcomes if o.failed]
        # Whatever is wrong has a root, and no root is explained by another.
        if any(o.severity == ERROR for o in failing):
            assert report.root_causes
        assert not {o.rule for o in failing if o.because_of} & set(report.root_causes)
        for o in report.outcomes:
            assert o.message
            assert (o.because_of is None) or o.status in (FAIL, SKIP)
            assert not o.failed or o.evidence, f"{o.rule} has no evidence"

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sets(st.sampled_from(NAMES), max_size=len(NAMES)), st.sampled_from(HEALTHY))
    def test_what_could_not_be_looked_at_is_never_an_error(self, hidden: set[str], machine: Machine) -> None:
        """On a healthy machine of which any part is hidden there is nothing to find."""
        report = diagnose(machine.unknown(*hidden).facts, MATRIX)
        assert crashes(report) == []
        found = [f"{o.rule}: {o.message}" for o in report.outcomes if o.failed and o.severity == ERROR]
        assert found == []

    def test_rules_name_no_circle(self) -> None:
        """Following what blocks or explains a rule never leads back to it."""
        above = {rule_id: {*rule_of(rule_id).blocked_by, *rule_of(rule_id).follows_from} for rule_id in rule_files()}

        def reached(rule_id: str, path: tuple[str, ...]) -> None:
            assert rule_id not in path, " -> ".join((*path, rule_id))
            for other in above.get(rule_id, ()):
                reached(other, (*path, rule_id))

        for rule_id in above:
            reached(rule_id, ())
