"""One gateway, killed while each of its conversations stands somewhere else: the next start finds each where it was and does with it what
its rule says, no more."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from holdfast.core.events import MessageAccepted, Text
from holdfast.core.plans.start import StartedTurn
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner
from holdfast.store import SqliteStore
from tests.e2e.serving import Seen, Serving, complete_a_turn, now, wait_until

ROUNDS = 3
AT_ONCE = 2
LAST = 100
COUNT = f"count {LAST} 0.05"
NUMBERS = " ".join(str(number) for number in range(1, LAST + 1))
TWO_HOURS_MS = 2 * 3600 * 1000
NO_LIMIT = 10**9


class Shape:
    """Where a conversation stands when the gateway is killed. `enter` brings it there, `hold_on` and `last_word` come right before a kill,
    `meanwhile` what is done to the store while nobody serves, and `check` what the next start must have made of it. Nothing of it ever
    changes again. One that `runs_out` is entered last, or it would be over before the kill.
    """

    runs_out = False

    def __init__(self, serving: Serving, chance: random.Random) -> None:
        self.serving, self.chance = serving, chance
        self.session_id = ""

    def enter(self) -> None:
        self.session_id = self.serving.new_session()

    def is_there(self) -> bool:
        return True

    def hold_on(self) -> None:
        pass

    def last_word(self) -> None:
        pass

    async def meanwhile(self, store: SqliteStore) -> None:
        pass

    def check(self) -> None:
        raise NotImplementedError

    # what most of them ask

    def say(self, text: str) -> None:
        self.serving.post(self.session_id, text)

    def session(self) -> dict[str, Any]:
        return self.serving.session(self.session_id)

    def at_rest(self) -> dict[str, Any]:
        return self.serving.wait_for(self.session_id)

    def happened(self, kind: str) -> list[Seen]:
        return [item for item in self.serving.log(self.session_id) if item.event == kind]

    def shown(self) -> dict[str, Any]:
        """The part of an answer that has been written so far, or nothing."""
        return next((message for message in self.session()["messages"] if message["role"] == "assistant"), {"text": "", "tool_calls": []})


def said(session: dict[str, Any], role: str = "assistant") -> list[str]:
    return [message["text"] for message in session["messages"] if message["role"] == role]


def only_turn(session: dict[str, Any]) -> tuple[str, str, int]:
    """Outcome, rule and attempts of the one turn there is."""
    (turn,) = session["turns"]
    return turn["outcome"], turn["rule"], turn["attempt"]


def the_cut(session: dict[str, Any]) -> tuple[str, str]:
    """The one interruption's reason and rule."""
    (row,) = (message for message in session["messages"] if message["role"] == "interruption")
    assert row["rule"] in row["decision"], row
    return row["reason"], row["rule"]


class InMidText(Shape):
    """R9, B6: it goes on where it was."""

    runs_out = True

    def enter(self) -> None:
        super().enter()
        self.say(COUNT)

    def is_there(self) -> bool:
        return len(self.shown()["text"]) > 3

    def check(self) -> None:
        session = self.at_rest()
        assert (only_turn(session), the_cut(session)) == (("completed", "R9", 2), ("crash", "R9"))
        assert said(session) == [NUMBERS] and session["interrupted_restarts"] == 0


class InATool(Shape):
    """R9, B10: nobody knows what became of the command, and it is not run again."""

    def enter(self) -> None:
        super().enter()
        self.lines = self.serving.folder / f"{self.session_id}.txt"
        self.say(f"run echo line >> {self.lines}; sleep 300")

    def is_there(self) -> bool:
        return self.lines.exists()

    def check(self) -> None:
        session = self.at_rest()
        assert (only_turn(session), the_cut(session)) == (("completed", "R9", 2), ("crash", "R9"))
        (call,) = self.shown()["tool_calls"]
        assert call["outcome"] == "unknown" and self.lines.read_text() == "line\n"


class AfterATool(Shape):
    """R9, B10, A17: the result stands, the command is not run again, and the restart is not held against it."""

    runs_out = True

    def enter(self) -> None:
        super().enter()
        self.lines = self.serving.folder / f"{self.session_id}.txt"
        self.say(f"after echo line >> {self.lines}; echo done")

    def is_there(self) -> bool:
        return bool(self.shown()["text"])

    def check(self) -> None:
        session = self.at_rest()
        assert (only_turn(session), the_cut(session)) == (("completed", "R9", 2), ("crash", "R9"))
        (call,) = self.shown()["tool_calls"]
        assert (call["outcome"], call["result"].strip()) == ("done", "done") and self.lines.read_text() == "line\n"
        assert said(session) == [NUMBERS]
        # A17: a death counts for every turn that ran, whatever it had done.
        assert [cut.body["restarts"] for cut in self.happened("turn.interrupted")] == [1]


