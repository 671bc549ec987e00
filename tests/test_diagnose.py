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
from cudadoctor.model.report import Report, blamed, exit_status
from cudadoctor.rules import judges_requirements, rule_files, rule_of
from cudadoctor.testing import (
    GIB,
    GONE,
    MIB,
    Machine,
    container,
    container_without_gpu,
    device_nodes,
    jetson,
    linux,
    pci_card,
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
        blame: str = "machine",
        **more: Any,
    ) -> None:
        rule = Rule(rule_id, rule_id.lower(), "title", ERROR, blame, **more)
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


WHOSE_FAULTS = [
    # (title, machine, whose faults, the rules that still fail)
    ("a lost GPU", linux().set({"gpu.0.lost": True}), "machine", {"CD113"}),
    ("torch for the CPU", linux().torch("2.6.0", None), "machine", set()),
    ("torch for the CPU", linux().torch("2.6.0", None), "environment", {"CD302"}),
    ("a job without a GPU", linux().no_devices().job(gpus=0), "machine", set()),
    ("a driver that hangs", linux().hangs(), "machine", {"CD106"}),
]


class TestBlame:
    """Only what the machine's owner can mend counts in a prolog: what others have to mend drains no node."""

    @pytest.mark.parametrize(("title", "machine", "blame", "expected"), WHOSE_FAULTS)
    def test_whose_faults_count(self, title: str, machine: Machine, blame: str, expected: set[str]) -> None:
        report = diagnose(machine.facts, MATRIX, blames=(blame,))
        failed = {o.rule for o in report.outcomes if o.failed and o.severity == ERROR}
        assert failed == expected
        assert set(report.root_causes) >= expected

    def test_what_follows_from_another_s_fault_is_that_other_s(self, stage: Stage) -> None:
        stage.add("CD106", follows_from=("CD705",))
        stage.add("CD705", blame="allocation")
        assert {o.rule: o.status for o in stage.report(blames=("machine",)).outcomes} == {"CD106": SKIP, "CD705": SKIP}
        by_id = {o.rule: o for o in stage.report().outcomes}
        assert [blamed(o, by_id) for o in by_id.values()] == ["allocation", "allocation"]


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
    # What does not fit the catalogue is refused where facts come in, before any rule sees it.
    fitting = VALUES[spec.type].filter(lambda value: fits(spec, value))
    anything = fitting.map(lambda value: known(value, "made up"))
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
    @example(linux().set({"gpu.count": 2**50}).facts)
    @example(linux().set({"gpu.count": -1}).facts)
    def test_no_mixture_of_facts_crashes_a_rule(self, machine: Facts) -> None:
        report = diagnose(machine, MATRIX)
        assert crashes(report) == []
        asks = any(name.startswith(("policy.", "verify.")) and machine[name].is_known for name in machine)
        wanted = [rule_id for rule_id in rule_files() if asks or not judges_requirements(rule_id)]
        assert [outcome.rule for outcome in report.outcomes] == wanted
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
    def test_what_could_not_be_looked_at_is_nothing_bad(self, hidden: set[str], machine: Machine) -> None:
        """However much of a machine is hidden, no more is found than on the whole of it."""
        before = {o.rule for o in diagnose(machine.facts, MATRIX).outcomes if o.failed}
        report = diagnose(machine.unknown(*hidden).facts, MATRIX)
        assert crashes(report) == []
        assert [f"{o.rule}: {o.message}" for o in report.outcomes if o.failed and o.rule not in before] == []

    def test_rules_name_no_circle(self) -> None:
        """Following what blocks or explains a rule never leads back to it."""
        above = {rule_id: {*rule_of(rule_id).blocked_by, *rule_of(rule_id).follows_from} for rule_id in rule_files()}

        def reached(rule_id: str, path: tuple[str, ...]) -> None:
            assert rule_id not in path, " -> ".join((*path, rule_id))
            for other in above.get(rule_id, ()):
                reached(other, (*path, rule_id))

        for rule_id in above:
            reached(rule_id, ())


# -- which cause comes first, on machines such as people report -----------------------------------------------------

RUNNING = "6.8.0-85-generic"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
LINUX_LIBCUDA = {
    "path": LIBRARY,
    "real_path": f"{LIBRARY[:-2]}.535.183.01",
    "found_by": "ld.so.cache",
    "kind": "driver",
    "version": "535.183.01",
}
BLACKWELL = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85")
KEPLER = linux().gpu("Tesla K80", "3.7", 12, device_id="102d").torch("2.0.1+cu117", sass=["sm_37", "sm_86"])
LAPTOP = windows().set(
    {
        "windows.power_plan": "381b4222-f694-41f0-9685-ff5bb260df2e",
        "windows.power_plan_name": "Balanced",
        "memory.total": 16 * GIB,
        "memory.page_file": [{"path": "C:\\pagefile.sys", "mode": "fixed", "initial": 2 * GIB, "maximum": 2 * GIB}],
    }
)


