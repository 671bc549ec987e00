"""What pip itself prints about its settings.

`pip config list`, after all files and variables; a password stands in clear text in it:

    :env:.timeout='60'
    global.index-url='https://me:secret@mirror.example/simple'
    install.no-index='true'

`pip install --help`, where nothing is set:

    -i, --index-url <url>       Base URL of the Python Package Index (default
                                https://mirror.example/simple). This should point ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .errors import ParseError

_SETTING = re.compile(r"(:env:|[a-z]{1,40})\.([a-z][a-z0-9_-]{0,60})=(.*)", re.I)
_DEFAULT = re.compile(r"Python\s{1,60}Package\s{1,60}Index\s{1,60}\(default\s{1,60}(https?://[^\s()]{1,400})\)")
# Weakest first: what counts for every command, for the one that installs, and the PIP_ variables.
_ORDER = ("global", "install", ":env:")


def parse_pip_config_list(text: str) -> Mapping[str, str]:
    """The settings that `pip install` would have, by their long names ("index-url"). Never fails: empty is a list, too.

    Settings of other commands, and lines that are no settings, are passed over.
    """
    sections: dict[str, dict[str, str]] = {name: {} for name in _ORDER}
    for line in text.splitlines():
        found = _SETTING.fullmatch(line.strip())
        if found is not None and found.group(1) in sections:
            value = found.group(3)
            quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
            key = found.group(2).lower().replace("_", "-")
            sections[found.group(1)][key] = value[1:-1].replace("\\\\", "\\") if quoted else value
    return {key: value for name in _ORDER for key, value in sections[name].items()}


def parse_pip_default_index(text: str) -> str:
    """The address that pip's help names as the default of --index-url. ParseError where it names none."""
    found = _DEFAULT.search(text)
    if found is None:
        raise ParseError("this help of pip does not name its default index")
    return found.group(1)
