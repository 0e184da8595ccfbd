"""Processes in the background as the API shows them."""

import msgspec


class ProcessView(msgspec.Struct, kw_only=True):
    """A background process. `state`: `running` or `ended`; `how`: in words, how it ended. `notify`: its end is told; `patterns`: so are
    lines of its output with one of these. `consumed`: null, or why nothing of it is told any more. `lost`: why nobody saw its end;
    `stopped`: an operator's stop of Holdfast ended it; `ended_by`: the person who ended it.
    """

    process_id: str
    session_id: str
    command: str
    state: str
    turn_id: str
    started_at: str
    notify: bool
    patterns: list[str]
    consumed: str | None
    ended_at: str | None
    how: str | None
    code: int | None
    signal: int | None
    problem: str | None
    lost: str | None
    stopped: bool
    ended_by: str | None


class ProcessesView(msgspec.Struct):
    processes: list[ProcessView]


class OutputView(msgspec.Struct, kw_only=True):
    """What a process printed from the byte `offset` up to `next`, of `size` bytes so far."""

    text: str
    offset: int
    next: int
    size: int


class ProcessOutputView(msgspec.Struct, kw_only=True):
    process: ProcessView
    output: OutputView
