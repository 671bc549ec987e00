"""`check --explain-policy`: what it shows."""

from __future__ import annotations

import json

from render.schema_validator import mistakes

from cudadoctor.policy import Document, merged, read_policy, read_requirement
from cudadoctor.render.policy import policy_json, policy_text
from cudadoctor.render.schema import schema_of
from cudadoctor.render.style import Style
from cudadoctor.rules import rule_files, rule_name

RULES = {rule: rule_name(rule) for rule in rule_files()}

SITE = """\
[gpu]
count = ">=4"

[rules]
CD117 = "warning"

[limits]
memlock = "unlimited"
"""
JOB = """\
[gpu]
count = 8
names = ["H100", "H200"]
memory_free = "70 GiB"

[driver]
version = ">=535,<600"

[rules]
CD115 = { severity = "error", required = true }

[ignore]
persistence-mode-off = "persistence is kept up by a daemon of our own, on every node"

[check]
timeout = 10
"""
POLICY = merged(
    [
        read_policy(SITE, "/etc/cudadoctor/policy.toml", RULES),
        read_policy(JOB, "preflight.toml", RULES),
        Document("--require", (read_requirement("gpu.count=2", RULES),)),
    ]
)

SCREEN = """\
policy  8 settings hold, out of 3 places; 2 took the place of others

  gpu.count        ==2              --require
                   instead of ==8 (preflight.toml:2)
                   instead of >=4 (/etc/cudadoctor/policy.toml:2)
  gpu.names        H100, H200       preflight.toml:3
  gpu.memory_free  70 GiB           preflight.toml:4
  driver.version   >=535,<600       preflight.toml:7
  limits.memlock   unlimited        /etc/cudadoctor/policy.toml:8
  check.timeout    10 s             preflight.toml:16
  rules.CD115      error, required  preflight.toml:10
  ignore.CD117     persistence is kept up by a daemon of our own, on every node
                   preflight.toml:13
                   instead of rules.CD117: warning
                   (/etc/cudadoctor/policy.toml:5)

read in this order, the later over the earlier, key by key:
  /etc/cudadoctor/policy.toml
  preflight.toml
  --require

more    cudadoctor explain policy
"""


def test_the_screen() -> None:
    assert policy_text(POLICY, Style()) == SCREEN


def test_no_line_is_longer_than_the_screen() -> None:
    for width in (80, 60, 40):
        longest = max(len(line) for line in policy_text(POLICY, Style(width=width)).splitlines())
        assert longest <= max(width, 59)


def test_nothing_is_asked_for() -> None:
    assert policy_text(merged([]), Style()) == (
        "policy  nothing is asked for: no --policy, no --require, no file of the site\n"
    )


def test_a_file_that_steers_a_terminal_does_not() -> None:
    hostile = merged([read_policy('[ignore]\nCD117 = "\\u001b[2J"', "p\x1b[31m.toml", RULES)])
    assert "\x1b" not in policy_text(hostile, Style())


def test_the_document() -> None:
    document = json.loads(policy_json(POLICY))
    schema = schema_of("cudadoctor.policy/1")
    assert mistakes(schema, document, schema) == []
    assert document["schema"] == "cudadoctor.policy/1"
    assert document["sources"] == ["/etc/cudadoctor/policy.toml", "preflight.toml", "--require"]
    by_name = {entry["name"]: entry for entry in document["settings"]}
    assert by_name["gpu.memory_free"] == {
        "name": "gpu.memory_free",
        "value": 70 << 30,
        "text": "70 GiB",
        "source": "preflight.toml:4",
        "meaning": "free device memory of each GPU, at least",
        "rule": "CD005",
        "overrode": [],
    }
    assert [entry["source"] for entry in by_name["gpu.count"]["overrode"]] == [
        "preflight.toml:2",
        "/etc/cudadoctor/policy.toml:2",
    ]
    assert by_name["ignore.CD117"]["overrode"][0]["name"] == "rules.CD117"
