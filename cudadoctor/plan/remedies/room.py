"""What an install downloads, and whether there is room for it."""

from __future__ import annotations

from typing import Optional

from cudadoctor.model.record import NamedTuple
from cudadoctor.plan.context import Context
from cudadoctor.plan.draft import ROOM, Draft, draft
from cudadoctor.plan.plan import UV
from cudadoctor.plan.remedies.installer import installer
from cudadoctor.plan.remedies.undo import cuda_packages
from cudadoctor.resolve import Choice

MIB = 1 << 20


class Room(NamedTuple):
    """`download` in bytes (None: not known); the free bytes of the places that it goes through (None: not known).
    `is_less`: some of what is to be installed may be there already, so that less is downloaded."""

    download: Optional[int]
    environment: Optional[int] = None
    temporary: Optional[int] = None
    cache: Optional[int] = None
    is_less: bool = False

    @property
    def is_short(self) -> bool:
        """Whether it cannot fit: the wheels are compressed, so that what they hold takes more than the download."""
        if self.download is None or self.is_less:
            return False
        return any(free is not None and free < self.download for free in (self.environment, self.temporary))

    @property
    def cache_is_short(self) -> bool:
        return self.download is not None and self.cache is not None and self.cache < 2 * self.download


def download_of(context: Context, choice: Choice) -> Optional[int]:
    """Bytes that a fresh install of the build downloads with all that it requires (where only its own wheels are known:
    at least that much); None: not known."""
    release = context.matrix.torch_release(choice.torch)
    build = release.build(choice.variant, choice.platform) if release is not None else None
    if build is not None and build.download_mib is not None:
        return build.download_mib * MIB
    return context.options.answers.download.get((choice.torch, choice.variant))


def room_for(context: Context, choice: Choice) -> Room:
    facts = context.facts
    by_uv = installer(context) == UV
    return Room(
        download_of(context, choice),
        facts.value("disk.working_free" if context.target.is_new else "disk.environment_free"),
        # uv unpacks in its cache and links from there.
        None if by_uv else facts.value("disk.temporary_free"),
        None if by_uv else facts.value("disk.cache_free"),
        not context.target.is_new
        and any(facts[f"package.{name}.version"].is_known for name in cuda_packages(context, choice)),
    )


def needs(room: Room) -> tuple[str, ...]:
    """For a step's `needs`."""
    return ("network",) if room.download is None else ("network", f"download:{room.download}")


def note(room: Room) -> str:
    """The download against the room, in a sentence; empty where nothing is known of it."""
    if room.download is None or room.environment is None or room.is_short:
        return ""
    amount = f"{'at most ' if room.is_less else ''}{size(room.download)}"
    return f"room: {size(room.environment)} free in the environment, {amount} to download and unpack"


def make_room(context: Context, room: Room) -> list[Draft]:
    """The step before all others where the install cannot fit."""
    if not room.is_short or room.download is None:
        return []
    lines = [f"To download: {size(room.download)}; unpacked it takes more than that."]
    facts = context.facts
    place = facts.value("disk.temporary_path")
    if room.environment is not None and room.environment < room.download:
        where = "the working folder" if context.target.is_new else "the environment"
        lines.append(f"Free in {where}: {size(room.environment)}.")
        cache = facts.value("disk.cache_path")
        if isinstance(cache, str) and cache.isprintable():
            lines += [
                "What pip has kept of earlier downloads may be gigabytes:",
                "    " + context.text((context.target.python, "-m", "pip", "cache", "purge")),
            ]
        free = facts.value("disk.working_free")
        if not context.target.is_new and isinstance(free, int) and free > 2 * room.download:
            lines.append(f"The working folder's disk has {size(free)} free: make the environment there.")
    if room.temporary is not None and room.temporary < room.download:
        shown = place if isinstance(place, str) and place.isprintable() else "the folder for temporary files"
        lines.append(f"Free in {shown}, where pip unpacks: {size(room.temporary)}.")
        lines.append("Give pip another place on a disk with room, in the shell in which you install:")
        at_home = room.cache is not None and room.cache > 2 * room.download
        if context.os == "windows":
            lines.append("    $env:TEMP = 'D:\\tmp'; $env:TMP = $env:TEMP")
        else:
            folder = "~/tmp" if at_home else "/path/with/room/tmp"
            lines.append(f"    mkdir -p {folder} && export TMPDIR={folder}")
    places = {"the environment": room.environment, "the folder for temporary files": room.temporary}
    short = [
        f"{size(free)} free in {name}" for name, free in places.items() if free is not None and free < room.download
    ]
    return [
        draft(
            ROOM,
            "make-room",
            f"Make room first: {size(room.download)} to download, {' and '.join(short)}",
            "setting",
            instructions="\n".join(lines),
        )
    ]


def size(count: int) -> str:
    """Bytes for people: 2.6 GiB, 640 MiB."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count // MIB} MiB"
