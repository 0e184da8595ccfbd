"""What refusals mean, as tables, and how events are cut out of bytes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents.wires import errors, sse
from holdfast.ports.models import Busy, Cut, ModelError, NotAllowed, Rejected, TooLong

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

# As they were seen, by provider.
TOO_LONG = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.",  # OpenAI, vLLM
    "Your input exceeds the context window of this model. Please adjust your input and try again.",  # OpenAI, Responses
    "prompt is too long: 208310 tokens > 200000 maximum",  # Anthropic
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens`",  # Anthropic
    "Input is too long for requested model.",  # Bedrock
    "Input tokens exceed the configured limit of 272000 tokens.",  # OpenAI
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",  # Gemini
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",  # xAI
    "Please reduce the length of the messages or completion.",  # Groq
    "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",  # Mistral
    "the request exceeds the available context size, try increasing it",  # llama.cpp
    "prompt too long; exceeded max context length by 4 tokens",  # Ollama
    "the model is loaded with context length of only 4096 tokens, which is not enough",  # LM Studio
    "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000.",  # OpenAI: no waiting helps
    "Error code 400: context_length_exceeded",  # OpenAI's code, in a broker's words
    "Invalid 'messages[1].content': string too long (string_above_max_length).",  # OpenAI
    "request_too_large: Request exceeds the maximum size",  # Anthropic, with status 413
    "exceed_context_size_error: the prompt has 9000 tokens",  # llama.cpp
    "Context size exceeded.",  # llama.cpp, older
    "Context length exceeded, please start a new conversation.",  # brokers
    "Your request exceeded model token limit: 262144",  # Moonshot
    "invalid params, context window exceeds limit (2013)",  # MiniMax
    "The prompt exceeds model context window of 131072 tokens.",  # brokers
    "The request exceeds the maximum allowed input length of 32768 tokens.",  # Together
    "Request exceeds the maximum size",  # Anthropic
]


def test_every_phrase_about_length_is_one_that_was_seen() -> None:
    unseen = [phrase for phrase in errors.TOO_LONG if not any(phrase in words.lower() for words in TOO_LONG)]
    assert unseen == []


@pytest.mark.parametrize("phrase", errors.TOO_LONG)
def test_each_phrase_about_length_is_known_however_it_is_written(phrase: str) -> None:
    for words in (phrase, f"Sorry: {phrase.upper()}!", phrase.capitalize()):
        assert type(errors.error("p", errors.fault({"error": {"message": words}}, status=400))) is TooLong
    apart = " ".join(phrase)
    assert type(errors.error("p", errors.fault({"error": {"message": apart}}, status=400))) is Rejected


@pytest.mark.parametrize("phrase", errors.THOUGHTS)
def test_each_phrase_about_thoughts_is_known_however_it_is_written(phrase: str) -> None:
    for words in (phrase, f"Sorry: {phrase.upper()}!", phrase.capitalize()):
        error = errors.error("p", errors.fault({"error": {"message": words}}, status=400))
        assert isinstance(error, Rejected) and error.thoughts


@pytest.mark.parametrize("words", TOO_LONG)
@pytest.mark.parametrize("status", [400, 413, 429, 500, 0])
def test_a_prompt_that_is_too_long_is_known_by_its_words(words: str, status: int) -> None:
    assert type(errors.error("p", errors.fault({"error": {"message": words}}, status=status))) is TooLong


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (429, "Too many tokens, please wait before trying again.", Busy),
        (429, "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000.", Busy),
        (400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", Rejected),
        (400, "Your credit balance is too low to access the Anthropic API.", NotAllowed),
        (402, "Insufficient Balance", NotAllowed),
        (403, "Key limit exceeded", NotAllowed),
    ],
)
def test_other_words_about_limits_are_something_else(status: int, words: str, kind: type[ModelError]) -> None:
    assert type(errors.error("p", errors.fault({"error": {"message": words}}, status=status))) is kind


@pytest.mark.parametrize(
    ("words", "thoughts"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", True),
        ("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", True),
        ("Expected `thinking` or `redacted_thinking`, but found `tool_use`.", True),
        ("a final `assistant` message must start with a thinking block", True),
        ("The encrypted content gAAA... could not be verified.", True),
        ("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.", True),
        ("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", True),
        ("property 'reasoning' is unsupported", True),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", True),
        ("Your organization must be verified to generate reasoning summaries.", True),
        ("Unsupported parameter: 'reasoning.summary'", True),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", True),
        ("Unrecognized request argument supplied: reasoning_details", True),
        ("Unknown parameter: 'input[1].encrypted_content'", True),
        ("Function call is missing a thought_signature in functionCall parts.", True),
        ("`temperature` may only be set to 1 when thinking is enabled.", False),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", False),
    ],
)
def test_an_objection_to_earlier_thoughts_is_told_from_others(words: str, thoughts: bool) -> None:
    for status in (400, 404, 422):
        error = errors.error("p", errors.fault({"error": {"message": words, "type": "invalid_request_error"}}, status=status))
        assert getattr(error, "thoughts", False) is thoughts


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"type": "error", "error": {"type": "x", "message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ({"message": "a", "type": "x"}, "a"),
        ({"detail": "a"}, "a"),
        ([{"error": {"message": "a"}}], "a"),
        ("a", "a"),
        ({"error": {"message": "a", "metadata": {"raw": "b"}}}, "a: b"),
        ({"detail": [{"msg": "a"}]}, '[{"msg":"a"}]'),
        ({}, ""),
        (None, ""),
        ([], ""),
    ],
)
def test_the_words_are_found_wherever_they_stand(body: Any, words: str) -> None:
    assert errors.fault(body).words == words


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:20 GMT"}, 20),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_when_to_come_back_is_read_in_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert errors.retry_after(headers, NOW) == seconds


def test_when_to_come_back_is_also_read_from_the_body() -> None:
    body = [{"error": {"code": 429, "message": "Quota", "details": [{"@type": "x"}, {"retryDelay": "17.5s"}]}}]
    error = errors.error("gemini", errors.fault(body, status=429))
    assert isinstance(error, Busy) and error.retry_after_s == 17.5


def test_a_long_refusal_is_shortened_and_a_key_in_it_is_not_shown() -> None:
    told = str(errors.error("p", errors.fault({"error": "sk-secret " * 1000}, status=500), key="sk-secret"))
    assert "sk-secret" not in told and len(told) < 700


STREAM = b': comment\n\ndata: {"a": 1}\n\nevent: x\ndata: {"b":\ndata: 2}\nid: 7\n\ndata:[DONE]\n\n'
EVENTS = [b'{"a": 1}', b'{"b":\n2}', b"[DONE]"]


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM) * 2), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_events_are_the_same_however_the_bytes_come(cuts: list[int], end: bytes, marked: bool) -> None:
    stream = (b"\xef\xbb\xbf" if marked else b"") + STREAM.replace(b"\n", end)
    places = sorted({3 if marked else 0, *(cut for cut in cuts if cut > 3 and cut < len(stream)), len(stream)})
    events = sse.Events()
    chunks = [stream[start:stop] for start, stop in zip([0, *places[1:-1]], places[1:], strict=True)]
    assert [event for chunk in chunks for event in events.feed(chunk)] == EVENTS


def test_half_an_event_is_none() -> None:
    events = sse.Events()
    assert list(events.feed(b"data: 1\n\ndata: 2\n")) == [b"1"]


def test_a_line_without_end_is_cut_and_not_kept_for_ever() -> None:
    events = sse.Events()
    chunk = b"x" * (sse.LIMIT // 4)
    with pytest.raises(Cut):
        for _ in range(5):
            list(events.feed(chunk))
