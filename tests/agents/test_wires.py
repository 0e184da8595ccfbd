"""What is the same on every wire: what a response becomes, and what a history becomes."""

from itertools import permutations, product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.agents.wires import providers
from holdfast.agents.wires.history import call_id, usable_name
from holdfast.core.content import AudioPart, FilePart, ImagePart, TextPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import BadInput, BlobLost
from holdfast.core.events import ModelResponded, Usage
from holdfast.core.history import Call, Item, Step
from holdfast.core.redaction import Secrets
from holdfast.ports.agents import Response
from holdfast.ports.models import Busy, CallPiece, ModelSettings, Rejected
from tests.agents.wiring import KEY, TURN, WIRES, asking, client_of, results, said, step, streamed, talking, thought, user
from tests.fakes.models import ModelServer, Reply, call, serving, text
from tests.fakes.models import thought as thinks

wires = pytest.mark.parametrize("wire", WIRES)
TWO = (call("terminal", {"command": "date"}), call("terminal", {"command": "uptime"}))
DONE = Reply(say=text("Done."))
LENGTH = {"chat": "length", "responses": "max_output_tokens", "anthropic": "max_tokens"}
FILTERED = {"chat": "content_filter", "responses": "content_filter", "anthropic": "refusal"}


async def ask(wire: str, *history: Item, **more: Any) -> ModelServer:
    """Sends one request; the server's own checks must find nothing wrong with it."""
    async with talking(DONE, wire=wire, **more.pop("options", {})) as (client, server):
        await streamed(client, asking(*history, **more))
    return server


async def respond(wire: str, reply: Reply) -> Response:
    async with talking(reply, wire=wire) as (client, _):
        return (await streamed(client))[1]


def told(server: ModelServer, number: int = -1) -> list[dict[str, Any]]:
    body = server.requests[number].body
    return body["input"] if "input" in body else body["messages"]


# What a response becomes


@wires
async def test_text_and_thoughts_come_as_pieces_and_then_whole(wire: str) -> None:
    async with talking(Reply(say=(*thinks("Hm", "m."), *text("Hel", "lo."))), wire=wire) as (client, server):
        pieces, response = await streamed(client)
    assert (said(pieces), thought(pieces)) == ("Hello.", "Hmm.")
    assert (response.text, response.finish, response.calls) == ("Hello.", "end", ())
    assert response.usage == Usage(input=10, output=5, cached=4)
    assert (response.wire, response.provider, response.model) == (wire, wire, "fake")
    assert response.response_id in ("chatcmpl-0", "resp_0", "msg_0")
    headers = server.requests[0].headers
    assert headers.get("authorization") == f"Bearer {KEY}" or headers.get("x-api-key") == KEY


@wires
@pytest.mark.parametrize("interleave", [False, True])
async def test_parallel_calls_are_kept_apart(wire: str, interleave: bool) -> None:
    async with talking(Reply(say=(*text("Let me see."), *TWO), interleave=interleave), wire=wire) as (client, _):
        pieces, response = await streamed(client)
    assert [each.arguments for each in response.calls] == [{"command": "date"}, {"command": "uptime"}]
    assert [each.problem for each in response.calls] == [None, None]
    assert [each for each in pieces if isinstance(each, CallPiece)] == [CallPiece("terminal")] * 2
    assert (response.text, response.finish) == ("Let me see.", "calls")


@wires
async def test_the_calls_count_and_not_the_reason_for_the_end(wire: str) -> None:
    finish = {"chat": "stop", "responses": None, "anthropic": "end_turn"}[wire]
    assert (await respond(wire, Reply(say=TWO, finish=finish))).finish == "calls"
    finish = {"chat": "tool_calls", "responses": None, "anthropic": "tool_use"}[wire]
    assert (await respond(wire, Reply(say=text("No."), finish=finish))).finish == "end"


@wires
async def test_the_last_call_of_an_answer_without_room_is_not_run(wire: str) -> None:
    response = await respond(wire, Reply(say=TWO, finish=LENGTH[wire]))
    assert response.finish == "length"
    assert [each.problem is None for each in response.calls] == [True, False]
    assert "length limit" in str(response.calls[1].problem)


