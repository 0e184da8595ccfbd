"""What is said in the pictures of the page: what people write, what the model in them answers, what lies in the folder it works in, and
what was there in the days before.
"""

import textwrap
from typing import Any, NamedTuple

from holdfast.core import titles
from tests.fakes.models.script import Reply, call, text, thought
from tests.fakes.models.server import Asked

READY = "Is everything for 0.7.0 merged?"
RELEASE = "Run the release checks, then deploy 0.7.0 to staging and tell me what changed."
REINDEX = "Rebuild the search index of the shop, please. It may take a while."
GUIDE = "Outline the guide for moving a shop from 0.6 to 0.7. Short, with the one command that matters."
SHOPPING = "What do I need for ratatouille for six? As a list I can tick off."
ON_CALL = "Write the on-call hand-over notes."
WATCH = "Keep an eye on the log of the shop and tell me when something fails."
PHOTOS = "Back up the photos."
TRAIN = "Which train gets me to Ghent on Saturday before noon?"
INVOICES = "Remind the two customers whose invoices are overdue, friendly please."
QUEUED = "And tell me how large it is when it is done."
DIGEST = "Sum up what came in overnight"

CHECK = "./check"
CHANGES = "head -n 8 CHANGES.md"
NOTIFY = "./notify '#releases' '0.7.0 is going to staging'"
DEPLOY = "./deploy staging 0.7.0 --hand-over"

# The programs of the folder, as shell scripts.
PROGRAMS = {
    "check": """
        echo "ruff, mypy, import contracts … ok"
        for suite in core store gateway page; do sleep 0.7; echo "$suite … ok"; done
        echo "1,482 passed, 0 failed"
    """,
    "notify": "sleep 60",
    "deploy": "sleep 1; echo deployed",
    "reindex": """
        for number in $(seq 1 900); do
            echo "batch $number of 900: $((number * 1000)) products"
            sleep 1.5
        done
    """,
    "watch": "sleep 100000",
    "backup": "sleep 0.3; echo '2,318 photos, 14 of them new; copied in 0.3 s'",
    "trains": "sleep 0.4; echo '07:42 → 10:31  one change\n08:12 → 10:58  direct\n09:12 → 11:58  direct'",
}
LOG = """\
# Changes

## 0.7.0

- Hand-over is the default restart
- The outbox keeps unknown sends apart
- Drafts are kept on the server
- Search finds words in archived orders

## 0.6.2

- A slow page no longer holds up others
"""

OUTLINE = """\
## From 0.6 to 0.7

1. **Back up** the data. One file is enough, also while the shop is open.
2. **Upgrade** in place. The new version proves itself before the old one steps back:

```bash
./shop backup shop-0.6.tar
./shop upgrade 0.7.0    # refuses if anything does not fit
```

3. **Look** at the overview. Orders that came in during the move end where they began.

| what changes | before | from 0.7 on |
|---|---|---|
| restart | stops, then starts | hands over |
| drafts | in the browser | on the server |
| unknown sends | counted as failed | kept apart |

Nothing needs to be converted. Going back is `./shop restore shop-0.6.tar`.
"""

LIST = """\
For six people:

- [ ] 3 aubergines
- [ ] 4 courgettes
- [ ] 6 tomatoes, ripe
- [ ] 2 red peppers, 1 yellow
- [ ] 2 onions and 4 cloves of garlic
- [ ] thyme, a bay leaf, good olive oil

Salt the aubergines half an hour before you start: they take less oil.
"""

