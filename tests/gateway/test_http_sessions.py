"""Sessions, messages, stops and questions over HTTP, as docs/http-api.md promises them."""

import re
from pathlib import Path
from typing import Any

from holdfast.core.events import SessionChanged
from holdfast.gateway.settings import Settings
from tests.gateway import web
from tests.gateway.web import World

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SUMMARY = {
    "session_id", "session_key", "title", "created_at", "updated_at", "state", "generation", "suspended", "resume_pending", "resume_reason",
    "last_resume_marked_at", "was_auto_reset", "auto_reset_reason", "interrupted_restarts", "pinned", "archived", "queued",
    "current", "left", "rule", "why", "model",
}  # fmt: skip


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_message_is_answered_and_the_session_shows_both(world: World) -> None:
    """P1."""
    session_id = await world.new_session(title="Greetings")
    view = await world.say(session_id, "hello")
    shown = {"cursor", "messages", "earlier", "answer_below", "turns", "questions", "schedules", "processes", "usage"}
    assert set(view) == SUMMARY | shown
    assert [(message["role"], message["text"], message["status"]) for message in view["messages"]] == [
        ("user", "hello", "complete"),
        ("assistant", "hello", "complete"),
    ]
    assert view["title"] == "Greetings" and view["state"] == "idle" and view["generation"] == 1 and view["questions"] == []
    assert [(turn["state"], turn["outcome"], turn["attempt"], turn["cause"]) for turn in view["turns"]] == [
        ("ended", "completed", 1, "message")
    ]
    for moment in (view["created_at"], view["updated_at"], view["turns"][0]["started_at"], view["messages"][0]["created_at"]):
        assert TIME.fullmatch(moment)
    assert re.fullmatch(r"\w+\.\d+", view["cursor"])


async def test_a_session_is_made_in_a_folder_only_where_tools_work_in_one(world: World) -> None:
    """This gateway has no such tools."""
    refused = await world.client.post("/api/sessions", json={"folder": "/tmp"})
    assert code(refused) == (400, "unfit_folder")
    assert code(await world.client.post("/api/sessions", json={"folder": ""})) == (400, "bad_input")


async def test_an_editor_learns_that_its_files_are_not_used(world: World) -> None:
    session_id = await world.new_session()
    told = {"reads": True, "writes": True, "answers": [{"request_id": "f_1", "text": "late"}]}
    answer = await world.client.post(f"/api/sessions/{session_id}/editor", json=told)
    assert (answer.status_code, answer.json()) == (200, {"files": [], "used": False})
    assert code(await world.client.post("/api/sessions/s_none/editor")) == (404, "not_found")


async def test_a_failed_turn_says_so_and_tool_calls_are_shown_on_the_answer(world: World) -> None:
    """P3."""
    session_id = await world.new_session()
    assert (await world.say(session_id, "fail"))["turns"][0]["outcome"] == "failed"
    view = await world.say(session_id, "lines ahoy")
    assert view["turns"][0]["error"] and view["turns"][1]["error"] is None
    (answer,) = [message for message in view["messages"] if message["role"] == "assistant"]
    (call,) = answer["tool_calls"]
    assert (call["name"], call["arguments"], call["outcome"], call["result"]) == ("printer", {"text": "ahoy"}, "done", "ahoy")
    assert "tool_calls" not in view["messages"][0]


async def test_the_same_client_id_is_the_same_message_and_other_text_under_it_is_refused(world: World) -> None:
    """P1, P6: a try whose answer was lost may be made again."""
    session_id = await world.new_session()
    first = await world.post(session_id, "hello", client_id="c1")
    again = await world.post(session_id, "hello", client_id="c1")
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json() and first.json()["session_id"] == session_id
    assert code(await world.post(session_id, "goodbye", client_id="c1")) == (409, "client_id_reused")
    view = await world.until_state(session_id, "idle")
    assert [message["text"] for message in view["messages"] if message["role"] == "user"] == ["hello"]


