"""What the page keeps and asks for beyond the conversations: drafts, what was seen, searches, a turn's records, exports, taking back."""

from typing import Any

from tests.gateway.web import World


async def listed(world: World, session_id: str) -> Any:
    page = (await world.client.get("/api/sessions")).json()
    return next(each for each in page["sessions"] if each["session_id"] == session_id)


async def test_a_list_shows_what_was_said_last_and_whether_anybody_has_seen_it(world: World) -> None:
    session_id = await world.new_session(title="Greetings")
    view = await world.say(session_id, "hello **there**")
    row = await listed(world, session_id)
    assert (row["excerpt"], row["unread"], row["needs"], row["delivery"]) == ("hello there", True, None, None)
    assert (await world.client.post(f"/api/sessions/{session_id}/seen", json={"cursor": view["cursor"]})).status_code == 204
    assert (await listed(world, session_id))["unread"] is False
    assert (await world.client.post(f"/api/sessions/{session_id}/seen", json={"cursor": "nonsense"})).status_code == 400
    await world.say(session_id, "again")
    assert (await listed(world, session_id))["unread"] is True


async def test_a_draft_is_kept_and_of_two_devices_the_slower_one_is_told(world: World) -> None:
    session_id = await world.new_session()
    path = f"/api/sessions/{session_id}/draft"
    assert (await world.client.get(path)).json() == {"text": "", "rev": 0}
    assert (await world.client.put(path, json={"text": "half a", "rev": 0})).json() == {"text": "half a", "rev": 1}
    late = await world.client.put(path, json={"text": "other", "rev": 0})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "draft_changed")
    assert (await world.client.put(path, json={"text": "half a", "rev": 0})).json() == {"text": "half a", "rev": 1}  # The same words again.
    assert (await world.client.get("/api/sessions/s_none/draft")).status_code == 404


async def test_a_search_groups_before_it_limits_and_marks_what_it_found(world: World) -> None:
    """One conversation with many finds does not hide the others."""
    quiet = await world.new_session(title="Quiet")
    await world.say(quiet, "the Café at the harbour")
    loud = await world.new_session(title="Loud")
    for number in range(5):
        await world.say(loud, f"harbour harbour {number}")
    while await world.gateway.store.index_search(limit=100):
        pass
    found = (await world.client.get("/api/search", params={"q": "harb", "limit": 2})).json()["hits"]
    assert [hit["session_id"] for hit in found] == [loud, loud, loud, quiet, quiet]
    assert found[-1]["message_id"] and found[-1]["title"] == "Quiet"
    (cafe, *_) = (await world.client.get("/api/search", params={"q": "cafe"})).json()["hits"]
    assert ["Café", True] in cafe["excerpt"]
    assert (await world.client.get("/api/search", params={"q": " "})).json() == {"hits": []}


async def test_a_search_in_one_conversation_finds_its_messages_each_once_and_says_what_is_archived(world: World) -> None:
    here, elsewhere = await world.new_session(title="Here"), await world.new_session(title="Harbour")
    for session_id in (here, elsewhere, here):
        await world.say(session_id, "harbour lights")
    while await world.gateway.store.index_search(limit=100):
        pass
    asked: dict[str, str | int] = {"q": "harb", "session": here, "limit": 100}
    hits = (await world.client.get("/api/search", params=asked)).json()["hits"]
    ids = [message["id"] for message in (await world.view(here))["messages"]]
    assert [hit["message_id"] for hit in hits] == ids[::-1] and len(ids) == 4
    assert [hit["message_id"] for hit in (await world.client.get("/api/search", params=asked | {"limit": 1})).json()["hits"]] == ids[-1:]
    assert (await world.client.get("/api/search", params=asked | {"q": "nowhere"})).json() == {"hits": []}
    assert (await world.client.get("/api/search", params=asked | {"session": "s_none"})).status_code == 404
    await world.client.patch(f"/api/sessions/{here}", json={"archived": True})
    found = (await world.client.get("/api/search", params={"q": "harbour"})).json()["hits"]
    assert {(hit["session_id"], hit["archived"]) for hit in found} == {(here, True), (elsewhere, False)}


async def test_the_records_of_a_turn_tell_its_story_without_its_pieces(world: World) -> None:
    session_id = await world.new_session()
    view = await world.say(session_id, "lines ahoy")
    turn_id = view["turns"][0]["id"]
    events = (await world.client.get(f"/api/sessions/{session_id}/turns/{turn_id}/events")).json()["events"]
    names = [event["name"] for event in events]
    assert names[0] == "turn.started" and names[-1] == "turn.ended"
    assert {"tool.started", "tool.finished"} <= set(names) and not {"text", "tool.output"} & set(names)
    assert all(event["data"]["at"] for event in events)
    assert events[0]["data"]["pid"] == (await world.gateway.store.lives())[-1].pid
    assert (await world.client.get(f"/api/sessions/{session_id}/turns/t_none/events")).status_code == 404


async def test_a_conversation_is_exported_whole_and_nothing_in_it_is_markup_of_the_page(world: World) -> None:
    session_id = await world.new_session(title="A <b> title")
    await world.say(session_id, "<script>alert(1)</script>")
    path = f"/api/sessions/{session_id}/export"
    markdown = await world.client.get(path)
    assert markdown.headers["content-disposition"] == 'attachment; filename="A-b-title.md"'
    assert "<script>alert(1)</script>" in markdown.text and "**You**" in markdown.text
    page = await world.client.get(path, params={"as": "html"})
    assert "<script>" not in page.text and "&lt;script&gt;" in page.text and "A &lt;b&gt; title" in page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    whole = (await world.client.get(path, params={"as": "json"})).json()
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]
    assert (await world.client.get(path, params={"as": "pdf"})).status_code == 400


async def test_a_message_that_waits_is_taken_back_and_one_that_is_being_answered_is_not(world: World) -> None:
    """P1: it is shown as refused, and no turn starts from it."""
    session_id = await world.new_session()
    path = f"/api/sessions/{session_id}/messages"
    running = (await world.client.post(path, json={"text": "hold"})).json()["message_id"]
    await world.until_state(session_id, "running")
    waits = (await world.client.post(path, json={"text": "never"})).json()["message_id"]
    assert (await world.client.delete(f"{path}/{waits}")).json() == {"message_id": waits, "session_id": session_id}
    late = await world.client.delete(f"{path}/{running}")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "too_late")
    await world.client.post(f"/api/sessions/{session_id}/stop")
    view = await world.until_state(session_id, "idle")
    assert [(message["text"], message["status"]) for message in view["messages"] if message["id"] == waits] == [("never", "refused")]
    assert len(view["turns"]) == 1


async def test_a_session_is_read_with_as_many_messages_as_asked_for(world: World) -> None:
    session_id = await world.new_session()
    for number in range(3):
        await world.say(session_id, str(number))
    view = (await world.client.get(f"/api/sessions/{session_id}", params={"messages": 2})).json()
    assert [message["text"] for message in view["messages"]] == ["2", "2"] and view["earlier"] == view["messages"][0]["id"]
