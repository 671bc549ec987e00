"""Public bug reports as people post them: a text each, what must be said about it (cases.toml), and the judging."""