async def test_what_waits_comes_last_and_a_full_lane_refuses_aloud(tmp_path: Path) -> None:
    """P1: what was acknowledged stays, what is too much is told so."""
    async with web.world(tmp_path, settings=Settings(max_waiting=3)) as world:
        session_id = await world.new_session()
        await world.post(session_id, "hold")
        await world.until_state(session_id, "running")
        for number in range(3):
            assert (await world.post(session_id, f"waiting {number}")).status_code == 202
        assert code(await world.post(session_id, "too much")) == (429, "lane_full")
        view = await world.view(session_id)
        assert view["queued"] == 3
        assert [(message["text"], message["turn_id"]) for message in view["messages"][-3:]] == [(f"waiting {n}", None) for n in range(3)]
        world.agent.released.set()
        view = await world.until_state(session_id, "idle")
        assert [message["text"] for message in view["messages"] if message["role"] == "user"] == [
            "hold",
            "waiting 0",
            "waiting 1",
            "waiting 2",
        ]


async def test_a_stop_that_names_a_turn_stops_no_other(world: World) -> None:
    """A21: what the page shows is what its button stops."""
    session_id = await world.new_session()
    await world.post(session_id, "hello")
    ended = (await world.until_state(session_id, "idle"))["turns"][0]["id"]
    await world.post(session_id, "hold")
    running = (await world.until_state(session_id, "running"))["turns"][1]["id"]
    late = await world.client.post(f"/api/sessions/{session_id}/stop", json={"turn_id": ended})
    assert code(late) == (409, "nothing_to_stop")
    assert late.json()["error"]["message"] == f"Turn {ended!r} of session {session_id!r} is not open, so there is nothing to stop."
    assert (await world.until_state(session_id, "running"))["turns"][1]["id"] == running
    stopped = await world.client.post(f"/api/sessions/{session_id}/stop", json={"turn_id": running})
    assert (stopped.status_code, stopped.json()) == (202, {"turn_id": running, "queued": 0})
    assert (await world.until_state(session_id, "idle"))["turns"][1]["outcome"] == "cancelled"


async def test_a_stop_is_on_disk_when_it_is_answered_and_ends_the_turn(world: World) -> None:
    """A21."""
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    first = await world.client.post(f"/api/sessions/{session_id}/stop", json={"client_id": "s1"})
    view = await world.until_state(session_id, "idle")
    assert first.status_code == 202 and first.json() == {"turn_id": view["turns"][0]["id"], "queued": 0}
    assert view["turns"][0]["outcome"] == "cancelled"
    again = await world.client.post(f"/api/sessions/{session_id}/stop", json={"client_id": "s1"})
    assert (again.status_code, again.json()["turn_id"]) == (202, view["turns"][0]["id"])
    assert code(await world.client.post(f"/api/sessions/{session_id}/stop")) == (409, "nothing_to_stop")


async def test_a_message_can_interrupt_what_runs_or_be_refused(world: World) -> None:
    """P1, A21: a refusal is on record, and the same request gets it again."""
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    for _ in range(2):
        assert code(await world.post(session_id, "and now?", mode="reject", client_id="c1")) == (409, "busy")
    assert (await world.post(session_id, "hello", mode="interrupt")).status_code == 202
    view = await world.until_state(session_id, "idle")
    assert [turn["outcome"] for turn in view["turns"]] == ["cancelled", "completed"]
    assert [turn.get("stopped_because") for turn in view["turns"]] == ["interrupted by a new message", None]
    assert [message["text"] for message in view["messages"] if message["status"] == "refused"] == ["and now?"]
    assert (await world.post(session_id, "hello", mode="reject")).status_code == 202


