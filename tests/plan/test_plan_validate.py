"""What may stand in a command, and what never gets there."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudadoctor.model import ParseError
from cudadoctor.plan import validate

GOOD: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (validate.package, ["torch", "nvidia-cudnn-cu12", "flash_attn", "zope.interface", "a"]),
    (validate.version, ["2.14.1", "2.14.1+cu126", "12.6.77", "1.0.post1", "2024.1", "1!2.0"]),
    (validate.specifier, ["2.7", "2.7.*", ">=2.6,<2.9", "2.7.1+cu126", "~=2.6.0", "!= 2.7.0"]),
    (validate.requirement, ["vllm", "vllm<0.30", "deepspeed", "jax[cuda12]==0.12.0", "flashinfer-python[cu13]"]),
    (
        validate.system_package,
        ["nvidia-driver-580-open", "linux-headers-6.8.0-79-generic", "gcc-c++", "@module-rebuild"],
    ),
    (validate.kernel, ["6.8.0-79-generic", "5.14.0-503.el9.x86_64", "6.6.87.2-microsoft-standard-WSL2"]),
    (validate.variable, ["LD_LIBRARY_PATH", "_x1"]),
    (validate.name, ["video", "nvidia-uvm", "nvidia-fabricmanager.service"]),
    (validate.guid, ["8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"]),
    (validate.url, ["https://mirror.example/pytorch-wheels", "http://127.0.0.1:8080/whl"]),
    (validate.path, ["/opt/my env/bin/python", "C:\\Users\\J\N{LATIN SMALL LETTER O WITH DIAERESIS}rg\\python.exe"]),
    (validate.python_version, ["3.9", "3.14"]),
    (validate.size, [1 << 20, 8 << 30]),
]

BAD: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (validate.package, ["torch; rm -rf ~", "--index-url", "a b", "", "-torch", "$(x)", "torch\n", None, 7, "a" * 200]),
    (validate.version, ["2.14.1; x", "$(x)", "--pre", "", "2.14.1+", "latest", "2.14.1\n"]),
    (validate.specifier, ["", "2.7; x", "torch==2.7", "2.7 --pre", "`x`", "a b", "nope", "<x"]),
    (validate.requirement, ["", "-r x", "jax[cuda12", "jax[$(x)]", "jax[cuda12]; x", "jax[a]1.2", "vllm @ file:///x"]),
    (validate.system_package, ["-y", "a b", "x;y", "", "x`y`"]),
    (validate.kernel, ["-rf", "6.8 x", "6.8;x", "../x"]),
    (validate.variable, ["A-B", "1A", "A=B", "A B", ""]),
    (validate.name, ["a b", "-x", "a;b", ""]),
    (validate.guid, ["8c5e7fda", "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c; x", ""]),
    (validate.url, ["ftp://x", "javascript:x", "https://x y", "https://x'", 'https://x"', ""]),
    (validate.path, ["", "-rf", "a\nb", "a\x1b[31mb", None, "/" * 5000, "a\N{RIGHT-TO-LEFT OVERRIDE}b"]),
    (validate.python_version, ["3", "2.7", "3.12.1", "3.x", "", "3.12; x"]),
    (validate.size, [0, -1, True, "8G", 1 << 60]),
]


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, texts in GOOD for text in texts])
def test_good(check: Callable[[Any], Any], text: Any) -> None:
    assert check(text) == text


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, texts in BAD for text in texts])
def test_bad(check: Callable[[Any], Any], text: Any) -> None:
    with pytest.raises(ParseError):
        check(text)


WORDS = (validate.package, validate.version, validate.system_package, validate.kernel, validate.variable, validate.name)


@given(st.sampled_from(WORDS), st.text(max_size=30))
def test_whatever_passes_needs_no_quoting_and_is_no_option(check: Callable[[Any], str], text: str) -> None:
    try:
        passed = check(text)
    except ParseError:
        return
    assert not passed.startswith("-")
    assert not set(passed) & set(" \t\n;&|<>$`\"'\\(){}*?#~=") - {"~"}
