"""`holdfast send` against a gateway that does the worst at each step: a fake, because the real one does not fail there on demand."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.messages.following import STARTS_OVER, Doing, Following, Note, Piece, Printed, Text
from tests.e2e.command_line import Said, holdfast, write_status

SESSION: dict[str, Any] = {
    "session_id": "s_1",
    "cursor": "l.1",
    "messages": [],
    "turns": [],
    "questions": [],
    "left": False,
    "state": "idle",
}
STARTED = ("turn.started", {"turn_id": "t", "causes": ["m_1"]})
LEFT = ("turn.left", {"turn_id": "t", "rule": "R7", "why": "interrupted by a crash 2 s earlier"})
ENDED = ("turn.ended", {"turn_id": "t", "outcome": "completed", "error": None})


def text(offset: int, words: str, *, attempt: int = 1, step: int = 0) -> tuple[str, dict[str, Any]]:
    return "text", {"turn_id": "t", "attempt": attempt, "step": step, "offset": offset, "text": words}


class Gateway(ThreadingHTTPServer):
    """Answers from scripts: `posts` are statuses (0 gives no answer), `streams` lists of events, after which each stream breaks off."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts: list[int] = []
        self.streams: list[list[tuple[str, dict[str, Any]]]] = []
        self.posted: list[dict[str, Any]] = []
        self.cursors: list[str] = []
        self.session = SESSION
        self.seq = 1


class Handler(BaseHTTPRequestHandler):
    server: Gateway

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.endswith("/events"):
            self._answer(200, self.server.session)
            return
        self.server.cursors.append(self.headers["Last-Event-ID"])
        self.send_response(200)
        self.end_headers()
        for event, data in self.server.streams.pop(0):
            self.server.seq += 1
            self.wfile.write(f"id: l.{self.server.seq}\nevent: {event}\ndata: {json.dumps(data)}\n\n:\n\n".encode())

    def do_POST(self) -> None:
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status = self.server.posts.pop(0)
        if status == 0:
            self.close_connection = True
        elif status in (200, 202):
            self._answer(status, {"message_id": "m_1", "session_id": "s_1"})
        else:
            self._answer(status, {"error": {"code": "store_closed", "message": "The store cannot be used: it was closed."}})

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def send(gateway: Gateway, home: Path, *words: str) -> Said:
    write_status(home, url=f"http://127.0.0.1:{gateway.server_port}")
    (home / "token").write_text("t")
    return holdfast(home, "send", "s_1", "hello", *words)


def test_a_post_whose_answer_was_lost_is_tried_again_under_the_same_name(gateway: Gateway, tmp_path: Path) -> None:
    gateway.posts, gateway.streams = [0, 503, 200], [[STARTED, text(0, "yes"), ENDED]]
    said = send(gateway, tmp_path)
    assert (said.code, said.out) == (0, "yes\n"), said.err
    assert len(gateway.posted) == 3 and len({posted["client_id"] for posted in gateway.posted}) == 1
    assert gateway.cursors == ["l.1"], "from before the first try: what came of it lies behind"


def test_a_message_known_from_before_is_looked_for_from_the_beginning(gateway: Gateway, tmp_path: Path) -> None:
    gateway.posts, gateway.streams = [200], [[STARTED, text(0, "yes"), ENDED]]
    assert send(gateway, tmp_path, "--client-id", "mine").out == "yes\n"
    assert gateway.cursors == ["0"]


def test_a_stream_that_breaks_off_goes_on_by_its_cursor(gateway: Gateway, tmp_path: Path) -> None:
    gateway.posts, gateway.streams = [202], [[STARTED, text(0, "one ")], [("end", {"reason": "slow_reader"})], [text(4, "two"), ENDED]]
    said = send(gateway, tmp_path)
    assert (said.code, said.out) == (0, "one two\n")
    assert gateway.cursors == ["l.1", "l.3", "l.3"]


