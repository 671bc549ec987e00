"""What a person reads on the screen: whole screens, and the promises that hold for every one of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import healthy, outcome, replaced, view

from cudadoctor.model import Evidence, FixStep
from cudadoctor.model.outcome import CERTAINTIES, SEVERITIES, STATUSES
from cudadoctor.render.chain import CHAIN, subject_of
from cudadoctor.render.style import Style, columns
from cudadoctor.render.text import render
from cudadoctor.render.view import View
from cudadoctor.testing import GONE, Machine, linux, windows

CPU_STEP = FixStep(
    id="install-torch",
    title="Replace the build without CUDA",
    kind="install",
    argv=(
        "/home/user/proj/.venv/bin/python",
        "-m",
        "pip",
        "install",
        "torch==2.6.0+cu126",
        "--index-url",
        "https://download.pytorch.org/whl/cu126",
    ),
    needs=("network", f"download:{2_500_000_000}"),
    safety="safe",
)


def screen(shown: View) -> str:
    return render(shown)


def cpu_build() -> View:
    failed = outcome(
        "CD302",
        "fail",
        "torch 2.6.0+cpu is built without CUDA: it cannot use the NVIDIA GeForce RTX 4090",
        evidence=(Evidence("torch.version", "2.6.0+cpu", "torch/version.py"), Evidence("torch.cuda", None, "")),
        not_helping=("a CUDA toolkit (nvcc) or another driver: a build without CUDA never looks for a GPU",),
    )
    skipped = outcome("CD303", "skip", "cannot be judged while CD302 stands", because_of="CD302")
    swap = outcome("CD601", "fail", "no swap: a data loader that outgrows RAM gets killed", severity="warning")
    machine = linux().torch("2.6.0+cpu").set({"memory.swap_total": 0})
    outcomes = replaced(failed, skipped, swap, outcome("CD304", "skip", "no code to judge"))
    return view(*outcomes, machine=machine, roots=("CD302",), steps=(CPU_STEP,))


def test_a_build_without_cuda() -> None:
    assert screen(cpu_build()) == CPU_SCREEN


CPU_SCREEN = """\
FAIL  torch 2.6.0+cpu is built without CUDA: it cannot use the NVIDIA GeForce
      RTX 4090

  ok    GPU       NVIDIA GeForce RTX 4090, 24 GiB, sm_89            made by hand
  ok    driver    580.95.05, open kernel module                     made by hand
  ok    smi       nvidia-smi answers; its "CUDA Version: 13.0" is the newest
                  CUDA that the driver serves, not an installed one
  skip  CUDA      cannot be judged while CD302 stands                  see CD302
  FAIL  wheel     torch 2.6.0+cpu, a build without CUDA             made by hand
                  torch.version: 2.6.0+cpu                      torch/version.py
                  torch.cuda: not there
  ok    GPU code  gpu-dropped-from-wheel: pass                             CD305
  warn  system    Ubuntu 24.04.3 LTS, x86_64, 64 GiB RAM, no swap   made by hand
                  no swap: a data loader that outgrows RAM gets killed     CD601
  ...   1 more ok, 1 skipped (--verbose)

fix   # Replace the build without CUDA (network, downloads 2.3 GiB)
      /home/user/proj/.venv/bin/python -m pip install "torch==2.6.0+cu126" --index-url https://download.pytorch.org/whl/cu126
not   a CUDA toolkit (nvcc) or another driver: a build without CUDA never looks
      for a GPU
more  cudadoctor explain CD302; cudadoctor fix
"""


def test_a_healthy_machine() -> None:
    assert screen(view(*healthy())) == HEALTHY_SCREEN


HEALTHY_SCREEN = """\
OK    torch 2.14.1+cu130 runs on NVIDIA GeForce RTX 4090, driver 580.95.05

  ok    GPU       NVIDIA GeForce RTX 4090, 24 GiB, sm_89            made by hand
  ok    driver    580.95.05, open kernel module                     made by hand
  ok    smi       nvidia-smi answers; its "CUDA Version: 13.0" is the newest
                  CUDA that the driver serves, not an installed one
  ok    CUDA      driver 580.95.05 serves every CUDA 13.x build            CD303
  ok    wheel     torch 2.14.1+cu130, built with CUDA 13.0          made by hand
  ok    GPU code  the wheel has code for every GPU                         CD304
