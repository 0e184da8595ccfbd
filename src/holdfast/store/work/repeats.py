"""What was stored under a dedup key before."""

from holdfast.core.content import Content, digest
from holdfast.core.plans import repeats
from holdfast.core.plans.repeats import Known
from holdfast.store.tx import Tx


def known(tx: Tx, dedup_key: str | None, what: Content | bytes) -> Known | None:
    """`what`: the content that the key is given for, or what stands for a request without one. Compared as it is recorded."""
    if dedup_key is None:
        return None
    found = tx.known(dedup_key)
    if found is None:
        return None
    return repeats.check(found, dedup_key, what if isinstance(what, bytes) else digest(tx.secrets.content(what)))
