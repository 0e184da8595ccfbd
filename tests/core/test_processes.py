"""What is told of a background process: over every combination of facts, and whatever its output looks like."""

from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import processes
from holdfast.core.events import ProcessEnded, ProcessStarted
from holdfast.core.processes import (
    DOUBLINGS,
    LINE_CHARS,
    LINES_QUOTED,
    MATCH_EVERY_MS,
    Facts,
    Matches,
    Moment,
    Process,
    Telling,
    TooManyProcesses,
)
from holdfast.core.redaction import NO_SECRETS, Secrets

AT = 1_700_000_000_000


def process(**facts: object) -> Process:
    known = Process(
        process_id="p1",
        session_id="s1",
        command="make test",
        started_at=AT,
        turn_id="t1",
        owner=1,
        generation=3,
        sender="ann",
        anchor="a1",
        notify=True,
        patterns=(),
    )
    return msgspec.structs.replace(known, **facts)


def ended(**facts: object) -> ProcessEnded:
    return ProcessEnded(process_id="p1", ended_at=AT + 90_000, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", list(product((False, True), repeat=8)))
def test_an_end_is_told_as_a_turn_a_notice_or_not_at_all(values: tuple[bool, ...]) -> None:
    """E2, E3: consumed means silent; an end is told whatever came since, as a turn only where that is still wanted."""
    facts = Facts(**dict(zip(Facts.__struct_fields__, values, strict=True)))
    told = processes.telling(facts)
    if facts.consumed or facts.deleted:
        assert told is Telling.NOTHING
    elif not facts.notify:
        assert told is (Telling.NOTICE if facts.lost or facts.ended_by_person else Telling.NOTHING)
    elif facts.current and facts.fresh and not facts.stopped:
        assert told is Telling.TURN
    else:
        assert told is Telling.NOTICE


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (ended(code=0), "ended after 1 min 30 s with exit code 0."),
        (ended(code=2), "with exit code 2."),
        (ended(signal=9), "was ended by signal 9 after 1 min 30 s."),
        (ended(), "ended after 1 min 30 s, it is not known how."),
        (ended(problem="No such file"), "could not be started: No such file."),
        (ended(lost="never_ran"), "was not started, because Holdfast was interrupted first."),
        (
            ended(lost="unreadable"),
            "was lost after 1 min 30 s, because the files that say how it ended are damaged. Its exit code is not known.",
        ),
        (ended(lost="keeper"), "was lost after 1 min 30 s, because the program that watched over it was killed."),
        (ended(lost="machine"), "because the machine it ran on was started again. Its exit code is not known."),
        (ended(signal=15, stopped=True), "was ended, because Holdfast was stopped."),
        (ended(by="owner"), "was ended by a person after 1 min 30 s."),
    ],
)
def test_an_end_is_told_in_words(end: ProcessEnded, words: str) -> None:
    told = processes.ended(process(), end)
    assert told.startswith("The background process `make test` (p1) ") and words in told
    assert told.endswith(".") and "\n" not in told


def test_an_end_is_told_with_the_end_of_its_output_and_what_was_watched_for() -> None:
    told = processes.ended(process(), ended(code=0), tail="x" * 5000 + "\nlast line~\r\n", matched="It had printed something")
    first, printed, head, tail = told.split("\n\n")
    assert first.endswith("code 0.") and (printed, head) == ("It had printed something", "The end of its output:")
    assert tail == "x" * (2000 - len("\nlast line~\r\n")) + "\nlast line~"
    assert "output" not in processes.ended(process(), ended(code=0), tail="\n \r\n")


def test_a_long_command_is_named_by_its_beginning() -> None:
    named = process(command="for i in 1 2 3;\n  do echo " + "x" * 100 + "; done").name
    assert len(named) == 60 and named.startswith("for i in 1 2 3; do echo xx") and named.endswith("…")
    assert process(command=" ls  -l ").name == "ls -l" and process(command="x" * 60).name == "x" * 60


@pytest.mark.parametrize(("consumed", "doomed"), [(None, False), ("read", False), ("waited", False), ("killed", True), ("deleted", True)])
def test_only_what_was_killed_is_to_be_dead(consumed: str | None, doomed: bool) -> None:
    assert process(consumed=consumed).doomed is doomed


