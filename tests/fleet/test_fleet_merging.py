"""Who is there, who is missing, who is in one group, who is the odd one out, and the exit status of it all."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from fleet_nodes import a100, facts_line, fleet_of, node, outcome, report_line

from cudadoctor.fleet.model import FleetReport
from cudadoctor.testing import GONE, Machine


def seen(report: FleetReport) -> dict[str, tuple[Optional[str], dict[str, tuple[str, ...]]]]:
    """The differences by what they are in: the norm (None: a split), and the others with their nodes."""
    return {
        difference.what: (
            None if difference.norm is None else difference.norm.text,
            {value.text: value.nodes for value in difference.others},
        )
        for difference in report.differences
    }


def with_driver(machine: Machine, version: str) -> Machine:
    return machine.driver(version, "13.0")


def drivers(*versions: str) -> list[str]:
    return [facts_line(with_driver(node(f"n{number}"), version)) for number, version in enumerate(versions, 1)]


OLD, NEW, OTHER = "580.65.06", "580.95.05", "580.105.08"

DRIVERS = [
    ("one node", [NEW], {}),
    ("alike", [NEW, NEW, NEW], {}),
    ("two nodes that differ are split", [NEW, OLD], {"driver": (None, {OLD: ("n2",), NEW: ("n1",)})}),
    ("one in three is odd", [NEW, OLD, NEW], {"driver": (NEW, {OLD: ("n2",)})}),
    ("half and half is a split", [NEW, OLD] * 2, {"driver": (None, {OLD: ("n2", "n4"), NEW: ("n1", "n3")})}),
    ("3 in 5 is no norm", [NEW] * 3 + [OLD] * 2, {"driver": (None, {NEW: ("n1", "n2", "n3"), OLD: ("n4", "n5")})}),
    ("four in six is one", [NEW, NEW, NEW, NEW, OLD, OTHER], {"driver": (NEW, {OTHER: ("n6",), OLD: ("n5",)})}),
    ("three ways", [NEW, OLD, OTHER], {"driver": (None, {OTHER: ("n3",), OLD: ("n2",), NEW: ("n1",)})}),
]  # fmt: skip


@pytest.mark.parametrize("versions, found", [row[1:] for row in DRIVERS], ids=[row[0] for row in DRIVERS])
def test_the_norm_and_the_odd_ones(versions: list[str], found: dict[str, Any]) -> None:
    assert seen(fleet_of(drivers(*versions))) == found


USUAL = {
    "system.kernel_release": "6.8.0-48-generic",
    "package.nvidia-nccl-cu13.version": "2.28.9",
    "memory.total": 64 << 30,
}
ONE_CARD = "NVIDIA H100 80GB HBM3"


def usual(name: str) -> Machine:
    """A node with two cards, as all of its rack."""
    return node(name, 2).set(USUAL)


def with_firmware(machine: Machine, version: str) -> Machine:
    cards = [{**card, "firmware": version} for card in machine.facts["procfs.gpus"].get()]
    return machine.set({"procfs.gpus": cards})


N9 = usual("n9")
ODD: list[tuple[str, Machine, dict[str, tuple[str, str]]]] = [
    ("nothing", N9, {}),
    ("torch", N9.torch("2.14.0+cu130"), {"torch": ("2.14.1+cu130", "2.14.0+cu130")}),
    ("CUDA of torch", N9.set({"torch.cuda": "12.6"}), {"CUDA of torch": ("13.0", "12.6")}),
    ("kernel", N9.set({"system.kernel_release": "6.8.0-31"}), {"kernel": ("6.8.0-48-generic", "6.8.0-31")}),
    ("NCCL", N9.set({"package.nvidia-nccl-cu13.version": "2.27.3"}), {"NCCL": ("2.28.9", "2.27.3")}),
    ("Python", N9.set({"python.version": "3.12.99"}), {"Python": ("3.12.3", "3.12.99")}),
    ("a GPU less", node("n9", 1).set(USUAL), {"GPUs": (f"2x {ONE_CARD}", f"1x {ONE_CARD}")}),
    ("clocks", N9.set({"gpu.1.clock_sm_max": 1410}), {"highest SM clock": ("3120 MHz", "1x 1410 MHz, 1x 3120 MHz")}),
    ("power", N9.set({f"gpu.{n}.power_limit": 300.0 for n in (0, 1)}), {"power limit": ("450 W", "300 W")}),
    ("PCIe", N9.set({"gpu.1.pcie_width_max": 8}), {"PCIe lanes": ("16", "1x 16, 1x 8")}),
    ("ECC", N9.set({"gpu.0.ecc_mode": True, "gpu.1.ecc_mode": True}), {"ECC": ("none", "on")}),
    ("MIG", N9.set({"gpu.0.mig_mode": True, "gpu.0.mig_devices": 7}), {}),
    ("memory", N9.set({"memory.total": 32 << 30}), {"memory": ("about 64 GiB", "about 32 GiB")}),
    ("firmware", with_firmware(N9, "580.65.06"), {"GPU firmware": ("580.95.05", "580.65.06")}),
    ("errors", N9.set({"gpu.1.ecc_uncorrected": 3}), {}),
    (
        "what comes and goes",
        N9.set({"gpu.0.temperature": 61, "gpu.0.throttle_reasons": ["sw_power_cap"], "gpu.0.clock_sm": 1980}),
        {},
    ),
    ("a little less memory", N9.set({"memory.total": (64 << 30) - (700 << 20)}), {}),
]


@pytest.mark.parametrize("odd, found", [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_in_what_a_node_is_unlike_the_others(odd: Machine, found: dict[str, tuple[str, str]]) -> None:
    if odd.facts["procfs.gpus"] == N9.facts["procfs.gpus"] or odd.facts.value("gpu.count") == 1:
        odd = with_firmware(odd, "580.95.05")
    lines = [facts_line(with_firmware(usual(f"n{number}"), "580.95.05")) for number in range(1, 6)]
    shown = seen(fleet_of([*lines, facts_line(odd)]))
    assert {what: (norm, next(iter(others))) for what, (norm, others) in shown.items()} == found
    assert all(nodes == ("n9",) for _, others in shown.values() for nodes in others.values())


def test_what_is_unknown_of_a_node_is_no_difference() -> None:
    silent = node("n3").unknown("driver.module_version", "driver.procfs_version", "driver.nvml_version")
    silent = silent.unknown("driver.smi_version", "gpu.0.power_limit", "torch.cuda", "system.kernel_release")
    assert fleet_of([facts_line(machine) for machine in (node("n1"), node("n2"), silent)]).differences == ()


def test_that_torch_is_not_there_is_one() -> None:
    assert seen(fleet_of([facts_line(m) for m in (node("n1"), node("n2"), node("n3").no_torch())]))["torch"] == (
        "2.14.1+cu130",
        {"none": ("n3",)},
    )


def test_only_nodes_with_the_same_gpus_are_compared() -> None:
    a100s = [facts_line(with_driver(a100(f"a{number}"), OLD)) for number in range(3)]
    found = fleet_of([*drivers(NEW, NEW, NEW, NEW), *a100s])
    assert found.differences == ()
    assert [(kind.label, kind.nodes) for kind in found.kinds] == [
        ("NVIDIA H100 80GB HBM3", ("n1", "n2", "n3", "n4")),
        ("NVIDIA A100-SXM4-80GB", ("a0", "a1", "a2")),
    ]


def test_a_node_whose_driver_is_down_is_still_of_its_kind() -> None:
    found = fleet_of([facts_line(node("n1")), facts_line(node("n2").not_loaded())])
    assert [kind.nodes for kind in found.kinds] == [("n1", "n2")]
    only = fleet_of([facts_line(node("n1").not_loaded())])
    assert only.kinds[0].label == "NVIDIA H100 SXM5 80 GB"


# -- groups -----------------------------------------------------------------------------------------------------------

LOST = outcome()
MISMATCH = outcome("CD105", "driver-library-mismatch")
WARNED = outcome("CD117", "persistence-mode-off", severity="warning")
OPEN = outcome("CD501", "no-nvidia-gpu", "unknown", chain=True)
CRASHED = outcome("CD601", "swap-too-small", "crash", blame="tool")
THEIRS = outcome("CD302", "cpu-only-torch", blame="environment")


def test_nodes_are_grouped_by_what_became_of_them() -> None:
    lines = [
        *(report_line(f"n{number}") for number in (1, 2, 10)),
        report_line("n3", LOST),
        report_line("n4", MISMATCH, WARNED),
        report_line("n5", OPEN),
        report_line("n6", CRASHED),
        report_line("n7", LOST, WARNED),
        report_line("n8", WARNED),
    ]
    found = [
        (group.judgement.state, [f.rule for f in group.judgement.counted], group.nodes)
        for group in fleet_of(lines).groups
    ]
    assert found == [
        ("fail", ["CD113"], ("n3", "n7")),
        ("fail", ["CD105"], ("n4",)),
        ("crash", [], ("n6",)),
        ("undecided", [], ("n5",)),
        ("fine", [], ("n1", "n2", "n10")),
        ("fine", [], ("n8",)),
    ]


EXITS: list[tuple[str, list[str], dict[str, Any], int, str]] = [
    ("all fine", [report_line("n1"), report_line("n2")], {}, 0, "OK"),
    ("warnings", [report_line("n1", WARNED)], {}, 0, "OK"),
    ("warnings that count", [report_line("n1", WARNED)], {"fail_on": "warning"}, 1, "FAIL"),
    ("a node fails", [report_line("n1", LOST), report_line("n2")], {}, 1, "FAIL"),
    ("an undecided node", [report_line("n1", OPEN), report_line("n2")], {}, 3, "????"),
    ("an undecided node that may be", [report_line("n1", OPEN)], {"unknown_ok": True}, 0, "OK"),
    ("a crash is no verdict", [report_line("n1", CRASHED), report_line("n2")], {}, 3, "????"),
    ("a failure goes before it", [report_line("n1", CRASHED), report_line("n2", LOST)], {}, 1, "FAIL"),
    ("an unreadable snapshot", [report_line("n1"), "{\n"], {}, 3, "????"),
    ("and it stays one", [report_line("n1"), "{\n"], {"unknown_ok": True}, 3, "????"),
    ("a missing node", [report_line("n1")], {"expected": ["n1", "n2"]}, 1, "FAIL"),
    ("an unexpected node is no fault", [report_line("n1"), report_line("n2")], {"expected": ["n1"]}, 0, "OK"),
    ("nodes that differ", drivers(NEW, NEW, OLD), {}, 0, "OK"),
    ("nodes that differ, and may not", drivers(NEW, NEW, OLD), {"fail_on": "warning"}, 1, "FAIL"),
    ("the machines' fault", [report_line("n1", LOST), report_line("n2", MISMATCH)], {"retry_code": 75}, 75, "FAIL"),
    ("missing is the machine's", [report_line("n1")], {"expected": ["n1", "n2"], "retry_code": 75}, 75, "FAIL"),
    ("not only theirs", [report_line("n1", LOST), report_line("n2", THEIRS)], {"retry_code": 75}, 1, "FAIL"),
    ("nothing to retry", [report_line("n1")], {"retry_code": 75}, 0, "OK"),
]  # fmt: skip


@pytest.mark.parametrize("lines, options, status, word", [row[1:] for row in EXITS], ids=[row[0] for row in EXITS])
def test_the_exit_status(lines: list[str], options: dict[str, Any], status: int, word: str) -> None:
    found = fleet_of(lines, **options)
    assert (found.exit, found.word) == (status, word), found.verdict


VERDICTS: list[tuple[list[str], dict[str, Any], str]] = [
    ([report_line("n1")], {}, "nothing found that breaks CUDA on 1 node"),
    (
        [report_line(f"node{number:03d}", *([LOST] if number in (17, 33) else [])) for number in range(1, 41)],
        {},
        "2 of 40 nodes cannot run CUDA: node[017,033] gpu-lost (CD113)",
    ),
    ([report_line("n1", LOST), report_line("n2", LOST)], {}, "all 2 nodes cannot run CUDA: n[1-2] gpu-lost (CD113)"),
    (
        [report_line("n1", outcome("CD001", "gpu-count-differs"))],
        {},
        "1 of 1 node fails: n1 gpu-count-differs (CD001)",
    ),
    ([report_line("n1")], {"expected": ["n1", "n2", "n3"]}, "2 of 3 nodes are missing: n[2-3]"),
    ([report_line("n1", OPEN)], {}, "undecided: 1 of 1 node has no verdict: n1, no-nvidia-gpu it is (CD501)"),
    (drivers(NEW, NEW, OLD), {}, "nothing found that breaks CUDA on 3 nodes (1 node unlike the others: below)"),
    (drivers(NEW, OLD), {}, "nothing found that breaks CUDA on 2 nodes (nodes split in driver: below)"),
    (drivers(NEW, NEW, OLD), {"fail_on": "warning"}, "the nodes differ in driver (580.95.05, 580.65.06) (CD707)"),
]


@pytest.mark.parametrize("lines, options, says", VERDICTS, ids=[row[2] for row in VERDICTS])
def test_the_first_line(lines: list[str], options: dict[str, Any], says: str) -> None:
    assert fleet_of(lines, **options).verdict == says


def test_a_fleet_that_falls_to_pieces_still_has_a_first_line_to_read() -> None:
    lines = [report_line(f"n{number}", outcome(f"CD{100 + number % 9}", "this-and-that")) for number in range(2000)]
    assert len(fleet_of(lines, [f"m{number}" for number in range(0, 9000, 2)]).verdict) < 600


# -- who is there -----------------------------------------------------------------------------------------------------


def test_missing_and_unexpected_nodes() -> None:
    found = fleet_of([report_line("n1"), report_line("n7")], ["n1", "n2", "n3"])
    assert (found.expected, found.missing, found.unexpected) == (3, ("n2", "n3"), ("n7",))
    assert found.bad == ("n2", "n3") and found.good == ("n1", "n7")


@pytest.mark.parametrize(
    "told, expected, missing",
    [
        ("n1.cluster.example", ["n1"], ()),
        ("n1", ["n1.cluster.example"], ()),
        ("n1.a.example", ["n1.b.example"], ("n1.b.example",)),
        ("N1", ["n1"], ("n1",)),
        ("n1.x", ["n1", "n1.x"], ("n1",)),
    ],
)
def test_a_host_with_its_domain_is_the_same_host(told: str, expected: list[str], missing: tuple[str, ...]) -> None:
    assert fleet_of([report_line(told)], expected).missing == missing


def test_bad_and_good_leave_out_whoever_has_no_verdict() -> None:
    lines = [report_line("n1", LOST), report_line("n2", OPEN), report_line("n3", CRASHED), report_line("n4")]
    found = fleet_of(lines, ["n1", "n2", "n3", "n4", "n5"])
    assert (found.bad, found.good) == (("n1", "n5"), ("n4",))


def test_odd_nodes_are_bad_where_their_difference_counts() -> None:
    assert fleet_of(drivers(NEW, NEW, NEW, OLD)).bad == ()
    assert fleet_of(drivers(NEW, NEW, NEW, OLD), fail_on="warning").bad == ("n4",)
    assert fleet_of(drivers(NEW, OLD), fail_on="warning").bad == ()


def test_of_two_snapshots_of_a_node_the_newer_counts() -> None:
    old = report_line("n1", LOST, system__date="2026-11-29")
    new = report_line("n1", system__date="2026-11-30")
    for lines in ([old, new], [new, old]):
        found = fleet_of(lines)
        assert found.exit == 0
        assert [str(repeated.counts) for repeated in found.repeated] == [f"nodes.ndjson:{lines.index(new) + 1}"]
    # On the same day the one that was read last.
    assert fleet_of([report_line("n1", LOST), report_line("n1")]).exit == 0
    assert fleet_of([report_line("n1"), report_line("n1", LOST)]).exit == 1


def test_nodes_without_a_name_are_named_by_their_file() -> None:
    assert [n.name for n in fleet_of([report_line(None)]).nodes] == ["nodes"]
    assert [n.name for n in fleet_of([report_line(None), report_line(None)]).nodes] == ["nodes:1", "nodes:2"]


def test_who_judged_is_only_told_where_it_was_not_the_same_everywhere() -> None:
    other = report_line("n2").replace('"1.2.3"', '"1.2.2"')
    assert fleet_of([report_line("n1")]).versions == ()
    assert [(v.tool, v.nodes) for v in fleet_of([report_line("n1"), other]).versions] == [
        ("1.2.3", ("n1",)),
        ("1.2.2", ("n2",)),
    ]


def test_states_are_shown_and_are_no_disagreement() -> None:
    hot = node("n3").set({"gpu.0.throttle_reasons": ["hw_thermal_slowdown"], "gpu.0.mig_mode": GONE})
    found = fleet_of([facts_line(machine) for machine in (node("n1"), node("n2"), hot)])
    assert seen(found) == {"clocks held down": ("no", {"hw thermal slowdown": ("n3",)})}
    assert found.disagreement is None
