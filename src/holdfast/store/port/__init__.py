"""The store port over transactions: each method is one read or one write, run on the lines it was given. Knows no engine. A module holds
the methods of one port, or of ports that belong together.
"""

from holdfast.store.port.blobs import Blobs
from holdfast.store.port.desk import Desk
from holdfast.store.port.inbox import Inbox
from holdfast.store.port.log import Log
from holdfast.store.port.outbox import Outbox
from holdfast.store.port.owners import Owners
from holdfast.store.port.processes import Processes
from holdfast.store.port.schedules import Schedules
from holdfast.store.port.sessions import Sessions
from holdfast.store.port.titles import Titles
from holdfast.store.port.turns import Turns
from holdfast.store.port.updates import Updates
from holdfast.store.port.upkeep import Upkeep


class TxStore(Sessions, Log, Inbox, Schedules, Titles, Turns, Processes, Outbox, Updates, Owners, Blobs, Desk, Upkeep):
    """See `ports.store.Store` for what each method promises. An engine adds `backup`, and `_scrub` where it needs it."""
