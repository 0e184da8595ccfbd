"""Pairing: a stranger gets a code from the account, shows it to the operator, and the operator approves it. Only its digest is kept."""

import hashlib
import hmac
from enum import Enum, auto

import msgspec

from holdfast.core.errors import Refused, Unavailable

# Without letters and digits that look alike.
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
LENGTH = 8
LIFE_MS = 3600 * 1000
# A stranger who writes again within this time gets no second code.
AGAIN_MS = 600 * 1000
# A stranger who was denied hears nothing for so long.
DENIED_MS = 24 * 3600 * 1000
# So many strangers of a platform can have a code at once.
MOST = 20
# So many wrong codes may be tried within the time.
MOST_WRONG, WRONG_MS = 5, 600 * 1000
# A millisecond or two; all codes take more than the hour that one is valid.
_ROUNDS = 5_000


class WrongCode(Refused):
    code = "wrong_code"

    def __init__(self) -> None:
        super().__init__("No such pairing code is open. Codes are valid for an hour; ask the person to write again to get a new one.")


class TooManyWrongCodes(Unavailable):
    code = "too_many_wrong_codes"

    def __init__(self, wait_ms: int) -> None:
        super().__init__(
            "Too many wrong pairing codes were tried. Wait ten minutes, then try again.", retry_after_s=max(1.0, wait_ms / 1000)
        )


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A stranger who has a code, or who was refused without one: then `digest` is empty. `told`: they were. `denied`: an operator does not
    want them; their code is void.
    """

    platform: str
    user: str
    name: str
    salt: bytes
    digest: bytes
    made_at: int
    told: bool = False
    denied: bool = False

    def alive(self, now: int) -> bool:
        """Whether they have a code that is valid."""
        return bool(self.digest) and not self.denied and self.made_at - LIFE_MS <= now < self.made_at + LIFE_MS


class Ask(Enum):
    """What a stranger who writes gets: a code, nothing more than before, or words without a code, because there is none to be had in that
    place or too many others have one.
    """

    CODE = auto()
    SILENCE = auto()
    WORDS = auto()


def ask(known: Pending | None, *, others: int, codes: bool, now: int) -> Ask:
    """`known`: what this stranger was told already; `others`: how many other codes are alive; `codes`: this stranger may have one here.
    Words without a code keep nobody from getting a code later, and never replace one.
    """
    if known is not None and known.denied and abs(now - known.made_at) < DENIED_MS:
        return Ask.SILENCE
    recent = known is not None and known.told and abs(now - known.made_at) < AGAIN_MS
    alive = known is not None and known.alive(now)
    if codes and others < MOST:
        return Ask.SILENCE if recent and alive else Ask.CODE
    return Ask.SILENCE if recent or alive else Ask.WORDS


def make(random: bytes) -> str:
    """A code from random bytes, of which it takes two for each letter."""
    pairs = zip(random[0 : 2 * LENGTH : 2], random[1 : 2 * LENGTH : 2], strict=True)
    return "".join(ALPHABET[(high * 256 + low) % len(ALPHABET)] for high, low in pairs)


def digest(code: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", _plain(code).encode(), salt, _ROUNDS)


def find(code: str, pending: list[Pending], *, now: int) -> Pending | None:
    """The one whose code it is. All are compared, and each in constant time, so that nothing is learnt from how long it takes."""
    found = None
    for one in pending:
        if hmac.compare_digest(digest(code, one.salt), one.digest) and one.alive(now):
            found = one
    return found


def locked_ms(wrong: list[int], *, now: int) -> int:
    """How long no code can be tried, after these times of wrong ones."""
    recent = sorted(at for at in wrong if now - WRONG_MS < at <= now)
    return recent[-MOST_WRONG] + WRONG_MS - now if len(recent) >= MOST_WRONG else 0


def _plain(code: str) -> str:
    return "".join(char for char in code.upper() if char.isalnum())
