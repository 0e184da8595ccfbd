"""Hints name the command that was typed, and stay whole where lines are broken."""

from holdfast.core.sentences import fold, rewrite


def test_a_hint_names_what_was_typed_and_the_folder_that_was_chosen() -> None:
    told = "Start it with `holdfast serve`, or see `holdfast`."
    assert rewrite(told, program="holdfast") == told
    assert rewrite(told, program="./run") == "Start it with `./run serve`, or see `./run`."
    assert rewrite("`sudo holdfast service install`", program="./run") == "`sudo ./run service install`"
    assert rewrite("`holdfast serve`", program="holdfast", home="/my home") == "`holdfast serve --home '/my home'`"


def test_a_hint_that_names_a_folder_keeps_it() -> None:
    assert rewrite("`holdfast stop --home /a`", program="./run", home="/b") == "`./run stop --home /a`"


def test_what_is_no_command_stays() -> None:
    for words in ("holdfast serve", "`holdfastly serve`", "`kill -9 5`", "Holdfast is `paused`"):
        assert rewrite(words, program="./run", home="/b") == words


def test_a_sentence_is_broken_between_words_and_never_within_a_command() -> None:
    told = "Holdfast is paused until 15:57; `./run unpause --home /here` ends it."
    assert fold(told, None) == fold(told, 200) == told
    assert fold(told, 40) == "Holdfast is paused until 15:57;\n`./run unpause --home /here` ends it."
    assert "\n`./run unpause --home /here`\n" in fold(told, 10)
    assert fold("one\n\ntwo", 3) == "one\n\ntwo"