@wires
async def test_the_other_reasons_for_an_end_are_told(wire: str) -> None:
    assert (await respond(wire, Reply(say=text("a"), finish=LENGTH[wire]))).finish == "length"
    assert (await respond(wire, Reply(say=text("a"), finish=FILTERED[wire]))).finish == "filtered"


@wires
@pytest.mark.parametrize(
    ("written", "words"),
    [('{"command": "da', "not JSON"), ("date", "not JSON"), ('["date"]', "no JSON object"), ('"date"', "no JSON object")],
)
async def test_arguments_that_do_not_read_are_a_problem_that_says_so(wire: str, written: str, words: str) -> None:
    async with talking(Reply(say=(call("terminal", written),)), DONE, wire=wire) as (client, server):
        _, response = await streamed(client)
        (proposed,) = response.calls
        assert proposed.arguments == {} and words in str(proposed.problem) and written in str(proposed.problem)
        wrong = step(response)
        await streamed(client, asking(user("Go."), wrong, *results(wrong, str(proposed.problem), outcome=ToolOutcome.FAILED)))
    if wire == "chat":  # Many servers parse what they are sent.
        assert isinstance(msgspec.json.decode(told(server)[2]["tool_calls"][0]["function"]["arguments"]), dict)


@wires
async def test_no_arguments_at_all_are_none(wire: str) -> None:
    response = await respond(wire, Reply(say=(call("terminal", ""),)))
    assert (response.calls[0].arguments, response.calls[0].problem) == ({}, None)


@wires
async def test_a_response_survives_the_log(wire: str) -> None:
    response = await respond(wire, Reply(say=(*thinks("Hm."), *text("Go"), *TWO)))
    assert msgspec.json.decode(msgspec.json.encode(response), type=Response) == response


# What a history becomes


@wires
async def test_blocks_go_back_unchanged_to_where_they_came_from(wire: str) -> None:
    """With thoughts and signatures; the server checks those."""
    async with talking(Reply(say=(*thinks("Hm."), *text("Let me see."), *TWO)), DONE, wire=wire) as (client, server):
        _, response = await streamed(client)
        first = step(response)
        await streamed(client, asking(user("Go."), first, *results(first, "noon", "3 days")))
    sent = told(server)
    if wire == "chat":
        assert sent[2] == response.blocks[0]
        assert [(each["tool_call_id"], each["content"]) for each in sent[3:]] == [("call_0_0", "noon"), ("call_0_1", "3 days")]
    elif wire == "responses":
        assert tuple(sent[1:-2]) == response.blocks
        assert [(each["call_id"], each["output"]) for each in sent[-2:]] == [("call_0_0", "noon"), ("call_0_1", "3 days")]
    else:
        assert tuple(sent[1]["content"]) == response.blocks
        assert [each["tool_use_id"] for each in sent[2]["content"]] == ["toolu_0_2", "toolu_0_3"]


@pytest.mark.parametrize("wire", ["responses", "anthropic"])
async def test_changed_thoughts_are_refused_and_told_as_thoughts(wire: str) -> None:
    """And without thoughts the same history is taken."""
    async with talking(Reply(say=(*thinks("Hm."), *text("Let me see."), *TWO)), DONE, wire=wire) as (client, server):
        _, response = await streamed(client)
        field = "thinking" if wire == "anthropic" else "encrypted_content"
        changed = msgspec.structs.replace(response, blocks=({**response.blocks[0], field: "***"}, *response.blocks[1:]))
        first = step(changed)
        history: tuple[Item, ...] = (user("Go."), first, *results(first, "noon", "3 days"))
        with pytest.raises(Rejected) as raised:
            await streamed(client, asking(*history))
        assert raised.value.thoughts
        await streamed(client, asking(*history, thoughts=False))
    assert "Hm." not in str(told(server)) and "***" not in str(told(server)) and "Let me see." in str(told(server))


