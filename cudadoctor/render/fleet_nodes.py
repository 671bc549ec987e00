"""`fleet --format bad-nodes` and `good-nodes`: one line that a scheduler takes as a list of nodes, empty where there
are none."""

from __future__ import annotations

from cudadoctor.fleet.hostlist import fold, is_name
from cudadoctor.render.fleet_view import FleetView


def render(view: FleetView) -> str:
    names = view.report.bad if view.form == "bad-nodes" else view.report.good
    # The line is made for a command line: nothing gets into it that is no name of a node.
    return fold(name for name in names if is_name(name)) + "\n"
