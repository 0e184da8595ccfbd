"""Very many chats of one bot, with the platform's flood control on. The platform is a process of its own, where what arrived is counted as
people see it; when a message was accepted and its answer owed is read from the log afterwards.
"""

import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import prepared
from bench.answering import SLOW, answer
from bench.figures import Figure, at_most, plain
from bench.serving import ROOT, Serving
from bench.setting import Setting
from holdfast.core import events as e
from tests.fakes.telegram.__main__ import Seen
from tests.fakes.telegram.server import BOT, TOKEN

PER_S = 20
# One chat of ten is a group; one message of ten is answered slowly, and follows another one of its chat at once.
TENTH = 10
SETTLED_S = 60.0
LOOK_S = 0.25
GOAL_MS = 100.0


class Said(msgspec.Struct, frozen=True):
    chat: int
    text: str
    at: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, what people see of the bot, and how long messages took that are answered at once, in milliseconds: from being accepted
    to their answer being owed, and from being written to the answer being there.
    """

    said: list[Said]
    seen: Seen
    to_outbox_ms: list[float]
    to_chat_ms: list[float]
    cpu_ms: float

    def lost(self) -> int:
        there = {(each.chat, each.text) for each in self.seen.messages}
        return sum((each.chat, answer(each.text)) not in there for each in self.said)

    def doubled(self) -> int:
        """Everything that is there and that nobody waits for."""
        wanted = Counter((each.chat, answer(each.text)) for each in self.said)
        return (Counter((each.chat, each.text) for each in self.seen.messages) - wanted).total()

    def disordered(self) -> int:
        """Chats in which answers stand in another order than the messages."""
        wanted, there = defaultdict(list), defaultdict(list)
        for said in self.said:
            wanted[said.chat].append(answer(said.text))
        for shown in self.seen.messages:
            there[shown.chat].append(shown.text)
        return sum(sorted(wanted[chat]) == sorted(there[chat]) and wanted[chat] != there[chat] for chat in wanted)


class Platform:
    """The process of the platform, with its people."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.fakes.telegram"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = self._line().decode().strip()

    def __enter__(self) -> "Platform":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def say(self, chat: int, text: str) -> Said:
        mention = f"@{BOT['username']} " if chat < 0 else ""
        self._write([chat, abs(chat), f"{mention}{text}"])
        return Said(chat, text, time.time())

    def seen(self) -> Seen:
        self._write([])
        return msgspec.json.decode(self._line(), type=Seen)

    def _write(self, words: list[Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(words) + b"\n")
        self._process.stdin.flush()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def chats(setting: Setting) -> list[Figure]:
    found = setting.measure(lambda: _loaded(setting))
    said = sum(len(each.said) for each in found)
    setting.notes.append(
        f"{setting.sizes.chats:,} chats, {PER_S} messages a second, {said:,} in all; a tenth of them answered over two seconds"
    )
    return [
        at_most("lost", "", [[each.lost()] for each in found], 0),
        at_most("doubled", "", [[each.doubled()] for each in found], 0),
        at_most("chats out of order", "", [[each.disordered()] for each in found], 0),
        at_most("accepted to outbox", "ms", [each.to_outbox_ms for each in found], GOAL_MS, judged="p99"),
        plain("written to answered in the chat", "ms", [each.to_chat_ms for each in found], judged="p99"),
        at_most("refused by flood control", "", [[each.seen.refused] for each in found], 0),
        plain("CPU per message", "ms", [[each.cpu_ms] for each in found]),
    ]


def _loaded(setting: Setting) -> Load:
    home = setting.home()
    variables = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "HOLDFAST_AGENT_MODULE": "bench.answering:agent",
        "HOLDFAST_TELEGRAM_TOKEN": TOKEN,
        "HOLDFAST_TELEGRAM_EVERYBODY": "true",
    }
    with Platform() as platform:
        with Serving(home, profiles=setting.profiles, variables=variables | {"HOLDFAST_TELEGRAM_BASE_URL": platform.url}) as server:
            before = server.cpu_s()
            said = _say_all(platform, setting.sizes.chats, setting.sizes.chat_messages)
            seen = _settled(platform, len(said))
            cpu_ms = 1000 * (server.cpu_s() - before) / len(said)
            server.stop()
    arrived = {(each.chat, each.text): each.at for each in seen.messages}
    quick = [each for each in said if not each.text.startswith(SLOW)]
    to_chat = [1000 * (arrived[each.chat, answer(each.text)] - each.at) for each in quick if (each.chat, answer(each.text)) in arrived]
    load = Load(said=said, seen=seen, to_outbox_ms=_to_outbox_ms(home), to_chat_ms=to_chat, cpu_ms=cpu_ms)
    setting.drop(home)
    return load


def _say_all(platform: Platform, chats: int, messages: int) -> list[Said]:
    """Everybody in turn, at a steady pace, and now and then somebody twice in a row."""
    said: list[Said] = []
    began, chat = time.monotonic(), 0
    for number in range(messages):
        time.sleep(max(0.0, began + number / PER_S - time.monotonic()))
        follows = number % TENTH == TENTH - 1
        chat = chat if follows else chat % chats + 1
        said.append(platform.say(-chat if chat % TENTH == 0 else chat, f"{SLOW if follows else 'message'} {number}"))
    return said


def _settled(platform: Platform, answers: int) -> Seen:
    """What people see once everything is answered, or nothing has come for too long."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        seen = platform.seen()
        whole = sum(not each.text.startswith(SLOW) or each.text.endswith("so on") for each in seen.messages)
        if whole >= answers or time.monotonic() > deadline:
            time.sleep(LOOK_S)  # For what should not come.
            return platform.seen()
        time.sleep(LOOK_S)


def _to_outbox_ms(home: Path) -> list[float]:
    """Of each message that is answered at once: its answer and the row of the outbox are written in one transaction."""
    accepted: dict[str, int] = {}
    causes: dict[str, Sequence[str]] = {}
    took: list[float] = []
    for item in prepared.log(home):
        match item.event:
            case e.MessageAccepted(message_id=message_id) as message if not str(message.text).startswith(SLOW):
                accepted[message_id] = item.at
            case e.TurnStarted(causes=turn_causes):
                causes[item.turn_id or ""] = turn_causes
            case e.MessageWritten(role="assistant"):
                took += [item.at - accepted[cause] for cause in causes[item.turn_id or ""] if cause in accepted]
    return took
