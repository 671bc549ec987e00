"""What pip prints about its settings."""

from __future__ import annotations

import pytest

from cudadoctor.parse.errors import ParseError
from cudadoctor.parse.pip_output import parse_pip_config_list, parse_pip_default_index

LIST = r"""
:env:.index-url='https://env.example/simple'
:env:.timeout='60'
global.cert='C:\\certs\\company.pem'
global.index-url='https://me:secret@mirror.example/simple'
download.index-url='https://download.example/simple'
install.index-url='https://install.example/simple'
install.no_index='true'
WARNING: something else = here
"""


def test_the_variable_goes_before_the_command_and_that_before_the_rest() -> None:
    settings = parse_pip_config_list(LIST)
    assert settings["index-url"] == "https://env.example/simple"
    assert settings["cert"] == r"C:\certs\company.pem"
    assert settings["no-index"] == "true"
    without_variable = LIST.replace(":env:.index-url", ":env:.other")
    assert parse_pip_config_list(without_variable)["index-url"] == "https://install.example/simple"


def test_nothing_set_is_an_empty_table() -> None:
    assert parse_pip_config_list("") == {}


def test_the_help_names_the_default() -> None:
    # As pip 21 to 26 wrap it.
    text = """
  -i, --index-url <url>       Base URL of the Python Package Index (default
                              https://mirror.example/simple). This should
                              point to a repository compliant with PEP 503"""
    assert parse_pip_default_index(text) == "https://mirror.example/simple"


def test_another_help_is_an_error() -> None:
    with pytest.raises(ParseError, match="does not name its default index"):
        parse_pip_default_index("Usage: pip install [options]")
