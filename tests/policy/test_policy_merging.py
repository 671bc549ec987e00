"""Several policies as one: the order, what was taken the place of, and what it all means for a check."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import cudadoctor
from cudadoctor.cli._policy import options_of
from cudadoctor.diagnose import diagnose
from cudadoctor.explain import concept_page
from cudadoctor.matrix import load_matrix
from cudadoctor.model import FAIL, SKIP, UNDECIDED
from cudadoctor.model.catalogue import CATALOGUE, fits, spec_of
from cudadoctor.model.report import exit_status
from cudadoctor.policy import Document, Entry, Policy, merged, read_policy, read_requirement
from cudadoctor.policy.settings import SECTIONS, SETTINGS
from cudadoctor.recipes import recipes
from cudadoctor.rules import judges_requirements, rule_files, rule_name
from cudadoctor.testing import GIB, Machine, linux, node

RULES = {rule: rule_name(rule) for rule in rule_files()}


def policy(*texts: str) -> Policy:
    """The policies of several files, the first called 1.toml."""
    return merged(read_policy(text, f"{number}.toml", RULES) for number, text in enumerate(texts, 1))


def places(one: Policy) -> dict[str, list[str]]:
    """By name: the place of the setting that holds, then those of which it took the place."""
    return {name: [held.entry.source, *(gone.source for gone in held.overrode)] for name, held in one.held.items()}


def test_the_later_wins_key_by_key() -> None:
    one = policy("[gpu]\ncount = 4\nmig = false", "[gpu]\ncount = 8", "[driver]\ncuda = '12.6'")
    assert places(one) == {
        "gpu.count": ["2.toml:2", "1.toml:2"],
        "gpu.mig": ["1.toml:3"],
        "driver.cuda": ["3.toml:2"],
    }
    assert one.value("gpu.count") == "==8"
    assert one.sources == ("1.toml", "2.toml", "3.toml")


def test_three_of_a_key_are_all_remembered() -> None:
    one = policy("[gpu]\ncount = 1", "[gpu]\ncount = 2", "\n[gpu]\ncount = 3")
    assert places(one) == {"gpu.count": ["3.toml:3", "2.toml:2", "1.toml:2"]}


def test_what_is_asked_for_becomes_facts_with_their_lines() -> None:
    facts = policy("[gpu]\ncount = 8\n[check]\nfail_on = 'info'\n[rules]\nCD115 = 'error'").facts
    assert {name: (fact.value, fact.source) for name, fact in facts.items()} == {
        "policy.gpu.count": ("==8", "1.toml:2")
    }


class TestRulesOfTheDoctor:
    def test_a_later_file_may_ignore_what_an_earlier_one_asks_for(self) -> None:
        one = policy("[rules]\nCD117 = 'error'", "[ignore]\nCD117 = 'by the daemon'")
        assert one.severities == {} and one.ignored == {"CD117": "by the daemon"}
        assert places(one) == {"ignore.CD117": ["2.toml:2", "1.toml:2"]}

    def test_and_ask_for_what_it_ignores(self) -> None:
        one = policy("[ignore]\nCD117 = 'by the daemon'", "[rules]\nCD117 = { required = true }")
        assert one.ignored == {} and one.required == ("CD117",) and one.severities == {}

    def test_an_option_wins_over_every_file(self) -> None:
        given = options_of("warning", True, 75, ["machine,allocation"], 5.0, ["CD117=mine"])
        one = merged(
            [
                read_policy("[check]\nfail_on = 'info'\ntimeout = 60\n[rules]\nCD117 = 'error'", "1.toml", RULES),
                Document("other options", tuple(given)),
            ]
        )
        assert {name: held.entry.value for name, held in one.held.items()} == {
            "check.fail_on": "warning",
            "check.timeout": 5.0,
            "check.unknown_ok": True,
            "check.retry_code": 75,
            "check.blame": ["machine", "allocation"],
            "ignore.CD117": "mine",
        }

    def test_options_that_were_not_given_leave_the_files_alone(self) -> None:
        assert options_of(None, False, None, [], None, []) == []


# -- what it does to a verdict ----------------------------------------------------------------------------------------


def verdict(machine: Machine, text: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit status of a check by a policy, and what did not pass: status and severity by rule."""
    one = policy(text)
    report = diagnose(
        machine.facts.updated(one.facts),
        load_matrix(),
        ignore=one.ignored,
        severities=one.severities,
        required=one.required,
    )
    odd = {o.rule: (o.status, o.severity) for o in report.outcomes if o.status in (FAIL, UNDECIDED)}
    return exit_status(report.outcomes, one.value("check.fail_on", "error")), odd