async def test_a_message_can_be_edited_and_shows_when(world: World) -> None:
    """DESIGN 5.7, P1: one that waits is replaced, one that was answered is changed for those who read it."""
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    waits = (await world.post(session_id, "old")).json()["message_id"]
    path = f"/api/sessions/{session_id}/messages/{waits}"
    edited = await world.client.patch(path, json={"text": "new", "client_id": "e1"})
    assert (edited.status_code, edited.json()) == (200, {"message_id": waits, "session_id": session_id, "effect": "replaced"})
    await world.client.post(f"/api/sessions/{session_id}/stop")
    view = await world.until_state(session_id, "idle")
    (shown,) = [message for message in view["messages"] if message["id"] == waits]
    assert shown["text"] == "new" and TIME.fullmatch(shown["edited_at"]) and view["messages"][-1]["text"] == "new"
    assert "edited_at" not in view["messages"][0]
    again = await world.client.patch(path, json={"text": "new", "client_id": "e1"})
    assert again.json() == edited.json()
    assert (await world.client.patch(path, json={"text": "newer"})).json()["effect"] == "recorded"
    assert code(await world.client.patch(path, json={"text": "other", "client_id": "e1"})) == (409, "client_id_reused")
    assert code(await world.client.patch(path, json={"text": " "})) == (400, "bad_input")
    assert code(await world.client.patch(f"{path}x", json={"text": "x"})) == (404, "not_found")


async def test_a_question_is_shown_and_answered_and_a_second_answer_is_too_late(world: World) -> None:
    """A waiting turn waits for its user alone."""
    session_id = await world.new_session()
    await world.post(session_id, "ask Which one?")
    question = (await world.until_state(session_id, "waiting"))["questions"][0]
    assert question["text"] == "Which one?" and TIME.fullmatch(question["asked_at"]) and TIME.fullmatch(question["expires_at"])
    answer = await world.client.post(f"/api/questions/{question['question_id']}", json={"text": "that one"})
    assert answer.status_code == 202 and answer.json() == {"question_id": question["question_id"], "session_id": session_id}
    view = await world.until_state(session_id, "idle")
    assert view["messages"][-1]["text"] == "told: that one" and view["questions"] == []
    late = await world.client.post(f"/api/questions/{question['question_id']}", json={"text": "no, this"})
    assert code(late) == (409, "question_answered")


async def test_an_answer_that_is_sent_again_under_its_name_is_the_same_answer(world: World) -> None:
    """P1: a client that got no response repeats its answer; it is recorded once, and not told that it is late."""
    session_id = await world.new_session()
    await world.post(session_id, "ask Which one?")
    question_id = (await world.until_state(session_id, "waiting"))["questions"][0]["question_id"]
    path, mine = f"/api/questions/{question_id}", {"text": "that one", "client_id": "a1"}
    first = await world.client.post(path, json=mine)
    at_once = await world.client.post(path, json=mine)
    view = await world.until_state(session_id, "idle")
    later = await world.client.post(path, json=mine)
    for response in (first, at_once, later):
        assert (response.status_code, response.json()) == (202, {"question_id": question_id, "session_id": session_id})
    assert view["messages"][-1]["text"] == "told: that one"
    assert [message["text"] for message in view["messages"] if message["role"] == "user"] == ["ask Which one?", "that one"]
    assert code(await world.client.post(path, json={**mine, "text": "no, this"})) == (409, "client_id_reused")
    assert code(await world.client.post(path, json={**mine, "client_id": "a2"})) == (409, "question_answered")


async def test_a_question_is_answered_with_one_of_its_choices_and_no_other(world: World) -> None:
    """R5: `choice` is held to what the question offers; `text` may say anything."""
    session_id = await world.new_session()
    await world.post(session_id, "choose the red one|the blue one")
    question = (await world.until_state(session_id, "waiting"))["questions"][0]
    assert question["choices"] == ["the red one", "the blue one"]
    path = f"/api/questions/{question['question_id']}"
    wrong = await world.client.post(path, json={"choice": "blue"})
    assert code(wrong) == (400, "unknown_choice")
    assert "'the red one', 'the blue one'" in wrong.json()["error"]["message"]
    for both_or_none in ({}, {"choice": "the red one", "text": "the red one"}):
        assert code(await world.client.post(path, json=both_or_none)) == (400, "bad_input")
    assert (await world.view(session_id))["state"] == "waiting"
    for _ in range(2):
        chosen = await world.client.post(path, json={"choice": "the blue one", "client_id": "a1"})
        assert (chosen.status_code, chosen.json()) == (202, {"question_id": question["question_id"], "session_id": session_id})
    assert (await world.until_state(session_id, "idle"))["messages"][-1]["text"] == "chosen: the blue one"
    assert code(await world.client.post(path, json={"choice": "blue"})) == (409, "question_answered")

    await world.post(session_id, "ask Which one?")
    [open_one] = (await world.until_state(session_id, "waiting"))["questions"]
    refused = await world.client.post(f"/api/questions/{open_one['question_id']}", json={"choice": "any"})
    assert code(refused) == (400, "unknown_choice") and "Answer it with `text`" in refused.json()["error"]["message"]


