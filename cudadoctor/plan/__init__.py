"""Findings -> ordered steps that mend them, spelled out for the examined machine. Pure."""

from __future__ import annotations

from cudadoctor.plan.make import make_plan, plan_for, recipe_for, torch_for
from cudadoctor.plan.plan import INSTALLERS, Options, Plan

__all__ = ["INSTALLERS", "Options", "Plan", "make_plan", "plan_for", "recipe_for", "torch_for"]