@wires
async def test_a_step_that_lost_a_secret_to_the_record_goes_back_as_text_and_calls(wire: str) -> None:
    """A signed thought with a secret in it cannot go back, replaced or not."""
    secret = Reply(say=(*thinks("The key is hunter2hunter2."), *text("I used hunter2hunter2."), *TWO))
    async with talking(secret, DONE, wire=wire) as (client, server):
        _, response = await streamed(client)
        whole = step(response)
        assert whole.response is not None
        sealed, _ = Secrets({"key": "hunter2hunter2"}).seal(whole.response)
        assert isinstance(sealed, ModelResponded)
        first = msgspec.structs.replace(whole, response=sealed, text=sealed.text)
        await streamed(client, asking(user("Go."), first, *results(first, "noon", "3 days")))
    sent = str(told(server))
    assert "hunter2" not in sent and "I used [secret key]." in sent and "The key is" not in sent


@pytest.mark.parametrize(("wrote", "reads"), list(permutations(WIRES, 2)))
async def test_another_wire_gets_text_and_calls_without_thoughts(wrote: str, reads: str) -> None:
    """All six changes within a turn."""
    first = step(await respond(wrote, Reply(say=(*thinks("Secretly."), *text("Let me see."), *TWO))))
    server = await ask(reads, user("Go."), first, *results(first, "noon", "3 days"))
    sent = str(told(server))
    assert "Secretly." not in sent
    assert all(each in sent for each in ("Let me see.", "date", "uptime", "noon", "3 days"))
    assert sent.count(call_id(f"{TURN}.1.1")) == sent.count(call_id(f"{TURN}.1.2")) == 2


@pytest.mark.parametrize(("wrote", "reads"), list(product(WIRES, repeat=2)))
@pytest.mark.parametrize("name", ["functions.terminal", "", "größe", "x" * 200, "1st", "two words"])
async def test_no_name_that_a_model_made_up_is_refused_in_every_later_request(wrote: str, reads: str, name: str) -> None:
    """P8: whether it goes to another wire or back. What the log has stays as it was."""
    response = await respond(wrote, Reply(say=(call(name, {"command": "date"}), call("terminal"))))
    first = step(response)
    assert [each.name for each in first.calls] == [name, "terminal"]
    server = await ask(reads, user("Go."), first, *results(first, "There is no such tool.", "noon"))
    sent = msgspec.json.encode(told(server)).decode()
    assert '"name":"terminal"' in sent and sent.count('"name"') == 2 and "There is no such tool." in sent


def test_names_that_can_be_used_stay_and_others_become_like_them() -> None:
    for name in ("terminal", "mcp__files__read-file", "_x", "X" * 64):
        assert usable_name(name) == name
    assert [usable_name(name) for name in ("a.b", "", "1a", "-a", "ü")] == ["a_b", "unnamed", "_1a", "_-a", "_"]
    assert len(usable_name("9" * 99)) == 64


async def test_another_provider_of_the_same_wire_gets_the_view_too() -> None:
    first = step(await respond("chat", Reply(say=(*thinks("Secretly."), *text("Hi."), *TWO))))
    async with serving(DONE) as server:
        client = providers.client("mistral:fake", key=KEY, base_url=server.url)
        await streamed(client, asking(user("Go."), first, *results(first, "a", "b")))
        await client.aclose()
    message = told(server)[2]
    assert set(message) == {"role", "content", "tool_calls"} and len(message["tool_calls"][0]["id"]) == 9
    assert "stream_options" not in server.requests[0].body


async def test_gemini_is_told_that_calls_of_another_model_have_no_signature() -> None:
    """It refuses calls without one."""
    first = step(await respond("anthropic", Reply(say=TWO)))
    async with serving(DONE) as server:
        client = providers.client("gemini:fake", key=KEY, base_url=server.url)
        await streamed(client, asking(user("Go."), first, *results(first, "a", "b")))
        await client.aclose()
    signed = [each["extra_content"]["google"]["thought_signature"] for each in told(server)[2]["tool_calls"]]
    assert signed == ["skip_thought_signature_validator"] * 2


@wires
async def test_every_call_has_one_result_behind_it_whatever_the_history_holds(wire: str) -> None:
    """A result that is missing is told as unknown; one without its call is left out; words in between come behind."""
    first = step(await respond(wire, Reply(say=TWO)))
    one, two = results(first, "noon", "3 days")
    stray = msgspec.structs.replace(one, call_id=f"{TURN}.9.1", content="stray")
    assert "stray" not in str(told(await ask(wire, stray, user("Go."), first, user("Hurry!"), two, one)))
    sent = str(told(await ask(wire, user("Go."), first, one)))
    assert "outcome unknown" in sent and "no result of this call" in sent


