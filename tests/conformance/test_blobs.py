"""The rows of blobs: content names only what is stored, what a session names stays, and what nothing names goes (P1, A28)."""

import pytest

from holdfast.core import content
from holdfast.core import events as e
from holdfast.core.blobs import UNUSED_FOR_MS
from holdfast.core.content import Content, TextPart, bytes_part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import AttachmentGone, BlobMissing, DuplicateOtherContent, NotFound
from holdfast.ports.blobs import Blob, BlobUsage, Upload
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import NOW, append, new_session, running, say

pytestmark = pytest.mark.anyio
DAY = UNUSED_FOR_MS


def blob(letter: str = "a", *, tail: str = "1", size: int = 5, media_type: str = "text/plain") -> Blob:
    return Blob(digest=letter * 64, size=size, media_type=media_type, file=f"{letter * 64}-{tail}")


def naming(*letters: str, text: str = "look") -> Content:
    parts = [bytes_part(blob=letter * 64, size=5, media_type="text/plain", name=f"{letter}.txt") for letter in letters]
    return content.of([TextPart(text), *parts])


def upload(attachment_id: str = "a_1", letter: str = "a", *, name: str | None = None, media_type: str = "text/plain") -> Upload:
    return Upload(attachment_id=attachment_id, digest=letter * 64, size=5, media_type=media_type, name=name or f"{letter}.txt")


async def uploaded(store: Store, attachment_id: str = "a_1", letter: str = "a", *, key: str | None = None, at: int = NOW) -> Upload:
    await store.put_blob(blob(letter), at=at)
    return await store.put_upload(upload(attachment_id, letter), dedup_key=key, at=at)


async def collected(store: Store, now: int) -> list[str]:
    return await store.collect_blobs(now=now, limit=100)


async def purged(store: Store, session_id: str, now: int = NOW) -> None:
    await store.delete_session(session_id, by="owner", until=now, at=now)
    while await store.purge(now=now, steps=100):
        pass


async def test_content_that_names_an_unknown_blob_is_refused_and_nothing_of_it_is_stored(store: Store) -> None:
    """P1"""
    await new_session(store)
    with pytest.raises(BlobMissing):
        await say(store, text=naming("a"))
    session = await store.session("s1")
    assert (session.queued, session.seq) == (0, 1)


async def test_a_message_and_a_result_may_name_what_is_stored(store: Store) -> None:
    """P1"""
    turn = await running(store)
    await store.put_blob(blob("a"), at=NOW)
    started = e.ToolStarted(call_id="c", name="n", arguments={}, effect=Effect.PURE)
    await append(store, turn, started, e.ToolFinished(call_id="c", outcome=ToolOutcome.DONE, content=naming("a")))
    assert (await store.blob("a" * 64)).file == blob("a").file


async def test_what_a_session_names_outlives_any_age(store: Store, backend: Backend) -> None:
    """P1"""
    await new_session(store)
    await uploaded(store)
    await say(store, text=naming("a"))
    assert await collected(store, NOW + 1000 * DAY) == []
    assert (await store.blob("a" * 64)).size == 5
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before
    assert before["blob_use"]
    assert await collected(store, NOW + 1000 * DAY) == []


async def test_what_nothing_names_goes_after_a_day_the_row_with_its_very_file(store: Store) -> None:
    await store.put_blob(blob("a"), at=NOW)
    assert await collected(store, NOW + DAY - 1) == []
    assert await collected(store, NOW + DAY) == [blob("a").file]
    assert await store.blob_usage() == BlobUsage(0, 0)
    assert await collected(store, NOW + DAY) == []