# what it prints


def test_lines_that_hold_a_pattern_are_found_with_the_place_up_to_which_was_read() -> None:
    found = processes.scan(b"ready\nnothing\nERROR: x\r\nhalf", offset=100, patterns=("ready", "ERROR"), over=False)
    assert found == Matches(lines=2, quoted=("ready", "ERROR: x"), through=100 + len(b"ready\nnothing\nERROR: x\r\n"))
    assert processes.scan(b"half", offset=7, patterns=("ERROR",), over=True) == Matches(through=11)
    assert processes.scan(b"", offset=7, patterns=("ERROR",), over=True) == Matches(through=7)


def test_a_line_that_is_written_over_is_a_line() -> None:
    """As those who show their progress write it."""
    assert processes.scan(b"10 %\rdone 20 %\r30", offset=0, patterns=("done",), over=False) == Matches(
        lines=1, quoted=("done 20 %",), through=15
    )


def test_what_is_no_text_is_read_as_far_as_it_is() -> None:
    assert processes.scan("é\n".encode() + b"\xff hit\n", offset=0, patterns=("é", "hit"), over=False).quoted == ("é", "\ufffd hit")


def test_a_prompt_matches_before_its_line_ends() -> None:
    """Nobody ends it before an answer."""
    assert processes.scan(b"x\nPassword: ", offset=0, patterns=("Password",), over=False) == Matches(
        lines=1, quoted=("Password:",), through=12
    )


def test_of_many_and_long_lines_the_newest_are_quoted_in_part() -> None:
    found = processes.scan(b"".join(b"hit %d %s\n" % (n, b"x" * 400) for n in range(30)), offset=0, patterns=("hit",), over=False)
    assert found.lines == 30 and len(found.quoted) == LINES_QUOTED and found.quoted[-1].startswith("hit 29 xx")
    assert all(len(line) == 301 and line.endswith("…") for line in found.quoted)
    assert processes.scan(b"x" * 300 + b"\n", offset=0, patterns=("x",), over=False).quoted == ("x" * 300,)
    more = found + Matches(lines=2, quoted=("a", "b"), through=found.through + 4)
    assert (more.lines, more.through, more.quoted[-2:], len(more.quoted)) == (32, found.through + 4, ("a", "b"), LINES_QUOTED)
    told = processes.matched(process(), more)
    assert told.startswith("The background process `make test` (p1) printed 32 lines that are watched for, of which these are the last 10:")
    assert processes.matched(process(), Matches(lines=1, quoted=("a",))).endswith("printed a line that is watched for:\n\na")
    assert processes.listed(Matches(lines=2, quoted=("a", "b"))).endswith(":\n\na\nb")


def test_a_line_that_is_quoted_in_part_shows_no_part_of_a_secret() -> None:
    known = Secrets({"TOKEN": "hunter2hunter2"})
    line = b"hit " + b"x" * 290 + b" hunter2hunter2\n"
    [quoted] = processes.scan(line, offset=0, patterns=("hit",), over=False, secrets=known).quoted
    assert "hunter" not in quoted and quoted.endswith("x [secr…")


def test_a_prompt_that_may_end_within_a_secret_is_told_once_more_of_it_is_there() -> None:
    known = Secrets({"TOKEN": "swordfish-1234"})
    assert processes.scan(b"hit swordfis", offset=0, patterns=("hit",), over=False, secrets=known) == Matches()
    told = Matches(lines=1, quoted=("hit [secret TOKEN]",), through=18)
    assert processes.scan(b"hit swordfish-1234", offset=0, patterns=("hit",), over=False, secrets=known) == told


def read_in_parts(line: bytes, *patterns: str, secrets: Secrets = NO_SECRETS, size: int = 100) -> Matches:
    """A line that does not end, as far as it is longer than what is read at once."""
    found = Matches()
    while len(line) - found.through >= size:
        part = line[found.through : found.through + size]
        found += processes.scan_part(part, offset=found.through, patterns=patterns, secrets=secrets)
    return found


