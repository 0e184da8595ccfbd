"""Stands before the real one on the path of served processes: an installation has no `rich`, which structlog loads wherever it is found."""

raise ImportError("only a tool for development needs it")
