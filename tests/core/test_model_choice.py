"""Which of the configured models a person means."""

import pytest

from holdfast.core.model_choice import UnknownModel, listed, pick

MODELS = ("anthropic:claude-sonnet", "anthropic:claude-haiku", "ollama:qwen3")


@pytest.mark.parametrize(
    ("wanted", "model"),
    [
        ("anthropic:claude-haiku", "anthropic:claude-haiku"),
        ("2", "anthropic:claude-haiku"),
        ("haiku", "anthropic:claude-haiku"),
        ("OLLAMA", "ollama:qwen3"),
    ],
)
def test_a_model_is_meant_by_its_name_its_number_or_a_part_of_its_name(wanted: str, model: str) -> None:
    assert pick(wanted, MODELS) == model


@pytest.mark.parametrize("wanted", ["claude", "gpt", "", "0", "4", "9" * 5000, "٢x"])
def test_what_means_none_or_several_is_refused_with_the_list(wanted: str) -> None:
    with pytest.raises(UnknownModel, match="anthropic:claude-sonnet, anthropic:claude-haiku, ollama:qwen3"):
        pick(wanted, MODELS)


def test_where_there_is_no_model_that_is_said() -> None:
    with pytest.raises(UnknownModel, match="no model is set up here"):
        pick("gpt", ())
    assert "No model can be chosen here" in listed((), None)


@pytest.mark.parametrize(
    ("chosen", "current"), [(None, "anthropic:claude-sonnet"), ("ollama:qwen3", "ollama:qwen3"), ("gone:x", "anthropic:claude-sonnet")]
)
def test_the_list_names_the_default_and_the_one_that_answers(chosen: str | None, current: str) -> None:
    lines = listed(MODELS, chosen).splitlines()
    assert lines[0].startswith("1. anthropic:claude-sonnet (default)") and lines[2].startswith("3. ollama:qwen3")
    assert [line for line in lines if "answers here" in line] == [line for line in lines if current in line]


def test_agents_are_in_the_same_list_and_one_that_is_gone_is_named() -> None:
    """A model that is gone gives way to the default; an agent does not, because it may do other things than the default."""
    choices = (*MODELS, "writer", "write-tests")
    assert pick("5", choices) == "write-tests" and pick("writer", choices) == "writer" and pick("tests", choices) == "write-tests"
    assert "4. writer - answers here" in listed(choices, "writer").splitlines()
    told = listed(choices, "gone")
    assert "answers here" not in told and "gone, which was chosen for this conversation, is not set up any more" in told
    with pytest.raises(UnknownModel):
        pick("write", choices)