async def test_the_next_message_answers_the_open_question(world: World) -> None:
    session_id = await world.new_session()
    await world.post(session_id, "ask Which one?")
    await world.until_state(session_id, "waiting")
    assert (await world.post(session_id, "the blue one")).status_code == 202
    assert (await world.until_state(session_id, "idle"))["messages"][-1]["text"] == "told: the blue one"


async def test_answers_to_expired_and_to_stopped_questions_are_told_why(world: World) -> None:
    session_id = await world.new_session()
    await world.post(session_id, "ask Anyone?")
    expired = (await world.until_state(session_id, "waiting"))["questions"][0]["question_id"]
    world.clock.pass_s(25 * 3600)
    await world.gateway.store.expire_questions(now=world.clock.now())
    assert code(await world.client.post(f"/api/questions/{expired}", json={"text": "me"})) == (409, "question_expired")

    await world.post(session_id, "ask Anyone now?")
    stopped = (await world.until_state(session_id, "waiting"))["questions"][0]["question_id"]
    assert (await world.client.post(f"/api/sessions/{session_id}/stop")).status_code == 202
    assert code(await world.client.post(f"/api/questions/{stopped}", json={"text": "me"})) == (409, "question_cancelled")


async def test_the_pages_of_the_list_hold_every_session_once_newest_first(world: World) -> None:
    made = []
    for number in range(7):
        made.append(await world.new_session(title=f"number {number}"))
        world.clock.pass_s(1)
    listed, before = [], None
    while True:
        answer = await world.client.get("/api/sessions", params={"limit": 3, **({"before": before} if before else {})})
        listed += [session["session_id"] for session in answer.json()["sessions"]]
        assert all(set(session) == SUMMARY | {"excerpt", "unread", "needs", "delivery"} for session in answer.json()["sessions"])
        before = answer.json()["next"]
        if before is None:
            break
    assert listed == made[::-1]


async def test_title_pin_and_archive_are_changed_and_the_list_follows(world: World) -> None:
    session_id = await world.new_session()
    answer = await world.client.patch(f"/api/sessions/{session_id}", json={"title": "A name", "pinned": True})
    assert (answer.status_code, answer.json()["title"], answer.json()["pinned"], answer.json()["archived"]) == (200, "A name", True, False)
    await world.new_session()
    pinned = (await world.client.get("/api/sessions?state=pinned")).json()["sessions"]
    assert [session["session_id"] for session in pinned] == [session_id]
    await world.client.patch(f"/api/sessions/{session_id}", json={"archived": True})
    assert (await world.client.get("/api/sessions?state=pinned")).json()["sessions"] == []
    assert session_id not in [session["session_id"] for session in (await world.client.get("/api/sessions")).json()["sessions"]]
    archived = (await world.client.get("/api/sessions?archived=true")).json()["sessions"]
    assert [(session["session_id"], session["title"]) for session in archived] == [(session_id, "A name")]


