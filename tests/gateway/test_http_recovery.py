"""Leaving conversations and coming back to them over HTTP; what was decided over cut turns; safe mode; commands among the messages."""

from pathlib import Path
from typing import Any

import httpx

from holdfast.ports.owners import Owner
from holdfast.store import open_store
from tests.gateway import web
from tests.gateway.web import World

STATES = ("suspended", "pending", "running", "waiting", "pinned", "deleted")


async def order(world: World, session_id: str, what: str, **fields: Any) -> httpx.Response:
    return await world.client.post(f"/api/sessions/{session_id}/{what}", json=fields)


async def hold(world: World, session_id: str) -> None:
    """A turn runs, and has said something."""
    await world.post(session_id, "hold")

    async def said() -> bool:
        return any(message["text"] == "holding" for message in (await world.view(session_id))["messages"])

    await world.until(said)


async def left(world: World, session_id: str) -> dict[str, Any]:
    async def is_left() -> dict[str, Any] | None:
        view = await world.view(session_id)
        return view if view["left"] else None

    return await world.until(is_left)


def interruption(view: dict[str, Any]) -> dict[str, Any]:
    (row,) = [message for message in view["messages"] if message["role"] == "interruption"]
    return dict(row)


def told(view: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(message["role"], message["status"], message["text"]) for message in view["messages"]]


async def session_ids(world: World, **query: str) -> list[str]:
    answer = await world.client.get("/api/sessions", params=query)
    assert answer.status_code == 200, answer.text
    return [session["session_id"] for session in answer.json()["sessions"]]


# reset


async def test_a_reset_stops_the_turn_refuses_what_waits_and_begins_a_new_session(world: World) -> None:
    """A20, A22."""
    session_id = await world.new_session()
    await hold(world, session_id)
    await world.post(session_id, "too late")
    answer = await order(world, session_id, "reset")
    fresh = answer.json()["session_id"]
    assert answer.status_code == 200 and answer.json() == {"session_id": fresh, "changed": True} and fresh != session_id
    old = await world.until_state(session_id, "idle")
    assert old["turns"][0]["outcome"] == "cancelled" and not old["current"]
    assert ("user", "refused", "too late") in told(old)
    (notice,) = [message["text"] for message in old["messages"] if message["role"] == "notice"]
    assert "not answered" in notice and "> too late" in notice
    new = await world.view(fresh)
    assert new["current"] and not new["was_auto_reset"] and new["session_key"] == old["session_key"]
    assert "/resume 1" in new["messages"][0]["text"]


async def test_a_repeated_reset_is_one_reset(world: World) -> None:
    """A22."""
    session_id = await world.new_session()
    await world.say(session_id, "hello")
    first = await order(world, session_id, "reset", client_id="once")
    await world.say(first.json()["session_id"], "something, so that another reset would begin another one")
    again = await order(world, session_id, "reset", client_id="once")
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["session_id"] == first.json()["session_id"]
    assert len(await session_ids(world)) == 2


async def test_a_session_that_was_never_used_is_not_reset(world: World) -> None:
    """A22."""
    session_id = await world.new_session()
    before = (await world.view(session_id))["cursor"]
    answer = await order(world, session_id, "reset")
    assert (answer.status_code, answer.json()) == (200, {"session_id": session_id, "changed": False})
    assert (await world.view(session_id))["cursor"] == before


# suspend and resume


async def test_a_suspended_session_is_left_for_a_new_one_and_resumed_by_hand(world: World) -> None:
    """A14: the old conversation stays readable and can be resumed."""
    session_id = await world.new_session(title="Work")
    await world.say(session_id, "hello")
    answer = await order(world, session_id, "suspend")
    assert (answer.status_code, answer.json()["suspended"], answer.json()["current"]) == (200, True, True)
    fresh = (await world.post(session_id, "hello again")).json()["session_id"]
    view = await world.until_state(fresh, "idle")
    assert fresh != session_id and (view["was_auto_reset"], view["auto_reset_reason"]) == (True, "suspended")
    assert ("user", "complete", "hello") in told(await world.view(session_id))

    first = await order(world, session_id, "resume", client_id="r1")
    assert (first.status_code, first.json()) == (200, {"session_id": session_id, "changed": True, "continues": False})
    again = await order(world, session_id, "resume", client_id="r1")
    assert (again.status_code, again.json()["session_id"]) == (200, session_id)
    back, other = await world.view(session_id), await world.view(fresh)
    assert (back["suspended"], back["current"], other["current"]) == (False, True, False)
    passed_on = await world.post(fresh, "to the one that is left")
    assert passed_on.json()["session_id"] == session_id


