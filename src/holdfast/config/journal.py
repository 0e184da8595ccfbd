"""`[journal]`: how much running turns may write to their spools while the database is locked, and how long a late journal is looked for."""

import msgspec

from holdfast.core.journals import Limits
from holdfast.core.spools import TURN_BYTES

MB = 1024 * 1024


class Journal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turn_mb: float = TURN_BYTES / MB
    all_mb: float = 16 * TURN_BYTES / MB
    tries: int = Limits().tries
    try_every_s: float = Limits().every_ms / 1000
    give_up_s: float = Limits().give_up_ms / 1000

    @property
    def limits(self) -> Limits:
        return Limits(tries=self.tries, every_ms=round(1000 * self.try_every_s), give_up_ms=round(1000 * self.give_up_s))

    @property
    def turn_bytes(self) -> int:
        return round(self.turn_mb * MB)

    @property
    def all_bytes(self) -> int:
        return round(self.all_mb * MB)