@wires
@pytest.mark.parametrize(("outcome", "mark"), [(ToolOutcome.FAILED, "[failed]"), (ToolOutcome.UNKNOWN, "[outcome unknown]")])
async def test_an_outcome_that_is_not_success_is_marked(wire: str, outcome: ToolOutcome, mark: str) -> None:
    first = step(await respond(wire, Reply(say=TWO)))
    sent = told(await ask(wire, user("Go."), first, *results(first, "a", (TextPart("b"),), outcome=outcome)))
    assert str(sent).count(mark) == 2
    assert wire != "anthropic" or all(block["is_error"] for block in sent[2]["content"])


@wires
async def test_what_an_agent_without_a_model_said_and_did_is_told(wire: str) -> None:
    done = Call(call_id="demo.1", name="terminal", arguments={"command": "date"})
    simple = Step(turn_id=TURN, number=0, text="It is noon.", calls=(done,))
    silent = Step(turn_id=TURN, number=0, text="")
    sent = str(told(await ask(wire, user("Go."), simple, *results(simple, "12:00"), silent, user("And now?"))))
    assert "It is noon." in sent and "12:00" in sent and "And now?" in sent


@wires
async def test_the_note_comes_last_and_the_system_text_first(wire: str) -> None:
    server = await ask(wire, user("Go."), note="[Resumed.]")
    body, sent = server.requests[0].body, told(server)
    assert str(sent[-1]).count("[Resumed.]") == 1 and str(sent[-1]).rstrip("]}'\"").endswith("[Resumed.")
    assert "You are Holdfast." in str(body.get("instructions") or body.get("system") or sent[0])


@wires
async def test_an_empty_system_text_and_no_tools_are_left_out(wire: str) -> None:
    body = (await ask(wire, user("Go."), system="", tools=())).requests[0].body
    assert not {"tools", "system", "instructions"} & set(body) and "'system'" not in str(body)


@wires
async def test_settings_are_named_as_the_wire_names_them_and_extra_goes_along(wire: str) -> None:
    settings = ModelSettings(max_tokens=99, temperature=0.5, effort="low", extra={"top_p": 0.9})
    body = (await ask(wire, user("Go."), settings=settings)).requests[0].body
    assert (body.get("temperature"), body["top_p"]) == (None if wire == "anthropic" else 0.5, 0.9)
    assert 99 in (body.get("max_tokens"), body.get("max_output_tokens"))
    assert "'low'" in str(body)


# Attachments

PICTURE = ImagePart(blob="p", size=3, media_type="image/png", name="cat.png")
SPEECH = AudioPart(blob="s", size=3, media_type="audio/mpeg", name="hello.mp3")
PAPER = FilePart(blob="f", size=3, media_type="application/pdf", name="paper.pdf")
NOTES = FilePart(blob="n", size=9, media_type="text/plain; charset=utf-8", name="notes.txt")
ALL = frozenset({"image", "audio", "file"})


async def read(digest: str) -> bytes:
    return {"p": b"PNG", "s": b"MP3", "f": b"PDF", "n": b"My notes."}[digest]


@wires
async def test_a_model_is_given_what_it_takes(wire: str) -> None:
    content = (TextPart("Look:"), PICTURE, SPEECH, PAPER, NOTES)
    sent = str(told(await ask(wire, user(content), read=read, options={"takes": ALL})))
    assert "UE5H" in sent and "UERG" in sent and "paper.pdf" in sent and "My notes." in sent
    if wire == "chat":
        assert "TVAz" in sent and "'format': 'mp3'" in sent
    else:
        assert "hello.mp3 (audio/mpeg, 3 bytes) was not given to you: this model does not take audio" in sent


@wires
async def test_what_a_model_does_not_take_is_named(wire: str) -> None:
    content = (PICTURE, SPEECH, PAPER)
    sent = str(told(await ask(wire, user(content), read=read, options={"takes": frozenset()})))
    assert sent.count("was not given to you") == 3 and "cat.png" in sent and "UE5H" not in sent


