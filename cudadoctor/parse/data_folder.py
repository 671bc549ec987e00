"""Where the user's own data of cudadoctor lies, by the environment variables. Nothing is looked at here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

# The folder of the user's own data; empty or "shipped": only what came with cudadoctor counts.
DATA_VARIABLE = "CUDADOCTOR_DATA"
NO_UPDATE = ("", "shipped")

# In that folder: what `cudadoctor matrix update` has fetched, and the list of it.
UPDATE_FOLDER = "matrix"
INDEX = "index.json"


def data_folder(variables: Mapping[str, str], system: str, home: str, paths: Any) -> Optional[str]:
    """The user's data folder, there or not; `system` is sys.platform, `paths` what os.path is there. None:
    CUDADOCTOR_DATA rules it out, or there is no home."""

    def below(folder: Optional[str], *parts: str) -> Optional[str]:
        found: str = paths.join(folder or "", *parts)
        return found if folder and paths.isabs(folder) else None

    named = variables.get(DATA_VARIABLE)
    if named is not None:
        return None if ruled_out(named) else str(paths.abspath(named))
    if system == "win32":
        return below(variables.get("LOCALAPPDATA"), "cudadoctor")
    if system == "darwin":
        return below(home, "Library", "Application Support", "cudadoctor")
    # The standard has a relative path count as none.
    data = below(variables.get("XDG_DATA_HOME"), "cudadoctor")
    return data or below(home, ".local", "share", "cudadoctor")


def ruled_out(named: str) -> bool:
    """Whether this value of CUDADOCTOR_DATA has only the shipped data count."""
    return named.strip().lower() in NO_UPDATE