class WaitingForItsUser(Shape):
    """R5: it waits on; the answer continues the same turn."""

    def enter(self) -> None:
        super().enter()
        self.say("ask What is your name?")

    def is_there(self) -> bool:
        return bool(self.session()["state"] == "waiting")

    def check(self) -> None:
        wait_until(lambda: self.session()["turns"][0]["rule"] == "R5")
        waiting = self.session()
        assert (waiting["state"], waiting["questions"][0]["text"], waiting["resume_pending"]) == ("waiting", "What is your name?", False)
        self.say("Ada")
        session = self.at_rest()
        assert session["turns"][0]["attempt"] == 2 and said(session) == ["Thank you. You answered: Ada"]


class Ended(Shape):
    """R3, E5: an answer that was given is not given again, even where a mark says that something was cut."""

    def enter(self) -> None:
        super().enter()
        self.say("hello")

    def is_there(self) -> bool:
        return bool(self.session()["state"] == "idle")

    async def meanwhile(self, store: SqliteStore) -> None:
        self.before = await store.session(self.session_id)
        assert await store.mark_pending(self.before.session_key, reason="crash", at=now())

    def check(self) -> None:
        wait_until(lambda: not self.session()["resume_pending"])
        session = self.session()
        assert (len(session["turns"]), len(said(session)), session["resume_reason"]) == (1, 1, None)
        log = self.serving.log(self.session_id)
        assert [item.event for item in log if item.seq > self.before.seq] == ["session.changed", "session.changed"]


class Queued(Shape):
    """R9, B8, P1: what was cut comes first, what waited behind it after, in order, and last what is said while it goes on."""

    runs_out = True

    def enter(self) -> None:
        super().enter()
        for text in (COUNT, "second", "third"):
            self.say(text)

    def is_there(self) -> bool:
        return len(self.shown()["text"]) > 3

    def check(self) -> None:
        session = self.at_rest()
        assert [text.splitlines()[0] for text in said(session)] == [NUMBERS, "You said: second", "You said: third"]
        assert [(turn["outcome"], turn["rule"]) for turn in session["turns"]] == [
            ("completed", "R9"),
            ("completed", None),
            ("completed", None),
        ]
        kinds = [item.event for item in self.serving.log(self.session_id) if item.event in ("turn.started", "turn.ended")]
        assert kinds == ["turn.started", "turn.ended"] * 3


class Suspended(Shape):
    """R1, A14, A20: it is left; what waited is refused with its words; the next message begins a new one; a resume brings it back."""

    runs_out = True

    def enter(self) -> None:
        super().enter()
        self.say(COUNT)
        self.say("and this")

    def is_there(self) -> bool:
        return len(self.shown()["text"]) > 3

    def hold_on(self) -> None:
        self.serving.order(f"/api/sessions/{self.session_id}/suspend")
        if self.chance.random() < 0.5:
            wait_until(lambda: self.session()["turns"][0]["rule"] == "R1")

    def check(self) -> None:
        wait_until(lambda: self.session()["turns"][0]["rule"] == "R1")
        session = self.session()
        assert session["suspended"] and not session["resume_pending"] and session["turns"][0]["outcome"] is None
        (waited,) = (message for message in session["messages"] if message["text"] == "and this")
        assert waited["status"] == "refused" and sum("and this" in text for text in said(session, "notice")) == 1
        fresh = self.serving.wait_for(self.serving.post(self.session_id, "hello")["session_id"])
        assert fresh["session_id"] != self.session_id and fresh["session_key"] == session["session_key"]
        assert (fresh["was_auto_reset"], fresh["auto_reset_reason"]) == (True, "suspended")
        self.serving.order(f"/api/sessions/{self.session_id}/resume")
        session = self.at_rest()
        assert not session["suspended"] and only_turn(session)[:2] == ("completed", "R9") and said(session) == [NUMBERS]


class Stopped(Shape):
    """R0, A21: a stop that was acknowledged holds, whatever was still running then."""

    def enter(self) -> None:
        super().enter()
        self.stubborn = self.serving.folder / f"{self.session_id}.txt"
        self.say(f"run trap '' TERM; touch {self.stubborn}; while true; do sleep 1; done")
        self.say("and then this")

    def is_there(self) -> bool:
        return self.stubborn.exists()

    def last_word(self) -> None:
        assert self.serving.order(f"/api/sessions/{self.session_id}/stop")["queued"] == 1

    def check(self) -> None:
        session = self.at_rest()
        stopped, after = session["turns"]
        assert stopped["outcome"] == "cancelled" and stopped["attempt"] == 1 and stopped["rule"] in ("R0", None)
        assert not session["resume_pending"] and not session["suspended"]
        assert after["outcome"] == "completed" and said(session)[-1].startswith("You said: and then this\n")


class Idle(Shape):
    """E5, P6: not one event."""

    def enter(self) -> None:
        super().enter()
        self.say("hello")

    def is_there(self) -> bool:
        return bool(self.session()["state"] == "idle")

    def hold_on(self) -> None:
        self.before, self.log = self.session(), self.serving.log(self.session_id)

    def check(self) -> None:
        assert self.session() == self.before and self.serving.log(self.session_id) == self.log


class TriedBefore(Shape):
    """R4, B9: taken up once, it failed by itself and said so."""

    def enter(self) -> None:
        super().enter()
        self.say("stumble")

    def is_there(self) -> bool:
        return bool(self.shown()["text"])

    def check(self) -> None:
        session = self.at_rest()
        assert (only_turn(session), the_cut(session)) == (("failed", "R4", 2), ("crash", "R9"))
        assert not session["resume_pending"]


