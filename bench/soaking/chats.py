"""People in chats during a soak: each writes again and again, reads what comes, and in the end has everything once, whole and in order."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from bench.soaking.notebook import Notebook, Sent
from bench.soaking.platforms import End
from bench.soaking.schedule import PACE_S, Saying, Sizes
from bench.soaking.served import TELL, told
from holdfast.core.delivery import REPEAT_LABEL
from holdfast.core.events import Logged, MessageAccepted

IN_HAND = 2
LOOK_S = 0.2
# Then people write again, whatever came.
PATIENCE_S = 20.0


class Talker:
    """Somebody in one chat. `said`: in order."""

    def __init__(self, end: End, chat: str, size: Sizes, seed: int, notes: Notebook) -> None:
        self.end, self.chat, self._size, self._notes = end, chat, size, notes
        self._chance = random.Random(f"chat {end.name} {chat} {seed}")
        self.said: list[Saying] = []
        self.closing = False

    @property
    def name(self) -> str:
        return f"{self.end.name} {self.chat}"

    async def run(self) -> None:
        """Until it is told to write no more."""
        while not self.closing:
            saying = self._next()
            self.said.append(saying)
            self._notes.sent[saying.client_id] = Sent(saying, self.name)
            await self.end.say(self.chat, saying.text)
            await asyncio.sleep(saying.pause_s)
            await self._answered()

    def _next(self) -> Saying:
        name = f"{self.end.name}-{self.chat}-{len(self.said) + 1}"
        last = int(self._size.turn_s ** self._chance.random() / PACE_S) + 1
        text, pause_s = f"{TELL} {name} {last} {PACE_S}", self._chance.uniform(0.0, 2.0)
        return Saying(client_id=name, text=text, answer=told(name, last), pause_s=pause_s)

    def close(self) -> None:
        self.closing = True

    async def _answered(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(await self.open()) >= IN_HAND and time.monotonic() < deadline and not self.closing:  # noqa: ASYNC110 - another process answers.
            await asyncio.sleep(LOOK_S)

    async def open(self) -> list[str]:
        """What is not answered yet."""
        there = {_bare(text) for text in await self.end.shown(self.chat)}
        return [saying.client_id for saying in self.said if saying.answer not in there]


def acknowledge(notes: Notebook, log: Sequence[Logged]) -> None:
    """Nobody tells people in chats under which name their message was accepted: it is found by its words."""
    names = {sent.saying.text: sent for sent in notes.sent.values() if sent.saying.text.startswith(TELL)}
    for item in log:
        if isinstance(event := item.event, MessageAccepted) and (sent := names.get(event.text)) and sent.message_id is None:
            sent.message_id, sent.session_id, sent.tries = event.message_id, item.session_id, 1


async def check(talkers: Sequence[Talker], given_up: Collection[str]) -> list[str]:
    """What is wrong with what people see. `given_up`: what a rule gave up, and said so."""
    found = []
    for talker in talkers:
        said = [saying for saying in talker.said if saying.client_id not in given_up]
        shown = await talker.end.shown(talker.chat)
        found += [f"{talker.name}: {each}" for each in wrong(said, shown, labels=talker.end.labels)]
    return found


def wrong(said: Sequence[Saying], shown: Sequence[str], *, labels: bool) -> Iterator[str]:
    """P1, P4: 0 lost, 0 silently doubled, order kept; what stands half-written is explained by a repeat that says so. `labels`: there may
    be such repeats.
    """
    whole = {saying.answer: saying.client_id for saying in said if saying.answer}
    answers = [whole[bare] for text in shown if (bare := _bare(text)) in whole]
    plainly = Counter(whole[text] for text in shown if text in whole)
    repeats = sum(text.startswith(REPEAT_LABEL) for text in shown)
    for saying in said:
        if saying.client_id not in answers:
            yield f"{saying.client_id} was never answered"
        if plainly[saying.client_id] > 1:
            yield f"{saying.client_id} was answered {plainly[saying.client_id]} times, and nothing said so"
    if list(dict.fromkeys(answers)) != [saying.client_id for saying in said if saying.client_id in answers]:
        yield f"the order is {list(dict.fromkeys(answers))}"
    begun = [text for text in shown if text not in whole and not text.startswith(REPEAT_LABEL) and _begins(text, said)]
    if len(begun) > repeats:
        yield f"{len(begun)} answers stand half-written and {repeats} were repeated, the first: {begun[0][-60:]!r}"
    if repeats and not labels:
        yield f"{repeats} answers may be repeats, where everything can be known"


def _begins(text: str, said: Sequence[Saying]) -> bool:
    return any(text.startswith(f"{saying.client_id}:") for saying in said)


def _bare(text: str) -> str:
    return text.removeprefix(REPEAT_LABEL)
