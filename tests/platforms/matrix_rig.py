"""Matrix, in front of a real Synapse. What a real server never does is done by a proxy before it."""

import asyncio
import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.platforms.matrix.platform import Matrix
from holdfast.ports.platforms import Platform
from tests.fakes.matrix import Homeserver, Person, Proxy, Shown
from tests.platforms.rigs import ANN, BOB, TEAM, Seen, hurried

LOOK_S = 0.1
_SIGNS = re.compile(r"\n\nReact with (.*)$", re.DOTALL)


def by_sync(url: str, token: str, since: str) -> Platform:
    made = Matrix(url, token, since=since, poll_s=2.0)
    made.capabilities = hurried(made.capabilities)
    return made


class World:
    """People and rooms that outlive a test: each counts from where it begins."""

    def __init__(self, server: Homeserver, number: str = "") -> None:
        """`number`: of one among several."""
        self.server = server
        self.bot, self.ann, self.bob = (server.register(f"{name}{number}") for name in ("holdfast", "ann", "bob"))
        self.eve, self.slow = server.register(f"eve{number}"), server.register(f"slow{number}", limited=True)
        self.rooms = {ANN: self.ann.make_room(self.bot, direct=True), BOB: self.bob.make_room(self.bot, direct=True)}
        self.rooms[TEAM] = self.ann.make_room(self.bot, self.bob, name="Team")
        for room in self.rooms.values():
            self.bot.join(room)
        self.bob.join(self.rooms[TEAM])
        direct = {self.ann.user: [self.rooms[ANN]], self.bob.user: [self.rooms[BOB]]}
        self.bot.call("PUT", f"/_matrix/client/v3/user/{self.bot.user}/account_data/m.direct", direct)
        self.root = self.ann.say(self.rooms[TEAM], "a thread")

    def reader(self, chat: str) -> Person:
        return self.bob if chat == BOB else self.ann


class MatrixRig:
    name = "matrix"
    _numbers = itertools.count()

    def __init__(self, world: World, proxy: Proxy, since: str) -> None:
        self.world, self.proxy, self.since = world, proxy, since
        for person in (world.ann, world.bob):
            person.look()
        self._after = {chat: len(world.reader(chat).seen[room]) for chat, room in world.rooms.items()}

    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(by_sync, self.proxy.url, self.world.bot.token, self.since)

    def user(self, name: str) -> str:
        return self._person(name).user

    def key(self, chat: str) -> str:
        return f"agent:main:matrix:dm:{self.world.rooms[chat].replace(':', '%3A')}"

    def _person(self, name: str) -> Person:
        return self.world.bob if name == BOB else self.world.ann

    async def say(self, text: str, *, chat: str = ANN, who: str = ANN, addressed: bool = True, thread: str | None = None) -> Any:
        fields: dict[str, Any] = {"m.mentions": {}}
        if chat == TEAM and addressed and not text.startswith("/"):
            text, fields["m.mentions"] = f"Holdfast: {text}", {"user_ids": [self.world.bot.user]}
        if thread is not None:
            root = self.world.root
            relates = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
            fields["m.relates_to"] = relates
        return await asyncio.to_thread(self._person(who).say, self.world.rooms[chat], text, **fields)

    async def again(self, said: Any) -> None:
        room = self.world.rooms[ANN]
        self.proxy.deliver(room, await asyncio.to_thread(self.world.bot.event, room, said))

    async def edit(self, said: Any, text: str) -> None:
        await asyncio.to_thread(self.world.ann.edit, self.world.rooms[ANN], said, text)

    def hold(self) -> bool:
        return False  # A sync is in the order of the server.

    def release(self) -> None: ...

    async def garbage(self) -> None:
        self.proxy.deliver(self.world.rooms[ANN], {"type": "m.room.message", "event_id": 7, "content": "what?"})

    async def press(self, seen: Seen, label: str, *, who: str = ANN, late: bool = False) -> None:
        """Bob is not in Ann's private chat, so his reaction there is one that no server would let through."""
        found = _SIGNS.search(seen.text)
        assert found is not None
        sign = next(part.split(" ", 1)[0] for part in found[1].split(" · ") if part.endswith(label))
        room = self.world.rooms[ANN]
        if who == ANN:
            await asyncio.to_thread(self.world.ann.react, room, seen.name, sign)
            return
        relates = {"rel_type": "m.annotation", "event_id": seen.name, "key": sign}
        made = {"type": "m.reaction", "event_id": f"$made-{next(self._numbers)}", "sender": self.user(who)}
        self.proxy.deliver(room, {**made, "content": {"m.relates_to": relates}})

    async def attach(self, data: bytes, *, name: str, media_type: str, text: str = "") -> Any:
        ann = self.world.ann
        url = await asyncio.to_thread(ann.upload, data, media_type)
        fields = {"msgtype": "m.file", "filename": name, "url": url, "info": {"mimetype": media_type, "size": len(data)}}
        return await asyncio.to_thread(ann.say, self.world.rooms[ANN], text or name, **fields)

    async def shown(self, chat: str = ANN) -> list[Seen]:
        await asyncio.to_thread(self.world.reader(chat).look, LOOK_S)
        return [self._seen(one) for one in self.messages(chat)]

    def messages(self, chat: str = ANN) -> list[Shown]:
        """What stands in a chat, as far as anybody has looked."""
        return self.world.reader(chat).shown(self.world.rooms[chat], self.world.bot.user, after=self._after[chat])

    def _seen(self, one: Shown) -> Seen:
        signs = _SIGNS.search(one.text)
        thread = one.relates.get("event_id") if one.relates.get("rel_type") == "m.thread" else None
        return Seen(
            name=one.id,
            text=one.text,
            buttons=tuple(part.split(" ", 1)[1] for part in signs[1].split(" · ")) if signs else (),
            reply_to=one.relates.get("m.in_reply_to", {}).get("event_id"),
            thread="77" if thread == self.world.root else thread,
            file=one.content.get("filename"),
        )

    def next_send(self, *faults: str) -> None:
        self.proxy.faults.extend(faults)

    def close(self, chat: str) -> None:
        self.proxy.gone.add(self.world.rooms[chat])

    def open(self, chat: str) -> None:
        self.proxy.gone.discard(self.world.rooms[chat])

    async def mute(self, chat: str) -> None:
        await self._write_from(chat, 50)

    async def unmute(self, chat: str) -> None:
        await self._write_from(chat, 0)

    async def _write_from(self, chat: str, level: int) -> None:
        """Only people of this level, or a higher one, may write in a room."""
        person, path = self.world.reader(chat), f"/_matrix/client/v3/rooms/{self.world.rooms[chat]}/state/m.room.power_levels/"
        levels = await asyncio.to_thread(person.call, "GET", path)
        await asyncio.to_thread(person.call, "PUT", path, {**levels, "events_default": level})

    def revoke(self) -> None:
        self.proxy.revoke()

    def restore(self) -> None:
        self.proxy.revoked = False

    def is_reply(self, seen: Seen, said: Any) -> bool:
        return bool(seen.reply_to == said)
