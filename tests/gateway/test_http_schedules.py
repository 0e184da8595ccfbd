"""Schedules over HTTP, as docs/http-api.md promises them."""

from typing import Any

import msgspec

from holdfast.api import events
from tests.gateway.test_http_sessions import code
from tests.gateway.web import World


async def plan(world: World, session_id: str, **said: Any) -> Any:
    return await world.client.post("/api/schedules", json={"session_id": session_id, "text": "water the plants", **said})


async def answered(world: World, session_id: str) -> dict[str, Any]:
    """The session, once its first turn is over."""

    async def ended() -> dict[str, Any] | None:
        view = await world.view(session_id)
        return view if view["turns"] and view["turns"][0]["state"] == "ended" else None

    return await world.until(ended)


async def test_a_schedule_is_made_listed_shown_with_its_session_and_removed(world: World) -> None:
    session_id, other = await world.new_session(), await world.new_session()
    made = await plan(world, session_id, cron="0 8 * * 1-5", time_zone="Europe/Berlin", missed="skip")
    assert made.status_code == 201
    expected = {
        "session_id": session_id,
        "text": "water the plants",
        "when": "every weekday at 08:00 (Europe/Berlin)",
        "at": None,
        "every_s": None,
        "cron": "0 8 * * 1-5",
        "time_zone": "Europe/Berlin",
        "missed": "skip",
        "by": "owner",
        "call_id": None,
        "due_at": "2027-01-18T07:00:00.000Z",
        "last_at": None,
        "skipped": None,
        "paused_at": None,
    }
    assert made.json().items() >= expected.items()
    await plan(world, other, when="in 2 hours")
    listed = (await world.client.get("/api/schedules")).json()["schedules"]
    assert [each["session_id"] for each in listed] == [other, session_id]
    assert (await world.client.get("/api/schedules", params={"session": session_id})).json()["schedules"] == [made.json()]
    assert (await world.view(session_id))["schedules"] == [made.json()]
    path = f"/api/schedules/{made.json()['schedule_id']}"
    assert (await world.client.delete(path)).json() == made.json()
    assert code(await world.client.delete(path)) == (404, "not_found")
    assert (await world.view(session_id))["schedules"] == []


async def test_a_schedule_is_paused_and_continued(world: World) -> None:
    session_id = await world.new_session()
    made = (await plan(world, session_id, every_s=3600)).json()
    path = f"/api/schedules/{made['schedule_id']}"
    for paused in (True, True, False, False):
        changed = await world.client.patch(path, json={"paused": paused})
        assert changed.status_code == 200 and (changed.json()["paused_at"] is not None) == paused
        assert (await world.view(session_id))["schedules"] == [changed.json()]
    assert changed.json() == made
    assert code(await world.client.patch(path, json={})) == (400, "bad_input")
    assert code(await world.client.patch("/api/schedules/none", json={"paused": True})) == (404, "not_found")


async def test_a_time_that_has_come_starts_a_turn_that_shows_what_caused_it(world: World) -> None:
    """P6, E8"""
    session_id = await world.new_session()
    made = (await plan(world, session_id, at="2027-01-15T08:10:00Z")).json()
    world.clock.pass_s(700)
    view = await answered(world, session_id)
    cause, answer = view["messages"]
    assert (cause["role"], cause["cause"], cause["text"]) == ("cause", "schedule", "water the plants")
    assert cause["schedule"] == {
        "schedule_id": made["schedule_id"],
        "due_at": "2027-01-15T08:10:00.000Z",
        "when": "Friday 15 January 2027, 08:10 (UTC)",
        "missed": 0,
    }
    assert (answer["role"], view["turns"][0]["cause"], view["schedules"]) == ("assistant", "schedule", [])


async def test_the_same_client_id_is_the_same_schedule(world: World) -> None:
    """P1"""
    session_id = await world.new_session()
    first = await plan(world, session_id, when="in 1 hour", client_id="c1")
    world.clock.pass_s(5)
    again = await plan(world, session_id, when="in 1 hour", client_id="c1")
    assert again.json() == first.json()
    assert code(await plan(world, session_id, when="in 1 hour", client_id="c1", text="other")) == (409, "client_id_reused")


async def test_a_request_that_is_repeated_when_its_time_is_over_gets_the_first_answer(world: World) -> None:
    """P1: a response may be lost, and a client come back late."""
    session_id = await world.new_session()
    planned = {"at": "2027-01-15T08:01:00Z", "client_id": "c1"}
    await world.client.post("/api/admin/pause", json={"for_s": 1000})
    first = await plan(world, session_id, **planned)
    world.clock.pass_s(120)
    assert (await plan(world, session_id, **planned)).json() == first.json()
    assert code(await plan(world, session_id, at="2027-01-15T08:01:00Z", client_id="c2")) == (400, "bad_input")


async def test_what_is_no_schedule_is_refused_with_what_to_do(world: World) -> None:
    session_id = await world.new_session()
    for said, words in (
        ({}, "exactly one of"),
        ({"at": "2027-01-15T08:00:00Z"}, "already over"),
        ({"at": "soon"}, "is not a time"),
        ({"every_s": 5}, "too often"),
        ({"cron": "* * *"}, "five fields"),
        ({"cron": "0 8 * * *", "time_zone": "Mars/Base"}, "no time zone"),
        ({"when": "one day"}, "does not begin with a time"),
        ({"when": "in 1 hour", "text": "  "}, "the text is empty"),
        ({"when": "in 1 hour", "missed": "maybe"}, "not valid"),
        ({"every_s": 60, "cron": "0 8 * * *"}, "exactly one of"),
    ):
        refused = await plan(world, session_id, **said)
        assert code(refused) == (400, "bad_input") and words in refused.json()["error"]["message"], said
    assert code(await plan(world, "s_none", when="in 1 hour")) == (404, "not_found")


async def test_one_schedule_too_many_is_refused(world: World) -> None:
    """P8"""
    session_id = await world.new_session()
    for _ in range(50):
        assert (await plan(world, session_id, when="in 1 hour")).status_code == 201
    assert code(await plan(world, session_id, when="in 1 hour")) == (409, "too_many_schedules")


async def test_the_event_stream_tells_of_schedules(world: World) -> None:
    session_id = await world.new_session()
    made = (await plan(world, session_id, every_s=600)).json()
    world.clock.pass_s(600)
    await answered(world, session_id)
    await world.client.delete(f"/api/schedules/{made['schedule_id']}")
    items = await world.gateway.store.events(session_id, after=0, limit=100)
    told = {item.kind: events.data(item) for item in items if item.kind.startswith("schedule.") or item.kind == "cause.recorded"}
    told = msgspec.to_builtins(told)
    assert list(told) == ["schedule.added", "schedule.due", "cause.recorded", "schedule.removed"]
    assert told["schedule.added"]["due_at"] == made["due_at"] and told["schedule.added"]["text"] == "water the plants"
    assert told["schedule.due"]["cause_id"] == told["cause.recorded"]["cause_id"]
    assert told["cause.recorded"]["schedule"]["due_at"] == told["schedule.due"]["due_at"] == made["due_at"]
