"""What becomes of those who may not talk to the agent: each is told once, and gets a pairing code where the operator allows that."""

import asyncio
import os

import msgspec
import structlog

from holdfast.core import markdown, notices, pairing, rights
from holdfast.core.errors import BadInput
from holdfast.core.inbound import Message, Source
from holdfast.core.pacing import What
from holdfast.core.pairing import Ask, Pending
from holdfast.core.places import place
from holdfast.gateway.host import Host
from holdfast.gateway.links import Link
from holdfast.gateway.sending import Sender
from holdfast.ports.pairings import Paired
from holdfast.ports.platforms import Outgoing
from holdfast.ports.store import Store

# For so long a stranger in a private chat is told again what surely did not arrive.
PATIENCE_S, AGAIN_S = 600.0, 5.0

log = structlog.get_logger()


class Strangers:
    def __init__(self, *, store: Store, host: Host, links: dict[str, Link], profile: str) -> None:
        self._store, self._host, self._links, self._profile = store, host, links, profile
        self._sender = Sender(store)

    async def has_a_code_for(self, link: Link, source: Source) -> bool:
        """Whether a stranger in a private chat would get a pairing code now."""
        return (await self._asked(link, source))[0] is Ask.CODE

    async def _asked(self, link: Link, source: Source) -> tuple[Ask, Pending | None]:
        known, now = await self._store.pairings(platform=link.name), self._host.clock.now()
        mine = next((one for one in known if one.user == source.user), None)
        others = sum(one.alive(now) and one.user != source.user for one in known)
        codes = link.policy.pairing and not source.shared and source.user not in link.policy.blocked
        return pairing.ask(mine, others=others, codes=codes, now=now), mine

    async def refuse(self, link: Link, message: Message) -> None:
        """A code is kept before it is sent, and as sent after: killed in between, the stranger gets another one, which says that it
        replaces the first.
        """
        source, now = message.source, self._host.clock.now()
        log.warning("a stranger wrote", platform=link.name, user=source.user, name=source.name, chat=source.chat)
        asked, mine = await self._asked(link, source)
        if asked is Ask.SILENCE:
            return
        code = pairing.make(os.urandom(2 * pairing.LENGTH)) if asked is Ask.CODE else None
        salt = os.urandom(16)
        digest = pairing.digest(code, salt) if code is not None else b""
        made = Pending(platform=link.name, user=source.user, name=source.name, salt=salt, digest=digest, made_at=now)
        await self._store.put_pairing(made)
        words = notices.not_allowed(link.name, code, again=mine is not None and mine.alive(now))
        key = rights.session_key(self._profile, link.name, source, link.policy)
        where = place(key, str(message.anchor))
        # A platform that knows its key would show the earlier message, with the earlier code.
        if await self._tell(link, Outgoing(place=where, key=os.urandom(12).hex(), text=markdown.read(words))):
            await self._store.put_pairing(msgspec.structs.replace(made, told=True))

    async def _tell(self, link: Link, message: Outgoing) -> bool:
        """Within the budget, as everything that is sent. Whether they may have read it: what surely did not arrive is tried again, but in a
        group nobody waits behind a stranger for that.
        """
        until = self._host.clock.monotonic() + (0.0 if message.place.shared else PATIENCE_S)
        while True:
            if (wait_s := link.wait_s(message.place, What.FINAL)) > 0:
                await asyncio.sleep(wait_s)
                continue
            outcome = await self._sender.send(link, message)
            if outcome.happened != "failed":
                return True
            if self._host.clock.monotonic() >= until:
                log.warning("a stranger was not told", platform=link.name, chat=message.place.chat, error=outcome.error)
                return False
            await asyncio.sleep(outcome.retry_s or AGAIN_S)

    async def approve(self, code: str, *, platform: str | None = None) -> Paired:
        """Lets in the stranger who has this code. Raises `WrongCode`, `TooManyWrongCodes`."""
        now = self._host.clock.now()
        locked_ms = pairing.locked_ms(await self._store.wrong_codes(), now=now)
        if locked_ms:
            raise pairing.TooManyWrongCodes(locked_ms)
        pending = await self._store.pairings(platform=platform)
        found = pairing.find(code, pending, now=now)
        if found is None:
            await self._store.note_wrong_code(at=now)
            raise pairing.WrongCode
        await self._store.pair(found.platform, found.user, name=found.name, at=now)
        return Paired(platform=found.platform, user=found.user, name=found.name, at=now)

    async def turn_away(self, platform: str, user: str) -> bool:
        """Shuts somebody out who was let in, or denies somebody who asks to be: their code is void, and they get no other one for a day.
        False if they are neither.
        """
        if await self._store.unpair(platform, user):
            return True
        now = self._host.clock.now()
        known = await self._store.pairings(platform=platform)
        asking = next((one for one in known if one.user == user and one.alive(now)), None)
        if asking is None:
            return False
        await self._store.put_pairing(msgspec.structs.replace(asking, made_at=now, told=True, denied=True))
        return True

    async def let_in(self, platform: str, user: str, *, name: str) -> Paired:
        """Without a code, by their id."""
        if not platform or not user:
            raise BadInput("Name a platform and a user's id.")
        now = self._host.clock.now()
        await self._store.pair(platform, user, name=name, at=now)
        return Paired(platform=platform, user=user, name=name, at=now)