class FromTheRecord(Shape):
    """One that an earlier life left running, a while ago."""

    platform, ago_ms = "web:page", 0

    def enter(self) -> None:
        self.session_id = f"s_{self.chance.getrandbits(60):x}"

    async def meanwhile(self, store: SqliteStore) -> None:
        at = now() - self.ago_ms
        name, key = self.session_id, f"agent:main:{self.platform}:{self.session_id}"
        owner = await store.register_owner(Owner(name=f"o_{name}", pid=1, started_at=0, boot_id="gone"))
        await store.create_session(session_id=name, session_key=key, log=f"l{name}", at=at)
        message = MessageAccepted(message_id=f"m{name}", content=COUNT)
        await store.accept(name, message, Terms(fresh=("", ""), max_waiting=NO_LIMIT), at=at)
        started = await store.start_turn(name, owner=owner, turn_id=f"t{name}", at=at)
        assert isinstance(started, StartedTurn)
        await store.append_turn(
            started.lease, turn_id=started.turn_id, attempt=1, position=started.position, events=[Text(offset=0, text="1 2 3")], at=at
        )


class Stale(FromTheRecord):
    """R6: too old to go on with unasked; its user is told how."""

    ago_ms = TWO_HOURS_MS

    def check(self) -> None:
        session = self.at_rest()
        assert (only_turn(session), the_cut(session)) == (("set_aside", "R6", 1), ("crash", "R6"))
        assert said(session) == ["1 2 3"] and not session["resume_pending"]
        (told,) = said(session, "notice")
        assert "or a new message to continue from there" in told
        self.say("hello")
        assert self.at_rest()["turns"][1]["outcome"] == "completed"


class NowhereToAnswer(FromTheRecord):
    """R8: its platform is gone from the configuration; it is left for when it comes back."""

    platform = "telegram:dm"

    def check(self) -> None:
        wait_until(lambda: self.session()["turns"] != [] and self.session()["turns"][0]["rule"] == "R8")
        session = self.session()
        assert session["resume_pending"] and session["state"] == "interrupted" and said(session) == ["1 2 3"]


SHAPES: tuple[type[Shape], ...] = (
    InMidText,
    InATool,
    AfterATool,
    WaitingForItsUser,
    Ended,
    Queued,
    Suspended,
    Stopped,
    Idle,
    TriedBefore,
    Stale,
    NowhereToAnswer,
)


def test_each_conversation_goes_on_from_where_a_kill_found_it(tmp_path: Path) -> None:
    """R0, R1, R3, R4, R5, R6, R8, R9, A14, A17, A20, A21, B6, B8, B10, E5: all of them on one gateway, killed at different moments."""
    seed = random.randrange(10**9)

    def side(number: int) -> set[str]:
        with Serving(tmp_path / f"home-{number}", module="tests.e2e.scripted") as serving:
            settled: dict[str, dict[str, Any]] = {}
            for turn in range(ROUNDS):
                name = seed + 1000 * number + turn
                try:
                    settled |= play(serving, random.Random(name))
                except AssertionError as error:
                    raise AssertionError(f"seed {name}: {error}\n{serving.output()[-3000:]}") from error
            serving.kill()
            serving.start()
            complete_a_turn(serving)
            for session_id, session in settled.items():
                assert serving.session(session_id) == session, f"seed {seed + 1000 * number}: it was not at rest"
            return {turn["rule"] for session in settled.values() for turn in session["turns"]}

    with ThreadPoolExecutor(AT_ONCE) as sides:
        rules = set().union(*sides.map(side, range(AT_ONCE)))
    assert {"R0", "R4", "R6", "R8", "R9"} <= rules


def play(serving: Serving, chance: random.Random) -> dict[str, dict[str, Any]]:
    """One round. Gives what came of each conversation."""
    shapes = [shape(serving, chance) for shape in SHAPES]
    for some in ([shape for shape in shapes if not shape.runs_out], [shape for shape in shapes if shape.runs_out]):
        for_all(some, lambda shape: shape.enter())
        for_all(some, lambda shape: wait_until(shape.is_there))
    time.sleep(chance.uniform(0.0, 0.3))
    for_all(shapes, lambda shape: shape.hold_on())
    for_all(shapes, lambda shape: shape.last_word())
    serving.kill()
    for shape in shapes:
        serving.between_lives(shape.meanwhile)
    serving.start()
    for_all(shapes, lambda shape: shape.check())
    return {shape.session_id: shape.session() for shape in shapes}


def for_all(shapes: list[Shape], do: Callable[[Shape], None]) -> None:
    """In any order, so that no shape is always the last before the kill; a failure names the shape."""

    def one(shape: Shape) -> None:
        try:
            do(shape)
        except AssertionError as error:
            raise AssertionError(f"{type(shape).__name__}: {error}") from error

    with ThreadPoolExecutor(len(shapes)) as pool:
        list(pool.map(one, shapes))
