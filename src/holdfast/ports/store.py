"""The whole store: what holds for every method of its ports."""

from typing import Protocol

from holdfast.ports.blobs import BlobRows
from holdfast.ports.desk import Desk
from holdfast.ports.inbox import Inbox
from holdfast.ports.journals import Journals
from holdfast.ports.log import Log
from holdfast.ports.outbox import Outbox
from holdfast.ports.overview import Overview
from holdfast.ports.owners import Owners, Pauses
from holdfast.ports.pairings import Pairings
from holdfast.ports.processes import Processes
from holdfast.ports.recitals import Recitals
from holdfast.ports.schedules import Schedules
from holdfast.ports.sessions import Conversations, Marks, Sessions
from holdfast.ports.spending import Spending
from holdfast.ports.titles import Titles
from holdfast.ports.turns import Turns
from holdfast.ports.updates import Updates
from holdfast.ports.upkeep import Upkeep


class Store(
    Sessions,
    Marks,
    Conversations,
    Log,
    Inbox,
    Recitals,
    Schedules,
    Titles,
    Turns,
    Journals,
    Processes,
    Outbox,
    Updates,
    Pairings,
    Spending,
    BlobRows,
    Owners,
    Pauses,
    Desk,
    Overview,
    Upkeep,
    Protocol,
):
    """The log of every session and its catalog, changed together in one transaction per method.

    A method that returned is durable: it survives the death of the process and of the machine. One that raised
    changed nothing. A cancelled call, or one that met `StoreClosed`, may have happened or not; read the state back
    before deciding. Any method may raise `StoreFull`, `StoreClosed` or another `Unavailable`, and `BadInput` for text
    with lone surrogates or numbers beyond 64 bits. Times are the caller's; sequences, positions, epochs and
    generations are the store's alone.
    """
