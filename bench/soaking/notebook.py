"""What a soak has seen: what was said and acknowledged, what was done to the gateway, what went wrong for whom. Wall times in seconds."""

import time
from collections.abc import Iterator

import msgspec

from bench.soaking.schedule import Saying, Target

# How long after a kill is over its victims may still turn up: a connection that nobody had used since.
AFTERMATH_S = 4.0
BEFORE_S = 0.2


class Sent(msgspec.Struct):
    """One message on its way. Acknowledged once `message_id` is set; then `session_id` is the session that took it."""

    saying: Saying
    asked_session: str
    tries: int = 0
    message_id: str | None = None
    session_id: str | None = None


class Kill(msgspec.Struct):
    """`owners`: the lives that ended by it, as the store knows them. `over_at`: the gateway answers again; where it never ceased to, the
    moment of the kill.
    """

    at: float
    target: Target
    pids: list[int]
    owners: list[int]
    over_at: float

    def near(self, at: float) -> bool:
        return self.at - BEFORE_S <= at <= self.over_at + AFTERMATH_S


class Lock(msgspec.Struct):
    """Another program had the database."""

    at: float
    over_at: float

    def near(self, at: float) -> bool:
        return self.at - BEFORE_S <= at <= self.over_at + AFTERMATH_S


class HandOver(msgspec.Struct):
    """`failed` says why the old process went on, or died of it."""

    at: float
    took_s: float
    pid: int | None
    failed: str | None = None


class Trouble(msgspec.Struct, frozen=True):
    """A request that had no answer, or not the one it should have had; a stream that broke off. `writes`: something was to be stored."""

    at: float
    who: str
    what: str
    writes: bool = False


class Notebook:
    """`faults` can be explained by nothing: a reader that saw a gap, a start that was refused for good."""

    def __init__(self) -> None:
        self.began = time.time()
        self.sent: dict[str, Sent] = {}
        self.kills: list[Kill] = []
        self.locks: list[Lock] = []
        self.hand_overs: list[HandOver] = []
        self.troubles: list[Trouble] = []
        self.faults: list[str] = []
        self.remarks: list[tuple[float, str]] = []
        self.gaps: dict[str, list[tuple[float, float]]] = {}
        self.shown: dict[str, list[int]] = {}

    def trouble(self, who: str, what: str, *, writes: bool = False) -> None:
        self.troubles.append(Trouble(time.time(), who, what, writes))

    def remark(self, what: str) -> None:
        self.remarks.append((time.time(), what))

    def gap(self, who: str, began: float, took_s: float) -> None:
        self.gaps.setdefault(who, []).append((began, took_s))

    def explained(self, at: float) -> Kill | None:
        """By the last kill before it, if that was near."""
        return next((kill for kill in reversed(self.kills) if kill.near(at)), None)

    def unexplained(self) -> Iterator[str]:
        """Troubles and failed hand-overs with no kill near them. A locked database refuses what is to be stored, and nothing else."""
        for trouble in self.troubles:
            locked = trouble.writes and any(lock.near(trouble.at) for lock in self.locks)
            if not locked and not self.explained(trouble.at):
                yield f"at {trouble.at - self.began:.1f} s {trouble.who}: {trouble.what}; no kill was near"
        for hand_over in self.hand_overs:
            ended = hand_over.at + hand_over.took_s
            if hand_over.failed and not any(
                kill.at - BEFORE_S <= ended and hand_over.at <= kill.over_at + AFTERMATH_S for kill in self.kills
            ):
                yield f"at {hand_over.at - self.began:.1f} s the hand-over failed: {hand_over.failed}; no kill was near"

    @property
    def killed(self) -> dict[int, Kill]:
        """By the owner that died of it."""
        return {owner: kill for kill in self.kills for owner in kill.owners}
