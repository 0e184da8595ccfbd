"""What a store knows of the use of models: sums, made from the records of their responses."""

from typing import Protocol

from holdfast.core.usage import Account, DaySpent, ModelSpent, SessionSpent


class Spending(Protocol):
    """Every method keeps to the contract of `ports.store`."""

    async def account(self, session_id: str, *, turn_id: str, day: str, sender: str) -> Account:
        """In one read. What deleted sessions spent counts for their days, also once their content is gone."""

    async def spent_by_day(self, *, since: str) -> list[DaySpent]:
        """What was spent on each day since this one, oldest first, for each person. Nobody is known of what a purged session spent."""

    async def spent_by_model(self, *, since: str) -> list[ModelSpent]:
        """The same for each model. Of what a purged session spent the model is not known."""

    async def spent_by_session(self, *, since: str, limit: int) -> list[SessionSpent]:
        """Who used most since that day, first, without sessions that are deleted."""
