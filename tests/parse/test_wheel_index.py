"""Pages of package indexes, and what stands in their place in a hotel."""

from __future__ import annotations

import json

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.wheel_index import IndexFile, parse_index_html, parse_index_json, parse_index_root

# A page of PyTorch's index: addresses of its store, %2B, hashes, METADATA beside the file.
PYTORCH = """<!DOCTYPE html>
<html>
  <body>
    <h1>Links for torch</h1>
    <a href="/whl/cu132/torch-2.15.0%2Bcu132-cp312-cp312-manylinux_2_28_x86_64.whl#sha256=5f2c"
       data-dist-info-metadata="sha256=86af"
       data-core-metadata="sha256=86af">torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl</a><br/>
    <a href="https://download-r2.pytorch.org/whl/cu132/torch-2.15.0%2Bcu132-cp312-cp312-win_amd64.whl"
       data-upload-time="2026-10-28T15:10:22Z">torch</a><br/>
  </body>
</html>
<!--TIMESTAMP 1795996800-->"""

# An index in plain HTML, as mirrors give it; a release that was withdrawn, a source archive, an anchor that is no file.
MIRROR = """<!DOCTYPE html><html><body><a href="/">root</a><a name="top">top</a>
<A HREF='../../files/torch-2.15.0-cp312-cp312-win_amd64.whl' data-requires-python="&gt;=3.11">torch</A>
<a href="../../files/torch-2.8.1-cp312-cp312-win_amd64.whl?token=x#sha256=00" data-yanked="wrong CUDA">x</a>
<a data-core-metadata="false" data-yanked href="torch-2.8.2.tar.gz">x</a>
</body></html>"""


def test_a_page_of_pytorchs_index() -> None:
    linux, windows = parse_index_html(PYTORCH)
    assert linux == IndexFile(
        filename="torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl",
        href="/whl/cu132/torch-2.15.0%2Bcu132-cp312-cp312-manylinux_2_28_x86_64.whl",
        metadata=True,
        requires_python=None,
        yanked=False,
        uploaded=None,
        size=None,
    )
    assert windows.href.startswith("https://download-r2.pytorch.org/") and windows.metadata is None
    assert windows.uploaded == "2026-10-28T15:10:22Z"


def test_a_page_of_a_mirror() -> None:
    new, withdrawn, source = parse_index_html(MIRROR)
    assert (new.filename, new.requires_python) == ("torch-2.15.0-cp312-cp312-win_amd64.whl", ">=3.11")
    assert withdrawn.yanked and withdrawn.filename == "torch-2.8.1-cp312-cp312-win_amd64.whl"
    assert source.yanked and source.metadata is False
    assert not new.yanked


def test_a_page_in_json() -> None:
    page = {
        "meta": {"api-version": "1.1"},
        "name": "torch",
        "files": [
            {
                "filename": "torch-2.15.0-cp312-cp312-win_amd64.whl",
                "url": "https://files.example/torch-2.15.0-cp312-cp312-win_amd64.whl#sha256=00",
                "size": 126738207,
                "upload-time": "2026-10-28T15:16:40Z",
                "requires-python": ">=3.11",
                "yanked": False,
                "core-metadata": {"sha256": "00"},
            },
            {"filename": "torch-2.8.1.tar.gz", "url": "torch-2.8.1.tar.gz", "yanked": "", "core-metadata": False},
            {"filename": "no address"},
        ],
    }
    new, withdrawn = parse_index_json(json.dumps(page))
    assert new == (
        "torch-2.15.0-cp312-cp312-win_amd64.whl",
        "https://files.example/torch-2.15.0-cp312-cp312-win_amd64.whl",
        True,
        ">=3.11",
        False,
        "2026-10-28T15:16:40Z",
        126738207,
    )
    # An empty reason is a reason (PEP 592).
    assert withdrawn.yanked and withdrawn.metadata is False and withdrawn.size is None


def test_the_root_lists_variants_and_passes_the_rest_over() -> None:
    names = ["cpu", "cpu-cxx11-abi", "cu118", "cu126", "cu126_full", "cu92", "nightly", "rocm6.4", "torch", "xpu"]
    root = "<html><body>" + "".join(f'<a href="{name}/">{name}/</a><br/>\n' for name in names) + "</body></html>"
    assert parse_index_root(root) == ["cpu", "cu118", "cu126", "cu92"]


SIGN_IN = '<html><body><form action="/login"><input></form><a href="/terms">Terms</a></body></html>'


@pytest.mark.parametrize("parse", [parse_index_html, parse_index_root])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SIGN_IN, "sign-in page"),
        ("<html><script>location='/portal'</script></html>", "sign-in page"),
        ("<html><body><a href='/about'>About us</a></body></html>", "not a page of a package index"),
        ("", "not a page of a package index"),
        ("{}", "not a page of a package index"),
    ],
)
def test_another_page_is_an_error_and_no_empty_list(parse: object, text: str, words: str) -> None:
    assert callable(parse)
    with pytest.raises(ParseError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SIGN_IN, "sign-in page"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "no list of files"),
        ('{"files": []}', "names no file"),
        ('{"meta": {"api-version": "2.0"}, "files": []}', "layout 2.0"),
    ],
)
def test_other_json_is_an_error(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parse_index_json(text)


@pytest.mark.parametrize("piece", ["<a ", "<a href='x", '<a href="', "<a data-yanked=", "<" * 3, "a href=" * 3])
def test_megabytes_of_rubbish_are_read_once(piece: str) -> None:
    """Were they read anew from each anchor, this would not end."""
    with pytest.raises(ParseError):
        parse_index_html(piece * (2_000_000 // len(piece)))