def module_files(kernel: str, version: str = "580.95.05") -> dict[str, Any]:
    path = f"/lib/modules/{kernel}/updates/dkms/nvidia.ko"
    return {
        "kernel.nvidia_module_files": [{"kernel": kernel, "path": path, "version": version, "flavour": "open"}],
        "kernel.dkms": [{"version": version, "kernel": kernel, "arch": "x86_64", "status": "installed"}],
    }


def mismatch(machine: Machine, library: str, on_disk: str) -> Machine:
    failing = machine.driver_fails(18, "mismatch", 18, "Driver/library version mismatch")
    versions = {"driver.library_version": library, "driver.nvml_library_version": library}
    return failing.set({**versions, **module_files(RUNNING, on_disk)})


def held_by_nouveau(machine: Machine) -> Machine:
    cards = [dict(card, driver="nouveau") for card in machine.facts.value("pci.gpus")]
    return machine.set({"pci.gpus": cards, "kernel.modules": ["nouveau"], "kernel.nouveau_blacklisted_by": []})


def reported(machine: Machine, symptom: str, words: str) -> Machine:
    return machine.set({f"symptom.{symptom}": {"text": words}})


NOT_LOADED = linux().not_loaded()
LOCKED = NOT_LOADED.set({"kernel.secure_boot": True})
IN_APPTAINER = container_without_gpu("apptainer").set({"device.nodes": container().facts.value("device.nodes")})
VISIBLE_7 = {"env.CUDA_VISIBLE_DEVICES": "7"}

