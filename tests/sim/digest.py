"""Prints what became of some seeds, as one line each: `python -m tests.sim.digest 1 2 3`. The same in every process."""

import hashlib
import sys

from tests.sim.promises import check
from tests.sim.seeds import world_of


def digest(seed: int) -> str:
    """Of the whole log, of everything that was sent, and of how often it died."""
    world = world_of(seed)
    world.run()
    found = check(world)
    whole = hashlib.sha256()
    for item, _ in found.log:
        whole.update(repr(item).encode())
    whole.update(repr((world.server.sent, world.effects, world.died_at)).encode())
    return f"{seed} {len(found.log)} {whole.hexdigest()}"


if __name__ == "__main__":
    for word in sys.argv[1:]:
        print(digest(int(word)))
