"""What anyone may add at any time, without a lease: messages, commands, stops, answers."""

from typing import Protocol

import msgspec

from holdfast.core.approvals import Rule
from holdfast.core.content import Content
from holdfast.core.events import MessageAccepted
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.causes import Recorded
from holdfast.core.plans.command import Action, Aside
from holdfast.core.plans.edit import Edit, Edited
from holdfast.core.plans.stop import Stopped
from holdfast.core.resets import Boundary


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """On which terms a message is accepted. `fresh`: the session id and the log name of a session that may have to be begun for it.
    `max_waiting`: how many may wait in its lane. `answers`: it may be the answer to a question. `on_page`: it was written where everything
    that is stored can be seen. `resets`: the boundaries behind which its session is left. `reply_to`: the platform's own name of the
    message that it replies to. `operator`: its sender may decide what concerns others.
    """

    fresh: tuple[str, str]
    max_waiting: int
    answers: bool = True
    on_page: bool = False
    resets: tuple[Boundary, ...] = ()
    reply_to: str | None = None
    operator: bool = True


class Inbox(Protocol):
    """Additions without a lease. Every method keeps to the contract of `ports.store`."""

    async def accept(self, session_id: str, message: MessageAccepted, terms: Terms, *, at: int) -> Accepted:
        """A message is on disk once this returns: in the inbox, or, if it `answers`, recorded as the answer to the question
        whose delivery it replies to, else to the oldest open question that its sender can have seen: in a chat, once its delivery is
        `sent`; for a message written `on_page`, at once. Until then the message waits behind it (A27), and a question that will never
        arrive is sent again. A question that only an operator may answer is answered only if its sender is one. Otherwise its
        `mode` (`core.busy`) says what becomes of it while the session is busy. "steer": the turn that runs may take it. "interrupt": a
        stop of the open turn is recorded with it, and the next turn starts from it, before others that wait. "reject": it is recorded
        and refused. A message that is refused is `refused` in the reply.

        If the session is not current, the key's current one gets the message; if it is suspended or past a reset boundary, a new one
        (`fresh`) does, whose first words say why. All in the same transaction.

        A key whose current session is deleted gets a new one, too. The same key with the same content again is a no-op that gives the
        first answer; with other content it raises `DuplicateOtherContent`, and `Deleted` if the session it was said in is purged. Raises
        `NotFound`, `LaneFull`, `BlobMissing`.
        """

    async def withdraw(self, session_id: str, message_id: str, *, at: int) -> bool:
        """Its sender takes back a message that still waits: no turn starts from it, and it is shown as refused. False, and nothing changed,
        if it does not wait. Raises `NotFound`.
        """

    async def edit(self, session_id: str, edit: Edit, *, at: int) -> Edited:
        """Its sender changes a message; what is attached to it stays. Of one that waits, the turn that takes it reads the new words. To
        the open turn that took it the new words are given as a correction, a cause that it takes as it takes a message that steers. Of any
        other the change is recorded. Repeating a dedup key changes nothing and returns the first answer; with another text it raises
        `DuplicateOtherContent`. Raises `NotFound`, `CannotEdit`, and `Taken` where the message was believed to wait and does not.
        """

    async def said_under(self, dedup_key: str) -> tuple[str, str] | None:
        """The session and the message that were stored under this key; None if there is none, or it is purged."""

    async def record_cause(
        self,
        session_id: str,
        *,
        cause_id: str,
        what: str,
        content: Content,
        dedup_key: str | None,
        at: int,
        sender: str = "owner",
        generation: int | None = None,
        anchor: str | None = None,
    ) -> Recorded:
        """Something other than a message that a turn may start from, such as a process that ended, is in the inbox once this returns. Like
        a message it is taken by one turn at most. It is dropped, on record, if its session is suspended or not its key's current one, or
        if it names a `generation` and that turn is no longer its session's newest: at once, or where a turn would start from it (P6, E3).
        Repeating a dedup key changes nothing and returns the first cause. Raises `NotFound`.
        """

    async def command(self, session_id: str, aside: Aside, action: Action, *, at: int) -> Accepted:
        """Records words to the gateway, does what they ask for, and answers them, in one transaction. They are recorded in the
        session that is the key's current one afterwards. The same key with the same content again does nothing and gives the first answer;
        with other content it raises `DuplicateOtherContent`. Raises `NotFound`.
        """

    async def tell_once(self, session_id: str, *, notice_id: str, content: Content, anchor: str | None, at: int) -> bool:
        """Writes a notice into a session, and owes it to its chat. False, and nothing written, where a notice of that id was before."""

    async def request_stop(
        self, session_id: str, *, by: str, dedup_key: str | None, at: int, turn_id: str | None = None, saw: str | None = None
    ) -> Stopped:
        """Records that the open turn is to stop: only the one of `turn_id`, if given, or the one that the caller `saw` open; nothing if
        that has ended. `core.stops` says which turn several stops at once are for. A turn that belongs to no process (waiting, answered)
        ends as cancelled at once; an interrupted one is ended by whichever process decides about it. Raises `NotFound`. Repeating a dedup
        key changes nothing and returns the first answer.
        """

    async def answer(self, question_id: str, answer: Answer, *, at: int) -> str:
        """Records the answer to an open question, also while its turn still runs; gives the session's id. The turn continues after the last
        one it waits for. An approval takes a verdict, from the one who asked for the work or an operator, and with the scope "session" adds
        the rule that was offered, in the same transaction. Repeating a dedup key changes nothing. Raises `NotFound`, `QuestionClosed`,
        `NotYours`, and `BadInput` for an answer of the other kind.
        """

    async def rules(self, session_id: str | None = None) -> list[Rule]:
        """What people have allowed for a session, oldest first; without an id, for all that are not deleted."""

    async def remove_rule(self, rule_id: str, *, by: str, at: int) -> Rule:
        """Takes a rule back, and gives what it was. Raises `NotFound`."""

    async def expire_questions(self, *, now: int) -> list[str]:
        """Ends, as failed, every turn whose question is past its time. Gives their sessions' ids."""
