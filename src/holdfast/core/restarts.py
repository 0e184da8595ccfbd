"""Who is told of a stop or a restart, where, and as a reply to what. Decided here; the gateway records it, the platforms translate it.

A request is what somebody asked for. Those for a restart stand in the restart note until they have been answered, because another
process answers them.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from holdfast.core import keys, notices

NOTE = "restart-pending.json"


class What(StrEnum):
    """HAND_OVER: a successor takes over and every turn comes to its end. RESTART: the process ends, and comes back."""

    STOP = "stop"
    RESTART = "restart"
    HAND_OVER = "hand_over"


class By(StrEnum):
    """OPERATOR: the command line, the terminal or HTTP. SERVICE: a signal, or what manages the process. FAULT: a part of it broke."""

    CHAT = "chat"
    OPERATOR = "operator"
    SERVICE = "service"
    FAULT = "fault"


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, and what to reply to there: the platform's own word for one message, which may name a thread and a topic too."""

    session_key: str
    session_id: str
    anchor: str | None = None

    @property
    def place(self) -> keys.SessionKey:
        return place(self.session_key)


class Running(Chat, frozen=True, kw_only=True):
    """A conversation whose turn will be cut."""

    turn_id: str
    attempt: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: of the message that asked, where a chat did. `homes`: the home channels that are to hear of it. `heard`: those of them that
    have been told that Holdfast goes away, and so are told when it is back.
    """

    id: str
    by: By
    chat: Chat | None = None
    homes: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: no conversation is told twice under the same one. Without `session_id` it is for whatever conversation the key is in."""

    id: str
    session_key: str
    text: str
    session_id: str | None = None
    anchor: str | None = None


def place(session_key: str) -> keys.SessionKey:
    """Where people read it. In a group each person may have a lane of their own, and all of them read the same words."""
    return msgspec.structs.replace(keys.parse(session_key), user_id=None)


def request(id: str, by: By, *, chat: Chat | None = None, homes: Sequence[str] = ()) -> Request:
    """Whoever asks in a chat hears of it there, and nobody else does (C12, C13). A process that broke may break again within seconds, and
    home channels are no alarm bells.
    """
    return Request(id=id, by=by, chat=chat, homes=tuple(homes) if by in (By.OPERATOR, By.SERVICE) else ())


def reply(what: What, chat: Chat, running: Sequence[Running]) -> str:
    """The answer to a restart that was asked for in a chat. It is all that this chat hears before it."""
    cut = what is not What.HAND_OVER and any(turn.place == chat.place for turn in running)
    return notices.restarting_interrupts(window_s=0) if cut else notices.restarting()


def before(what: What, requests: Sequence[Request], running: Sequence[Running], *, window_s: float = 0) -> list[Notice]:
    """What is said before the drain: one notice for each place with a turn that will be cut (C10), then one for each home channel. A
    chat that asked has its answer already (C11).

    With a window, nobody knows yet which turns will end inside it. All are told at its beginning, in words that hold either way: when
    it is over there may be no time left to tell anybody, and a notice is worth more while one can still act on it.
    """
    if what is What.HAND_OVER:
        return []
    told = {one.chat.place for one in requests if one.chat is not None}
    found = []
    words = notices.restarting_interrupts(window_s) if what is What.RESTART else notices.stopping_interrupts(window_s)
    for turn in running:
        if turn.place not in told:
            told.add(turn.place)
            id = f"cut.{turn.turn_id}.{turn.attempt}"
            found.append(Notice(id=id, session_key=turn.session_key, session_id=turn.session_id, text=words, anchor=turn.anchor))
    words = notices.restarting() if what is What.RESTART else notices.stopping()
    for one in requests:
        for home in one.homes:
            if place(home) not in told:
                told.add(place(home))
                found.append(Notice(id=f"ends.{one.id}", session_key=home, text=words))
    return found


def heard(one: Request, told: Sequence[Notice]) -> Request:
    """The request once these notices are on record."""
    places = {place(notice.session_key) for notice in told}
    return msgspec.structs.replace(one, heard=tuple(home for home in one.homes if place(home) in places or home in one.heard))


def after(requests: Sequence[Request]) -> list[Notice]:
    """What is said once the restart has happened: to the chat that asked, as a reply to its command; to the home channels that heard it
    begin, which after a hand-over are none. A place hears it once, however many asked.
    """
    found, told = [], set()
    for one in requests:
        if one.chat is not None and one.chat.place not in told:
            told.add(one.chat.place)
            found.append(_outcome(one.id, one.chat, notices.back()))
    for one in requests:
        for home in one.heard:
            if place(home) not in told:
                told.add(place(home))
                found.append(Notice(id=f"outcome.{one.id}", session_key=home, text=notices.back()))
    return found


def failed(one: Request, why: str) -> list[Notice]:
    """The restart did not happen. Home channels were not told of it, and those who asked elsewhere have the answer there."""
    return [_outcome(one.id, one.chat, notices.restart_failed(why))] if one.chat is not None else []


def _outcome(id: str, chat: Chat, text: str) -> Notice:
    """The same id whichever it is: one request has one outcome."""
    return Notice(id=f"outcome.{id}", session_key=chat.session_key, session_id=chat.session_id, text=text, anchor=chat.anchor)