@wires
async def test_bytes_that_are_too_many_or_of_another_kind_or_lost_are_named(wire: str) -> None:
    huge = ImagePart(blob="p", size=50_000_000, media_type="image/png", name="huge.png")
    odd = ImagePart(blob="p", size=3, media_type="image/tiff", name="odd.tiff")

    async def lost(digest: str) -> bytes:
        raise BlobLost(digest)

    sent = str(told(await ask(wire, user((huge, odd, PICTURE)), read=lost, options={"takes": ALL})))
    assert "too large" in sent and "does not take image/tiff" in sent and "its bytes are missing" in sent


@wires
@pytest.mark.parametrize("takes", [True, False])
async def test_images_in_results_are_given_to_models_that_take_them(wire: str, takes: bool) -> None:
    """Chat completions have no place for them in a result, so they come in a message behind the results."""
    first = step(await respond(wire, Reply(say=(call("read_file"), call("terminal")))))
    done = results(first, (TextPart("Here:"), PICTURE), "3 days")
    sent = told(await ask(wire, user("Go."), first, *done, user("Nice!"), read=read, options={"takes": ALL if takes else frozenset()}))
    assert ("UE5H" in str(sent)) is takes
    assert ("cat.png (image/png, 3 bytes) was not given to you" in str(sent)) is not takes
    if wire == "chat":
        assert [message["role"] for message in sent[2:]] == ["assistant", "tool", "tool", "user"]
        assert ("The user did not write it" in str(sent[-1])) is takes


# Choosing


async def test_a_choice_that_leads_nowhere_is_refused_with_what_to_do() -> None:
    for chosen, words in [("gpt", "PROVIDER:NAME"), ("chat:x", "base_url"), (":x", "PROVIDER:NAME")]:
        with pytest.raises(BadInput, match=words):
            providers.client(chosen)


def test_the_documented_providers_are_those_there_are() -> None:
    document = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    for name, provider in providers.PROVIDERS.items():
        address, takes = provider.base_url or "set `base_url`", ", ".join(sorted(provider.takes)) or "-"
        key = f"`{provider.key_variable}`" if provider.key_variable else "-"
        (row,) = (line for line in document.splitlines() if line.startswith(f"| `{name}` |"))
        assert row.endswith(f"| {address} | {key} | {takes} |")


async def test_an_address_that_is_none_is_refused_at_once() -> None:
    for address in ("localhost:8000/v1", "http://", "http://[", "http://host:99999", "ftp://host"):
        with pytest.raises(BadInput, match="base_url"):
            providers.client("chat:x", base_url=address)


async def test_the_version_in_an_address_is_not_doubled() -> None:
    async with serving(DONE) as server:
        for address in (server.root, server.url, f"{server.url}/"):
            client = providers.client("anthropic:x", key=KEY, base_url=address)
            await streamed(client)
            await client.aclose()
    assert [asked.path for asked in server.requests] == ["/v1/messages"] * 3


async def test_a_model_name_may_hold_colons() -> None:
    client = providers.client("ollama:qwen3:8b")
    assert (client.provider, client.model, client.wire) == ("ollama", "qwen3:8b", "chat")


@wires
async def test_a_connection_is_kept_for_the_next_request(wire: str) -> None:
    async with serving(DONE) as server:
        client = client_of(wire, server)
        for _ in range(3):
            await streamed(client)
        await client.aclose()
    assert [asked.connection for asked in server.requests] == [1, 1, 1]


@wires
async def test_a_connection_that_was_closed_while_nobody_used_it_costs_at_most_one_retry_at_once(wire: str) -> None:
    """Whether its end is seen before the next request is sent is a matter of luck."""
    async with talking(Reply(say=text("Hi."), leave=True), DONE, wire=wire) as (client, server):
        await streamed(client)
        await server.until(lambda it: it.closed == 1)
        try:
            await streamed(client)
        except Busy as busy:
            assert busy.at_once
            await streamed(client)
    assert [asked.connection for asked in server.requests] == [1, 2]
