"""How fast Holdfast is, beside what the same disk and the same SQLite can do at best: `./run bench`, or `python -m bench`."""
