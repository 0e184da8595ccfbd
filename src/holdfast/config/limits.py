"""`[limits]`: how many tokens, and how much money, may be spent on models."""

import msgspec

from holdfast.core.limits import DOLLAR, SpendingLimits


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """0 is no limit. Costs are in US dollars. `sender_...`: of one person, a day. `then`: what a turn does that reaches one."""

    turn_tokens: int = 0
    turn_cost: float = 0.0
    session_tokens: int = 0
    session_cost: float = 0.0
    day_tokens: int = 0
    day_cost: float = 0.0
    sender_turns: int = 0
    sender_tokens: int = 0
    sender_cost: float = 0.0
    then: str = "ask"

    @property
    def spending(self) -> SpendingLimits:
        numbers = {name: getattr(self, name) for name in self.__struct_fields__ if name != "then"}
        return SpendingLimits(
            **{name: round(value * DOLLAR) if name.endswith("_cost") else value for name, value in numbers.items()},
            asks=self.then == "ask",
        )