ANSWERS: dict[str, tuple[Reply, ...]] = {
    READY: (Reply(say=text("Yes: all four changes are in, and nothing is left in the milestone."), usage=(5_200, 24, 1_000)),),
    RELEASE: (
        Reply(
            say=(
                *thought("First the checks, then what changed. The channel wants to know before anything is deployed."),
                call("terminal", {"command": CHECK}),
                call("terminal", {"command": CHANGES}),
            ),
            usage=(8_420, 96, 6_100),
        ),
        Reply(
            say=(*text("All checks pass. ", "I am telling the channel first, ", "then I deploy."), call("terminal", {"command": NOTIFY})),
            usage=(8_910, 61, 8_400),
            delay_s=0.05,
        ),
        Reply(
            say=(
                *text(
                    "Since `0.6.2` three changes matter for staging:\n\n",
                    "- **Hand-over** is the default restart, so a deploy interrupts no turn.\n",
                    "- The outbox keeps *unknown* sends apart from failed ones.\n",
                    "- Drafts are kept on the server.\n",
                ),
                call("terminal", {"command": DEPLOY}),
            ),
            usage=(9_240, 118, 8_900),
            delay_s=0.25,
        ),
    ),
    REINDEX: (Reply(say=(*text("I am starting it now."), call("terminal", {"command": "./reindex"})), usage=(3_100, 28, 1_200)),),
    GUIDE: (Reply(say=text(*textwrap.wrap(OUTLINE, 60, replace_whitespace=False, drop_whitespace=False)), usage=(2_840, 412, 1_100)),),
    SHOPPING: (Reply(say=text(LIST), usage=(1_160, 148, 1_000)),),
    ON_CALL: (
        Reply(
            say=(
                *text("I have the alerts and the deploys of both weeks."),
                call("ask_user", {"question": "Which week should the notes cover?", "choices": ["this week", "last week"]}),
            ),
            usage=(4_380, 52, 2_100),
        ),
    ),
    WATCH: (
        Reply(say=(call("processes", {"action": "start", "command": "./watch shop.log"}),), usage=(1_420, 31, 1_000)),
        Reply(say=text("I am watching it and will write here when something fails."), usage=(1_510, 18, 1_400)),
    ),
    PHOTOS: (
        Reply(say=(call("terminal", {"command": "./backup photos"}),), usage=(1_180, 24, 1_000)),
        Reply(say=text("Done: 2,318 photos, 14 of them new."), usage=(1_240, 16, 1_100)),
    ),
    TRAIN: (
        Reply(say=(call("terminal", {"command": "./trains Ghent saturday"}),), usage=(1_610, 22, 1_000)),
        Reply(
            say=text("The **08:12** is direct and arrives at **10:58**. The 09:12 is direct as well and arrives at 11:58."),
            usage=(1_720, 38, 1_600),
        ),
    ),
    INVOICES: (
        Reply(
            say=text("Both reminders are sent: Bakker (€ 240, nine days) and Studio Lind (€ 1,180, four days)."), usage=(2_050, 44, 1_000)
        ),
    ),
    DIGEST: (
        Reply(
            say=text(
                "**12 messages** came in overnight, 3 need an answer:\n\n- Bakker asks for an invoice\n- two questions about delivery times"
            ),
            usage=(3_260, 71, 1_900),
        ),
    ),
}
TITLES = {
    READY: "Release 0.7 to staging",
    REINDEX: "Nightly index rebuild",
    GUIDE: "Guide for moving to 0.7",
    SHOPPING: "Shopping list",
    ON_CALL: "On-call hand-over notes",
    WATCH: "Watch the shop's log",
    PHOTOS: "Photo backup",
    TRAIN: "Train to Ghent",
    INVOICES: "Invoice reminders",
    DIGEST: "Morning digest",
}


def answer(asked: Asked) -> Reply:
    """What the model replies to a request: by what a person said last, and how often it has responded since."""
    messages = asked.body["messages"]
    said = [_words(message) for message in messages]
    place, key = max((place, key) for key in ANSWERS for place, words in enumerate(said) if key in words and _from_person(messages[place]))
    if titles.INSTRUCTIONS[:40] in said[0]:
        return Reply(say=text(TITLES[key]), usage=(310, 6, 0))
    steps: int = sum(message["role"] == "assistant" for message in messages[place:])
    replies = ANSWERS[key]
    return replies[min(steps, len(replies) - 1)]


def _from_person(message: dict[str, Any]) -> bool:
    return bool(message["role"] == "user")


def _words(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


class Past(NamedTuple):
    """A conversation of the days before."""

    hours: float
    title: str
    said: str
    answer: str


PAST = (
    Past(
        27,
        "Why is the queue slow on Mondays?",
        "Why is the queue slow on Mondays?",
        "The backlog comes from one group: the weekly export waits for the mail server.",
    ),
    Past(
        31,
        "Sourdough for Sunday",
        "When do I start the dough for Sunday at ten?",
        "Feed the starter on Saturday at 8:00, mix at 14:00, shape at 20:00 and bake at 8:30.",
    ),
    Past(52, "Postgres or not", "Do we need Postgres for the shop?", "One file is enough until two machines write to it."),
    Past(
        76,
        "A present for Lena",
        "What do I give a ten-year-old who likes stars?",
        "A planisphere: no batteries, and it works in the garden.",
    ),
    Past(
        101,
        "Split the holiday costs",
        "We paid 840, 310 and 95. Who owes whom?",
        "Split by three, each pays 415. Tom owes you 320, Ada owes you 105.",
    ),
)

# How many requests came in each hour of the day before, the newest last.
TRAFFIC = (43, 46, 42, 37, 31, 24, 16, 9, 6, 4, 3, 2, 2, 5, 9, 16, 25, 34, 45, 52, 44, 56, 49, 42)
