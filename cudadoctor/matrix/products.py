"""GPUs by every name that people and programs give them, and by PCI id."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Optional

from cudadoctor.model.pattern import pattern

from .sections import Sections, origin
from .tables import Gpu, GpuMatch
from .versions import capability

# "8.9", "sm_89", "sm89", "compute_90a", "CC 8.9", "compute capability 8.9"
_CAPABILITY = pattern(
    r"(?:sm|compute|cc|(?:compute )?capability)[\s_:]*(\d{1,2}\.?\d[af]?)\Z|(\d{1,2}\.\d)\Z", re.IGNORECASE
)
# A number that names a product by itself: 4090, A6000, T1000.
_TELLS = pattern(r"[a-z]{0,2}\d{3,4}\Z")


class ProductQuestions(Sections):
    """A name that several products share has all of them as its answer."""

    def gpus(self) -> tuple[Gpu, ...]:
        """Every product, oldest architecture first."""
        return tuple(self._gpu(number) for number in range(len(self.raw("gpus")["rows"])))

    def _gpu(self, number: int) -> Gpu:
        return self.once(f"gpu {number}", lambda: self._make_gpu(number))

    def _make_gpu(self, number: int) -> Gpu:
        data = self.raw("gpus")
        row = json.loads(data["rows"][number])
        return Gpu(
            row["name"],
            row["class"],
            row["architecture"],
            row["compute_capability"],
            row.get("chip"),
            row["memory_gib"],
            row.get("memory_type"),
            row.get("bandwidth_gbs"),
            row.get("tdp_w"),
            row.get("psu_w"),
            row.get("sm_count"),
            row.get("tflops"),
            row.get("released"),
            tuple(row.get("smi", ())),
            tuple(row.get("pci", ())),
            row.get("min_driver"),
            row.get("min_driver_bound"),
            row.get("modules"),
            tuple(row.get("guessed", ())),
            *origin(data, row),
            bool(row.get("on_arm", False)),
        )

    def gpu(self, text: str) -> GpuMatch:
        """What a person or a tool calls a GPU: "4090", "RTX 4090", "NVIDIA A100-SXM4-80GB", "H100 PCIe", "sm_89",
        "8.9", a MIG device or a vGPU, an lspci line.

        Several products may share the name; ``capability`` is set where they agree on it.
        """
        from .names import cut_off, take_apart

        stripped = text.strip()
        begin = cut_off(stripped)
        if begin is not None:
            rows = self._beginning(begin)
            kind = "name" if rows else "none"
            return GpuMatch(text, kind, rows, _shared_capability(rows), None, None)
        written = _CAPABILITY.match(stripped)
        found = capability(written.group(1) or written.group(2)) if written else None
        if found is not None:
            return GpuMatch(text, "capability", (), f"{found[0]}.{found[1]}", None, None)
        asked = take_apart(stripped)
        rows, kind = self._named(asked.words)
        if rows and "geforce" not in stripped.lower():  # printed names are exact, typed ones are short
            rows = self._sizes(rows, asked.words) + rows
        if asked.vgpu:  # "GRID RTX6000-4Q" is the Quadro of that name; the later ones spell out their generation
            board, _ = self._named(("quadro", *asked.words))
            rows = board or rows
        if not rows and asked.vgpu:  # vGPU boards carry letters of their own: V100DX, A100D, H100XM
            for cut in (1, 2):
                if not rows and asked.words and asked.words[0][:-cut]:
                    rows, kind = self._named((asked.words[0][:-cut], *asked.words[1:]))
        if not rows and len(asked.words) == 1:
            known = self._chip_capability(asked.words[0])
            if known is not None:
                return GpuMatch(text, "chip", (), known, None, None)
        if not rows:
            rows, kind = self._loosely_named(asked.words)
        if not rows:
            return GpuMatch(text, "none", (), None, asked.mig, asked.vgpu)
        return GpuMatch(text, kind, rows, _shared_capability(rows), asked.mig, asked.vgpu)

    def gpu_by_pci(self, device: str) -> GpuMatch:
        """The products of a PCI device id: "2684", "0x2684", "10de:2684".

        Where the id itself is not listed but lies in the range of a chip, ``kind`` is "chip": the compute capability is
        sure, the rows are the products with that chip that are known (none, for old ones).
        """
        wanted = device.strip().split(":")[-1].upper()
        if wanted.startswith("0X"):
            wanted = wanted[2:]
        wanted = wanted.zfill(4)
        none = GpuMatch(device, "none", (), None, None, None)
        if len(wanted) != 4 or any(digit not in "0123456789ABCDEF" for digit in wanted):
            return none
        gpus = self.raw("gpus")
        rows = self._rows(gpus["by_pci"].get(wanted, ()))
        if rows:
            return GpuMatch(device, "pci", rows, _shared_capability(rows), None, None)
        for row in self.raw("pci_chips")["chip"]:
            if row["first"] <= wanted <= row["last"]:
                rows = self._rows(gpus["by_chip"].get(row["chip"].lower(), ()))
                return GpuMatch(device, "chip", rows, row["capability"], None, None)
        return none

    def _rows(self, found: Sequence[int]) -> tuple[Gpu, ...]:
        return tuple(self._gpu(number) for number in found)

    def _named(self, asked: tuple[str, ...]) -> tuple[tuple[Gpu, ...], str]:
        from .names import key

        data = self.raw("gpus")
        by_name = data["by_name"]
        if not asked:
            return (), "none"
        without_size = tuple(word for word in asked if not (word.endswith("gb") and word[:-2].isdigit()))
        for words in dict.fromkeys((asked, without_size)):
            tries = [words]
            if words and words[0].isdigit():
                tries = [(line, *words) for line in ("rtx", "gtx", "gt")]
            for attempt in tries:
                found = by_name.get(key(attempt))
                if found:
                    return self._best(self._rows(found), attempt), "name"
            partial = self._holding(words) if words else []
            if partial:
                numbers_of = sorted({number for name in partial for number in by_name[name]})
                return self._rows(numbers_of), "name"
        chip = data["by_chip"].get(asked[0])
        return (self._rows(chip), "chip") if chip and len(asked) == 1 else ((), "none")

    def _holding(self, asked: tuple[str, ...]) -> list[str]:
        """The names in which all these words stand, in that order."""
        from .names import contains

        apart = self.once("gpu names", lambda: {name: tuple(name.split(" ")) for name in self.raw("gpus")["by_name"]})
        known = self.once("gpu words", lambda: frozenset(word for words in apart.values() for word in words))
        # Most words of a name that is in no table are in no name at all. (How a form factor is written may differ.)
        if not all(word in known or word.startswith("sxm") for word in asked):
            return []
        return [name for name, words in apart.items() if contains(words, asked)]

    def _sizes(self, found: tuple[Gpu, ...], asked: tuple[str, ...]) -> tuple[Gpu, ...]:
        """Where only a laptop's GPU has just this name (GTX 1060), the cards of that name, which have a size in it."""
        from .names import key, words

        if "mobile" in asked or not all(row.laptop for row in found):
            return ()
        begins = tuple(f"{key(words(smi))} " for row in found for smi in row.smi)
        by_name = self.raw("gpus")["by_name"]
        more = (rows for name, rows in by_name.items() if name.startswith(begins) and name.endswith("gb"))
        cards = self._rows(sorted({number for rows in more for number in rows}))
        return tuple(row for row in cards if not row.laptop)

    def _loosely_named(self, asked: tuple[str, ...]) -> tuple[tuple[Gpu, ...], str]:
        """A product without the letters that end its name (K20 of K20c, K20m and K20X), or within a longer text."""
        from .names import parts

        by_name = self.raw("gpus")["by_name"]
        if len(asked) == 1 and asked[0][-1].isdigit():
            found = sorted(
                {
                    number
                    for name, rows in by_name.items()
                    if name.startswith(asked[0]) and name[len(asked[0]) :].isalpha() and len(name) - len(asked[0]) < 3
                    for number in rows
                }
            )
            if found:
                return self._rows(found), "name"
        for part in parts(asked):
            rows, kind = self._named(part)
            if rows:
                return rows, kind
        return (), "none"

    def _chip_capability(self, name: str) -> Optional[str]:
        """The compute capability of a chip by its code name, "GK104": also of chips whose products are not listed."""
        for row in self.raw("pci_chips")["chip"]:
            if row["chip"].lower() == name:
                return str(row["capability"])
        return None

    def _beginning(self, text: str) -> tuple[Gpu, ...]:
        """The products whose printed name begins so; the last word may itself be cut."""
        from .names import key, words

        wanted = key(words(text))
        by_name = self.raw("gpus")["by_name"]
        found = {number for name in by_name if name.startswith(wanted) for number in by_name[name]} if wanted else ()
        return self._rows(sorted(found))

    @staticmethod
    def _best(rows: tuple[Gpu, ...], asked: tuple[str, ...]) -> tuple[Gpu, ...]:
        """Of products that share a printed name, first those that have it as their own."""
        from .names import words

        return tuple(sorted(rows, key=lambda row: (words(row.name) != asked, row.laptop)))

    def gpu_names_like(self, text: str) -> tuple[str, ...]:
        """Up to three names that a person may have meant: first those with the same number, then those that look alike.
        Slow: it compares with every name."""
        from difflib import get_close_matches

        from .names import is_foreign, words

        asked = words(text)
        if is_foreign(asked):
            return ()
        names = [row.name for row in self.gpus()]
        same = [name for name in names if set(words(name)) & {word for word in asked if _TELLS.match(word)}]
        plain = {name.lower(): name for name in names}
        brand = ("geforce ", "nvidia ", "tesla ")
        for name in names:
            short = name.lower()
            for word in brand:
                short = short.replace(word, "")
            plain.setdefault(short, name)
        wanted = text.lower()
        for word in brand:
            wanted = wanted.replace(word, "")
        for line in ("rtx ", "gtx "):  # "4095" looks like "4090" only when the line is there
            plain.update({name[len(line) :]: full for name, full in plain.items() if name.startswith(line)})
        found = get_close_matches(wanted.strip(), list(plain), n=6, cutoff=0.6)
        same.sort(key=len)  # the plain product before its variants
        return tuple(dict.fromkeys((*same[:2], *(plain[name] for name in found))))[:3]


def _shared_capability(rows: tuple[Gpu, ...]) -> Optional[str]:
    found = {row.capability for row in rows}
    return found.pop() if len(found) == 1 else None