async def test_the_same_bytes_again_keep_the_row_that_was_there_and_begin_their_day_again(store: Store) -> None:
    await store.put_blob(blob("a", tail="1"), at=NOW)
    again = await store.put_blob(blob("a", tail="2"), at=NOW + DAY // 2)
    assert again.file == blob("a", tail="1").file
    assert await collected(store, NOW + DAY) == []
    assert await collected(store, NOW + DAY + DAY // 2) == [again.file]


async def test_bytes_put_after_their_collection_are_named_by_their_own_file(store: Store) -> None:
    """The collection unlinks the first file, whenever it comes to it: the second is another one."""
    await store.put_blob(blob("a", tail="1"), at=NOW)
    gone = await collected(store, NOW + DAY)
    kept = await store.put_blob(blob("a", tail="2"), at=NOW + DAY)
    assert kept.file not in gone


async def test_only_the_file_that_was_found_missing_is_replaced(store: Store) -> None:
    first, second, third = (blob("a", tail=tail) for tail in "123")
    await store.put_blob(first, at=NOW)
    assert (await store.put_blob(second, at=NOW, instead_of=first.file)).file == second.file
    assert (await store.put_blob(third, at=NOW, instead_of=first.file)).file == second.file, "somebody was faster"
    assert await store.unnamed([first.file, second.file, ".making-x"]) == [first.file, ".making-x"]


async def test_of_two_types_the_one_that_says_more_counts(store: Store) -> None:
    await store.put_blob(blob(media_type="application/octet-stream"), at=NOW)
    assert (await store.put_blob(blob(media_type="image/png"), at=NOW)).media_type == "image/png"
    assert (await store.put_blob(blob(media_type="text/html"), at=NOW)).media_type == "image/png"


async def test_an_upload_is_kept_for_a_day_and_then_gone_with_its_bytes(store: Store) -> None:
    await uploaded(store)
    assert await store.uploads(["a_1"]) == [upload()]
    assert await collected(store, NOW + DAY - 1) == []
    assert await collected(store, NOW + DAY) == [blob("a").file]
    with pytest.raises(AttachmentGone):
        await store.uploads(["a_1"])


async def test_an_upload_that_is_in_a_message_stays_as_long_as_its_session(store: Store) -> None:
    """P1: the same request again, however late, finds what it is about."""
    await new_session(store)
    await uploaded(store)
    first = await say(store, text=naming("a"), key="k")
    await collected(store, NOW + 5 * DAY)
    assert await store.uploads(["a_1"]) == [upload()]
    again = await say(store, text=naming("a"), key="k")
    assert again.duplicate and again.message_id == first.message_id
    with pytest.raises(DuplicateOtherContent):
        await say(store, text="look", key="k")
    await purged(store, "s1")
    with pytest.raises(AttachmentGone):
        await store.uploads(["a_1"])


async def test_the_same_key_again_is_the_same_upload(store: Store) -> None:
    first = await uploaded(store, "a_1", key="k")
    assert await uploaded(store, "a_2", key="k") == first
    with pytest.raises(DuplicateOtherContent):
        await uploaded(store, "a_3", "b", key="k")
    with pytest.raises(DuplicateOtherContent):
        await store.put_upload(upload("a_3", name="other.txt"), dedup_key="k", at=NOW)


async def test_an_upload_of_bytes_that_are_not_stored_is_refused(store: Store) -> None:
    with pytest.raises(BlobMissing):
        await store.put_upload(upload(), dedup_key=None, at=NOW)


async def test_the_blobs_of_a_purged_session_go_at_once_if_no_other_names_them(store: Store, backend: Backend) -> None:
    """A28"""
    for session_id in ("s1", "s2"):
        await new_session(store, session_id)
    for letter in "ab":
        await uploaded(store, f"a_{letter}", letter)
    await say(store, "s1", naming("a", "b"))
    await say(store, "s2", naming("b"))
    await purged(store, "s1")
    assert await collected(store, NOW) == [blob("a").file]
    assert (await store.blob("b" * 64)).file == blob("b").file
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before
    await purged(store, "s2")
    assert await collected(store, NOW) == [blob("b").file]


async def test_a_blob_of_a_purged_session_stays_for_an_upload_that_waits_for_its_message(store: Store) -> None:
    """P1: what was uploaded can be sent for a day, whatever others delete."""
    await new_session(store)
    await uploaded(store, "a_1")
    await say(store, text=naming("a"))
    await uploaded(store, "a_2", at=NOW + 5)
    await purged(store, "s1", NOW + 10)
    assert await collected(store, NOW + 10) == []
    await new_session(store, "s2")
    await say(store, "s2", naming("a"), at=NOW + 20)
    assert await collected(store, NOW + 9 * DAY) == []


async def test_an_upload_that_several_sessions_named_stays_until_the_last_of_them_is_gone(store: Store) -> None:
    """P1, A28"""
    for session_id in ("s1", "s2", "s3"):
        await new_session(store, session_id)
        if session_id == "s1":
            await uploaded(store)
        await say(store, session_id, naming("a"))
    for gone in ("s1", "s3"):
        await purged(store, gone)
        assert await collected(store, NOW + DAY) == [] and await store.uploads(["a_1"]) == [upload()]
    await purged(store, "s2")
    with pytest.raises(AttachmentGone):
        await store.uploads(["a_1"])
    assert await collected(store, NOW) == [blob("a").file]


async def test_an_upload_of_other_words_for_the_same_bytes_goes_with_its_own_session(store: Store) -> None:
    """A28: the name that a purged conversation had for them stays nowhere."""
    for session_id in ("s1", "s2"):
        await new_session(store, session_id)
    await uploaded(store)
    await store.put_upload(upload("a_2", name="other.txt"), dedup_key=None, at=NOW)
    await say(store, "s1", naming("a"))
    await say(store, "s2", content.of([bytes_part(blob="a" * 64, size=5, media_type="text/plain", name="other.txt")]))
    await purged(store, "s1")
    with pytest.raises(AttachmentGone):
        await store.uploads(["a_1"])
    assert await store.uploads(["a_2"]) == [upload("a_2", name="other.txt")]


async def test_bytes_put_again_before_a_purge_wait_for_their_own_message(store: Store) -> None:
    """P1: an upload between its two writes is not taken for what the purged session named."""
    await new_session(store)
    await uploaded(store, "a_1")
    await say(store, text=naming("a"))
    await store.put_blob(blob("a", tail="2"), at=NOW + 5)
    await purged(store, "s1", NOW + 10)
    assert await collected(store, NOW + 10) == []
    await store.put_upload(upload("a_2"), dedup_key=None, at=NOW + 11)
    assert await store.uploads(["a_2"]) == [upload("a_2")]
    assert await collected(store, NOW + 11 + DAY) == [blob("a").file]


async def test_a_blob_is_given_only_while_a_session_names_it_that_is_not_deleted(store: Store) -> None:
    """A28: a digest is a name, not a permission."""
    await new_session(store)
    await uploaded(store)
    with pytest.raises(NotFound):
        await store.blob("a" * 64)
    await say(store, text=naming("a"))
    assert (await store.blob("a" * 64)).digest == "a" * 64
    await store.delete_session("s1", by="owner", until=NOW + 1000, at=NOW)
    with pytest.raises(NotFound):
        await store.blob("a" * 64)
    assert await collected(store, NOW + 3 * DAY) == [], "it can still be brought back"
    await store.undelete_session("s1", by="owner", at=NOW)
    assert (await store.blob("a" * 64)).digest == "a" * 64


async def test_the_room_of_the_store_counts_them_until_they_are_given_up(store: Store) -> None:
    """A28: what a purge gave up is not taken for room that more conversations must give."""
    await new_session(store)
    await store.put_blob(blob("a", size=10**9), at=NOW)
    await say(store, text=naming("a"))
    assert (await store.usage()).bytes > 10**9
    await purged(store, "s1")
    assert (await store.usage()).bytes < 10**9


async def test_their_size_is_known(store: Store) -> None:
    await store.put_blob(blob("a", size=5), at=NOW)
    await store.put_blob(blob("b", size=7), at=NOW)
    assert await store.blob_usage() == BlobUsage(2, 12)
