"""Which process this is, and what every part of it may use."""

from pathlib import Path

import msgspec

from holdfast.core.process_id import ProcessId
from holdfast.core.redaction import Secrets
from holdfast.gateway.tasks import Tasks
from holdfast.locks import OwnerLocks
from holdfast.process.supervisor import Supervisor
from holdfast.process.system import SystemClock


class ThisProcess(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: of its owner lock, which proves that it is alive. `locks`: whether other processes of this home are alive. A stop is over
    within `stop_timeout_s`. `secrets` are recorded nowhere.
    """

    home: Path
    id: ProcessId
    name: str
    started_at: int
    supervisor: Supervisor
    stop_timeout_s: float
    clock: SystemClock
    locks: OwnerLocks
    tasks: Tasks
    secrets: Secrets
