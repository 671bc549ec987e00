"""Pages of a package index: which files a project has.

HTML, as PyTorch's index gives it (PEP 503, with the attributes of PEP 592, 658 and 714):

    <a href="/whl/cu132/torch-2.15.0%2Bcu132-cp312-cp312-manylinux_2_28_x86_64.whl#sha256=5f2c..."
       data-core-metadata="sha256=86af...">torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl</a><br/>

JSON, as the default index gives it to who accepts it (PEP 691, 700):

    {"meta": {"api-version": "1.1"}, "name": "torch", "versions": ["2.15.0"], "files": [
      {"filename": "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl", "url": "https://...", "size": 539172785,
       "upload-time": "2026-10-28T15:17:47Z", "requires-python": ">=3.11", "yanked": false, "core-metadata": false}]}

And the root of PyTorch's index, a link for each variant:

    <a href="cpu/">cpu/</a><br/>
    <a href="cu126/">cu126/</a><br/>

What a hotel's sign-in page or a company's filter puts in their place is a ParseError, never an empty list.
"""

from __future__ import annotations

import html
import json
import re

from cudadoctor.model.record import NamedTuple

from .errors import ParseError

# Between two "<" each pattern stops at once: no page, however long, costs more than its length.
_ANCHOR = re.compile(r"<a\s([^<>]{1,8000})>", re.I)
_ATTRIBUTE = re.compile(r"""([a-z-]{1,40})(?:\s?=\s?(?:"([^"]{0,4000})"|'([^']{0,4000})'))?""", re.I)
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_VARIANT = re.compile(r"cpu|cu[0-9]{2,3}", re.ASCII)
_FILE = re.compile(r"\.(whl|zip|gz|bz2|egg|exe)$", re.I)


class IndexFile(NamedTuple):
    """One file of a page. `href`: the address as it stands there, maybe relative, without its fragment.

    `metadata`: whether the index says that it has the file's METADATA beside it (PEP 658); None: it says nothing.
    `uploaded`: "2026-10-28T15:17:47Z"; `size` in bytes; None where the page has neither.
    """

    filename: str
    href: str
    metadata: bool | None
    requires_python: str | None
    yanked: bool
    uploaded: str | None
    size: int | None


def parse_index_html(text: str) -> list[IndexFile]:
    """A project's page in HTML. ParseError where it links no file."""
    files = []
    for anchor in _ANCHOR.finditer(text):
        values: dict[str, str] = {}
        for found in _ATTRIBUTE.finditer(anchor.group(1)):
            values.setdefault(found.group(1).lower(), html.unescape(found.group(2) or found.group(3) or ""))
        href = values.get("href", "").strip().partition("#")[0]
        filename = _unquoted(href.partition("?")[0].rpartition("/")[2])
        if _FILE.search(filename) is None:
            continue
        core = values.get("data-core-metadata", values.get("data-dist-info-metadata"))
        files.append(
            IndexFile(
                filename,
                href,
                None if core is None else core.lower() != "false",
                values.get("data-requires-python") or None,
                "data-yanked" in values,
                values.get("data-upload-time") or None,
                None,
            )
        )
    if not files:
        raise _no_index(text, "links no file")
    return files


def parse_index_json(text: str) -> list[IndexFile]:
    """A project's page in JSON. ParseError where it is none, of another version, or names no file."""
    try:
        page = json.loads(text)
    except (ValueError, RecursionError):
        raise _no_index(text, "is no JSON") from None
    if not isinstance(page, dict) or not isinstance(page.get("files"), list):
        raise ParseError("this is not a page of a package index: it has no list of files")
    meta = page.get("meta")
    version = str(meta.get("api-version", "1.0")) if isinstance(meta, dict) else "1.0"
    if version.partition(".")[0] != "1":
        raise ParseError(f"this page of a package index has layout {version[:20]}, and layouts 1.x are what is read")
    files = [_entry(entry) for entry in page["files"] if isinstance(entry, dict)]
    found = [file for file in files if file is not None]
    if not found:
        raise ParseError("this page of a package index names no file")
    return found


def _entry(entry: dict[str, object]) -> IndexFile | None:
    filename, url = entry.get("filename"), entry.get("url")
    if not isinstance(filename, str) or not isinstance(url, str):
        return None
    core = entry.get("core-metadata", entry.get("dist-info-metadata"))
    requires, uploaded, size = (entry.get(key) for key in ("requires-python", "upload-time", "size"))
    return IndexFile(
        filename,
        url.partition("#")[0],
        None if core is None else bool(core),
        requires if isinstance(requires, str) and requires else None,
        # False, or true, or the reason.
        entry.get("yanked", False) is not False,
        uploaded if isinstance(uploaded, str) and uploaded else None,
        size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
    )


def parse_index_root(text: str) -> list[str]:
    """The variants (cpu, cu126, ...) that the root of PyTorch's index links, in its order. ParseError: none."""
    variants: dict[str, None] = {}
    for anchor in _ANCHOR.finditer(text):
        for found in _ATTRIBUTE.finditer(anchor.group(1)):
            if found.group(1).lower() == "href":
                last = (found.group(2) or found.group(3) or "").rstrip("/").rpartition("/")[2]
                if _VARIANT.fullmatch(last):
                    variants[last] = None
    if not variants:
        raise _no_index(text, "links no CUDA variant")
    return list(variants)


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


def _no_index(text: str, why: str) -> ParseError:
    """A page that is none of an index. A form or a script is what sign-in pages have and index pages never."""
    head = text[:20000].lower()
    if "<form" in head or "<script" in head or "http-equiv" in head:
        return ParseError("this is a web page of another kind (a sign-in page of the network?), not one of an index")
    return ParseError(f"this is not a page of a package index: it {why}")
