"""There is no room for the installation

What it checks
    Whether an installer stopped because a disk or a quota was full; and where torch has still to be installed, whether
    its download fits into the environment's disk and into the folder for temporary files.

Why it matters
    torch and its CUDA libraries are several gigabytes to download and more when unpacked. pip unpacks in the folder for
    temporary files (/tmp, on many systems a small one in memory) and keeps a copy in its cache in your home, where
    clusters set quotas. What stops half way leaves a broken torch.

How to fix
    Empty the caches (pip cache purge, conda clean), or give pip another temporary folder and no cache:
    TMPDIR=/path/with/room pip install --no-cache-dir ... Afterwards install torch again: half of it may be there.

References
    https://pip.pypa.io/en/stable/topics/caching/
    https://docs.conda.io/projects/conda/en/stable/commands/clean.html
"""

from __future__ import annotations

from typing import Optional

from cudadoctor.derive.surroundings import in_container
from cudadoctor.derive.wheel import MISSING, platform_key, torch_build
from cudadoctor.rules.api import CERTAIN, ENVIRONMENT, ERROR, LIKELY, POSSIBLE, WARNING, Case, Outcome, Remedy, Rule

RULE = Rule(
    id="CD407",
    name="no-room-for-install",
    title="There is no room for the installation",
    severity=WARNING,
    blame=ENVIRONMENT,
    follows_from=("CD604",),
    precedence=33,
)

_MIB = 1 << 20
_GIB = 1 << 30
_INSTALLER = "symptom.no_room_for_install"
_DISK = "symptom.no_space_left"
# Words in a bare "no space left" that speak of an installation, and of other things.
_OF_INSTALL = (
    "pip",
    "site-packages",
    "wheel",
    "conda",
    "uv",
    "install",
    "dist-packages",
    "docker",
    "overlay2",
    "layer",
)
_OF_OTHERS = ("shm", "torch_", "checkpoint", ".safetensors", "huggingface", "hub", "dataset", "inductor", "triton")
_PLACES = (("disk.temporary_free", "disk.temporary_path"), ("disk.environment_free", ""), ("disk.cache_free", ""))


def judge(case: Case) -> Outcome:
    if case.fact(_INSTALLER).is_known:
        return _stopped(case, _INSTALLER, CERTAIN, ERROR)
    if case.fact(_DISK).is_known and not case.fact("symptom.shm_exhausted").is_known:
        text = str(case.value(_DISK).get("text", "")).lower()
        if any(word in text for word in _OF_INSTALL):
            return _stopped(case, _DISK, CERTAIN, ERROR)
        if not any(word in text for word in _OF_OTHERS):
            showed = case.fact("install.program").is_known
            return _stopped(case, _DISK, LIKELY if showed else POSSIBLE, ERROR if showed else None)
        return case.skipped("a disk was full, and not while something was installed")
    build = case.derived(torch_build)
    if build.kind != MISSING:
        return case.skipped("torch is installed, or whether it is is not known")
    if case.fact("python.executable").is_absent:
        return case.skipped("no Python environment to install into")
    download = _download(case)
    known = [fact for fact, _ in _PLACES[:2] if case.fact(fact).is_known]
    if download is None or not known:
        return case.undecided("cannot tell whether there is room for torch", tuple(fact for fact, _ in _PLACES[:2]))
    short = next((fact for fact in known if case.value(fact) < download), None)
    if short is None:
        return case.passed(f"room for torch: {_size(min(case.value(fact) for fact in known))} free", tuple(known))
    place = "for temporary files" if short == "disk.temporary_free" else "where the environment lies"
    return case.failed(
        f"{_size(case.value(short))} are free {place}, and torch is a download of {_size(download)}",
        (short,),
        certainty=LIKELY,
        data={"free": case.value(short), "download": download},
        # The plan for torch makes room first.
        fixes=(Remedy("install-torch", {"effect": {short: 2 * download}}),),
    )


def _stopped(case: Case, symptom: str, certainty: str, severity: Optional[str]) -> Outcome:
    value = case.value(symptom)
    path = str(value.get("path") or "")
    quota = "quota" in str(value.get("text", "")).lower()
    # The evidence may show which place is full.
    tight = next((fact for fact, _ in _PLACES if 0 <= case.value(fact, _GIB) < _GIB), None)
    temporary = path.startswith(("/tmp", "/var/tmp")) or tight == "disk.temporary_free"
    where = " for temporary files" if temporary else ""
    message = f"the installation ran out of room{where}: a {'quota' if quota else 'disk'} is full"
    if certainty == POSSIBLE:
        message = "a disk is full; the text does not show whether by an installation"
    effect = {_INSTALLER: None, _DISK: None, **({tight: 16 * _GIB} if tight else {})}
    return case.failed(
        message,
        (symptom, *((tight,) if tight else ())),
        certainty=certainty,
        severity=severity,
        data={"path": path} if path else {},
        fixes=(
            Remedy("free-disk", {}),
            Remedy(
                "manual",
                {
                    "title": "Install with room for the temporary files",
                    "text": _elsewhere(case, temporary),
                    "kind": "install",
                    "effect": effect,
                },
            ),
        ),
        not_helping=("another torch or index: the CUDA builds are all of that size",),
    )


def _elsewhere(case: Case, temporary: bool) -> str:
    if case.value("system.os") == "windows":
        return (
            "Look at the room on the drives, and let pip unpack on one that has some, in the shell in which you "
            "install:\n    $env:TEMP = 'D:\\tmp'; $env:TMP = 'D:\\tmp'\nthen install with --no-cache-dir."
        )
    look = "df -h /tmp ~ .  (and quota -s, where homes have one)"
    inside = " In an image, docker system prune frees the engine's own disk." if in_container(case) else ""
    after = "" if temporary else " With conda: conda clean --all."
    return (
        f"See which place is full:\n    {look}\nThen let pip unpack where there is room, and keep no copy:\n"
        f"    mkdir -p ~/tmp && export TMPDIR=~/tmp && export PIP_NO_CACHE_DIR=1\nand install again.{after}{inside}"
    )


def _download(case: Case) -> Optional[int]:
    """The smallest download among the newest release's CUDA builds, in bytes; where that of this platform is not known,
    Linux's, which is of the same kind."""
    platforms = (case.derived(platform_key), "linux-x86_64")
    for platform in dict.fromkeys(filter(None, platforms)):
        for release in case.matrix.torch_releases():
            sizes = [b.download_mib for b in release.builds(platform) if b.cuda is not None and b.download_mib]
            if sizes:
                return min(sizes) * _MIB
    return None


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count // _MIB} MiB"
