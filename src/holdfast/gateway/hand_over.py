"""How a gateway gives way to its successor, and takes everything back if that fails."""

from holdfast.core.errors import Unavailable
from holdfast.core.lifecycle import GatewayState, Input
from holdfast.gateway.connections import Connections
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.feed import Feed
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.pausing import Pausing
from holdfast.gateway.runner import Runner
from holdfast.gateway.stage import Stage
from holdfast.gateway.stopping import Stopping
from holdfast.gateway.streaming import Streams
from holdfast.gateway.sweep import Sweep
from holdfast.gateway.tasks import insist
from holdfast.ports.owners import Owners


class HandOver:
    def __init__(
        self,
        *,
        store: Owners,
        host: Host,
        stage: Stage,
        lanes: Lanes,
        runner: Runner,
        sweep: Sweep,
        connections: Connections,
        deliveries: Deliveries,
        streams: Streams,
        feed: Feed,
        pausing: Pausing,
        stopping: Stopping,
    ) -> None:
        self._store, self._host, self._stage, self._lanes, self._runner, self._sweep = store, host, stage, lanes, runner, sweep
        self._connections, self._deliveries, self._streams, self._feed = connections, deliveries, streams, feed
        self._pausing, self._stopping = pausing, stopping

    def begin(self) -> None:
        """A successor is being started; everything continues here until it is ready."""
        self._stage.check("hand over", Input.HAND_OVER)
        self._stage.enter(Input.HAND_OVER)
        self._stage.tell()

    async def give_way(self) -> None:
        """For a successor that is ready: no turn starts here any more, nothing new is sent, and what is being sent has its outcome."""
        self._stage.enter(Input.GIVE_WAY)
        self._lanes.look_again()
        await self._connections.leave()
        await self._streams.hold()
        self._deliveries.hold()
        await self._deliveries.tried()
        await self._stopping.record_end(handed_over=True)

    async def take_back(self, *, to_stop: bool = False) -> None:
        """The successor failed: everything continues here. `to_stop`: only until this one stops, so that nothing new begins."""
        if to_stop:
            self._deliveries.release()
            self._streams.release()
            return
        if self._stage.enter(Input.NOT_TAKEN):
            self._stage.tell()
        if self._stage.state is not GatewayState.RUNNING:
            return
        self._deliveries.release()
        self._streams.release()
        self._connections.open()
        if self._pausing.paused is not None:
            self._pausing.begin(self._pausing.paused)
        else:
            self._lanes.look_again()
            self._sweep.hint()
        try:
            await self._record_start_again()
        except Unavailable:  # Nobody who asked for the hand-over has to wait for the store.
            self._host.tasks.spawn(insist(self._record_start_again), name="start on record again")

    async def _record_start_again(self) -> None:
        await self._store.record_end(self._host.owner, ended=False)

    async def retire(self) -> None:
        """The successor serves. Returns when the turns that run here have come to their ends; readers go over to it."""
        self._stage.enter(Input.TAKEN_OVER)
        self._stage.tell()
        await self._feed.send_away("handover")
        await self._runner.idle()
