#!/usr/bin/env python3
"""Writes the pages of all checks, concepts and error messages as Markdown, for reading outside of a terminal.

    .venv/bin/python scripts/gen_docs.py FOLDER

The pages come from where `cudadoctor explain` takes them: the docstrings of the rules and concepts, and compat/. They
are made on demand and kept nowhere, so that a new rule stays one file and one table of cases. FOLDER is made, or has to
hold nothing but pages that this script wrote; pages of what no longer exists go.

    index.md                 what there is
    checks/CD303.md          one a check
    concepts/mig.md          one a concept
    messages.md              error wordings, what they mean, and the checks behind them
    xids.md                  Xids, what they mean and what helps
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cudadoctor.explain import concept_names, concept_page  # noqa: E402
from cudadoctor.matrix import Matrix, load_matrix  # noqa: E402
from cudadoctor.render.pages import Page, Section, page_of  # noqa: E402
from cudadoctor.rules import rule_files, rule_module, rule_name, rule_of  # noqa: E402

# The first line of every page: what says that a file is ours to replace.
MARK = "<!-- made by scripts/gen_docs.py -->"

FAMILIES = {
    "0": "What a policy asks for",
    "1": "Driver and kernel",
    "2": "Toolkit and libraries",
    "3": "Builds of torch and friends",
    "4": "Python and installers",
    "5": "Hardware",
    "6": "Operating system",
    "7": "Containers, WSL, clusters",
    "8": "Memory",
    "9": "The doctor itself",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pages go")
    folder = parser.parse_args().folder
    try:
        written = write(folder, pages(load_matrix()))
    except (OSError, ValueError) as error:
        print(f"gen_docs: error: {error}", file=sys.stderr)
        return 2
    print(f"{written} pages in {folder}")
    return 0


def pages(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """(path below the folder, text) of every page."""
    yield "index.md", _index()
    for rule in rule_files():
        yield f"checks/{rule}.md", _page(page_of(rule_module(rule).__doc__ or "", rule_of(rule)))
    for name in concept_names():
        yield f"concepts/{name}.md", _page(page_of(concept_page(name)))
    yield "messages.md", _messages(matrix)
    yield "xids.md", _xids(matrix)


def write(folder: Path, texts: Iterator[tuple[str, str]]) -> int:
    """Writes the pages and takes away those of before that are none now; ValueError where the folder is not ours."""
    known = sorted(folder.rglob("*")) if folder.is_dir() else []
    foreign = [path for path in known if path.is_file() and not _is_ours(path)]
    if foreign:
        raise ValueError(f"{folder} holds {foreign[0].name}, which this script did not write: name another folder")
    written = set()
    for name, text in texts:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{MARK}\n{text}", encoding="utf-8")
        written.add(path)
    for path in known:
        if path.is_file() and path not in written:
            path.unlink()
    return len(written)


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().strip() == MARK


def _index() -> str:
    lines = ["# What cudadoctor looks for", ""]
    family = ""
    for rule in rule_files():
        if rule[2] != family:
            family = rule[2]
            lines += ["", f"## {FAMILIES[family]}", ""]
        lines.append(f"- [{rule} {rule_name(rule)}](checks/{rule}.md): {rule_of(rule).title}")
    lines += ["", "## Concepts", ""]
    lines += [f"- [{page_of(concept_page(name)).title}](concepts/{name}.md)" for name in concept_names()]
    lines += ["", "## Tables", "", "- [Error messages](messages.md)", "- [Xids](xids.md)"]
    return "\n".join(lines) + "\n"


def _page(page: Page) -> str:
    lines = [f"# {page.rule.id} {page.rule.name}" if page.rule else f"# {page.title}", ""]
    if page.rule is not None:
        lines += [f"**{page.title}** ({page.rule.severity}; mended in: {page.rule.blame})", ""]
    for section in page.sections:
        lines += [f"## {section.heading}", ""] if section.heading else []
        lines += [*_laid_out(section), ""]
    return "\n".join(lines).rstrip() + "\n"


def _laid_out(section: Section) -> Iterator[str]:
    """A section's lines as Markdown: what is indented further is a command, unless it goes on with a list item."""
    in_item = in_command = False
    for line in section.lines:
        is_command = line.startswith("  ") and not in_item
        if is_command != in_command:
            yield from ("", "```sh") if is_command else ("```", "")
            in_command = is_command
        in_item = line.startswith("- ") or (in_item and line.startswith("  "))
        if line.startswith(("http://", "https://")):
            yield f"- <{line}>"
        else:
            yield line[2:] if is_command else _prose(line)
    if in_command:
        yield "```"


def _messages(matrix: Matrix) -> str:
    # A symptom's wordings may mean different things: one row a meaning, with the causes of all that mean it.
    rows: dict[tuple[str, str], dict[str, None]] = {}
    for message in matrix.messages():
        rows.setdefault((message.name, message.meaning), {}).update(dict.fromkeys(message.causes))
    lines = [
        "# Error messages",
        "",
        "What programs say, and every cause that it can stand for, the likeliest first.",
        "",
    ]
    lines += ["| Symptom | What it says | Causes |", "|---|---|---|"]
    for (name, meaning), rules in sorted(rows.items(), key=lambda row: row[0][0]):
        causes = ", ".join(f"[{rule}](checks/{rule}.md)" for rule in rules if rule in rule_files())
        lines.append(f"| {name} | {_cell(meaning)} | {causes} |")
    return "\n".join(lines) + "\n"


def _xids(matrix: Matrix) -> str:
    lines = ["# Xids", "", "Errors that NVIDIA's driver writes to the kernel log, by their numbers.", ""]
    lines += ["| Xid | Name | What happened | Severity | What helps |", "|---|---|---|---|---|"]
    for row in matrix.xids():
        lines.append(
            f"| {row.code} | {_cell(row.name)} | {_cell(row.meaning)} | {row.severity} | {_cell(row.advice)} |"
        )
    return "\n".join(lines) + "\n"


def _prose(line: str) -> str:
    """A line that Markdown shows as it is; only what stands between backquotes, and the list's dash, are its own."""
    parts = line.split("`")
    whole = len(parts) % 2 == 1
    return "`".join(
        part if whole and place % 2 else re.sub(r"([*_<>])", r"\\\1", part) for place, part in enumerate(parts)
    )


def _cell(text: str) -> str:
    return re.sub(r"([|`*_<>])", r"\\\1", text)


if __name__ == "__main__":
    sys.exit(main())
