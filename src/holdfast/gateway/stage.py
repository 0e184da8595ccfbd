"""Which state of its life a gateway is in. Every question whether something may begin is asked here; the lifecycle's table answers."""

import asyncio
from collections.abc import Callable

import structlog

from holdfast.core import lifecycle
from holdfast.core.errors import NotNow
from holdfast.core.lifecycle import GatewayState, Input, Work
from holdfast.ports.owners import Pause
from holdfast.ports.process import Clock

log = structlog.get_logger()


class Stage:
    """`broken`: a part of the gateway failed, and the process should end. Those who `subscribe` hear of a state once it is told."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._subscribed: list[Callable[[GatewayState], None]] = []
        self.state = GatewayState.STARTING
        self.paused: Pause | None = None
        self.broken = asyncio.Event()
        self._draining_since: int | None = None

    @property
    def work(self) -> Work:
        """What may begin now."""
        return lifecycle.work(self.state, paused=self.paused is not None)

    @property
    def held_since(self) -> int | None:
        """Since when messages are kept and not answered; None while they are answered."""
        if self.paused is not None and self.state is GatewayState.PAUSED:
            return self.paused.since
        return self._draining_since

    def enter(self, happened: Input) -> bool:
        """Whether that is another state; nobody is told of it yet."""
        before, self.state = self.state, lifecycle.after(self.state, happened)
        if before is self.state:
            return False
        if self.state is GatewayState.DRAINING:
            self._draining_since = self._clock.now()
        log.info("gateway", state=self.state, before=before, because=happened)
        return True

    def subscribe(self, on_state: Callable[[GatewayState], None]) -> None:
        """`on_state` is called, in the same step of the loop, whenever what is shown of the state may have changed."""
        self._subscribed.append(on_state)

    def tell(self) -> None:
        for on_state in self._subscribed:
            on_state(self.state)

    def check(self, what: str, wanted: Input) -> None:
        """Raises `NotNow` for a request that makes no sense in this state."""
        if not lifecycle.may(self.state, wanted):
            raise NotNow(what, self.state)
