"""What JUnit XML may look like so that Jenkins, Maven's tools and GitLab all read it, as a table: their common part.

Of each element: the attributes that it must and may have, and the order of its children.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element


class Shape(NamedTuple):
    must: tuple[str, ...]
    may: tuple[str, ...] = ()
    children: str = ""  # a pattern over the children's names, each followed by a blank
    text: bool = False


SHAPES: dict[str, Shape] = {
    "testsuites": Shape((), ("name", "tests", "failures", "errors", "time"), "(testsuite )*"),
    "testsuite": Shape(
        ("name", "tests", "failures", "errors", "skipped"),
        ("hostname", "timestamp", "time", "id", "package"),
        "(properties )?(testcase )*(system-out )?(system-err )?",
    ),
    "properties": Shape((), (), "(property )+"),
    "property": Shape(("name", "value")),
    "testcase": Shape(("name", "classname"), ("time",), "((failure |error |skipped )?)(system-out )?(system-err )?"),
    "failure": Shape(("type", "message"), text=True),
    "error": Shape(("type", "message"), text=True),
    "skipped": Shape((), ("message",), text=True),
    "system-out": Shape((), text=True),
    "system-err": Shape((), text=True),
}


def mistakes(root: Element) -> list[str]:
    """What is wrong with a document, and what a viewer would count wrongly."""
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        found += _shape(element)
    suites = root.findall("testsuite")
    for suite in suites:
        counts = {"tests": len(suite.findall("testcase"))}
        counts.update((f"{tag}s", len(suite.findall(f"testcase/{tag}"))) for tag in ("failure", "error"))
        counts["skipped"] = len(suite.findall("testcase/skipped"))
        found += [f"{key} is {suite.get(key)}, not {n}" for key, n in counts.items() if suite.get(key) != str(n)]
        names = [(case.get("classname"), case.get("name")) for case in suite.findall("testcase")]
        found += [f"{name} twice" for name in names if names.count(name) > 1]
    for key in ("tests", "failures", "errors"):
        total = sum(int(suite.get(key, "0")) for suite in suites)
        found += [f"{key} of all is {root.get(key)}, not {total}"] if root.get(key) not in (None, str(total)) else []
    return found


def _shape(element: Element) -> list[str]:
    shape = SHAPES.get(element.tag)
    if shape is None:
        return [f"{element.tag} is no element of JUnit"]
    found = [f"{element.tag} lacks {name}" for name in shape.must if name not in element.attrib]
    found += [f"{element.tag} has {name}" for name in element.attrib if name not in (*shape.must, *shape.may)]
    if not re.fullmatch(shape.children, "".join(f"{child.tag} " for child in element)):
        found.append(f"{element.tag} holds {[child.tag for child in element]}")
    if not shape.text and (element.text or "").strip():
        found.append(f"{element.tag} has a text")
    return found
