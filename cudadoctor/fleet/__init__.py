"""Many nodes, one report: snapshots are read (`lines`, `snapshot`), those that bring facts alone are judged
(`judging`), and nodes are grouped and compared (`merge`, `compare`). Opens no file."""

from __future__ import annotations