ERRORS = {"gpu.3.ecc_uncorrected": 2}


def test_a_machine_that_has_what_is_asked_for() -> None:
    assert verdict(node(8), "[gpu]\ncount = 8")[0] == 0


def test_a_rule_without_a_policy_is_not_judged() -> None:
    report = diagnose(node(8).facts, load_matrix())
    assert not [outcome.rule for outcome in report.outcomes if outcome.rule.startswith("CD0")]
    assert diagnose(node(8).facts, load_matrix(), select=["CD001"]).outcomes[0].status == SKIP


def test_one_that_has_not() -> None:
    status, odd = verdict(node(7), "[gpu]\ncount = 8")
    assert status == 1 and odd["CD001"] == (FAIL, "error")


def test_what_cannot_be_told_is_undecided() -> None:
    status, odd = verdict(node(8).unknown("gpu.2.temperature"), "[gpu]\ntemperature = 60")
    assert status == 3 and odd["CD014"] == (UNDECIDED, "error")


def test_a_requirement_that_only_warns() -> None:
    hot = node(8).set({"gpu.2.temperature": 75})
    assert verdict(hot, "[gpu]\ntemperature = 60\n[rules]\nCD014 = 'warning'")[0] == 0
    assert verdict(hot, "[gpu]\ntemperature = 60\n[rules]\nCD014 = 'warning'\n[check]\nfail_on = 'warning'")[0] == 1


def test_a_finding_that_is_an_error_here() -> None:
    assert verdict(node(8).set(ERRORS), "[gpu]\ncount = 8") == (0, {"CD115": (FAIL, "warning")})
    assert verdict(node(8).set(ERRORS), "[rules]\nCD115 = 'error'") == (1, {"CD115": (FAIL, "error")})
    assert verdict(node(8).set(ERRORS), "[ignore]\nCD115 = 'known'") == (0, {})


def test_what_a_program_did_is_no_error_of_the_machine_by_any_policy() -> None:
    log = "NVRM: Xid (PCI:0000:01:00): {}, pid=1, name=python"
    for xid, found in (("31", (0, {"CD114": (FAIL, "info")})), ("119", (1, {"CD114": (FAIL, "error")}))):
        machine = node(8).log("xid", log.format(xid), bus_id="0000:01:00.0", number=xid)
        assert verdict(machine, "[rules]\nCD114 = 'error'") == found


def test_a_hint_of_a_rule_that_gives_hints_is_what_the_policy_says() -> None:
    lazy = node(1).set({"gpu.0.persistence_mode": False})
    assert verdict(lazy, "[rules]\nCD117 = 'error'") == (1, {"CD117": (FAIL, "error")})


