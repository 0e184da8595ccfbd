"""A stop of all processes of a home: what was requested, and how a second request joins the first."""

import msgspec

# What running turns are told when they are interrupted: why the process ended.
STOPPED, RESTARTED = "shutdown_timeout", "restart_timeout"


class Shutdown(msgspec.Struct, frozen=True, kw_only=True):
    """`planned`: an authorised person asked for it, so it stays stopped. `now`: running turns get no more time to end."""

    why: str
    planned: bool
    now: bool = False


def joined(first: Shutdown | None, later: Shutdown) -> Shutdown:
    """Joins both. An operator's request always wins: once planned, it stays planned; once without delay, it stays so (C28)."""
    if first is None:
        return later
    why = later.why if later.planned and not first.planned else first.why
    return Shutdown(why=why, planned=first.planned or later.planned, now=first.now or later.now)
