"""From a sick machine to the steps that mend it, and what the steps promise: their declared effects, laid over the
facts, make the finding go away."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest

from cudadoctor.derive.case import Case
from cudadoctor.diagnose import diagnose
from cudadoctor.matrix import load_matrix
from cudadoctor.model import FAIL, Fact, Facts, FixStep, Outcome, ParseError, Remedy, absent, known
from cudadoctor.model.catalogue import fits, spec_of
from cudadoctor.model.outcome import SEVERITIES
from cudadoctor.model.report import Report
from cudadoctor.plan import Options, Plan, make_plan
from cudadoctor.plan.context import Context
from cudadoctor.plan.index import mirror
from cudadoctor.plan.remedies import REMEDIES, spell_out
from cudadoctor.plan.shell import quote
from cudadoctor.rules import rule_module, rule_of
from cudadoctor.testing import GIB, GONE, Machine, container, linux, windows, wsl

MATRIX = load_matrix()
PIP = "/home/user/proj/.venv/bin/python -m pip install"


def planned(machine: Machine, options: Optional[Options] = None) -> Plan:
    return make_plan(diagnose(machine.facts, MATRIX), MATRIX, options, strict=True)


def commands(plan: Plan) -> list[str]:
    return [quote(step.argv, plan.shell) if step.argv else "" for step in plan.steps]


def after(facts: Facts, steps: tuple[FixStep, ...]) -> Facts:
    """The facts of the machine once the steps were taken, as the steps declare them. What a run had said before them is
    of the past."""
    changes: dict[str, Fact[Any]] = {}
    for step in steps:
        for name, value in step.effect.items():
            changes[name] = absent("effect") if value is None else known(value, "effect")
    past = [name for name in facts if name.startswith(("symptom.", "kernel.log_events"))]
    return facts.without(past).updated(changes)


# -- a table of machines ------------------------------------------------------------------------------------------

OLD = linux().driver("535.183.01", "12.2")
NEW_MACHINE = linux().no_driver()
NOUVEAU = NEW_MACHINE.set({"kernel.modules": ["nouveau", "video"], "kernel.nouveau_blacklisted_by": []})
NOUVEAU = NOUVEAU.set({"pci.gpus": [dict(entry, driver="nouveau") for entry in NOUVEAU.facts.value("pci.gpus")]})


def distribution(machine: Machine, name: str, version: str) -> Machine:
    return machine.set(
        {"system.distribution": name, "system.distribution_like": [], "system.distribution_version": version}
    )


class Row(NamedTuple):
    title: str
    machine: Machine
    mends: str
    steps: tuple[str, ...]
    says: tuple[str, ...] = ()


TABLE = [
    Row(
        "a CPU build beside a GPU",
        linux().torch("2.6.0+cpu").package("torchvision", "0.21.0+cpu"),
        "CD302",
        ("install-torch",),
        (f'{PIP} "torch==2.6.0+cu126" "torchvision==0.21.0+cu126" --index-url https://download.pytorch.org/whl/cu126',),
    ),
    Row(
        "a cu130 build on a 12.x driver",
        OLD,
        "CD303",
        ("install-torch",),
        (
            f'{PIP} "torch==2.14.1+cu126" "torchvision==0.29.1+cu126" --index-url https://download.pytorch.org/whl/cu126',
        ),
    ),
    Row(
        "no torch, and a Python that the system owns",
        linux().no_torch().set({"python.externally_managed": True, "python.environment": "system"}),
        "CD301",
        ("make-venv", "install-torch"),
        (".venv/bin/python -m pip install",),
    ),
    Row(
        "no torch on Windows",
        windows().no_torch(),
        "CD301",
        ("install-torch",),
        ('C:\\Users\\user\\proj\\.venv\\Scripts\\python.exe -m pip install "torch==2.14.1+cu132"',),
    ),
    Row(
        "a companion of another build",
        linux().package("torchvision", "0.29.1+cpu", built_for_cuda=GONE, requires=["torch==2.14.1"]),
        "CD307",
        ("install-companions",),
        (f'{PIP} "torchvision==0.29.1+cu130" --index-url https://download.pytorch.org/whl/cu130',),
    ),
    Row(
        "no driver on Ubuntu",
        NEW_MACHINE,
        "CD101",
        ("install-driver", "reboot"),
        ("sudo apt-get install nvidia-driver-580-open", "sudo reboot"),
    ),
    Row(
        "no driver on Fedora",
        distribution(NEW_MACHINE, "fedora", "43"),
        "CD101",
        ("install-driver", "reboot"),
        ("sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",),
    ),
    Row(
        "no driver on Rocky 9: the stream comes first",
        distribution(NEW_MACHINE, "rocky", "9.5"),
        "CD101",
        ("driver-stream", "install-driver", "reboot"),
        ("sudo dnf module enable nvidia-driver:580-open",),
    ),
    Row(
        "no driver on Arch",
        distribution(NEW_MACHINE, "arch", ""),
        "CD101",
        ("install-driver", "reboot"),
        ("sudo pacman -S --needed nvidia-open-dkms nvidia-utils",),
    ),
    Row(
        "no driver on Debian 12, whose own is too old for CUDA 13",
        distribution(NEW_MACHINE, "debian", "12"),
        "CD101",
        ("install-driver", "reboot"),
        ("sudo apt-get install nvidia-open",),
    ),
    Row(
        "no driver on a distribution that nobody knows",
        distribution(NEW_MACHINE, "solus", "4.5"),
        "CD101",
        ("install-driver", "reboot"),
    ),
    Row(
        "nouveau on Ubuntu",
        NOUVEAU,
        "CD102",
        ("blacklist-nouveau", "install-driver", "initramfs", "reboot"),
        ("/etc/modprobe.d/blacklist-nouveau.conf", "sudo update-initramfs -u"),
    ),
    Row(
        "nouveau on Fedora",
        distribution(NOUVEAU, "fedora", "43"),
        "CD102",
        ("blacklist-nouveau", "install-driver", "initramfs", "reboot"),
        ("sudo dracut --force",),
    ),
    Row(
        "nouveau on Arch",
        distribution(NOUVEAU, "arch", ""),
        "CD102",
        ("blacklist-nouveau", "install-driver", "initramfs", "reboot"),
        ("sudo mkinitcpio -P",),
    ),
    Row(
        "an old card gets its last branch, with proprietary modules",
        linux().gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06").no_driver().no_torch(),
        "CD101",
        ("install-driver", "reboot", "install-torch"),
        ("sudo apt-get install nvidia-driver-580", '"torch==2.14.1+cu126"'),
    ),
    Row(
        "a balanced laptop with a small page file",
        windows().set(
            {
                "windows.power_plan": "381b4222-f694-41f0-9685-ff5bb260df2e",
                "windows.power_plan_name": "Balanced",
                "windows.power_plan_personality": "balanced",
                "memory.swap_total": 2 * GIB,
                "memory.commit_limit": 34 * GIB,
                "memory.page_file": [
                    {"path": "C:\\pagefile.sys", "mode": "fixed", "initial": 2 * GIB, "maximum": 2 * GIB}
                ],
            }
        ),
        "CD603",
        ("enlarge-page-file", "set-power-plan"),
        ("powercfg /setactive 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c", "AutomaticManagedPagefile"),
    ),
    Row(
        "a container without the GPU",
        container()
        .no_driver()
        .set(
            {
                "driver.module_loaded": True,
                "driver.module_version": "580.95.05",
                "driver.procfs_version": "580.95.05",
                "pci.gpus": linux().facts.value("pci.gpus"),
            }
        ),
        "CD701",
        ("container-with-gpu",),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.title)
class TestMachines:
    def test_steps(self, row: Row) -> None:
        plan = planned(row.machine)
        assert tuple(step.id for step in (*plan.steps, *plan.advice)) == row.steps
        text = "\n".join(commands(plan._replace(steps=(*plan.steps, *plan.advice))))
        for part in row.says:
            assert part in text

    def test_names_what_it_mends(self, row: Row) -> None:
        plan = planned(row.machine)
        assert row.mends in {rule for step in (*plan.steps, *plan.advice) for rule in step.mends}

    def test_once_all_steps_are_taken_nothing_that_they_mend_is_left(self, row: Row) -> None:
        plan = planned(row.machine)
        steps = (*plan.steps, *plan.advice)
        mended = {rule for step in steps for rule in step.mends}
        again = diagnose(after(row.machine.facts, steps), MATRIX)
        left = {
            outcome.rule: outcome.message for outcome in again.outcomes if outcome.failed and outcome.rule in mended
        }
        assert not left

    def test_says_what_it_changes_and_how_to_take_it_back(self, row: Row) -> None:
        for step in (*planned(row.machine).steps, *planned(row.machine).advice):
            assert step.title and (step.argv or step.instructions)
            assert step.argv is None or step.changes
            assert step.argv is None or step.undo or step.kind == "reboot"
            assert (step.safety == "manual") == (step.argv is None)

    def test_effects_are_facts_of_the_catalogue(self, row: Row) -> None:
        for step in planned(row.machine).steps:
            for name, value in step.effect.items():
                spec = spec_of(name)
                assert spec is not None, name
                assert value is None or fits(spec, value), (name, value)


@pytest.mark.parametrize("machine", [linux(), windows(), wsl(), container()])
def test_a_healthy_machine_has_nothing_to_do(machine: Machine) -> None:
    assert planned(machine).steps == ()


PASCAL = linux().gpu("NVIDIA GeForce GTX 1080 Ti", "6.1", 11, device_id="1b06")
BLACKWELL = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85")

# Environments that other doctors get wrong: the torch that mends each, or nothing where nothing is wrong.
ENVIRONMENTS = [
    ("cu130 on a GTX 1080 Ti", PASCAL.torch("2.14.1+cu130"), "2.14.1+cu126"),
    ("cu118 on an RTX 5090", BLACKWELL.torch("2.6.0+cu118"), "2.7.1+cu128"),
    ("cu130 on an RTX 4090", linux().torch("2.14.1+cu130"), ""),
    ("cu128 on R550", linux().driver("550.54.14", "12.4").torch("2.9.1+cu128"), ""),
    ("cu118 on R470", linux().driver("470.223.02", "11.4").torch("2.7.1+cu118"), ""),
    ("a CPU build beside a working driver", linux().torch("2.14.1+cpu"), "2.14.1+cu132"),
    (
        "a driver that is too old, and a card that no newer one would help",
        PASCAL.driver("470.223.02", "11.4").torch("2.13.0+cu130"),
        "2.7.1+cu118",
    ),
]


@pytest.mark.parametrize(("title", "machine", "torch"), ENVIRONMENTS, ids=[row[0] for row in ENVIRONMENTS])
def test_environments_that_others_get_wrong(title: str, machine: Machine, torch: str) -> None:
    steps = planned(machine).steps
    assert [step.id for step in steps] == (["install-torch"] if torch else [])
    if torch:
        assert f"torch=={torch}" in (steps[0].argv or ())


def test_a_torch_that_cannot_be_imported_is_made_whole() -> None:
    machine = linux().torch("2.14.1+cu130").set({"torch.missing_libraries": ["libcudart.so.13"]})
    steps = planned(machine).steps
    assert steps and all(step.kind == "install" for step in steps)


class TestOrder:
    def test_one_reboot_between_the_driver_and_the_packages(self) -> None:
        plan = planned(NOUVEAU.no_torch())
        assert [step.id for step in plan.steps] == [
            "blacklist-nouveau",
            "install-driver",
            "initramfs",
            "reboot",
            "install-torch",
        ]

    def test_only_packages_are_safe(self) -> None:
        safe = [step.id for step in planned(NOUVEAU.no_torch()).steps if step.safety == "safe"]
        assert safe == ["install-torch"]

    def test_torch_is_chosen_for_the_driver_that_will_be(self) -> None:
        plan = planned(NEW_MACHINE.no_torch())
        assert plan.resolution is not None and plan.resolution.driver_first is not None
        assert plan.resolution.choice is not None and plan.resolution.choice.variant != "cpu"


class TestTarget:
    def test_conda_torch_goes_before_pips_comes(self) -> None:
        machine = (
            linux()
            .torch("2.6.0", sass=[])
            .set({"torch.origin": "conda", "python.prefix": "/opt/conda/envs/x", "torch.cuda": GONE})
        )
        plan = planned(machine)
        assert [step.id for step in plan.steps][-2:] == ["remove-conda-torch", "install-torch"]
        assert "conda remove -y -p /opt/conda/envs/x" in commands(plan)[-2]

    def test_pip_that_is_missing_is_installed_first(self) -> None:
        plan = planned(linux().torch("2.6.0+cpu").set({"python.pip": GONE, "python.pip_on_path": GONE}))
        assert [step.id for step in plan.steps] == ["install-pip", "install-torch"]

    def test_uv_made_the_environment(self) -> None:
        machine = linux().torch("2.6.0+cpu").set({"python.pip": GONE, "python.uv_environment": True})
        line = commands(planned(machine))[0]
        assert line.startswith("uv pip install --python /home/user/proj/.venv/bin/python ")
        assert "--index https://download.pytorch.org/whl/cu126" in line

    def test_an_environment_that_the_user_may_not_write(self) -> None:
        plan = planned(linux().torch("2.6.0+cpu").set({"disk.environment_writable": False}))
        assert [step.id for step in plan.steps] == ["make-venv", "install-torch"]

    def test_a_broken_torch_of_the_right_build_is_laid_down_anew(self) -> None:
        machine = linux().torch("2.14.1+cu130").set({"torch.missing_libraries": ["libcudart.so.13"]})
        context = Context(machine.facts, MATRIX, Options())
        argv = spell_out("install-torch", context, {})[-1].step.argv
        assert argv is not None and "--force-reinstall" in argv and "torch==2.14.1+cu130" in argv

    def test_a_pin_that_would_break_is_for_a_person_to_look_at(self) -> None:
        machine = linux().gpu("NVIDIA GeForce RTX 5090", "12.0", 32, device_id="2b85").torch("2.5.1+cu124")
        machine = machine.package("oldthing", "1.0", requires=["torch==2.5.1"])
        step = next(step for step in planned(machine).steps if step.id == "install-torch")
        assert step.safety == "careful" and "oldthing 1.0" in step.changes


class TestWishes:
    def test_a_newer_torch_for_a_healthy_machine(self) -> None:
        plan = planned(linux(), Options(torch="2.15.*"))
        assert '"torch==2.15.0+cu132"' in commands(plan)[0]

    def test_what_is_there_already_is_nothing_to_do(self) -> None:
        assert planned(linux(), Options(torch="2.14.1")).steps == ()
        assert planned(linux(), Options(companions=("torchvision",))).steps == ()

    def test_another_package(self) -> None:
        plan = planned(linux(), Options(companions=("torchaudio",)))
        assert '"torchaudio==2.11.0+cu130"' in commands(plan)[0]

    def test_a_package_beside_a_torch_that_fits_leaves_torch_alone(self) -> None:
        plan = planned(linux(), Options(partners=("jax",)))
        assert [step.id for step in plan.steps] == ["install-jax"]
        plan = planned(linux().torch("2.14.0+cu130"), Options(partners=("vllm",)))
        assert [step.id for step in plan.steps][-1] == "install-vllm"

    def test_a_package_that_wants_another_torch_brings_it(self) -> None:
        plan = planned(linux(), Options(partners=("vllm",)))
        assert [step.id for step in plan.steps] == ["install-torch", "install-vllm"]
        assert '"torch==2.14.0+cu130"' in commands(plan)[0]

    def test_the_mirror_that_a_machine_takes_packages_from_is_spoken_of(self) -> None:
        machine = linux().torch("2.6.0+cpu")
        pytorch = machine.set({"pip.index_url": "https://mirror.example/pytorch/whl/cu118"})
        assert "add --mirror https://mirror.example/pytorch/whl" in planned(pytorch).steps[0].instructions
        plain = machine.set({"pip.index_url": "https://mirror.example/simple"})
        assert "takes packages from https://mirror.example/simple as a rule" in planned(plain).steps[0].instructions
        own = machine.set({"pip.index_url": "https://download.pytorch.org/whl/cpu"})
        assert "as a rule" not in planned(own).steps[0].instructions

    def test_a_mirror(self) -> None:
        plan = planned(linux().torch("2.6.0+cpu"), Options(mirror=mirror("https://mirror.example/whl/")))
        assert "--index-url https://mirror.example/whl/cu126" in commands(plan)[0]


# -- hostile facts ------------------------------------------------------------------------------------------------

EVIL = "x; touch /tmp/owned #"

HOSTILE = [
    ("python.executable", linux().torch("2.6.0+cpu").set({"python.executable": f"/home/{EVIL}/bin/python"})),
    ("python.executable with a line break", linux().torch("2.6.0+cpu").set({"python.executable": "/a\nreboot/python"})),
    ("the kernel", NEW_MACHINE.set({"system.kernel_release": EVIL, "kernel.headers": False})),
    ("the distribution", distribution(NEW_MACHINE, EVIL, EVIL)),
    ("driver packages", NEW_MACHINE.set({"driver.packages": [{"name": EVIL, "version": EVIL}]})),
    ("the version of torch", linux().torch(f"2.6.0+{EVIL}")),
    ("a companion's version", linux().torch("2.6.0+cpu").package("torchvision", EVIL)),
    ("the environment's name", linux().torch("2.6.0+cpu").set({"python.environment_name": f"\x1b[2J{EVIL}"})),
    ("the power plan", windows().set({"windows.power_plan": EVIL, "windows.power_plan_personality": "balanced"})),
]


@pytest.mark.parametrize(("what", "machine"), HOSTILE, ids=[what for what, _ in HOSTILE])
def test_hostile_facts_reach_no_command_as_anything_but_one_quoted_word(what: str, machine: Machine) -> None:
    plan = planned(machine)
    for step in (*plan.steps, *plan.advice):
        for word in step.argv or ():
            # A path may hold any letters: it is one word of the vector, and quoting keeps it one.
            assert "touch" not in word or word == f"/home/{EVIL}/bin/python"
            assert word.isprintable()


# -- every remedy of every rule -----------------------------------------------------------------------------------

MACHINES = {
    "linux": linux(),
    "no driver": NEW_MACHINE,
    "windows": windows(),
    "wsl": wsl(),
    "container": container(),
    "nothing known": Machine(Facts({})),
}

NEEDED: dict[str, dict[str, Any]] = {
    "uninstall-package": {"packages": ["xformers"]},
    "reinstall-package": {"pins": {"nvidia-cudnn-cu12": "9.1.0.70"}},
    "remove-conda-package": {"package": "cudatoolkit"},
    "install-libraries": {"requirements": ["nvidia-cudnn-cu12>=9,<10"]},
    "install-framework": {"package": "jax", "version": "0.8.3"},
    "use-wsl": {"requirement": "tensorflow[and-cuda]"},
    "use-python": {"version": "3.12"},
    "load-module": {"module": "nvidia-uvm"},
    "remove-module-blacklist": {"files": ["/etc/modprobe.d/x.conf", "modprobe.blacklist=nvidia"]},
    "restart-service": {"service": "nvidia-fabricmanager"},
    "join-group": {"group": "video"},
    "unset-variable": {"name": "LD_LIBRARY_PATH"},
    "change-variable": {"name": "LD_LIBRARY_PATH", "without": ["/usr/local/cuda/lib64"]},
    "remove-library": {"paths": ["/usr/local/cuda/lib64/stubs/libcuda.so.1"]},
    "add-swap": {"size": 8 * GIB},
    "enlarge-shm": {"size": 8 * GIB},
    "install-package": {"role": "compiler"},
    "manual": {"title": "Look", "text": "Look at it."},
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", REMEDIES)
def test_every_remedy_has_steps_on_every_machine(kind: str, name: str) -> None:
    """Also where nothing is known of it, but that a module is built for a kernel that is known."""
    facts = MACHINES[name].facts
    context = Context(facts, MATRIX, Options(), [kind])
    if kind == "build-module" and not facts["system.kernel_release"].is_known:
        with pytest.raises(ParseError):
            spell_out(kind, context, {})
        return
    drafts = spell_out(kind, context, {**NEEDED.get(kind, {}), "why": "it helps", "effect": {"env.X": "1"}})
    assert drafts
    assert drafts[-1].step.effect["env.X"] == "1"
    assert "It helps." in drafts[0].step.instructions
    for item in drafts:
        assert item.step.argv or item.step.instructions
        quote(item.step.argv or (), context.shell)


def test_shared_memory_is_asked_for_at_the_start_of_the_container_that_a_report_shows() -> None:
    context = Context(MACHINES["nothing known"].facts, MATRIX, Options(), ["enlarge-shm"])
    (step,) = spell_out("enlarge-shm", context, {"size": 8 * GIB, "runtime": "docker"})
    assert step.step.argv is None and "docker run --shm-size=8g" in step.step.instructions


@pytest.mark.parametrize("path", ["/tmp/a\nb/bin/python", "/tmp/\x1b[31m/bin/python"])
def test_a_python_whose_path_goes_into_no_command_is_not_exchanged_for_another(path: str) -> None:
    machine = linux().torch("2.6.0+cpu").set({"python.executable": path})
    plan = make_plan(diagnose(machine.facts, MATRIX), MATRIX)
    assert plan.steps
    assert not [step.argv for step in plan.steps if step.argv and step.argv[0] == "python"]


def test_a_remedy_that_does_not_exist_is_found_in_the_tests_and_survived_in_the_field() -> None:
    outcome = Outcome(
        "CD302", "cpu-only-torch", FAIL, "error", "certain", "environment", "broken", fixes=(Remedy("heal"),)
    )
    report = Report(linux().facts, (outcome,), ("CD302",), "1")
    with pytest.raises(KeyError):
        make_plan(report, MATRIX, strict=True)
    assert [step.safety for step in make_plan(report, MATRIX).steps] == ["manual"]


def test_what_is_only_possible_is_never_run_by_itself() -> None:
    fixes = (Remedy("install-torch"),)
    outcome = Outcome("CD302", "cpu-only-torch", FAIL, "error", "possible", "environment", "broken", fixes=fixes)
    plan = make_plan(Report(linux().no_torch().facts, (outcome,), ("CD302",), "1"), MATRIX)
    assert {step.safety for step in plan.steps} == {"careful"}


# -- the rules' own tables ----------------------------------------------------------------------------------------

RULES = Path(__file__).parent.parent / "rules"


def failing_cases() -> list[Any]:
    found = []
    for path in sorted(RULES.glob("cd[0-9][0-9][0-9]_*.py")):
        spec = importlib.util.spec_from_file_location(f"plan_table_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        rule = "CD" + path.stem[2:5]
        found += [
            pytest.param(rule, case.facts, id=f"{rule}: {case.title}") for case in module.CASES if case.status == FAIL
        ]
    return found


def judged(rule_id: str, facts: Facts) -> Outcome:
    outcome: Outcome = rule_module(rule_id).judge(Case(facts, MATRIX).for_rule(rule_of(rule_id)))
    return outcome


@pytest.mark.parametrize(("rule_id", "facts"), failing_cases())
def test_the_declared_effects_of_a_rules_fix_remove_its_finding(rule_id: str, facts: Facts) -> None:
    outcome = judged(rule_id, facts)
    plan = make_plan(Report(facts, (outcome,), (rule_id,), "1"), MATRIX, strict=True)
    steps = (*plan.steps, *plan.advice)
    if any(step.effect for step in steps):
        again = judged(rule_id, after(facts, steps))
        # What the rule says of another card, and more mildly, is another finding.
        milder = SEVERITIES.index(again.severity) > SEVERITIES.index(outcome.severity)
        assert again.status != FAIL or (milder and again.message != outcome.message), again.message
    for step in steps:
        quote(step.argv or (), plan.shell)