"""


def first_line(shown: View) -> str:
    return screen(shown).partition("\n")[0]


def test_the_root_cause_is_the_first_line_and_the_rest_is_below() -> None:
    other = outcome("CD106", "fail", "the driver does not answer", certainty="likely")
    root = outcome("CD305", "fail", "torch has no code for this GPU")
    shown = view(*replaced(root, other), roots=("CD305", "CD106"))
    assert first_line(shown) == "FAIL  torch has no code for this GPU"
    assert screen(shown).count("torch has no code for this GPU") == 1
    assert "likely: the driver does not answer" in screen(shown)
    assert "cudadoctor explain CD305; cudadoctor explain CD106" in screen(shown)


def test_a_likely_cause_is_said_to_be_likely() -> None:
    shown = view(*replaced(outcome("CD106", "fail", "it does not answer", certainty="possible")), roots=("CD106",))
    assert first_line(shown) == "FAIL  possible: it does not answer"


def test_what_follows_from_another_cause_is_not_called_likely() -> None:
    """It is a consequence that is seen, and its cause stands beside it."""
    root = outcome("CD101", "fail", "no driver is installed")
    follows = outcome("CD106", "fail", "it does not answer", certainty="likely", because_of="CD101")
    shown = screen(view(*replaced(root, follows), roots=("CD101",)))
    assert "likely" not in shown
    assert re.search(r"it does not answer +CD106, from CD101", shown)


def test_a_warning_says_what_may_come_of_it_in_its_own_words() -> None:
    warned = outcome("CD601", "fail", "no swap: a loader may be killed", severity="warning", certainty="possible")
    assert re.search(r"^ +no swap: a loader may be killed +CD601$", screen(view(*healthy(), warned)), re.M)


def test_undecided_says_what_is_missing_and_is_never_ok() -> None:
    outcomes = replaced(outcome("CD303", "unknown", "cannot tell the driver's version: permission denied"))
    shown = view(*outcomes)
    assert first_line(shown) == "????  undecided: cannot tell the driver's version: permission denied"
    assert re.search(r"^  \?{4}  CUDA ", screen(shown), re.M)
    accepted = view(*outcomes, unknown_ok=True)
    assert accepted.exit == 0
    assert first_line(accepted).startswith("????  undecided")
    assert "(accepted: --unknown-ok)" in " ".join(screen(accepted).split())


def test_an_unknown_beside_the_chain_is_shown_and_counts_for_nothing() -> None:
    shown = view(*healthy(), outcome("CD601", "unknown", "cannot tell how much swap there is"))
    assert first_line(shown).startswith("OK    torch ")
    assert "????  system" in screen(shown)


def test_our_own_bug_is_named_as_ours() -> None:
    shown = view(*replaced(outcome("CD304", "crash", "cudadoctor's own rule CD304 failed: KeyError: 'x'")))
    assert shown.exit == 2
    assert first_line(shown) == "BUG   cudadoctor's own rule CD304 failed: KeyError: 'x'"


def test_a_warning_makes_the_verdict_only_where_it_is_asked_to() -> None:
    warned = (*healthy(), outcome("CD601", "fail", "no swap", severity="warning"))
    assert first_line(view(*warned)).startswith("OK    torch 2.14.1+cu130 runs on")
    assert "(1 warning below)" in " ".join(screen(view(*warned)).split())
    assert first_line(view(*warned, fail_on="warning")) == "FAIL  no swap"


@pytest.mark.parametrize("missing", ["CD302", "CD303", "CD305", "CD501"])
def test_nobody_says_that_torch_runs_where_a_link_was_not_judged(missing: str) -> None:
    shown = view(*(o for o in healthy() if o.rule != missing))
    assert first_line(shown) == "OK    nothing found that breaks CUDA"


def test_three_lines_answer_why_is_available_is_false() -> None:
    labels = re.findall(r"^  (?:ok|FAIL|skip|info|\?{4}) +(\S+) ", screen(cpu_build()), re.M)
    assert [label for label in labels if label in ("smi", "CUDA", "wheel")] == ["smi", "CUDA", "wheel"]


def no_driver() -> Machine:
    return linux().set(
        {
            "driver.module_loaded": False,
            **{
                f"driver.{name}": GONE
                for name in ("module_version", "procfs_version", "nvml_version", "smi_version", "smi_cuda", "nvml_cuda")
            },
            "driver.smi_failure": "no-driver",
            "driver.smi_failure_text": "NVIDIA-SMI has failed because it couldn't communicate with the driver.",
        }
    )


def test_nvidia_smi_that_fails_is_quoted() -> None:
    shown = view(*replaced(outcome("CD101", "fail", "no driver is loaded")), machine=no_driver(), roots=("CD101",))
    text = " ".join(screen(shown).split())
    assert "FAIL smi nvidia-smi fails: NVIDIA-SMI has failed because it couldn't communicate" in text
    assert "FAIL driver no nvidia kernel module is loaded" in text


def test_nvidia_smi_that_is_missing_on_a_working_machine_is_no_fault() -> None:
    machine = linux().set({"driver.smi_path": GONE, "driver.smi_version": GONE})
    assert "info  smi " in screen(view(*healthy(), machine=machine))


def test_what_cannot_be_judged_names_the_cause() -> None:
    assert re.search(r"^  skip  CUDA .* see CD302$", screen(cpu_build()), re.M)


def test_the_number_of_nvidia_smi_is_called_the_drivers_ceiling() -> None:
    text = " ".join(screen(view(*healthy())).split())
    assert '"CUDA Version: 13.0" is the newest CUDA that the driver serves, not an installed one' in text


def test_a_missing_nvcc_is_a_remark() -> None:
    nvcc = outcome("CD201", "fail", "no nvcc: not needed, PyTorch's wheels bring their own CUDA", severity="info")
    shown = screen(view(*healthy(), nvcc))
    assert "  info  toolkit   no nvcc: not needed, PyTorch's wheels bring their own" in shown


def test_evidence_of_a_root_cause_carries_its_source() -> None:
    evidence = (
        Evidence("driver.module_version", "470.223.02", "/sys/module/nvidia/version"),
        Evidence("memory.total", 64 << 30, "/proc/meminfo"),
        Evidence("torch.hip", None, "torch/version.py"),
        Evidence("kernel.secure_boot", None, "permission denied"),
    )
    machine = linux().unknown("kernel.secure_boot")
    shown = view(*replaced(outcome("CD303", "fail", "too old", evidence=evidence)), machine=machine, roots=("CD303",))
    text = screen(shown)
    assert re.search(r"driver\.module_version: 470\.223\.02 +/sys/module/nvidia/version$", text, re.M)
    assert re.search(r"memory\.total: 64 GiB +/proc/meminfo$", text, re.M)
    assert re.search(r"torch\.hip: not there +torch/version\.py$", text, re.M)
    assert re.search(r"kernel\.secure_boot: unknown \(permission denied\)$", text, re.M)


def test_a_long_value_is_wrapped_and_a_very_long_one_is_counted() -> None:
    modules = [f"module_{number}" for number in range(200)]
    evidence = (Evidence("kernel.modules", modules, "/proc/modules"),)
    outcomes = replaced(outcome("CD101", "fail", "no driver", evidence=evidence))
    assert "kernel.modules: 200 entries (see `cudadoctor facts`)" in screen(view(*outcomes, roots=("CD101",)))
    everything = screen(view(*outcomes, roots=("CD101",), style=Style(verbose=True)))
    assert all(module in everything for module in modules)


NVIDIA_CARD = {"address": "0000:01:00.0", "device_id": "2204", "class": "030000", "driver": None, "link_width": 16}
KEY_REFUSED = {"kind": "key-rejected", "text": "Loading of module with unavailable key is rejected", "bus_id": None}

TOLD = [
    ("pci.gpus", [NVIDIA_CARD, NVIDIA_CARD], "pci.gpus: 0000:01:00.0 10de:2204 (no driver)"),
    (
        "kernel.nvidia_module_files",
        [{"kernel": "6.8.0-45-generic", "path": "/lib/modules/x/nvidia.ko", "version": "535.183.01"}],
        "kernel.nvidia_module_files: 535.183.01 for kernel 6.8.0-45-generic",
    ),
    ("kernel.log_events", [KEY_REFUSED] * 3, "kernel.log_events: Loading of module with unavailable key is rejected"),
    (
        "device.nodes",
        [{"path": "/dev/nvidia0", "mode": "660", "uid": 0, "gid": 44, "group": "video", "usable": False}],
        "device.nodes: /dev/nvidia0 (mode 660, group video, closed to this user)",
    ),
    (
        "memory.page_file",
        [{"path": "C:\\pagefile.sys", "mode": "fixed", "initial": 2 << 30, "maximum": 4 << 30}],
        "memory.page_file: C:\\pagefile.sys, fixed at 2 GiB to 4 GiB",
    ),
    (
        "toolkit.cuda_home",
        {"variable": "CUDA_HOME", "path": "/opt/cuda", "exists": False, "has_nvcc": False},
        "toolkit.cuda_home: CUDA_HOME=/opt/cuda (no such folder)",
    ),
    ("pci.other_display", ["8086", "1a03"], "pci.other_display: Intel (8086), 1a03"),
    ("driver.packages", [], "driver.packages: none"),
]


@pytest.mark.parametrize(("name", "value", "line"), TOLD, ids=[row[0] for row in TOLD])
def test_evidence_is_told_in_words(name: str, value: object, line: str) -> None:
    root = outcome("CD101", "fail", "no driver", evidence=(Evidence(name, value, "somewhere"),))
    assert line in " ".join(screen(view(*replaced(root), roots=("CD101",))).split())


def test_a_list_that_is_too_long_tells_its_first_entries() -> None:
    cards = [{**NVIDIA_CARD, "address": f"0000:{n:02x}:00.0"} for n in range(1, 17)]
    root = outcome("CD101", "fail", "no driver", evidence=(Evidence("pci.gpus", cards, "/sys"),))
    shown = " ".join(screen(view(*replaced(root), roots=("CD101",))).split())
    assert "pci.gpus: 0000:01:00.0 10de:2204 (no driver); 0000:02:00.0" in shown
    assert re.search(r"; and 1[0-9] more", shown)
    whole = screen(view(*replaced(root), roots=("CD101",), style=Style(verbose=True)))
    assert "0000:10:00.0" in whole and "more" not in whole.partition("more  cudadoctor")[0]


def test_a_check_that_found_nothing_makes_no_link_fine() -> None:
    """No kernel module is loaded: that libcuda is no stub does not make the driver ok."""
    outcomes = replaced(*(outcome(rule, "skip", "no NVIDIA GPU is here") for rule in ("CD101", "CD106")))
    shown = screen(view(*outcomes, outcome("CD207", "pass", "libcuda is the driver's"), machine=linux().no_driver()))
    assert re.search(r"^  skip  driver ", shown, re.M)


def test_a_driver_that_is_not_there_is_not_ok() -> None:
    """Checks pass that had nothing to hold against it."""
    shown = screen(view(*replaced(outcome("CD106", "skip", "no GPU")), machine=linux().no_driver()))
    assert re.search(r"^  skip  driver +no nvidia kernel module is loaded", shown, re.M)


def test_checks_that_lack_the_same_thing_say_so_once() -> None:
    unsure = [outcome(rule, "unknown", "cannot tell which build this is") for rule in ("CD304", "CD305")]
    assert screen(view(*replaced(*unsure))).count("cannot tell which build this is") == 2  # the verdict, and CD304's


def test_commands_are_one_line_each_to_paste() -> None:
    lines = screen(cpu_build()).splitlines()
    command = [line for line in lines if "pip install" in line]
    assert len(command) == 1
    assert command[0].strip().endswith("--index-url https://download.pytorch.org/whl/cu126")
    assert "(network, downloads 2.3 GiB)" in screen(cpu_build())


def test_on_windows_a_command_is_quoted_for_powershell() -> None:
    step = FixStep("run", "Run it", "setting", ("C:\\Program Files\\x.exe", "a b"))
    shown = view(*replaced(outcome("CD302", "fail", "x")), machine=windows(), roots=("CD302",), steps=(step,))
    assert '& "C:\\Program Files\\x.exe" "a b"' in screen(shown)


def test_the_users_home_stays_outside_the_quotes() -> None:
    step = FixStep("run", "Run it", "install", ("~/my proj/bin/python", "~/x", "a b"))
    shown = view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=(step,))
    assert '~/"my proj/bin/python" ~/x "a b"' in screen(shown)
    step = FixStep("run", "Run it", "install", ("~\\my $(proj)\\python.exe", "C:\\a b"))
    shown = view(*replaced(outcome("CD302", "fail", "x")), machine=windows(), roots=("CD302",), steps=(step,))
    assert "& ($HOME + '\\my $(proj)\\python.exe') \"C:\\a b\"" in screen(shown)


def test_the_screen_writes_the_home_short() -> None:
    failed = outcome("CD302", "fail", "/home/user/proj is broken, /home/username/proj is not")
    shown = view(*replaced(failed), roots=("CD302",))._replace(home="/home/user")
    assert first_line(shown) == "FAIL  ~/proj is broken, /home/username/proj is not"


def test_only_what_cures_the_cause_is_shown_as_the_fix() -> None:
    steps = (
        FixStep("swap", "Add swap", "setting", ("swapon", "x"), mends=("CD601",)),
        FixStep("torch", "Install torch", "install", ("pip", "x"), mends=("CD302",)),
        FixStep("reboot", "Reboot", "reboot", ("reboot",)),
    )
    text = screen(view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=steps))
    assert "pip x" in text and "reboot" in text and "swapon" not in text
    assert "# and 1 more step\n" in text


def test_a_step_by_hand_shows_its_instructions() -> None:
    step = FixStep("bios", "Switch on Above 4G Decoding", "manual", instructions="Reboot.\nOpen the firmware set-up.")
    text = screen(view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=(step,)))
    assert "fix   # Switch on Above 4G Decoding\n      Reboot.\n      Open the firmware set-up.\n" in text


def test_what_a_driver_needs_first_stands_before_its_command() -> None:
    first = "Debian itself packages R535: add NVIDIA's repository first."
    step = FixStep("driver", "Install it", "driver", ("apt-get", "install", "nvidia-open"), instructions=first)
    text = screen(view(*replaced(outcome("CD101", "fail", "x")), roots=("CD101",), steps=(step,)))
    assert f"      # {first}\n      apt-get install nvidia-open\n" in text


def test_a_page_file_that_windows_manages_is_not_called_missing() -> None:
    managed = [{"path": "C:\\pagefile.sys", "mode": "system-managed", "initial": None, "maximum": None}]
    machine = windows().set({"memory.page_file": managed, "memory.swap_total": 0})
    text = screen(view(*healthy(), outcome("CD601", "pass"), machine=machine))
    assert "automatic page file" in text and "no page file" not in text


def test_many_steps_are_left_to_fix() -> None:
    steps = tuple(FixStep(f"s{n}", f"Step {n}", "setting", ("true", str(n))) for n in range(7))
    text = screen(view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=steps))
    assert "true 4" in text and "true 5" not in text
    assert "      # and 2 more steps\n" in text and text.endswith("explain CD302; cudadoctor fix\n")


def test_commands_to_go_on_with_stay_in_one_piece() -> None:
    shown = view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=(CPU_STEP,))
    again = "--replay " + "long/" * 20 + "folder"
    assert screen(shown).endswith("more  cudadoctor explain CD302; cudadoctor fix\n")
    assert screen(shown._replace(again=again)).endswith(
        f"more  cudadoctor explain CD302\n      cudadoctor fix {again}\n"
    )


def test_commands_to_go_on_with_call_cudadoctor_as_it_was_called() -> None:
    shown = view(*replaced(outcome("CD302", "fail", "x")), roots=("CD302",), steps=(CPU_STEP,))
    shown = shown._replace(program=".venv/bin/cudadoctor")
    assert screen(shown).endswith("more  .venv/bin/cudadoctor explain CD302; .venv/bin/cudadoctor fix\n")


def test_the_environments_own_folder_is_left_out_of_sources() -> None:
    site = linux().facts.value("python.site_packages")[0]
    evidence = (Evidence("torch.version", "2.6.0+cpu", f"{site}/torch/version.py"),)
    shown = view(*replaced(outcome("CD302", "fail", "x", evidence=evidence)), roots=("CD302",))
    assert re.search(r"torch\.version: 2\.6\.0\+cpu +site-packages/torch/version\.py$", screen(shown), re.M)
    assert "~/proj/.venv/lib/python3.12/" in screen(shown._replace(style=Style(verbose=True)))


@pytest.mark.parametrize(
    "changes, line",
    [
        ({}, "NVIDIA GeForce RTX 4090, 24 GiB, sm_89"),
        ({"gpu.0.lost": True}, "NVIDIA GeForce RTX 4090, 24 GiB, sm_89, LOST"),
        ({"gpu.0.memory_total": GONE, "gpu.0.compute_capability": GONE}, "NVIDIA GeForce RTX 4090"),
        ({"gpu.count": GONE}, "NVIDIA GeForce RTX 4090, 24 GiB, sm_89"),
        ({"gpu.count": GONE, "smi.gpus": GONE}, "NVIDIA GeForce RTX 4090"),
        ({"gpu.count": GONE, "smi.gpus": GONE, "procfs.gpus": GONE}, "GeForce RTX 4090, used by nvidia"),
        (
            {"gpu.count": GONE, "smi.gpus": GONE, "procfs.gpus": GONE, "pci.gpus": []},
            "no NVIDIA GPU on the PCI bus",
        ),
    ],
)
def test_the_gpu_by_the_best_source_there_is(changes: dict[str, object], line: str) -> None:
    named = outcome("CD501", "pass", "GeForce RTX 4090")  # by its id, in the compatibility data
    text = screen(view(*replaced(named), machine=linux().set(changes)))
    assert re.search(rf"^  ok    GPU       {re.escape(line)}(  |$)", text, re.M)


def test_equal_gpus_are_counted() -> None:
    machine = linux()
    for index in range(4):
        machine = machine.gpu("NVIDIA A100-SXM4-80GB", "8.0", 80, index=index)
    shown = view(*healthy(), machine=machine)
    assert "4x NVIDIA A100-SXM4-80GB, 80 GiB, sm_80" in screen(shown)
    assert first_line(shown) == "OK    torch 2.14.1+cu130 runs on 4x NVIDIA A100-SXM4-80GB, driver 580.95.05"


def test_ignored_checks_stand_there_with_their_reason() -> None:
    text = screen(view(*healthy(), ignored={"CD601": "nodes here have none by design"}))
    assert "CD601 ignored: nodes here have none by design" in text


def test_what_passed_is_counted_and_listed_when_asked_for() -> None:
    outcomes = (*healthy(), outcome("CD306", "pass", "torchvision fits"))
    assert "...   1 more ok (--verbose)" in screen(view(*outcomes))
    verbose = screen(view(*outcomes, style=Style(verbose=True)))
    assert "torchvision fits" in verbose and "more ok" not in verbose


def test_names_cannot_steer_the_terminal() -> None:
    evil = "RTX\x1b[2J\x1b]0;x\x07 4090\r\nOK    all fine"
    machine = linux().set({"gpu.0.name": evil, "torch.version": "2.14.1\x1b[8m"})
    text = screen(view(*healthy(), machine=machine))
    assert "\x1b" not in text and "\x07" not in text
    assert not re.search(r"^OK    all fine", text, re.M)


def test_colour_only_adds_paint() -> None:
    plain = screen(cpu_build())
    for palette in ("16", "256"):
        shown = cpu_build()
        painted = screen(shown._replace(style=Style(palette=palette)))
        assert "\x1b[" in painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_ascii_unless_the_stream_shows_more() -> None:
    outcomes = (*healthy(), outcome("CD306", "pass"))
    assert screen(view(*outcomes)).isascii()
    assert "\N{HORIZONTAL ELLIPSIS}" in screen(view(*outcomes, style=Style(unicode=True)))


rules = st.sampled_from(
    ["CD101", "CD106", "CD201", "CD301", "CD302", "CD303", "CD304", "CD305", "CD306", "CD501", "CD601"]
)
words = st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=120)


@st.composite
def any_view(draw: st.DrawFn) -> View:
    outcomes = {}
    for rule in draw(st.lists(rules, unique=True)):
        status = draw(st.sampled_from(STATUSES))
        outcomes[rule] = outcome(
            rule,
            status,
            draw(words),
            severity=draw(st.sampled_from(SEVERITIES)),
            certainty=draw(st.sampled_from(CERTAINTIES)),
            because_of=draw(st.sampled_from([None, "CD101"])) if status in ("skip", "fail") else None,
            evidence=(Evidence("torch.version", draw(words), draw(words)),) if draw(st.booleans()) else (),
        )
    failed = tuple(rule for rule, o in outcomes.items() if o.failed and o.because_of is None)
    machine = draw(
        st.sampled_from([linux(), windows(), no_driver(), linux().only("system.os"), linux().torch("2.6.0+cpu")])
    )
    width = draw(st.integers(40, 120))
    return view(
        *outcomes.values(), machine=machine, roots=failed, style=Style(width=width, verbose=draw(st.booleans()))
    )


@settings(max_examples=150, deadline=None)
@given(any_view())
def test_every_screen_keeps_to_its_width_and_tells_all_that_is_wrong(shown: View) -> None:
    text = screen(shown)
    lines = text.splitlines()
    # Commands are the only lines that may be wider: they must paste as they stand.
    assert all(columns(line) <= shown.style.width for line in lines)
    verdict = {0: ("OK", "????"), 1: ("FAIL",), 2: ("BUG",), 3: ("????",)}[shown.exit]
    assert lines[0].split()[0] in verdict
    squeezed = "".join(text.split())
    for o in shown.report.outcomes:
        if o.status in ("fail", "crash") or (o.status == "unknown" and o.chain):
            assert "".join(o.message.split()) in re.sub(rf"{o.rule}(,fromCD101)?", "", squeezed), o


def test_the_table_of_the_chain_is_sound() -> None:
    for link in CHAIN:
        assert link.rules and all(re.fullmatch(r"CD\d{3}", rule) for rule in link.rules)
        assert link.label.isascii() and len(link.label) <= 9
    assert all(subject_of(f"CD{hundreds}99") != "other" for hundreds in range(1, 10))
    assert subject_of("CD705") == "job"
