"""Findings -> ordered steps that mend them, spelled out for the examined machine. Pure."""

from __future__ import annotations

from cudadoctor.plan.context import INSTALLERS, Options
from cudadoctor.plan.plan import Plan, make_plan

__all__ = ["INSTALLERS", "Options", "Plan", "make_plan"]
