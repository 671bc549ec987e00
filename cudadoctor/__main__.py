"""Lets `python -m cudadoctor` do what the `cudadoctor` command does."""

from __future__ import annotations

from cudadoctor.cli import run

if __name__ == "__main__":
    run()
