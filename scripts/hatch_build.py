"""Build hook: what a check reads is made ready when the package is built.

compat/*.toml becomes JSON, which loads in a fraction of the time. A wheel gets it inside the package. An editable
install gets it beside the TOML, with a record of its state, so that edits of the data take effect at once: the loader
sees that the JSON is stale and reads the TOML.

The package's modules become one file (see `cudadoctor/bundle.py`), in a wheel only: in a checkout they are edited.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MakeReady(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Found by hatchling as the one hook of this file."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, str(root))
        try:
            from cudadoctor import bundle
            from cudadoctor.matrix import compile as compiling
        finally:
            sys.path.remove(str(root))
        compat = str(root / "compat")
        if version == "editable":
            compiling.write(compat, str(root / "compat" / ".compiled"), with_stamp=True)
            return
        self.folder = tempfile.mkdtemp(prefix="cudadoctor-build-")
        files = {name: f"cudadoctor/matrix/compiled/{name}" for name in compiling.write(compat, self.folder, False)}
        Path(self.folder, bundle.file_name()).write_bytes(bundle.build(str(root / "cudadoctor")))
        files[bundle.file_name()] = f"cudadoctor/{bundle.FOLDER}/{bundle.file_name()}"
        for name, place in files.items():
            build_data["force_include"][str(Path(self.folder) / name)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        folder = getattr(self, "folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