async def test_a_question_of_a_suspended_conversation_is_answered_once_it_is_resumed(world: World) -> None:
    """A14: whoever answers before that is told what to do."""
    session_id = await world.new_session()
    await world.post(session_id, "ask Well?")
    [question] = (await world.until_state(session_id, "waiting"))["questions"]
    path = f"/api/questions/{question['question_id']}"
    await order(world, session_id, "suspend")
    refused = await world.client.post(path, json={"text": "yes"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "question_suspended")
    assert "Resume it first" in refused.json()["error"]["message"]
    await order(world, session_id, "resume")
    assert (await world.client.post(path, json={"text": "yes"})).status_code == 202
    assert (await world.until_state(session_id, "idle"))["messages"][-1]["text"].endswith("yes")


async def test_what_a_suspension_cut_goes_on_when_it_is_resumed_and_both_decisions_are_shown(world: World) -> None:
    """A14, P3."""
    session_id = await world.new_session()
    await hold(world, session_id)
    await order(world, session_id, "suspend")
    view = await left(world, session_id)
    assert (view["state"], view["suspended"], view["rule"]) == ("interrupted", True, "R1")
    assert view["why"].startswith("interrupted by a suspension")
    row = interruption(view)
    assert (row["rule"], row["attempt"]) == ("R1", None) and row["decision"].startswith("left: rule R1, interrupted by a suspension")

    answer = await order(world, session_id, "resume")
    assert answer.json() == {"session_id": session_id, "changed": True, "continues": True}
    world.agent.released.set()
    view = await world.until_state(session_id, "idle")
    row = interruption(view)
    assert (row["rule"], row["attempt"]) == ("R9", 2) and row["decision"].startswith("resumed: rule R9, interrupted by a suspension")
    assert (view["turns"][0]["outcome"], view["rule"], view["left"]) == ("completed", "R9", False)


async def test_a_session_that_stands_as_it_should_has_nothing_to_resume(world: World) -> None:
    session_id = await world.new_session()
    await world.say(session_id, "hello")
    answer = await order(world, session_id, "resume")
    assert (answer.status_code, answer.json()) == (200, {"session_id": session_id, "changed": False, "continues": False})


# the list


async def one_in_each_state(world: World) -> dict[str, str]:
    found = {state: await world.new_session(title=state) for state in STATES}
    await order(world, found["suspended"], "suspend")
    key = (await world.view(found["pending"]))["session_key"]
    assert await world.gateway.store.mark_pending(key, reason="crash", at=world.clock.now())
    await hold(world, found["running"])
    await world.post(found["waiting"], "ask Well?")
    await world.until_state(found["waiting"], "waiting")
    await world.client.patch(f"/api/sessions/{found['pinned']}", json={"pinned": True})
    await world.client.delete(f"/api/sessions/{found['deleted']}")
    return found


async def test_the_list_gives_those_in_a_state_and_no_others(world: World) -> None:
    found = await one_in_each_state(world)
    await world.new_session(title="idle")
    for state in STATES:
        assert await session_ids(world, state=state) == [found[state]], state
    assert len(await session_ids(world)) == len(STATES)  # One is idle, one deleted.
    listed = next(one for one in world.document["paths"]["/api/sessions"]["get"]["parameters"] if one["name"] == "state")
    assert str(list(STATES)) in str(listed["schema"])


async def test_a_state_that_there_is_not_is_refused_with_those_there_are(world: World) -> None:
    answer = await world.client.get("/api/sessions", params={"state": "asleep"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")
    assert all(word in answer.json()["error"]["message"] for word in ("asleep", *STATES))


async def test_the_figures_for_prometheus_count_what_wants_a_human(world: World) -> None:
    await one_in_each_state(world)
    text = (await world.client.get("/metrics")).text
    for line in ("holdfast_suspended_sessions 1.0", "holdfast_pending_sessions 1.0", "holdfast_safe_mode 0.0"):
        assert f"\n{line}\n" in text, line


# safe mode


async def die_three_times(home: Path) -> None:
    """Three lives that served and left no end behind."""
    store = await open_store(home, now=lambda: 0)
    for number in range(3):
        name = f"died {number}"
        owner = await store.register_owner(Owner(name=name, pid=2, started_at=number, boot_id="b"))
        await store.record_start(owner, at=number)
    await store.aclose()


async def test_safe_mode_holds_what_was_cut_until_an_operator_ends_it(tmp_path: Path) -> None:
    """B14, R7."""
    async with web.world(tmp_path) as world:
        session_id = await world.new_session()
        await hold(world, session_id)
        await world.gateway.stop()
    await die_three_times(tmp_path)
    async with web.world(tmp_path, life="another") as world:
        world.agent.released.set()
        view = await left(world, session_id)
        assert (view["state"], view["resume_pending"], view["rule"]) == ("interrupted", True, "R7")
        assert interruption(view)["decision"].startswith("left: rule R7, interrupted by a shutdown")
        assert "safe mode" in view["messages"][-1]["text"]
        assert "\nholdfast_safe_mode 1.0\n" in (await world.client.get("/metrics")).text
        other = await world.new_session()
        assert (await world.say(other, "are you there?"))["turns"][0]["outcome"] == "completed", "messages are answered as always"
        assert (await world.view(session_id))["left"], "a turn of another session changes nothing"

        for _ in range(2):
            answer = await world.client.post("/api/admin/resume")
            assert (answer.status_code, answer.json()) == (200, {"safe_mode": False})
        view = await world.until_state(session_id, "idle")
        assert (view["turns"][0]["outcome"], view["rule"], view["resume_pending"]) == ("completed", "R9", False)
        assert interruption(view)["decision"].startswith("resumed: rule R9")
        assert "\nholdfast_safe_mode 0.0\n" in (await world.client.get("/metrics")).text


# stops, and commands among the messages


async def test_a_stop_keeps_what_waits_and_says_how_many(world: World) -> None:
    """A21."""
    session_id = await world.new_session()
    await hold(world, session_id)
    for text in ("first", "second"):
        await world.post(session_id, text)
    answer = await order(world, session_id, "stop")
    assert (answer.status_code, answer.json()["queued"]) == (202, 2)
    view = await world.until_state(session_id, "idle")
    assert [turn["outcome"] for turn in view["turns"]] == ["cancelled", "completed", "completed"]
    assert [message["text"] for message in view["messages"] if message["role"] == "assistant"] == ["holding", "first", "second"]
    assert not view["suspended"] and not view["resume_pending"]


async def test_a_stop_among_the_messages_is_a_command_with_a_reply(world: World) -> None:
    """A21, A22."""
    session_id = await world.new_session()
    await hold(world, session_id)
    await world.post(session_id, "waits")
    first = await world.post(session_id, "/stop", client_id="s")
    again = await world.post(session_id, "/stop", client_id="s")
    assert (first.status_code, again.status_code) == (202, 200) and first.json() == again.json()
    view = await world.until_state(session_id, "idle")
    messages = {message["id"]: message for message in view["messages"]}
    name = first.json()["message_id"]
    assert (messages[name]["status"], messages[name]["turn_id"], messages[name]["text"]) == ("command", None, "/stop")
    reply = messages[f"{name}.reply"]
    assert (reply["role"], reply["text"]) == ("notice", "Stopped. 1 message is waiting and will be answered next.")
    assert [turn["outcome"] for turn in view["turns"]] == ["cancelled", "completed"]


async def test_commands_that_lead_to_another_session_are_answered_there(world: World) -> None:
    """A22."""
    session_id = await world.new_session()
    empty = await world.post(session_id, "/new")
    assert empty.json()["session_id"] == session_id
    assert (await world.view(session_id))["messages"][-1]["text"].startswith("This conversation is still empty")
    await world.say(session_id, "hello")
    first = await world.post(session_id, "/new", client_id="n")
    fresh = first.json()["session_id"]
    assert fresh != session_id and (await world.view(fresh))["current"]
    assert (await world.post(session_id, "/new", client_id="n")).json() == first.json()
    assert len(await session_ids(world)) == 2
    await world.say(fresh, "elsewhere")
    back = await world.post(fresh, "/resume 1")
    assert back.json()["session_id"] == session_id
    assert (await world.view(session_id))["messages"][-1]["text"].startswith("Back in the conversation")
