"""`[schedules]`: how many there may be, how often they may come, and what is done about missed times."""

import msgspec

from holdfast import time_zones
from holdfast.core.schedules import RUN, Policy


class Schedules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`docs/background.md` says what each one does."""

    limit: int = 50
    min_every_s: float = 60.0
    missed: str = RUN


def policy(schedules: Schedules, time_zone: str) -> Policy:
    """`time_zone`: the configured one, empty for that of this machine. Raises `BadInput`."""
    zone = time_zone or time_zones.local()
    time_zones.zone(zone)
    return Policy(time_zone=zone, limit=schedules.limit, least_s=schedules.min_every_s, missed=schedules.missed)
