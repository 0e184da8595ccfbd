"""What the configuration means for the gateway."""

import msgspec

from holdfast.config import LOOPBACK, Config, busy_modes, choices, drain_window_s, has_agent, reset_policies, schedule_policy
from holdfast.core.policy import PROCESSES, TERMINAL, Pattern, Rules
from holdfast.core.retention import Limits
from holdfast.core.rights import Policy
from holdfast.gateway.settings import Settings


def settings(config: Config, policies: dict[str, Policy]) -> Settings:
    """`policies`: of the chat platforms that are configured."""
    return Settings(
        profile=config.profile,
        turn_idle_timeout_s=config.turn_idle_timeout_s,
        drain_timeout_s=drain_window_s(config),
        max_waiting=config.max_waiting,
        resumes_at_once=config.resumes_at_once,
        auto_resume=config.auto_resume,
        resume_window_s=config.resume_window_s,
        stuck_after=config.stuck_after,
        crash_policy=config.crash_policy,
        crash_window_s=config.crash_window_s,
        resets=reset_policies(config),
        busy=busy_modes(config),
        keep_streams_s=config.keep_streams_s,
        undo_delete_s=config.undo_delete_s,
        retention=Limits(config.retention_days, config.retention_max_mb),
        home_channels=config.home_channels,
        policy=_policy(config),
        models=choices(config),
        limits=config.limits.spending,
        late_journals=config.journal.limits,
        spool_turn_bytes=config.journal.turn_bytes,
        spool_all_bytes=config.journal.all_bytes,
        schedules=schedule_policy(config),
        policies=policies,
        manners=config.chats.manners,
    )


def _policy(config: Config) -> Rules:
    """The demo agent runs what its own user types, so on a page that only this machine can reach it need not ask."""
    rules = config.policy.rules
    if has_agent(config) or config.host not in LOOPBACK:
        return rules
    return msgspec.structs.replace(rules, allow=(*rules.allow, Pattern(TERMINAL), Pattern(PROCESSES)))