class TestRequiredRules:
    REQUIRED = "[rules]\nCD115 = { required = true }"

    def test_one_that_passes(self) -> None:
        assert verdict(node(8), self.REQUIRED) == (0, {})

    def test_one_that_is_undecided(self) -> None:
        names = [f"gpu.{number}.{key}" for number in range(8) for key in ("ecc_mode", "ecc_uncorrected")]
        machine = node(8).unknown(*names)
        assert verdict(machine, "[gpu]\ncount = 8")[0] == 0
        assert verdict(machine, self.REQUIRED)[0] == 3

    def test_one_that_was_skipped_because_nothing_could_be_asked(self) -> None:
        nobody_answers = linux().unknown("driver.nvml_version", "driver.smi_version", "gpu.count", "smi.gpus")
        assert "CD115" not in verdict(nobody_answers, "")[1]
        assert verdict(nobody_answers, self.REQUIRED)[1]["CD115"][0] == UNDECIDED

    def test_one_whose_log_nobody_may_read(self) -> None:
        unread = node(8).unknown("kernel.log_events")
        for rule in ("CD114", "CD122"):
            assert verdict(unread, f"[rules]\n{rule} = 'error'") == (0, {})
            assert verdict(unread, f"[rules]\n{rule} = {{ required = true }}") == (3, {rule: (UNDECIDED, "error")})
        one_gpu = node(1).unknown("kernel.log_events")
        assert verdict(one_gpu, "[rules]\nCD122 = { required = true }") == (0, {})

    def test_one_where_nobody_counted_the_gpus(self) -> None:
        machine = node(8).unknown("gpu.count", "smi.gpus")
        assert verdict(machine, "[rules]\nCD502 = { required = true }")[1]["CD502"][0] == UNDECIDED

    def test_one_that_has_nothing_to_judge_is_fine(self) -> None:
        # No NVSwitch here, and the driver answers: there is nothing that the fabric manager would have to do.
        assert verdict(linux(), "[rules]\nCD116 = { required = true }")[0] == 0


# -- one vocabulary ---------------------------------------------------------------------------------------------------


def test_every_requirement_is_a_fact_and_has_a_rule() -> None:
    asked = {f"policy.{name}": setting for name, setting in SETTINGS.items() if setting.rule is not None}
    assert set(asked) == {name for name in CATALOGUE if name.startswith("policy.")}
    assert {setting.rule for setting in asked.values()} == set(filter(judges_requirements, rule_files()))


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.rule is not None])
def test_what_is_read_fits_the_fact(name: str) -> None:
    spec = spec_of(f"policy.{name}")
    assert spec is not None
    kinds = {"bool": ("true", "false"), "int": ("16", "70GiB", "60", "5"), "list[str]": ("H100", "matmul")}
    words = ("bf16", "full", "vllm", "flash", "fsdp", "layers")
    for text in (*kinds.get(spec.type, ()), "12.6", "8", "64GiB", *words):
        try:
            entry = read_requirement(f"{name}={text}", RULES)
        except ValueError:
            continue
        assert fits(spec, entry.value), f"{name} is a {spec.type}, and {text} was read as {entry.value!r}"
        assert entry.text
        return
    pytest.fail(f"no value was taken for {name}")


def test_the_example_names_every_key_and_can_be_used() -> None:
    example = recipes()["policy/preflight"].text
    whole = re.sub(r"^# (?=[a-z_]+ = |\[)", "", example, flags=re.MULTILINE)
    named = {entry.name for entry in read_policy(whole, "preflight.toml", RULES).entries}
    assert named >= set(SETTINGS)
    assert merged([read_policy(example, "preflight.toml", RULES)]).facts["policy.gpu.memory_free"].value == 70 * GIB


def test_the_page_names_every_key() -> None:
    page = concept_page("policy")
    for section in SECTIONS:
        assert f"[{section}]" in page
    for name in SETTINGS:
        assert re.search(rf"\b{name.partition('.')[2]}\b", page), name


def test_without_a_policy_nothing_of_it_is_imported() -> None:
    import subprocess

    script = (
        "import sys\nfrom cudadoctor.cli import _checking, _diagnosis\nfrom cudadoctor.rules import load_rules\n"
        "load_rules()\n"
        "print([name for name in sys.modules if '.policy' in name or '.cd0' in name or '.cd801' in name or "
        "'.fit' in name or name in ('tomllib', 'tomli')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(cudadoctor.__file__).parent.parent,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_entries_of_rules_are_read_by_people() -> None:
    assert Entry("rules.CD115", {"severity": "error", "required": True}, "x").text == "error, required"
    assert Entry("rules.CD115", {"severity": None, "required": True}, "x").text == "required"