def test_a_snapshot_in_place_of_the_stream_is_enough(gateway: Gateway, tmp_path: Path) -> None:
    whole = SESSION | {
        "messages": [
            {"id": "m_1", "role": "user", "turn_id": "t", "text": "hello"},
            {"id": "t.answer", "role": "assistant", "turn_id": "t", "text": "one two"},
        ],
        "turns": [{"id": "t", "outcome": "completed", "error": None}],
    }
    gateway.posts, gateway.streams = [202], [[STARTED, text(0, "one ")], [("snapshot", whole)]]
    assert send(gateway, tmp_path).out == "one two\n"


def test_a_snapshot_with_a_shortened_text_is_not_printed_as_if_it_were_whole(gateway: Gateway, tmp_path: Path) -> None:
    """P8: a snapshot leaves out the middle of a long text; what is printed has it."""
    shortened = SESSION | {
        "messages": [
            {"id": "m_1", "role": "user", "turn_id": "t", "text": "hello"},
            {"id": "t.answer", "role": "assistant", "turn_id": "t", "text": "one [...] three", "text_omitted": 5, "whole_after": "l.77"},
        ],
        "turns": [{"id": "t", "outcome": "completed", "error": None}],
    }
    gateway.posts, gateway.streams = [202], [[STARTED, text(0, "one ")], [("snapshot", shortened)], [written("one two three"), ENDED]]
    said = send(gateway, tmp_path)
    assert (said.code, said.out) == (0, "one two three\n")
    assert gateway.cursors == ["l.1", "l.3", "l.77"]


def test_a_gateway_of_version_0_1_that_still_serves_is_understood(gateway: Gateway, tmp_path: Path) -> None:
    """P2: a hand-over from it is refused, so it serves until it is stopped."""
    older = {name: value for name, value in SESSION.items() if name != "questions"}
    asked = {"question_id": "q_1", "turn_id": "t", "text": "Who?", "asked_at": "", "expires_at": ""}
    gateway.session = older | {"question": asked, "state": "waiting"}
    started = ("turn.started", {"turn_id": "t", "message_ids": ["m_1"]})
    said = ("text", {"turn_id": "t", "attempt": 1, "offset": 0, "text": "yes"})
    snapshot = ("snapshot", older | {"question": None})
    gateway.posts, gateway.streams = [202], [[started, snapshot, said, ENDED]]
    answer = send(gateway, tmp_path)
    assert (answer.code, answer.out) == (0, "yes\n")


def test_a_message_that_may_have_arrived_says_how_to_send_it_again(gateway: Gateway, tmp_path: Path) -> None:
    gateway.posts = [0] * 100
    said = send(gateway, tmp_path, "--timeout", "0.5", "--client-id", "mine")
    assert said.code == 1 and "--client-id mine" in said.err


def test_a_refused_message_is_told(gateway: Gateway, tmp_path: Path) -> None:
    gateway.posts, gateway.streams = [202], [[("message.refused", {"message_id": "m_1", "reason": "no agent"})]]
    said = send(gateway, tmp_path)
    assert said.code == 1 and "The message was not answered: no agent." in said.err


def test_a_turn_that_was_left_is_not_waited_for(gateway: Gateway, tmp_path: Path) -> None:
    """B14: in safe mode nothing goes on before a human says so."""
    gateway.posts, gateway.streams = [202], [[STARTED, text(0, "one "), LEFT]]
    gateway.session = SESSION | {"left": True, "turns": [{"id": "t"}]}
    said = send(gateway, tmp_path)
    assert said.code == 1 and said.out == "one \n"
    assert "does not continue by itself (interrupted by a crash 2 s earlier)" in said.err and "`holdfast resume s_1 " in said.err


def test_a_turn_that_was_left_and_went_on_since_is_waited_for(gateway: Gateway, tmp_path: Path) -> None:
    resumed = ("turn.resumed", {"turn_id": "t", "attempt": 2, "rule": "R9", "reason": "crash"})
    gateway.posts, gateway.streams = [202], [[STARTED, text(0, "one "), LEFT, resumed, text(4, "two"), ENDED]]
    said = send(gateway, tmp_path)
    assert (said.code, said.out) == (0, "one two\n"), said.err


