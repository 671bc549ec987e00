"""Where the wheels of a torch variant lie: PyTorch's own index, or a mirror of it."""

from __future__ import annotations

import re

from cudadoctor.model import ParseError
from cudadoctor.model.pattern import pattern
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import cuda_tag_of_url
from cudadoctor.plan import validate

VARIANT = "{variant}"

# Packages that are built for a variant of torch and lie beside it there; what PyPI has of them is one variant's.
ON_TORCHS_INDEX = ("torchvision", "torchaudio", "torchcodec", "xformers")


_LOOPBACK = pattern(r"(?:localhost|127(?:\.[0-9]+){3}|\[::1\])\Z", re.I)
_SECRET = pattern(r"https?://[^/]*@|[?&#;][^=&;]*(?:token|key|secret|pass|auth|sig|credential)[^=&;]*=", re.I)


class Index(NamedTuple):
    """One variant's wheels. `url` has a page for each project below it (`URL/torch/`), or is itself the page that lists
    all wheels (`flat`)."""

    url: str
    flat: bool = False

    @property
    def for_pip(self) -> tuple[str, ...]:
        """pip's options. The index stands in for every other; a flat page is looked at beside the configured index."""
        host = self.trusted_host
        return ("--find-links" if self.flat else "--index-url", self.url, *(("--trusted-host", host) if host else ()))

    @property
    def trusted_host(self) -> str:
        """The host that pip has to be told to trust, since it takes nothing over plain http; empty where it trusts the
        address anyway. uv needs no such word."""
        found = re.match(r"http://(\[[^\]]*\]|[^/:?#]+)", self.url, re.I)
        return found.group(1) if found is not None and not _LOOPBACK.match(found.group(1)) else ""

    @property
    def for_uv(self) -> tuple[str, str]:
        """uv's option. Not the default index: every index that a setting or variable adds would go before that one."""
        return ("--find-links" if self.flat else "--index", self.url)


class Mirror(NamedTuple):
    """A mirror of PyTorch's index: an address with `{variant}` where cu126 or cpu goes."""

    template: str
    flat: bool = False

    def of(self, variant: str) -> Index:
        url = self.template.replace(VARIANT, validate.name(variant))
        # The links on a flat page are often relative to it.
        is_page = url.rpartition("/")[2].endswith((".html", ".htm"))
        return Index(url + "/" if self.flat and not is_page else url, self.flat)


def mirror(text: str, flat: bool = False) -> Mirror:
    """What a person gives as a mirror: a base address (`.../whl`), that of one variant (`.../whl/cu126`), or one with
    `{variant}` in it. Raises `ParseError` for anything else."""
    address = text.strip()
    if _SECRET.search(address):
        raise ParseError(
            "it holds a user, password or token, which would be printed: leave it out; a user and password go into "
            "~/.netrc"
        )
    outside = address.replace(VARIANT, "")
    if "{" in outside or "}" in outside:
        raise ParseError(f"{text[:80]!r}: the only word in braces is {VARIANT}")
    has_query = "?" in address or "#" in address
    tag = cuda_tag_of_url(address)
    if VARIANT not in address:
        if has_query:
            raise ParseError(f"{text[:80]!r}: say with {VARIANT} where cu126 goes")
        base = address.rstrip("/")
        if tag is not None:
            base = base.rpartition("/")[0]
        address = f"{base}/{VARIANT}"
    host = re.match(r"https?://([^/?#]+)", address, re.I)
    if host is None or VARIANT in host.group(1):
        raise ParseError(f"{text[:80]!r} is not an http or https address")
    # Only the placeholder may hold what no address does.
    validate.url(address.replace(VARIANT, "cu126"))
    return Mirror(address.rstrip("/"), flat)
