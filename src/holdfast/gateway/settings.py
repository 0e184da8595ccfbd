"""What an operator decides about a gateway."""

import msgspec

from holdfast.core import blame, resume, rights
from holdfast.core.busy import Mode
from holdfast.core.journals import Limits as JournalLimits
from holdfast.core.limits import SpendingLimits
from holdfast.core.live import Manners
from holdfast.core.plans.accept import MAX_WAITING
from holdfast.core.policy import Rules
from holdfast.core.resets import Policy
from holdfast.core.retention import Limits
from holdfast.core.schedules import Policy as SchedulePolicy
from holdfast.core.spools import TURN_BYTES


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    profile: str = "main"
    turn_idle_timeout_s: float = 1800.0
    drain_timeout_s: float = 0.0
    max_waiting: int = MAX_WAITING
    resumes_at_once: int = 10
    auto_resume: bool = True
    resume_window_s: float = resume.FRESH_FOR_S
    stuck_after: int = blame.STUCK_AFTER
    crash_policy: str = "resume"
    crash_window_s: float = 120.0
    resets: dict[str, Policy] = {}
    busy: dict[str, Mode] = {}
    keep_streams_s: float = 7 * 24 * 3600.0
    undo_delete_s: float = 600.0
    retention: Limits = Limits()
    home_channels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()  # What a conversation may choose; the first answers where none was chosen.
    policy: Rules = Rules()
    limits: SpendingLimits = SpendingLimits()
    late_journals: JournalLimits = JournalLimits()
    spool_turn_bytes: int = TURN_BYTES
    spool_all_bytes: int = 16 * TURN_BYTES
    schedules: SchedulePolicy = SchedulePolicy()
    policies: dict[str, rights.Policy] = {}  # Who may talk, by platform.
    manners: Manners = Manners()
