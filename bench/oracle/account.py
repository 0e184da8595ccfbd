"""What people asked for and what was acknowledged. Written down before each request is sent, completed when its answer comes."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What a message asks of the demo agent. RUN writes one line into a file: its effect can be counted."""

    COUNT = "count"
    RUN = "run"
    ASK = "ask"
    HELLO = "hello"
    FAIL = "fail"
    HANG = "hang"


class Said(msgspec.Struct):
    """One message. `answer`: what a turn that completes must say. `message_id` is None until it is acknowledged; a person who gave up
    before that does not know whether it was accepted.
    """

    name: str
    kind: Kind
    text: str
    asked_session: str
    answer: str | None = None
    message_id: str | None = None
    session_id: str | None = None


class Order(msgspec.Struct):
    """A stop, a reset, a resume or an answer to a question, asked of a session. `said`: what was answered; None until then."""

    what: str
    session_id: str
    said: dict[str, object] | None = None
    refused: str | None = None


class Account:
    def __init__(self) -> None:
        self.said: dict[str, Said] = {}
        self.orders: list[Order] = []
        self.sessions: set[str] = set()  # Every session that an answer named.
        self.blows: list[str] = []
        self.faults: list[str] = []

    def by_text(self) -> dict[str, Said]:
        return {said.text: said for said in self.said.values()}

    def tried(self, *whats: str) -> int:
        return sum(order.what in whats for order in self.orders)