def test_what_is_known_of_a_process_is_what_its_start_recorded() -> None:
    event = ProcessStarted(
        process_id="p1",
        command="make test",
        turn_id="t1",
        call_id="c1",
        owner=7,
        generation=3,
        sender="ann",
        anchor="a1",
        notify=False,
        patterns=("hit",),
    )
    assert processes.started(event, session_id="s1", at=AT) == process(owner=7, notify=False, patterns=("hit",))


def test_a_prompt_of_one_character_that_may_begin_a_secret_waits() -> None:
    known = Secrets({"TOKEN": "hunter2hunter2"})
    assert processes.scan(b"h", offset=0, patterns=("h",), over=False, secrets=known) == Matches()


@pytest.mark.parametrize("pattern", ("ERROR", "é ü", "!"))
def test_in_a_line_that_is_too_long_to_be_read_at_once_a_pattern_is_found_once_wherever_it_stands(pattern: str) -> None:
    for place in range(300):
        found = read_in_parts(b"x" * place + pattern.encode() + b"y" * 500, pattern, "never there")
        assert found.lines == 1 and pattern in found.quoted[0], place


def test_the_end_of_a_part_in_which_the_longest_pattern_may_begin_is_read_again() -> None:
    """Each position is looked at once: not the last two for three characters, and no more than those."""
    assert processes.scan_part(b"x" * 10, offset=5, patterns=("hit", "!"), secrets=NO_SECRETS) == Matches(through=5 + 8)
    assert processes.scan_part(b"x" * 8 + b"hi", offset=0, patterns=("hit",)) == Matches(through=8)
    assert processes.scan_part(b"x" * 7 + b"hit", offset=0, patterns=("hit",)).lines == 1


def test_a_secret_at_the_end_of_a_part_is_read_again_as_a_whole() -> None:
    known = Secrets({"TOKEN": "hunter2hunter2"})
    assert processes.scan_part(b"xhunter2hunter2", offset=0, patterns=("hit",), secrets=known) == Matches(through=1)


def test_what_may_begin_a_secret_at_the_end_of_a_part_is_not_quoted() -> None:
    known = Secrets({"TOKEN": "hunter2hunter2"})
    assert processes.scan_part(b"x hit hunter2", offset=0, patterns=("hit",), secrets=known).quoted == ("x hit…",)


def test_a_part_that_begins_within_a_character_is_quoted_as_far_as_it_is_text() -> None:
    assert processes.scan_part(b"\xa9 hit and more", offset=0, patterns=("hit",)).quoted == ("\ufffd hit and more…",)


def test_of_several_patterns_in_a_part_the_words_around_the_first_are_quoted() -> None:
    [quoted] = processes.scan_part(b"x" * 1000 + b" hit " + b"y" * 1000 + b" two " + b"z" * 99, offset=0, patterns=("two", "hit")).quoted
    assert quoted.index("hit") == len("…") + LINE_CHARS // 2 and "z" not in quoted


def test_a_line_that_is_too_long_to_be_read_at_once_shows_no_part_of_a_secret() -> None:
    known = Secrets({"TOKEN": "hunter2hunter2"})
    for place in range(300):
        found = read_in_parts(b"x" * place + b"hunter2hunter2" + b"hit" * 200, "hit", secrets=known)
        assert found.lines > 1 and not any("hunter" in quoted or "ter2" in quoted for quoted in found.quoted), place


def test_of_a_line_that_is_too_long_to_be_read_at_once_the_words_around_the_pattern_are_quoted() -> None:
    [quoted] = read_in_parts(b"x" * 5000 + b" hit " + b"y" * 5000, "hit", size=8000).quoted
    assert quoted.startswith("…xxx") and "x hit y" in quoted and quoted.endswith("y…") and len(quoted) <= 302


PIECES = (b"hit\n", b"miss\n", b"hi", b"t\n", b"\xc3", b"\xa9\n", b"\n", b"\r")


@given(st.lists(st.sampled_from(PIECES), max_size=20), st.lists(st.integers(0, 60), max_size=10))
def test_however_output_is_cut_into_pieces_each_line_is_found_once(pieces: list[bytes], cuts: list[int]) -> None:
    """E6: what is read again after a restart begins where the last record says."""
    whole = b"".join(pieces)
    at = found = 0
    for cut in (*sorted(cuts), len(whole)):
        piece = processes.scan(whole[at:cut], offset=at, patterns=("hit",), over=cut >= len(whole))
        found, at = found + piece.lines, piece.through
    assert found == processes.scan(whole, offset=0, patterns=("hit",), over=True).lines


