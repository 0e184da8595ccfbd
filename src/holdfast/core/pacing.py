"""When the next message may be sent: a budget for each account and one for each chat. Pure; `now` is a monotonic time in seconds."""

from enum import Enum, auto

import msgspec

from holdfast.core.capabilities import Rates


class What(Enum):
    """FINAL: a text that people wait for. LIVE: an edit of one that is still being written, which the next edit makes good."""

    FINAL = auto()
    LIVE = auto()


class Bucket(msgspec.Struct, frozen=True):
    """`tokens` at the time `at`; it fills by `per_s` up to `size`. Nothing is taken before `quiet_until`. `held`: how many were taken for
    requests that were not made yet. They may all go at once, so that it does not fill for them meanwhile.
    """

    per_s: float
    size: float
    tokens: float
    at: float
    quiet_until: float = 0.0
    held: int = 0

    def filled(self, now: float) -> float:
        return min(self.size - self.held, self.tokens + max(0.0, now - self.at) * self.per_s)

    def untouched(self, now: float) -> bool:
        """Whether it says no more than a new one would."""
        return not self.held and self.filled(now) >= self.size and self.quiet_until <= now

    def wait_s(self, now: float, *, above: float = 0.0) -> float:
        """How long until one can be taken that leaves `above`."""
        missing = 1.0 + above - self.filled(now)
        full_s = missing / self.per_s if missing > 1e-9 else 0.0
        return max(full_s, self.quiet_until - now, 0.0)

    def taken(self, now: float) -> "Bucket":
        return msgspec.structs.replace(self, tokens=self.filled(now) - 1.0, at=now)

    def reserved(self, now: float) -> "Bucket":
        """Taken for a request that is made later: `used` then, or `given_back`."""
        return msgspec.structs.replace(self.taken(now), held=self.held + 1)

    def used(self, now: float) -> "Bucket":
        """The request is made now."""
        return msgspec.structs.replace(self, tokens=self.filled(now), at=max(now, self.at), held=max(0, self.held - 1))

    def given_back(self) -> "Bucket":
        return msgspec.structs.replace(self, tokens=self.tokens + 1.0, held=max(0, self.held - 1))

    def quiet(self, until: float) -> "Bucket":
        return msgspec.structs.replace(self, quiet_until=max(self.quiet_until, until))


def of_account(rates: Rates, now: float) -> Bucket:
    return Bucket(rates.account_per_s, rates.account_burst, rates.account_burst, now)


def of_chat(rates: Rates, *, shared: bool, now: float) -> Bucket:
    return Bucket(1.0 / rates.every_s[shared], rates.burst, rates.burst, now)


def wait_s(rates: Rates, account: Bucket, chat: Bucket, what: What, now: float) -> float:
    """How long this has to wait; 0 if it may go now."""
    if what is What.LIVE:  # It leaves the chat's next final text its turn, too.
        return max(account.wait_s(now, above=rates.kept), chat.wait_s(now, above=min(1, rates.burst - 1)))
    return max(account.wait_s(now), chat.wait_s(now))


def edit_every_s(rates: Rates, *, shared: bool, writing: int) -> float:
    """How often one message that is being written is edited, while so many are: together they leave the kept part of the account alone."""
    return max(rates.edit_every_s[shared], writing / (rates.account_per_s * (1 - min(0.9, rates.kept / rates.account_burst))))
