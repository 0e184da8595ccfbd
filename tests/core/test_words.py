"""Words that stand on disk, in the API or in a log line keep their spelling: others have written them down."""

from enum import StrEnum

import pytest

from holdfast.core.blame import End
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.lifecycle import GatewayState, Input, Work
from holdfast.core.resume import Decision, Staleness
from holdfast.core.turns import Outcome, TurnState

WORDS: dict[type[StrEnum], str] = {
    TurnState: "none running waiting answered interrupted ended",
    Outcome: "completed failed cancelled set_aside",
    Decision: "cancel leave suspend clear fail set_aside resume",
    Staleness: "off unknown old",
    End: "planned death harmless",
    DeliveryState: "pending sending sent unknown repeating dead live",
    Effect: "pure idempotent unsafe reported",
    ToolOutcome: "done failed unknown",
    GatewayState: "starting running paused handing_over giving_way retiring draining stopping stopped startup_failed",
    Input: "ready failed pause unpause hand_over give_way taken_over not_taken stop empty deadline closed",
    Work: "all decisions nothing",
}


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.__name__)
def test_a_word_that_was_written_down_keeps_its_spelling(words: type[StrEnum]) -> None:
    assert " ".join(words) == WORDS[words]
