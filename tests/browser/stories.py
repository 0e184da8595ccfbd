"""Random conversations, as events and as the server shows them, for the tests of the page: what it folds from events must be what the
server shows. `python -m tests.browser.stories` writes page/tests/stories.json.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.api import conversation, events
from holdfast.core.events import Logged
from holdfast.core.sessions import Session
from tests.core.logs import fold, steps_of, story

FILE = Path(__file__).parents[2] / "page" / "tests" / "stories.json"
STORIES, SIZE = 24, 45
# Where a reader came while a turn was resumed that had not said anything yet: by seed, how many events had been.
SILENT = {150: 12, 351: 6, 428: 13, 478: 19, 873: 15}


def shown(items: Sequence[Logged]) -> Any:
    found = Session(session_id="s", session_key="k", log="L", generation=1, seq=len(items), created_at=1, updated_at=1)
    made = msgspec.to_builtins(conversation.session(found, fold(items)))
    del made["schedules"]  # They are not part of the conversation.
    return made


def told(seed: int) -> dict[str, Any]:
    """A story: its events, the session at two places on the way, and at its end."""
    log = story(steps_of(seed, SIZE))
    left = sorted({0, SILENT.get(seed, random.Random(seed).randrange(len(log.items)))})
    return {
        "seed": seed,
        "events": [{"id": f"L.{item.seq}", "name": item.kind, "data": events.data(item)} for item in log.items],
        "snapshots": [[place, shown(log.items[:place])] for place in left],
        "end": shown(log.items),
    }


def stories() -> str:
    return "[\n" + ",\n".join(msgspec.json.encode(told(seed)).decode() for seed in (*range(STORIES), *SILENT)) + "\n]\n"


if __name__ == "__main__":
    FILE.write_text(stories())
    sys.stdout.write(f"{FILE} is written\n")