# Title, machine, the root causes in their order.
FIRST: list[tuple[str, Machine, tuple[str, ...]]] = [
    # Driver and kernel.
    ("the packages were updated, the reboot is pending", mismatch(linux(), "580.105.08", "580.105.08"), ("CD105",)),
    ("half of an update, which a reboot does not mend", mismatch(linux(), "590.44.01", "580.95.05"), ("CD105",)),
    ("a new installation of Linux", held_by_nouveau(linux().no_driver()), ("CD102",)),
    ("the driver is installed, nouveau was not kept away", held_by_nouveau(NOT_LOADED), ("CD102",)),
    ("a kernel update without its module", NOT_LOADED.set(module_files("6.8.0-79-generic")), ("CD103",)),
    ("a kernel update without its module, and nouveau in its place",
     held_by_nouveau(NOT_LOADED).set(module_files("6.8.0-79-generic")), ("CD103",)),
    ("the key was not enrolled", LOCKED.log("key-rejected", module="nvidia"), ("CD104",)),
    ("the key was not enrolled, nobody may read the log", LOCKED.unknown("kernel.log_events"), ("CD104",)),
    ("the key was not enrolled, and nouveau is in its place",
     held_by_nouveau(LOCKED).log("key-rejected", module="nvidia"), ("CD104",)),
    ("prime-select intel", NOT_LOADED.set({"kernel.nvidia_blacklisted_by": ["/lib/modprobe.d/blacklist-nvidia.conf"]}),
     ("CD106",)),
    ("no driver", linux().no_driver(), ("CD101",)),
    ("no driver, on Windows", windows().no_driver(), ("CD101",)),
    ("the driver hangs", linux().hangs(), ("CD106",)),
    ("the driver hangs with its firmware", linux().hangs().log("xid", number="119"), ("CD109",)),
    ("an RTX 5090 on the proprietary module",
     BLACKWELL.no_devices().set({"driver.module_flavour": "proprietary"}), ("CD108",)),
    ("a K80 on a driver that has dropped it", KEPLER.no_devices(), ("CD107",)),
    ("the card does not start", linux().no_devices().log("init-failed", bus_id="0000:01:00.0"), ("CD109",)),
    ("nodes that belong to a group", linux().driver_fails(4, "permission", 4).set(
        {"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl", mode="660", group="video", usable=False)}
    ), ("CD111",)),
    ("a laptop woke up", reported(linux(), "cuda_unknown_error", "CUDA unknown error"), ("CD112",)),
    # Hardware.
    ("an AMD card", linux().no_gpu().no_torch().torch("2.14.1+cpu").set({"pci.other_display": ["1002"]}), ("CD501",)),
    ("a Mac", linux().no_gpu().set({"system.os": "darwin", "pci.gpus": GONE}), ("CD501",)),
    ("the host of virtual machines", linux().no_driver().set(
        {"pci.gpus": [pci_card("0000:01:00.0", "2684", "vfio-pci")], "driver.packages": []}
    ), ("CD501",)),
    ("too hot", linux().set({"gpu.0.throttle_reasons": ["hw_thermal_slowdown"]}), ("CD502",)),
    ("a weak supply", linux().set({"gpu.0.throttle_reasons": ["hw_power_brake_slowdown"]}), ("CD503",)),
    # System.
    ("a Windows laptop", LAPTOP, ("CD602", "CD603")),
    ("WinError 1455", reported(windows(), "paging_file_too_small", "[WinError 1455]"), ("CD602",)),
    ("a bus error in a worker", reported(container(), "shm_exhausted", "bus error"), ("CD604",)),
    ("Docker's 64 MiB", container().set({"memory.shm_size": 64 * MIB}), ("CD604",)),
    # Containers, WSL, jobs.
    ("docker run without --gpus", container_without_gpu(), ("CD701",)),
    ("a container without its GPU, and a CPU build in it", container_without_gpu().torch("2.14.1+cpu"),
     ("CD701", "CD302")),
    ("apptainer without --nv", IN_APPTAINER, ("CD701",)),
    ("apptainer without --nv, in a job that has its GPU", IN_APPTAINER.job(gpus=1), ("CD701",)),
    ("a pod that was given one, under the wrong runtime",
     container_without_gpu("kubernetes").job("kubernetes", gpus=1), ("CD701",)),
    ("a container without nvidia-uvm",
     container().set({"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl")}), ("CD110",)),
    ("a container that lost its devices", container().driver_fails(999, "unknown-error", 255, "Unknown Error"),
     ("CD702",)),
    ("a container whose host has no driver", container_without_gpu().set({"driver.module_loaded": False}), ("CD101",)),
    ("a Linux driver inside WSL", wsl().set({"driver.libcuda": [LINUX_LIBCUDA]}), ("CD703",)),
    ("no --gres on a node that hides its cards", linux().no_devices().job(), ("CD705",)),
    ("no --gres on a node without cards", linux().no_gpu().job(), ("CD705",)),
    ("no --gres, and Slurm says NoDevFiles", linux().job(gpus=0).set({"env.CUDA_VISIBLE_DEVICES": "NoDevFiles"}),
     ("CD705",)),
    ("the login node of a cluster", linux().no_gpu().set({"scheduler.kind": "slurm"}), ("CD501",)),
    ("a script that was written for eight cards", linux().set(VISIBLE_7), ("CD706",)),
    ("a script that was written for eight cards, on Windows", windows().set(VISIBLE_7), ("CD706",)),
    ("a variable that names a card, and no driver", linux().no_driver().set(VISIBLE_7), ("CD101",)),
]  # fmt: skip


@pytest.mark.parametrize(("title", "machine", "roots"), FIRST, ids=[title for title, _, _ in FIRST])
def test_which_cause_comes_first(title: str, machine: Machine, roots: tuple[str, ...]) -> None:
    report = diagnose(machine.facts, MATRIX)
    assert report.root_causes == roots
    # Nothing else is called broken, but for what follows from these.
    errors = {o.rule for o in report.outcomes if o.failed and o.severity == ERROR and o.because_of is None}
    assert errors <= set(roots)
    first = report.outcome(roots[0])
    assert first is not None and len(first.message) <= 110, "the first line of the screen"


SHARED_NODE = [pci_card(f"0000:{slot:02x}:00.0", "2684", "nvidia") for slot in range(1, 9)]
UNTOLD = ("gpu.0.memory_total", "gpu.0.memory_free", "gpu.0.memory_used")
AARCH64 = {"system.arch": "aarch64", "memory.total": 480 * GIB}
ON_ARM = ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120"]
IN_WSL = {
    "system.wsl": 2,
    "system.kernel_release": "6.6.87.2-microsoft-standard-WSL2",
    "kernel.modules": [],
    "driver.module_loaded": False,
    "driver.module_version": GONE,
    "driver.procfs_version": GONE,
    "driver.library_version": GONE,
    "driver.libcuda": wsl().facts.value("driver.libcuda"),
    "pci.gpus": [],
    "procfs.gpus": GONE,
    "device.nodes": device_nodes("/dev/dxg"),
}