def test_all_calls_that_wait_for_an_approval_are_shown_at_once(gateway: Gateway, tmp_path: Path) -> None:
    """R5: those of one response are asked about together, each in an event of its own."""
    asked = [
        {"question_id": name, "turn_id": "t", "kind": "approval", "text": f"May I run {name}?", "asked_at": "", "expires_at": ""}
        for name in ("q_1", "q_2")
    ]
    gateway.posts, gateway.streams = [202], [[STARTED, *(("question.asked", {"form": "approval"} | each) for each in asked)]]
    gateway.session = SESSION | {"questions": asked, "turns": [{"id": "t"}], "state": "waiting"}
    said = send(gateway, tmp_path)
    assert (said.code, said.out) == (0, "May I run q_1?\nMay I run q_2?\n"), said.err
    assert "`holdfast approve q_1 " in said.err and "`holdfast approve q_2 " in said.err


def test_why_a_turn_failed_is_one_sentence_even_if_it_ends_with_a_question(gateway: Gateway, tmp_path: Path) -> None:
    failed = ("turn.ended", {"turn_id": "t", "outcome": "failed", "error": "It is no stream. Is base_url right?"})
    gateway.posts, gateway.streams = [202], [[STARTED, failed]]
    said = send(gateway, tmp_path)
    assert said.code == 1 and said.err.endswith("The turn ended as failed: It is no stream. Is base_url right?\n")


# what is printed of an answer that takes several attempts


def printed(*events: tuple[str, dict[str, Any]]) -> list[Piece]:
    following = Following("m_1")
    return [piece for event, data in (STARTED, *events) for piece in following.apply(event, data)]


def written(words: str) -> tuple[str, dict[str, Any]]:
    return "message.written", {"turn_id": "t", "role": "assistant", "text": words}


def test_an_attempt_that_writes_the_same_again_prints_it_once() -> None:
    assert printed(text(0, "a b"), text(0, "a"), text(1, " b"), text(3, " c"), written("a b c")) == [Text("a b"), Text(" c")]


def test_an_attempt_that_writes_something_else_says_that_it_starts_over() -> None:
    assert printed(text(0, "a b"), text(0, "a x"), written("a x y")) == [Text("a b"), Note(STARTS_OVER), Text("a x"), Text(" y")]
    assert printed(text(0, "a b"), text(0, "a"), written("a")) == [Text("a b"), Note(STARTS_OVER), Text("a")]


def test_each_step_of_an_answer_is_printed_and_its_last_words_once() -> None:
    """The reply is the last step's text; what was said before a call is printed as it comes."""
    events = [text(0, "Let me look."), text(0, "It is ", step=1), text(6, "so.", step=1), written("It is so.")]
    assert printed(*events) == [Text("Let me look."), Text("\n\n"), Text("It is "), Text("so.")]
    assert printed(text(0, "All done."), ("model.responded", {"turn_id": "t", "step": 1}), written("All done.")) == [Text("All done.")]


def test_what_a_tool_gave_back_is_printed_and_what_nobody_knows_is_said() -> None:
    started = ("tool.started", {"turn_id": "t", "call_id": "c", "name": "terminal", "arguments": {"command": "date"}})

    def finished(outcome: str, result: str | None, call_id: str = "c") -> tuple[str, dict[str, Any]]:
        return "tool.finished", {"turn_id": "t", "call_id": call_id, "outcome": outcome, "result": result}

    doing = Doing("terminal: date")
    assert printed(started, finished("done", "Monday\n")) == [doing, Printed("Monday\n")]
    assert printed(started, finished("done", "\n")) == printed(started, finished("done", None)) == [doing]
    assert printed(started, finished("failed", "no such date")) == [doing, Printed("no such date"), Note("The tool failed.")]
    assert printed(started, finished("unknown", "It was interrupted.")) == [doing, Note("Whether the tool did its work is not known.")]
    assert printed(finished("done", "an answer to a question", "q")) == []


