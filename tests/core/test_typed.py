"""Hints name the command that was typed."""

from holdfast.cli.typed import rewrite


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