async def test_a_model_that_cannot_be_chosen_is_refused_and_the_configured_one_always_may_be(world: World) -> None:
    session_id = await world.new_session()
    answer = await world.client.patch(f"/api/sessions/{session_id}", json={"model": "nobody:x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_model")
    answer = await world.client.patch(f"/api/sessions/{session_id}", json={"model": None})
    assert (answer.status_code, answer.json()["model"]) == (200, None)


async def test_the_search_finds_titles_and_messages_and_survives_any_words(world: World) -> None:
    session_id = await world.new_session(title="Harbour")
    await world.say(session_id, "the anchor holds")
    await world.new_session(title="Something else")
    while await world.gateway.store.index_search(limit=500):
        pass
    for query in ("harbour", "anchor hol", "HOLDS"):
        found = (await world.client.get("/api/sessions", params={"query": query})).json()["sessions"]
        assert [session["session_id"] for session in found] == [session_id], query
    for query in ('"', "*", "a AND", "NEAR(", "\x00", "col:x", "-", "é", "{}", "^", "'", '""', "(", "\\", "%", "+ +"):
        assert (await world.client.get("/api/sessions", params={"query": query})).status_code == 200, query


async def test_a_message_to_a_suspended_session_goes_to_a_new_one_and_the_answer_names_it(world: World) -> None:
    """A14, P8."""
    session_id = await world.new_session(title="Stuck")
    await world.gateway.change_session(session_id, SessionChanged(suspended=True))
    answer = await world.post(session_id, "hello again")
    fresh = answer.json()["session_id"]
    assert answer.status_code == 202 and fresh != session_id
    view = await world.until_state(fresh, "idle")
    assert (view["was_auto_reset"], view["auto_reset_reason"]) == (True, "suspended")
    assert view["session_key"] == (await world.view(session_id))["session_key"]


async def test_a_cut_turn_shows_its_interruption_and_after_the_restart_what_was_decided(tmp_path: Path) -> None:
    """P3, B7: the label of the rule is shown for ever."""
    async with web.world(tmp_path) as world:
        session_id = await world.new_session()
        await world.post(session_id, "hold")

        async def held() -> bool:
            messages = (await world.view(session_id))["messages"]
            return len(messages) == 2 and messages[1]["status"] == "partial" and messages[1]["text"] == "holding"

        await world.until(held)
        await world.gateway.stop()
        cut = await world.view(session_id)
        assert (cut["state"], cut["resume_pending"], cut["resume_reason"]) == ("interrupted", True, "shutdown_timeout")
        row = cut["messages"][-1]
        assert (row["role"], row["state"], row["reason"]) == ("interruption", "recovered", "shutdown_timeout")
        assert (row["rule"], row["decision"], row["attempt"]) == (None, None, None)
        assert (cut["rule"], cut["why"], cut["left"], cut["current"]) == (None, None, False, True)
        assert TIME.fullmatch(cut["last_resume_marked_at"])
    async with web.world(tmp_path, life="another") as world:
        world.agent.released.set()
        view = await world.until_state(session_id, "idle")
        (row,) = [message for message in view["messages"] if message["role"] == "interruption"]
        assert (row["rule"], row["attempt"], row["decision"]) == ("R9", 2, "resumed: rule R9, interrupted by a shutdown 0 s earlier")
        assert (view["rule"], view["why"]) == ("R9", "interrupted by a shutdown 0 s earlier")
        assert (view["turns"][0]["attempt"], view["turns"][0]["rule"], view["turns"][0]["outcome"]) == (2, "R9", "completed")


async def test_the_status_the_health_and_the_end_of_the_gateway(world: World) -> None:
    assert (await world.client.get("/api/status")).json()["gateway_state"] == "running"
    answer = await world.browser().get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert world.stops == 0
    answer = await world.client.post("/api/admin/stop")
    assert (answer.status_code, answer.json(), world.stops) == (202, {"gateway_state": "running"}, 1)


async def test_the_figures_for_prometheus_count_what_is_there(world: World) -> None:
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    await world.post(session_id, "waits")
    text = (await world.client.get("/metrics")).text
    for line in (
        "holdfast_sessions 1.0",
        "holdfast_inbox 1.0",
        "holdfast_outbox 0.0",
        "holdfast_running_turns 1.0",
        "holdfast_readers 0.0",
        "holdfast_degraded 0.0",
        "holdfast_blobs 0.0",
        "# TYPE holdfast_commit_seconds_total counter",
        "holdfast_blob_bytes 0.0",
        'holdfast_http_answers_total{status="201"} 1.0',
        'holdfast_http_answers_total{status="202"} 2.0',
    ):
        assert f"\n{line}\n" in text, line
