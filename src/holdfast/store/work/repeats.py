"""What was stored under a dedup key before."""

from holdfast.core.plans import repeats
from holdfast.core.plans.repeats import Known
from holdfast.store.tx import Tx


def known(tx: Tx, dedup_key: str | None, digest: bytes) -> Known | None:
    if dedup_key is None:
        return None
    found = tx.known(dedup_key)
    return None if found is None else repeats.check(found, dedup_key, digest)
