"""What anyone may add at any time, without a lease: messages, commands, stops, answers."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from holdfast.core.content import Content
from holdfast.core.events import QuestionAnswered
from holdfast.core.resets import Boundary


class Accepted(msgspec.Struct, frozen=True):
    """`duplicate`: this was stored before, under the same key; ids are those of the first time."""

    message_id: str
    session_id: str
    duplicate: bool = False


class Stopped(msgspec.Struct, frozen=True):
    """`turn_id`: None where nothing was there to stop. `ended`: the turn had no process, so it ended in the same transaction."""

    turn_id: str | None
    queued: int
    ended: bool


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Words to the gateway itself, in a conversation. They start no turn."""

    message_id: str
    text: str
    sender: str
    dedup_key: str | None
    anchor: str | None = None


class Say(msgspec.Struct, frozen=True):
    reply: str


class Stop(msgspec.Struct, frozen=True):
    """`saw`: the turn that was open when it was accepted, if one was. Another one that runs by now is not stopped."""

    by: str
    saw: str | None = None


class Reset(msgspec.Struct, frozen=True):
    """`fresh`: id and log name of the session that is begun."""

    fresh: tuple[str, str]
    by: str


class Resume(msgspec.Struct, frozen=True):
    """`session_id`: None for what was cut here or, where nothing is under way, the conversation before this one."""

    session_id: str | None
    by: str


Action = Say | Stop | Reset | Resume


class Inbox(Protocol):
    """Additions without a lease. Every method keeps to the contract of `ports.store`."""

    async def accept(
        self,
        session_id: str,
        *,
        message_id: str,
        content: Content,
        sender: str,
        dedup_key: str | None,
        at: int,
        fresh: tuple[str, str],
        max_waiting: int,
        anchor: str | None = None,
        answers: bool = True,
        on_page: bool = False,
        resets: tuple[Boundary, ...] = (),
    ) -> Accepted:
        """A message is on disk once this returns: in the inbox, or, if it `answers`, recorded as the answer to the open question
        of a waiting turn. A question counts as asked once its delivery is `sent`, or for a message written `on_page`, where everything
        that is stored is seen; until then the message waits behind it (A27), and a question that will never arrive is sent again.

        If the session is not current, the key's current one gets the message; if it is suspended or past a reset boundary, a new one
        (`fresh`: session id, log name) does, whose first words say why. All in the same transaction.

        A key whose current session is deleted gets a new one, too. The same key with the same content again is a no-op that gives the
        first answer; with other content it raises `DuplicateOtherContent`, and `Deleted` if the session it was said in is purged. Raises
        `NotFound`, `LaneFull`, `BlobMissing`.
        """

    async def command(self, session_id: str, aside: Aside, action: Action, *, at: int) -> Accepted:
        """Records words to the gateway, does what they ask for, and answers them, in one transaction. They are recorded in the
        session that is the key's current one afterwards. The same key with the same text again does nothing and gives the first answer;
        with other text it raises `DuplicateOtherContent`. Raises `NotFound`.
        """

    async def tell_once(self, session_id: str, *, notice_id: str, text: str, anchor: str | None, at: int) -> bool:
        """Writes a notice into a session, and owes it to its chat. False, and nothing written, where a notice of that id was before."""

    async def request_stop(
        self, session_id: str, *, by: str, dedup_key: str | None, at: int, turn_id: str | None = None, saw: str | None = None
    ) -> Stopped:
        """Records that the open turn is to stop: only the one of `turn_id`, if given, or the one that the caller `saw` open; nothing if
        that has ended. `core.stops` says which turn several stops at once are for. A turn that belongs to no process (waiting, answered)
        ends as cancelled at once; an interrupted one is ended by whichever process decides about it. Raises `NotFound`. Repeating a dedup
        key changes nothing and returns the first answer.
        """

    async def answer(self, question_id: str, answer: Callable[[str, str], QuestionAnswered], *, at: int) -> str:
        """Records the answer to an open question, made by `answer(question_id, call_id)`; gives the session's id. Raises
        `NotFound`, `QuestionClosed`.
        """

    async def expire_questions(self, *, now: int) -> list[str]:
        """Ends, as failed, every turn whose question is past its time. Gives their sessions' ids."""
