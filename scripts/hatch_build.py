"""Build hook: compiles compat/*.toml to JSON, which loads in a fraction of the time.

A wheel gets the JSON inside the package. An editable install gets it beside the TOML, with a record of its state, so
that edits of the data take effect at once: the loader sees that the JSON is stale and reads the TOML.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileMatrix(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Found by hatchling as the one hook of this file."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, str(root))
        try:
            from cudadoctor.matrix import compile as compiling
        finally:
            sys.path.remove(str(root))
        compat = str(root / "compat")
        if version == "editable":
            compiling.write(compat, str(root / "compat" / ".compiled"), with_stamp=True)
            return
        self.folder = tempfile.mkdtemp(prefix="cudadoctor-matrix-")
        for name in compiling.write(compat, self.folder, with_stamp=False):
            build_data["force_include"][str(Path(self.folder) / name)] = f"cudadoctor/matrix/compiled/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        folder = getattr(self, "folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
