"""The real CPython for Windows, under wine.

Each test has a wine prefix of its own (links to the prepared one, and its own registry), so that it may write to
the registry or put programs into System32. What wine is not: powercfg.exe and nvidia-smi.exe do not exist,
powershell answers nothing, `platform.platform()` fails on Pythons newer than 3.11.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Union

from . import native
from .parts import CACHE, ROOT, clean_environ, missing_part

_PART = CACHE / "windows"

# Where the registry's well-known roots lie in the prefix's files.
_HIVES = {"HKLM": "system.reg", "HKCU": "user.reg"}


def path_for_windows(path: str | os.PathLike[str]) -> str:
    r""" "/tmp/x" -> "Z:\tmp\x"."""
    return "Z:" + os.path.abspath(path).replace("/", "\\")


class WindowsPython:
    """Python for Windows, with the doctor's dependencies and the checkout on its path."""

    def __init__(self, folder: Path) -> None:
        if not (_PART / "ready").exists() or not shutil.which("wine"):
            missing_part(
                "Python for Windows",
                "Debian: apt-get install --no-install-recommends wine64 wine, then "
                "scripts/install_test_parts.sh windows-python",
            )
        self.prefix = folder / "prefix"
        shutil.copytree(_PART / "prefix", self.prefix, symlinks=True, copy_function=os.symlink)
        for hive in ("system.reg", "user.reg", "userdef.reg"):
            (self.prefix / hive).unlink()
            shutil.copyfile(_PART / "prefix" / hive, self.prefix / hive)
        self.system32 = self.prefix / "drive_c" / "windows" / "system32"
        self._scenario: dict[str, str] = {}

    def registry(self, key: str, name: str, value: Union[int, str, list[str]]) -> None:
        r"""Sets a value before a command runs: registry(r"HKLM\SYSTEM\...", "HwSchMode", 2).

        int becomes REG_DWORD, str REG_SZ, list REG_MULTI_SZ.
        """
        hive, _, path = key.partition("\\")
        path = path.replace("\\", "\\\\")
        if isinstance(value, int):
            text = f"dword:{value:08x}"
        elif isinstance(value, str):
            text = f'"{_escaped(value)}"'
        else:
            text = 'str(7):"' + "".join(_escaped(item) + "\\0" for item in value) + '"'
        with (self.prefix / _HIVES[hive]).open("a") as file:
            file.write(f'\n[{path}] 1700000000\n"{name}"={text}\n')

    def nvml(self, scenario: str) -> None:
        """Puts the stand-in nvml.dll into System32, to play a scenario."""
        shutil.copyfile(native.windows_nvml(), self.system32 / "nvml.dll")
        self._scenario = {"FAKE_NVML": path_for_windows(native.scenario_file(scenario))}

    def program(self, name: str, stdout: str | bytes = "", exit: int = 0) -> None:
        """Puts a program into System32 that prints these bytes: program("powercfg", "Power Scheme GUID: ...")."""
        target = self.system32 / f"{name}.exe"
        target.unlink(missing_ok=True)
        shutil.copyfile(native.windows_program(), target)
        Path(f"{target}.stdout").write_bytes(stdout.encode() if isinstance(stdout, str) else stdout)
        Path(f"{target}.exit").write_text(str(exit))

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Runs python.exe with the arguments; streams are UTF-8.

        A wine session now and then never starts: a run that takes longer than `timeout` is tried a second time
        in a fresh session.
        """
        command = ["wine", str(_PART / "python" / "python.exe"), *arguments]
        search = ";".join(path_for_windows(path) for path in (ROOT, _PART / "site-packages"))
        full = clean_environ(
            {
                "WINEPREFIX": str(self.prefix),
                "WINEDEBUG": "-all",
                "WINEDLLOVERRIDES": "mscoree,mshtml=",
                "PYTHONPATH": search,
                "PYTHONUTF8": "1",
            },
            self._scenario,
            env or {},
        )
        for last in (False, True):
            try:
                # Pipes, not files: under wine, Python fails on a standard stream that is a file.
                return subprocess.run(
                    command,
                    env=full,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",
                    timeout=timeout,
                )
            except subprocess.TimeoutExpired:
                self.close()
                if last:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Ends the wine session of this prefix."""
        env = clean_environ({"WINEPREFIX": str(self.prefix)})
        wineserver = shutil.which("wineserver") or "/usr/lib/wine/wineserver64"
        if os.path.exists(wineserver):
            subprocess.run([wineserver, "-k"], env=env, capture_output=True, timeout=30)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
