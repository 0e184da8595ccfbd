"""Who is told about a stop or a restart, where, and as a reply to what. Decided here; the gateway records it, the platforms send it.

A request is what somebody asked for. Those for a restart stand in the restart note until they have been answered, because another
process answers them.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from holdfast.core import keys, notices

NOTE = "restart-pending.json"


class What(StrEnum):
    """HAND_OVER: a successor takes over and every turn comes to its end. RESTART: the process ends and comes back."""

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
    """A conversation, and the message to reply to there, by the platform's own name for it, which may include a thread and a topic."""

    session_key: str
    session_id: str
    anchor: str | None = None

    @property
    def place(self) -> keys.SessionKey:
        return place(self.session_key)


class Running(Chat, frozen=True, kw_only=True):
    """A conversation whose turn will be interrupted."""

    turn_id: str
    attempt: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: of the message that asked, if it came from a chat. `homes`: the home channels to tell. `heard`: the home channels that were
    told about the restart, and so are told when Holdfast is back.
    """

    id: str
    by: By
    chat: Chat | None = None
    homes: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: no conversation gets two notices with the same id. Without `session_id` it goes to the current conversation of the key."""

    id: str
    session_key: str
    text: str
    session_id: str | None = None
    anchor: str | None = None


def place(session_key: str) -> keys.SessionKey:
    """The chat where people read it. In a group each person may have their own lane, but all of them read the same chat."""
    return msgspec.structs.replace(keys.parse(session_key), user_id=None)


def request(id: str, by: By, *, chat: Chat | None = None, homes: Sequence[str] = ()) -> Request:
    """A request from a chat is answered only there (C12, C13). A process that broke may break again within seconds, so home channels are
    not told about that.
    """
    return Request(id=id, by=by, chat=chat, homes=tuple(homes) if by in (By.OPERATOR, By.SERVICE) else ())


def reply(what: What, chat: Chat, running: Sequence[Running]) -> str:
    """The reply to a restart requested in a chat: the only thing this chat is told before the restart."""
    cut = what is not What.HAND_OVER and any(turn.place == chat.place for turn in running)
    return notices.restarting_interrupts(window_s=0) if cut else notices.restarting()


def before(what: What, requests: Sequence[Request], running: Sequence[Running], *, window_s: float = 0) -> list[Notice]:
    """The notices before the drain: one for each chat with a turn that will be interrupted (C10), then one for each home channel. A chat
    that asked for the restart already has its reply (C11).

    With a window, it is not known yet which turns will end in time. All are told at its start, in words that are true either way: at its
    end there may be no time left, and a notice is more useful while people can still act on it.
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
    """The request after these notices were recorded."""
    places = {place(notice.session_key) for notice in told}
    return msgspec.structs.replace(one, heard=tuple(home for home in one.homes if place(home) in places or home in one.heard))


def after(requests: Sequence[Request]) -> list[Notice]:
    """The notices after the restart: to the chat that asked, as a reply to its command, and to the home channels that were told about it
    (none after a hand-over). Each chat is told once, however many asked.
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
    """The restart failed. Home channels were not told about it, and requests from elsewhere got their response there."""
    return [_outcome(one.id, one.chat, notices.restart_failed(why))] if one.chat is not None else []


def _outcome(id: str, chat: Chat, text: str) -> Notice:
    """Success and failure use the same id: one request has one outcome."""
    return Notice(id=f"outcome.{id}", session_key=chat.session_key, session_id=chat.session_id, text=text, anchor=chat.anchor)