QUIET: list[tuple[str, Machine]] = [
    ("a workstation", linux()),
    ("a Windows desktop", windows()),
    ("WSL, whose nvidia-smi has another number than the driver", wsl()),
    ("an old card for the screen, on nouveau", linux().display_card("128b", "nouveau")),
    ("an old card that the driver has dropped", linux().display_card("128b", None)),
    ("a second card that a virtual machine has", linux().display_card("1b06", "vfio-pci")),
    ("a laptop whose screen is Intel's", linux().set({"pci.other_display": ["8086"]})),
    ("a link that idles at its lowest speed", linux().set({"gpu.0.pcie_generation": 1})),
    ("a card at its power limit", linux().set({"gpu.0.throttle_reasons": ["sw_power_cap"], "gpu.0.power": 450.0})),
    ("/proc/modules is missing", linux().unknown("kernel.modules")),
    ("nvidia-smi is slow", linux().unknown("driver.smi_version", "smi.gpus").set({"driver.smi_failure": "timed-out"})),
    ("NVML's library is missing", linux().unknown("driver.nvml_version", "driver.nvml_error", "gpu.count")),
    ("Docker", container()),
    ("Docker Desktop", container().driver("581.57", "13.0").set(IN_WSL)),
    ("rootless podman", container("podman").set(
        {"device.nodes": device_nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", group="nogroup")}
    )),
    ("an LXC guest", container("lxc")),
    ("apptainer --nv", container("apptainer")),
    ("a pod with one of eight cards", container("kubernetes").job("kubernetes", gpus=1).set(
        {"pci.gpus": SHARED_NODE, "device.nodes": device_nodes("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")}
    )),
    ("a slice of a card (MIG)", linux().gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, device_id="20b2").set(
        {"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7, "env.CUDA_VISIBLE_DEVICES": "MIG-*", "memory.total": 512 * GIB}
    ).unknown("gpu.0.utilization")),
    ("the guest of a vGPU", linux().gpu("NVIDIA A16-8Q", "8.6", 8, device_id="25b6").unknown(
        "gpu.0.throttle_reasons", "gpu.0.temperature", "gpu.0.power"
    )),
    ("a Jetson with NVIDIA's own build", jetson().set(
        {"torch.version": "2.1.0a0+41361538.nv23.06", "torch.cuda": "11.4", "torch.sass": ["sm_87"], "torch.ptx": [],
         "torch.copies": ["/torch"], "torch.missing_libraries": [], "torch.path": "/torch"}
    )),
    ("a GB10, which tells no memory", linux().gpu("NVIDIA GB10", "12.1", device_id="2e12").unknown(*UNTOLD).set(
        AARCH64
    ).torch("2.14.1+cu130", sass=ON_ARM)),
    ("a GH200", linux().gpu("NVIDIA GH200 480GB", "9.0", 96, device_id="2342").set(AARCH64).torch(
        "2.14.1+cu130", sass=ON_ARM
    )),
    ("a job with its card", linux().job(gpus=1).set({"env.CUDA_VISIBLE_DEVICES": "0", "memory.swap_total": 0})),
    ("a job on a node that hides nothing", linux().job()),
    ("a login node with a card", linux().set({"scheduler.kind": "slurm"})),
    ("a card chosen by its UUID", linux().set({"env.CUDA_VISIBLE_DEVICES": "GPU-*"})),
    ("a cloud machine without swap, CUDA 12.8 on a driver that shows 12.4",
     linux().gpu("NVIDIA A10G", "8.6", 24, device_id="2237").driver("550.127.05", "12.4", flavour="proprietary").torch(
         "2.8.0+cu128", sass=["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
     ).set({"memory.swap_total": 0, "memory.total": 16 * GIB})),
]  # fmt: skip


@pytest.mark.parametrize(("title", "machine"), QUIET, ids=[title for title, _ in QUIET])
def test_no_false_alarm(title: str, machine: Machine) -> None:
    report = diagnose(machine.facts, MATRIX)
    assert report.root_causes == ()
    assert [o.message for o in report.outcomes if o.failed and o.severity == ERROR] == []
    assert exit_status(report.outcomes) == 0


@pytest.mark.parametrize(
    ("title", "machine"),
    [
        ("WSL to which Windows lends nothing", wsl().no_driver()),
        ("a sandbox that hides bus, modules and devices", container_without_gpu().unknown(
            "pci.gpus", "procfs.gpus", "driver.module_loaded", "device.nodes"
        )),
        ("a pasted report without a word about the driver", linux().only("system.os", "torch.version", "torch.cuda")),
        ("nothing at all", linux().only()),
    ],
)  # fmt: skip
def test_undecided_is_neither_fine_nor_broken(title: str, machine: Machine) -> None:
    report = diagnose(machine.facts, MATRIX)
    assert report.root_causes == ()
    assert exit_status(report.outcomes) == 3
    assert exit_status(report.outcomes, unknown_ok=True) == 0
