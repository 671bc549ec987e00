"""Addresses of mirrors as people give them, and where a variant's wheels lie then."""

from __future__ import annotations

import pytest

from cudadoctor.model import ParseError
from cudadoctor.plan.index import Index, mirror

URL = "https://mirror.example/pytorch/whl"

# What is given, whether it is flat, and where cu126 lies.
GIVEN = [
    (URL, False, f"{URL}/cu126"),
    (f"{URL}/", False, f"{URL}/cu126"),
    (f"  {URL}//", False, f"{URL}/cu126"),
    (f"{URL}/cu118", False, f"{URL}/cu126"),
    (f"{URL}/cpu/", False, f"{URL}/cu126"),
    (f"{URL}/{{variant}}", False, f"{URL}/cu126"),
    ("https://mirror.example/{variant}/simple/", False, "https://mirror.example/cu126/simple"),
    ("http://10.0.0.2:8080/whl", False, "http://10.0.0.2:8080/whl/cu126"),
    ("https://mirror.example/whl/{variant}?token", False, "https://mirror.example/whl/cu126?token"),
    # Links on a flat page are often relative: without the slash they would lead elsewhere.
    (URL, True, f"{URL}/cu126/"),
    (f"{URL}/{{variant}}/", True, f"{URL}/cu126/"),
    (f"{URL}/{{variant}}/torch_stable.html", True, f"{URL}/cu126/torch_stable.html"),
]


@pytest.mark.parametrize(("text", "flat", "url"), GIVEN)
def test_where_a_variant_lies(text: str, flat: bool, url: str) -> None:
    assert mirror(text, flat).of("cu126") == Index(url, flat)
    assert "cpu" in mirror(text, flat).of("cpu").url


REFUSED = [
    ("mirror.example/whl", "http or https"),
    ("ftp://mirror.example/whl", "http or https"),
    ("file:///srv/whl", "http or https"),
    ("https://{variant}.example/whl", "http or https"),
    ("https://mirror.example/{cuda}", "{variant}"),
    ("https://mirror.example/{", "{variant}"),
    ("https://me:secret@mirror.example/whl", "~/.netrc"),
    ("https://mirror.example/whl?token=secret", "token"),
    ("https://mirror.example/{variant}?a=1&access_token=secret", "token"),
    ("https://mirror.example/{cuda}?X-Amz-Signature=secret", "token"),
    ("https://mirror.example/whl?page=1", "{variant}"),
    ("https://mirror.example/a b", "http or https"),
    ("https://mirror.example/$(reboot)`x`", "http or https"),
    ("https://mirror.example/\nwhl", "http or https"),
    ("", "http or https"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_is_no_mirror(text: str, says: str) -> None:
    with pytest.raises(ParseError) as refused:
        mirror(text)
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_options_of_pip_and_uv() -> None:
    assert Index("u").for_pip == ("--index-url", "u")
    assert Index("u", True).for_pip == ("--find-links", "u")
    # As the default index it would come after every index that a setting adds.
    assert Index("u").for_uv == ("--index", "u")
    assert Index("u", True).for_uv == ("--find-links", "u")


# pip takes nothing over plain http from hosts that nobody vouches for, except from the machine itself.
TRUSTED = [
    ("https://mirror.example/whl/cu126", ""),
    ("http://mirror.example/whl/cu126", "mirror.example"),
    ("http://10.0.0.2:8080/whl/cu126", "10.0.0.2"),
    ("http://127.0.0.1:8080/whl/cu126", ""),
    ("http://localhost/whl/cu126", ""),
    ("http://[::1]:80/whl/cu126", ""),
    ("http://127.example/whl/cu126", "127.example"),
]


@pytest.mark.parametrize(("url", "host"), TRUSTED)
def test_which_host_pip_is_told_to_trust(url: str, host: str) -> None:
    assert Index(url).trusted_host == host
    assert Index(url).for_pip[2:] == (("--trusted-host", host) if host else ())
