"""What a job or a site asks of a machine: TOML texts and `--require` settings, merged into one `Policy`.

`read_policy` reads a text, `read_requirement` one `KEY=VALUE`; `merged` puts them together, later ones over earlier
ones, key by key; `Policy.facts` makes facts of what is asked, which the rules CD001 and on judge. Nothing here touches
files.
"""

from __future__ import annotations

from cudadoctor.policy.merge import Held, Policy, merged
from cudadoctor.policy.read import Document, Entry, PolicyError, read_policy, read_requirement

__all__ = ["Document", "Entry", "Held", "Policy", "PolicyError", "merged", "read_policy", "read_requirement"]
