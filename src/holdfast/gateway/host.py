"""The process that a gateway lives in, as its parts see it."""

import msgspec

from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.gateway.tasks import Tasks
from holdfast.ports.process import Clock, Ids, Liveness


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """`owner` is the number under which it holds leases, `name` the name of its lock. `tasks` owns every task of the gateway. `secrets`
    are recorded nowhere."""

    clock: Clock
    ids: Ids
    liveness: Liveness
    owner: int
    name: str
    secrets: Secrets = NO_SECRETS
    tasks: Tasks = msgspec.field(default_factory=Tasks)