def test_the_first_match_is_told_at_once_and_those_that_do_not_cease_later_and_later() -> None:
    """A pattern that matches all the time must not start turn after turn."""
    known, now, waits = process(), AT, []
    for _ in range(10):
        assert processes.match_due(known, now)
        known = msgspec.structs.replace(known, streak=processes.streak(known, now), matched_at=now)
        began = now
        while not processes.match_due(known, now):
            now += 1000
        waits.append(now - began)
    assert waits == [MATCH_EVERY_MS * 2 ** min(n, DOUBLINGS) for n in range(10)] and waits[-1] == 640_000


def test_after_a_while_of_silence_a_match_is_told_at_once_again() -> None:
    known = process(matched_at=AT, streak=2)
    every = 4 * MATCH_EVERY_MS
    assert not processes.match_due(known, AT + every - 1) and processes.match_due(known, AT + every)
    assert (processes.streak(known, AT + 2 * every - 1), processes.streak(known, AT + 2 * every)) == (3, 0)
    assert processes.match_due(process(), AT) and processes.streak(process(streak=2), AT) == 0


def test_a_clock_that_was_set_back_does_not_silence_a_watch() -> None:
    assert processes.match_due(process(matched_at=AT, streak=6), AT - 1)


HERE = Moment(generation=3)
ELSEWHEN = (Moment(generation=2), Moment(generation=3, during=True), Moment(generation=3, away=True))


@pytest.mark.parametrize("earlier", ELSEWHEN)
def test_lines_that_are_held_back_keep_the_moment_in_which_they_were_seen(earlier: Moment) -> None:
    """E3: those of an earlier moment are nobody's once others are seen."""
    first, more, none = Matches(lines=1, quoted=("a",), through=5), Matches(lines=1, quoted=("b",), through=9), Matches(through=7)
    before = processes.held(Matches(through=3), first, here=earlier)
    assert before == Matches(lines=1, quoted=("a",), through=5, seen=earlier)
    assert processes.held(before, none, here=HERE) == Matches(lines=1, quoted=("a",), through=7, seen=earlier)
    assert processes.held(before, more, here=earlier) == Matches(lines=2, quoted=("a", "b"), through=9, seen=earlier)
    assert processes.held(before, more, here=HERE) == Matches(lines=1, quoted=("b",), through=9, seen=HERE)
    assert processes.held(Matches(through=3), none, here=HERE) == Matches(through=7)


@pytest.mark.parametrize("due", [False, True])
def test_lines_are_put_on_record_when_they_may_be_told_or_can_be_no_more(due: bool) -> None:
    """E3: so that a restart does not find those again whose moment is over. Where nobody is to be told, they wait for the end of that."""
    known = process(matched_at=0 if due else AT)
    for seen, here in product((HERE, *ELSEWHEN), repeat=2):
        matches = Matches(lines=1, quoted=("a",), through=5, seen=seen)
        expected = seen != here or (due and not here.away)
        assert processes.recordable(known, matches, here=here, now=AT) is expected


def test_what_runs_is_listed_for_people() -> None:
    assert processes.running([process(end=ended(code=0))], now=AT) == ""
    one = processes.running([process(), process(end=ended(code=0))], now=AT + 5000)
    assert one == "1 background process is running:\n- make test (p1), for 5 s"
    two = processes.running([process(), process(process_id="p2")], now=AT)
    assert two == "2 background processes are running:\n- make test (p1), for 0 s\n- make test (p2), for 0 s"


def test_words_that_stand_on_disk_keep_their_spelling() -> None:
    assert (processes.ENDED, processes.MATCHED) == ("process", "watch")
    assert (processes.KILLED, processes.WAITED, processes.READ, processes.DELETED) == ("killed", "waited", "read", "deleted")
    assert (process().scanned, process().matched_at, process().streak, Matches()) == (0, 0, 0, Matches(lines=0, quoted=(), through=0))
    refused = TooManyProcesses(3)
    assert refused.code == "too_many_processes" and str(refused).startswith("3 background processes are running already")
