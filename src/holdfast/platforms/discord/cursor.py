"""Where an account is read from next: the gateway's session with the number of the last event that is stored, and, for when Discord has
forgotten the session, what is needed to read the history instead. Pure.
"""

import msgspec

from holdfast.platforms.discord import snowflakes

# Private chats are listed nowhere, so they are remembered: so many, those that spoke last.
MOST_DIRECT = 2000
# Events of different channels may overtake each other by this much.
OVERLAP_S = 60.0
FIRST_S = 600.0


class Cursor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`session`, `seq` and `url`: what RESUME needs; without a session there is nothing to resume. `intents`: what the session tells.
    `seen`: the highest id of a message that is stored; history is read from a little before it. `gap`: events since then were missed and
    have not been made good. `direct`: the channels of private chats, in the order in which they spoke last.
    """

    session: str = ""
    seq: int = 0
    url: str = ""
    seen: int = 0
    gap: bool = False
    intents: int = 0
    direct: tuple[str, ...] = ()

    def at(self, seq: int | None) -> "Cursor":
        return self if seq is None else msgspec.structs.replace(self, seq=seq)

    def entered(self, session: str, url: str, seq: int, *, intents: int, direct: tuple[str, ...], now: int) -> "Cursor":
        """In a new session. `now`: an id of this moment. An account that was never read begins a little earlier: the person who set it up
        has just written to it.
        """
        seen = self.seen or snowflakes.earlier(now, FIRST_S)
        return Cursor(session=session, url=url, seq=seq, seen=seen, gap=True, intents=intents, direct=direct)

    def forgotten(self) -> "Cursor":
        """Discord no longer knows the session."""
        return msgspec.structs.replace(self, session="", seq=0, url="")

    def saw(self, message: int, direct: str | None = None) -> "Cursor":
        """While a gap is open, what comes after it must not hide it."""
        seen = self.seen if self.gap else max(self.seen, message)
        known = self.direct
        if direct is not None and (not known or known[-1] != direct):
            known = (*(channel for channel in known if channel != direct), direct)[-MOST_DIRECT:]
        return msgspec.structs.replace(self, seen=seen, direct=known)

    def filled(self) -> "Cursor":
        return msgspec.structs.replace(self, gap=False)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def read(text: str | None) -> Cursor:
    """The exact inverse of `str(cursor)`; None is an account that was never read."""
    return Cursor() if text is None else msgspec.json.decode(text, type=Cursor)
