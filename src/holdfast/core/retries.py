"""Whether, when and with which model a request that failed is made again. Everything follows from the failures that are on record, so
that a restart changes nothing about it.
"""

from collections.abc import Sequence

import msgspec

from holdfast.core.events import ModelFailed

# How often one model is asked for one step: the last one that is left, and one that others can stand in for.
TRIES, TRIES_OF_SEVERAL = 8, 3
FIRST_S, MOST_S = 1.0, 60.0
# How long a provider may ask us to wait: where another model can stand in, and where none can.
PATIENCE_OF_SEVERAL_S, PATIENCE_S = 30.0, 3600.0


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request failed. `again`: it is worth asking the same model once more; `after_s`: not before that, as the provider says;
    `at_once`: a first retry need not wait. `thoughts`: it objects to earlier thoughts that were sent back to it. `shortened`: it was too
    long, and the next one is shorter.
    """

    error: str
    why: str
    again: bool = False
    after_s: float | None = None
    at_once: bool = False
    thoughts: bool = False
    shortened: bool = False


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """The next request. `after`: the failure of the same model before it. `thoughts`: earlier thoughts are sent with it."""

    model: str
    after: ModelFailed | None = None
    thoughts: bool = True


def due(failures: Sequence[ModelFailed], models: Sequence[str]) -> Try | None:
    """The next request for a step that failed so often; None if nobody is left to ask."""
    for model in models:
        its = [failure for failure in failures if failure.model == model]
        if all(failure.retry_at is not None for failure in its):
            thoughts = not any(failure.error == "model_rejected" for failure in its)
            return Try(model=model, after=its[-1] if its else None, thoughts=thoughts)
    return None


def wait_s(failure: ModelFailed | None, now: int) -> float:
    """How long it still is until the request that failed is made again. The clock may have been set since: it is never longer than was
    decided.
    """
    if failure is None or failure.retry_at is None:
        return 0.0
    return max(0, min(failure.wait_ms, failure.retry_at - now)) / 1000


def failed(
    problem: Problem,
    tried: Try,
    failures: Sequence[ModelFailed],
    models: Sequence[str],
    *,
    step: int,
    now: int,
    chance: float,
    summary: bool = False,
) -> ModelFailed:
    """The record of a failed request. `failures`: the earlier ones of this step. `chance`: 0 to 1, so that many do not ask at once."""
    tries = 1 + sum(failure.model == tried.model for failure in failures)
    failure = ModelFailed(step=step, tries=tries, error=problem.error, why=problem.why, model=tried.model, summary=summary)
    others = due([*failures, failure], models) is not None
    pause_s = _pause_s(problem, tried, tries, chance)
    patience_s = PATIENCE_OF_SEVERAL_S if others else PATIENCE_S
    if pause_s is None or pause_s > patience_s or tries >= (TRIES_OF_SEVERAL if others else TRIES):
        return failure
    wait_ms = int(1000 * pause_s)
    return msgspec.structs.replace(failure, retry_at=now + wait_ms, wait_ms=wait_ms)


def _pause_s(problem: Problem, tried: Try, tries: int, chance: float) -> float | None:
    """None: the same model is not asked again."""
    if problem.shortened or (problem.thoughts and tried.thoughts):
        return 0.0
    if not problem.again:
        return None
    backed_off: float = min(MOST_S, FIRST_S * 2.0 ** (tries - 1)) * (0.5 + chance / 2)
    if problem.after_s is not None:
        return max(problem.after_s + chance, backed_off)
    return 0.0 if problem.at_once and tries == 1 else backed_off


def told(failures: Sequence[ModelFailed]) -> str:
    """What became of the models that were asked, for people."""
    last = {failure.model: failure for failure in failures}
    return " ".join(f"{_told(failure)}" for failure in last.values())


def _told(failure: ModelFailed) -> str:
    why = failure.why.strip()
    why = why if why.endswith((".", "!", "?")) else f"{why}."
    times = f" after {failure.tries} tries" if failure.tries > 1 else ""
    return f"{failure.model} did not answer{times}: {why}"