def test_a_call_with_several_arguments_is_printed_as_json() -> None:
    arguments = {"path": "é.txt", "content": "it's"}
    [doing] = printed(("tool.started", {"turn_id": "t", "call_id": "c", "name": "write_file", "arguments": arguments}))
    assert doing == Doing('write_file: {"path": "é.txt", "content": "it\'s"}')


def test_what_an_earlier_attempt_said_and_a_later_one_has_said_over_is_not_printed() -> None:
    """P7: such a piece reaches the log late."""
    events = [text(0, "a b"), text(3, " c", attempt=2), text(3, " x"), text(5, " d", attempt=2), written("a b c d")]
    assert printed(*events) == [Text("a b"), Text(" c"), Text(" d")]


def test_a_turn_with_several_questions_waits_for_each_and_shows_the_oldest() -> None:
    """R5"""
    following = Following("m_1")
    following.apply(*STARTED)
    for name in ("q1", "q2"):
        following.apply("question.asked", {"turn_id": "t", "question_id": name, "text": f"{name}?"})
    assert following.question and following.question["text"] == "q1?"
    following.apply("question.answered", {"turn_id": "t", "question_id": "q1"})
    assert following.question and following.question["text"] == "q2?"
    following.apply("question.answered", {"turn_id": "t", "question_id": "q2"})
    assert following.question is None


def test_a_message_that_steers_a_turn_is_followed_through_that_turn() -> None:
    following = Following("m_9", {"t": "a b"})
    following.apply("cause.taken", {"turn_id": "t", "cause_id": "m_9", "step": 0, "offset": 3})
    assert following.apply(*text(3, " c")) == [Text(" c")]
    following.apply(*ENDED)
    assert following.over and following.reply == "a b c"


def test_a_command_is_answered_by_the_gateway_itself() -> None:
    following = Following("m_9")
    mine = ("message.written", {"message_id": "m_9", "role": "user", "text": "/status"})
    reply = ("message.written", {"message_id": "m_9.reply", "role": "notice", "text": "All is well."})
    assert [piece for event, data in (mine, reply) for piece in following.apply(event, data)] == [Text("All is well.")]
    assert (following.over, following.outcome) == (True, "command")


def test_a_snapshot_tells_of_messages_that_had_no_turn() -> None:
    def seen(status: str, *more: dict[str, Any]) -> Following:
        following = Following("m_9")
        mine = {"id": "m_9", "role": "user", "turn_id": None, "text": "hello", "status": status}
        following.apply("snapshot", SESSION | {"messages": [mine, *more]})
        return following

    assert seen("refused").outcome == "refused"
    reply = {"id": "m_9.reply", "role": "notice", "turn_id": None, "text": "All is well.", "status": "complete"}
    assert (seen("command", reply).outcome, seen("command", reply).reply) == ("command", "All is well.")
    assert not seen("complete").over, "it still waits for its turn"


def test_other_turns_of_the_session_print_nothing() -> None:
    other = ("text", {"turn_id": "other", "offset": 0, "text": "not ours"})
    assert printed(other, ("turn.ended", {"turn_id": "other", "outcome": "failed"}), text(0, "ours")) == [Text("ours")]


def test_an_answer_that_goes_on_after_a_question_prints_only_what_is_new() -> None:
    following = Following("m_1", {"t": "before "})
    events = [("question.answered", {"turn_id": "t", "message_id": "m_1"}), text(7, "after"), written("before after")]
    assert [piece for event, data in events for piece in following.apply(event, data)] == [Text("after")]


def test_an_answer_of_very_many_pieces_is_printed_as_it_comes() -> None:
    """P8: each piece costs its own length. Where each copied the whole answer, this took minutes."""
    following = Following("m_1")
    following.apply(*STARTED)
    began = time.process_time()
    printed = 0
    for number in range(100_000):
        [piece] = following.apply(*text(500 * number, "x" * 500))
        printed += len(piece.text)
    assert time.process_time() - began < 10
    assert (printed, len(following.reply)) == (50_000_000, 50_000_000)
