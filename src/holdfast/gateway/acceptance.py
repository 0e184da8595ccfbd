"""Whatever people say, wherever they say it: a message goes to the inbox, a command to the gateway is carried out and answered. Both are
on disk when `take` returns (P1)."""

import msgspec

from holdfast.core import commands, keys, notices, resets
from holdfast.core.commands import Command
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.recovery import Recovery
from holdfast.ports import Accepted, Action, Aside, Clock, Ids, Reset, Resume, Say, Stop, Store

LISTED = 20
SEARCHED = 1000


class Said(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    sender: str
    dedup_key: str | None
    anchor: str | None = None


class Acceptance:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        lanes: Lanes,
        recovery: Recovery,
        policies: dict[str, resets.Policy],
        max_waiting: int,
    ) -> None:
        self._store, self._clock, self._ids, self._lanes, self._recovery = store, clock, ids, lanes, recovery
        self._policies, self._max_waiting = policies, max_waiting

    async def take(self, session: Session, said: Said) -> Accepted:
        """Raises `LaneFull` for a message too many, `DuplicateOtherContent` for a key that was used for other words."""
        command = commands.parse(said.text)
        if command is None:
            accepted = await self._accept(session, said, said.text, answers=True)
        elif command.name == "queue" and command.argument:
            accepted = await self._accept(session, said, command.argument, answers=False)
        else:
            accepted = await self.answer(session, said, await self._action(session, command, said.sender))
        self._lanes.look(accepted.session_id)
        return accepted

    async def answer(self, session: Session, said: Said, action: Action) -> Accepted:
        """Words that start no turn, with what they lead to and what is said to them."""
        aside = Aside(message_id=self._ids.new("m"), text=said.text, sender=said.sender, dedup_key=said.dedup_key, anchor=said.anchor)
        accepted = await self._store.command(session.session_id, aside, action, at=self._clock.now())
        self._lanes.look(session.session_id)
        return accepted

    async def _accept(self, session: Session, said: Said, text: str, *, answers: bool) -> Accepted:
        now, key = self._clock.now(), keys.parse(session.session_key)
        policy = resets.policy_for(self._policies, key.platform, key.chat_type)
        return await self._store.accept(
            session.session_id,
            message_id=self._ids.new("m"),
            text=text,
            sender=said.sender,
            dedup_key=said.dedup_key,
            at=now,
            fresh=self.fresh(),
            max_waiting=self._max_waiting,
            anchor=said.anchor,
            answers=answers,
            resets=resets.boundaries(policy, now=now, offset_s=self._clock.offset_s(now)),
        )

    def fresh(self) -> tuple[str, str]:
        """Names for a session that may have to be begun."""
        return self._ids.new("s"), self._ids.new("l")

    async def _action(self, session: Session, command: Command, sender: str) -> Action:
        match command.name:
            case "stop":
                return Stop(sender)
            case "new":
                return Reset(self.fresh(), sender)
            case "resume":
                return await self._resume(session, command.argument, sender)
            case "sessions":
                listed = await self._store.conversations(session.session_key, limit=LISTED)
                return Say(notices.sessions(listed))
            case "status":
                return Say(notices.status(session, safe_mode=self._recovery.safe_mode))
            case "queue":
                return Say(notices.queue_what())
            case "help":
                return Say(notices.help_text())
            case _:
                return Say(notices.unknown_command(command.name))

    async def _resume(self, session: Session, wanted: str, sender: str) -> Action:
        """By number or id. Without either: what was cut here, else the conversation before this one."""
        if not wanted and (session.suspended or session.turn_state is TurnState.INTERRUPTED):
            return Resume(session.session_id, sender)
        for number, other in await self._store.conversations(session.session_key, limit=SEARCHED):
            if wanted in (str(number), other.session_id) or (not wanted and not other.current):
                return Resume(other.session_id, sender)
        return Say(notices.no_such_conversation(wanted) if wanted else notices.nothing_to_resume())
