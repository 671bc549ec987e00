"""Where the wheels of a torch variant lie: PyTorch's own index, or a mirror of it."""

from __future__ import annotations

import re

from cudadoctor.model import ParseError
from cudadoctor.model.record import NamedTuple
from cudadoctor.parse.pip_config import cuda_tag_of_url
from cudadoctor.plan import validate

VARIANT = "{variant}"

# Packages that are built for a variant of torch and lie beside it there; what PyPI has of them is one variant's.
ON_TORCHS_INDEX = ("torchvision", "torchaudio", "torchcodec", "xformers")


class Index(NamedTuple):
    """One variant's wheels. `url` has a page for each project below it (`URL/torch/`), or is itself the page that lists
    all wheels (`flat`)."""

    url: str
    flat: bool = False

    @property
    def for_pip(self) -> tuple[str, str]:
        """pip's option. The index stands in for every other; a flat page is looked at beside the configured index."""
        return ("--find-links" if self.flat else "--index-url", self.url)

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
    outside = address.replace(VARIANT, "")
    if "{" in outside or "}" in outside:
        raise ParseError(f"{text[:80]!r}: the only word in braces is {VARIANT}")
    if re.match(r"https?://[^/]*@", address, re.I):
        raise ParseError(
            "it holds a user or password, which would be printed: leave them out and put them into ~/.netrc"
        )
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
