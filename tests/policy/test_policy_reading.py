"""A policy text: what its settings are read as, where they stand, and what is said of mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadoctor.fit import sharding, workload
from cudadoctor.model import ParseError
from cudadoctor.policy import PolicyError, read_policy, read_requirement
from cudadoctor.policy.settings import SETTINGS
from cudadoctor.rules import rule_files, rule_name
from cudadoctor.testing import GIB

RULES = {rule: rule_name(rule) for rule in rule_files()}

TEXT = """\
# a comment
gpu.count = 8

[driver]
version = ">=525.147.05, <600"   # the zero stays
cuda    = "12.6"

[limits]
memlock = "unlimited"
nofile = 65536

[disk]
shm = "1.5 TiB"

[torch]
version = '2.7.*'

[gpu.x]
"""


def settings_of(text: str) -> list[tuple[str, Any, str]]:
    return [(entry.name, entry.value, entry.source) for entry in read_policy(text, "p.toml", RULES).entries]


def test_each_setting_knows_its_line() -> None:
    assert settings_of(TEXT.replace("[gpu.x]\n", "")) == [
        ("gpu.count", "==8", "p.toml:2"),
        ("driver.version", ">=525.147.05,<600", "p.toml:5"),
        ("driver.cuda", "12.6", "p.toml:6"),
        ("limits.memlock", "unlimited", "p.toml:9"),
        ("limits.nofile", "65536", "p.toml:10"),
        ("disk.shm", 3 << 39, "p.toml:13"),
        ("torch.version", "==2.7.*", "p.toml:16"),
    ]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("[gpu]\ncount = 8", "gpu.count", "==8"),
        ('[gpu]\ncount = ">=4, <= 8"', "gpu.count", ">=4,<=8"),
        ('[gpu]\nnames = "H100"', "gpu.names", ["H100"]),
        ('[gpu]\nnames = [\n  "H100",\n  "A100 80GB",\n]', "gpu.names", ["H100", "A100 80GB"]),
        ("[gpu]\ncompute_capability = 9.0", "gpu.compute_capability", "==9.0"),
        ('[gpu]\ncompute_capability = ">=8.0"', "gpu.compute_capability", ">=8.0"),
        ('[gpu]\nmemory_free = "70 GiB"', "gpu.memory_free", 70 * GIB),
        ('[gpu]\nmemory_free = "70G"', "gpu.memory_free", 70 * GIB),
        ('[gpu]\nmemory_total = "80 GB"', "gpu.memory_total", 80 * 1000**3),  # what a card that is sold so reaches
        ('[disk]\nworking = "2TB"', "disk.working", 2 * 1000**4),
        ('[driver]\nversion = "535"', "driver.version", "==535.*"),
        ('[driver]\nversion = "==535"', "driver.version", "==535"),
        ('[driver]\nversion = "525.147.05"', "driver.version", "==525.147.05"),
        ('[torch]\nversion = "2.7"', "torch.version", "==2.7.*"),
        ('[torch]\nversion = "2.7.1"', "torch.version", "==2.7.1"),
        ('[torch]\nversion = "2.7.1+cu126"', "torch.version", "==2.7.1+cu126"),
        ('[torch]\ncuda = "12"', "torch.cuda", "==12.*"),
        ('[torch]\ncuda = "12.6"', "torch.cuda", "==12.6"),
        ("gpu = { mig = false }", "gpu.mig", False),
        ('[gpu]\nmig_devices = "7"', "gpu.mig_devices", "==7"),
        ('[rules]\nCD115 = "error"', "rules.CD115", {"severity": "error", "required": False}),
        ("[rules]\ncd115 = { required = true }", "rules.CD115", {"severity": None, "required": True}),
        ('[rules.ecc-errors]\nseverity = "warning"', "rules.CD115", {"severity": "warning", "required": False}),
        ('[ignore]\npersistence-mode-off = "by the daemon"', "ignore.CD117", "by the daemon"),
        ("[check]\ntimeout = 5", "check.timeout", 5.0),
        ('[check]\nblame = ["machine"]', "check.blame", ["machine"]),
        ('[verify]\nchecks = ["matmul", "nccl"]', "verify.checks", ["matmul", "nccl"]),
        ('[fit]\nmodel = "meta-llama/Llama-3.1-8B"', "fit.model", "meta-llama/Llama-3.1-8B"),
        ("[fit]\nmodel = '7b'", "fit.model", "7b"),
        ('[fit]\ntrain = "qlora"', "fit.train", "qlora"),
        ("[fit]\nbatch = 4", "fit.batch", 4),
        ('[fit]\nsharding = "zero3"', "fit.sharding", "zero3"),
    ],
)
def test_values(text: str, name: str, value: Any) -> None:
    assert [found[:2] for found in settings_of(text)] == [(name, value)]


# Text, and the whole sentence that is said of it.
MISTAKES = [
    ("[gpus]\ncount = 8", "p.toml:1: there is no section [gpus]; did you mean [gpu]?"),
    (
        "[network]\nup = true",
        "p.toml:1: there is no section [network]; expected one of gpu, driver, torch, nccl, system, limits, disk, "
        "fit, check, verify, rules, ignore",
    ),
    (
        "count = 8",
        "p.toml:1: 'count' stands in no section; expected [gpu], [driver], [torch], [nccl], [system], [limits], "
        "[disk], [fit], [check], [verify], [rules], [ignore] above it",
    ),
    ("gpu = 8", "p.toml:1: gpu is a section: write [gpu] and its keys below it"),
    ("[gpu]\n\ncuont = 8", "p.toml:3: [gpu] has no key 'cuont'; did you mean count?"),
    (
        "[gpu]\nmemory = '70 GiB'",
        "p.toml:2: [gpu] has no key 'memory'; did you mean memory_total or memory_free?",
    ),
    ("[driver]\nflavour = 'open'", "p.toml:2: [driver] has no key 'flavour'; expected one of version, cuda"),
    ('[gpu]\ncount = "many"', 'p.toml:2: gpu.count is "many", expected a number such as 8, or a range such as ">=4"'),
    ("[gpu]\ncount = true", 'p.toml:2: gpu.count is true, expected a number such as 8, or a range such as ">=4"'),
    (
        "[gpu]\nmemory_free = 70",
        'p.toml:2: gpu.memory_free is 70, expected an amount with its unit, such as "70 GiB"',
    ),
    (
        '[gpu]\nnames = ["NVIDIA"]',
        'p.toml:2: gpu.names is ["NVIDIA"], expected names of products such as ["H100", "RTX 4090"], not a maker '
        "or a brand alone",
    ),
    (
        '[gpu]\ncompute_capability = "sm_90"',
        'p.toml:2: gpu.compute_capability is "sm_90", expected a compute capability such as "9.0", or a range such as '
        '">=8.0"',
    ),
    (
        '[gpu]\ncompute_capability = "90"',
        'p.toml:2: gpu.compute_capability is "90", expected a compute capability such as "9.0", or a range such as '
        '">=8.0"',
    ),
    # What takes the parsers, or a careless expression, hours.
    ("a" + ".a" * 20_000 + " = 1", "p.toml: not TOML that a policy could be: nested too deeply"),
    (
        '[limits]\nx = """\n[' + " " * 100_000 + '\n"""',
        "p.toml:2: [limits] has no key 'x'; expected one of nofile, memlock",
    ),
    (
        "[gpu]\nnvlink = false",
        "p.toml:2: gpu.nvlink is false, expected true (leave the line out where NVLink is not needed)",
    ),
    (
        "[gpu]\ntemperature = 700",
        "p.toml:2: gpu.temperature is 700, expected degrees C, from 20 to 150, such as 75",
    ),
    (
        '[driver]\nversion = ">=535,<<600"',
        "p.toml:2: driver.version is \">=535,<<600\", expected a version range such as '>=535,<600'",
    ),
    (
        "[driver]\ncuda = 12.6",
        'p.toml:2: driver.cuda is 12.6, expected the CUDA version that programs are built with, such as "12.6", in '
        "quotes",
    ),
    (
        "[limits]\nmemlock = -1",
        'p.toml:2: limits.memlock is -1, expected "unlimited", or an amount with its unit, such as "64 GiB"',
    ),
    (
        "[rules]\npersistance-mode-off = 'error'",
        "p.toml:2: there is no rule 'persistance-mode-off'; did you mean persistence-mode-off?",
    ),
    ("[rules]\necc = 'error'", "p.toml:2: there is no rule 'ecc'; did you mean ecc-errors?"),
    (
        "[rules]\nCD115 = 'fatal'",
        'p.toml:2: rules.CD115 is "fatal", expected one of error, warning, info, or '
        '{ severity = "error", required = true }',
    ),
    (
        "[rules]\nCD115 = { severity = 'error', requird = true }",
        'p.toml:2: rules.CD115 is { severity = "error", requird = true }, expected severity and required in it, not '
        "'requird'",
    ),
    ("[ignore]\nCD115 = ''", 'p.toml:2: ignore.CD115 is "", expected a reason in quotes, which the report shows'),
    (
        "[rules]\nCD115 = 'error'\n[ignore]\necc-errors = 'old cards'",
        "p.toml:4: CD115 is ignored here and asked for in line 2; expected one",
    ),
    ("[check]\nfail_on = 'never'", 'p.toml:2: check.fail_on is "never", expected one of error, warning, info'),
    (
        "[check]\nblame = ['tool']",
        'p.toml:2: check.blame is ["tool"], expected a list of some of environment, machine, allocation',
    ),
    (
        "[verify]\nchecks = ['everything']",
        'p.toml:2: verify.checks is ["everything"], expected a list of some of versions, allocation, matmul, '
        "bandwidth, memory-bandwidth, peer, nccl, cudnn, compile",
    ),
    ("[gpu]\ncount = \n", "p.toml:2: not TOML: invalid value"),
    (
        "[driver]\nversion = >=535",
        'p.toml:2: not TOML: invalid value; text and ranges stand in quotes, as in version = ">=535"',
    ),
    (
        "[gpu]\nnames = H100",
        'p.toml:2: not TOML: invalid value; text and ranges stand in quotes, as in version = ">=535"',
    ),
    ("[gpu]\ncount = 8\n\n[gpu]\n", "p.toml:4: not TOML: cannot declare ('gpu',) twice"),
    (
        '[fit]\nmodel = ""',
        'p.toml:2: fit.model is "", expected the name of a model such as "llama-3.1-8b", or a size such as "7b"',
    ),
    ('[fit]\ntrain = "dora"', 'p.toml:2: fit.train is "dora", expected one of full, lora, qlora'),
    ("[fit]\nbatch = 0", "p.toml:2: fit.batch is 0, expected a number of sequences, such as 8"),
    ("[fit]\ncontxt = 8192", "p.toml:2: [fit] has no key 'contxt'; did you mean context?"),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_policy(text, "p.toml", RULES)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("gpu.count=8", "gpu.count", "==8"),
        ("driver.version=>=535,<600", "driver.version", ">=535,<600"),
        ("gpu.names=H100,A100 80GB", "gpu.names", ["H100", "A100 80GB"]),
        ('gpu.names=["H100", "A100 80GB"]', "gpu.names", ["H100", "A100 80GB"]),
        ("gpu.memory_free=70GiB", "gpu.memory_free", 70 * GIB),
        ("gpu.mig=false", "gpu.mig", False),
        ("gpu.temperature = 60", "gpu.temperature", 60),
        ("limits.nofile=unlimited", "limits.nofile", "unlimited"),
        ("rules.CD115=error", "rules.CD115", {"severity": "error", "required": False}),
        ("rules.CD115={ required = true }", "rules.CD115", {"severity": None, "required": True}),
        ("ignore.CD117=by the daemon", "ignore.CD117", "by the daemon"),
        ("check.timeout=2.5", "check.timeout", 2.5),
    ],
)
def test_requirements_are_the_same_keys(text: str, name: str, value: Any) -> None:
    entry = read_requirement(text, RULES)
    assert (entry.name, entry.value, entry.source) == (name, value, "--require")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gpu.count", "--require takes KEY=VALUE with a key of the policy, such as gpu.count=8, not 'gpu.count'"),
        ("count=8", "--require takes KEY=VALUE with a key of the policy, such as gpu.count=8, not 'count=8'"),
        ("gpu.count=", "--require takes KEY=VALUE, not 'gpu.count='; a range stands in quotes, as in 'gpu.count=>=4'"),
        ("gpu.count>=8", "--require takes KEY=VALUE, not 'gpu.count>=8'; did you mean --require 'gpu.count=>=8'?"),
        ("gpu.count==8", "--require takes KEY=VALUE, not 'gpu.count==8'; did you mean --require 'gpu.count=8'?"),
        ("gpu.names=[H100]", '--require: gpu.names is "[H100]", expected a list such as ["H100", "H200"]'),
        ("gpus.count=8", "--require: there is no section [gpus]; did you mean [gpu]?"),
        ("gpu.counts=8", "--require: [gpu] has no key 'counts'; did you mean count?"),
        ("gpu.count=x", '--require: gpu.count is "x", expected a number such as 8, or a range such as ">=4"'),
    ],
)
def test_a_mistake_in_a_requirement(text: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_requirement(text, RULES)
    assert str(caught.value) == sentence


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=80), st.from_regex(r"\[(gpu|check|rules)\]\n[a-z_]{1,8} = .{0,20}", fullmatch=True)))
def test_whatever_is_written_there_is_a_sentence_or_a_policy(text: str) -> None:
    try:
        read_policy(text, "p.toml", RULES)
    except PolicyError as error:
        assert str(error).startswith("p.toml") and "\n" not in str(error)


# The policy is read without the estimator, so its words stand there once more.
CHOICES = (
    ("fit.engine", workload.ENGINES),
    ("fit.attention", workload.ATTENTION_KINDS),
    ("fit.precision", workload.PRECISIONS),
    ("fit.checkpointing", workload.CHECKPOINTINGS),
    ("fit.loss", workload.LOSSES),
    ("fit.offload", workload.OFFLOADS),
    ("fit.sharding", sharding.KINDS),
)


@pytest.mark.parametrize(("key", "words"), CHOICES, ids=[key for key, _ in CHOICES])
def test_what_is_asked_of_a_model_is_said_in_the_estimators_words(key: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ParseError) as refused:
        SETTINGS[key].read("no such word")
    said = set(str(refused.value).removeprefix("one of ").split(", "))
    assert said in (set(words), set(words) - {"none"})
