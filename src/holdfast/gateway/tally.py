"""What this process has counted since it started, for metrics. Never consulted by a decision."""

from collections import Counter


class Tally:
    """Turns by how they ended here; decisions over cut turns by the rule that made them."""

    def __init__(self) -> None:
        self.turns: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
