"""Two versions measured in turn: the ratio says which is slower, and by how much the rounds differ."""

import pytest

from bench.__main__ import main
from bench.comparing import Compared
from bench.figures import plain


def compared(unit: str, old: list[float], new: list[float]) -> Compared:
    return Compared("row", plain("figure", unit, [new]), old, new)


@pytest.mark.parametrize(
    ("unit", "old", "new", "ratios", "verdict"),
    [
        ("ms", [1.0, 1.0], [1.0, 1.05], [1.0, 1.05], ""),
        ("ms", [1.0, 1.0, 1.0], [2.0, 1.5, 1.2], [2.0, 1.5, 1.2], "SLOWER"),
        ("ms", [1.0, 1.0, 1.0], [2.0, 1.5, 1.0], [2.0, 1.5, 1.0], "unclear"),
        ("ms", [2.0], [1.0], [0.5], ""),
        ("/s", [1000.0], [500.0], [2.0], "SLOWER"),
        ("/s", [500.0], [1000.0], [0.5], ""),
    ],
)
def test_more_than_one_is_slower_whatever_the_unit(
    unit: str, old: list[float], new: list[float], ratios: list[float], verdict: str
) -> None:
    found = compared(unit, old, new)
    assert (found.ratios, found.verdict) == (ratios, verdict)


def test_a_version_is_compared_with_another_in_one_run(tmp_path, capsys):
    """The figures depend on the machine; that each version measures itself does not."""
    assert main(["append", "--compare", "HEAD", "--rounds", "2", "--quick", "--folder", str(tmp_path)]) in (0, 1)
    said = capsys.readouterr().out
    assert "new against HEAD" in said and "one fenced append of 200 bytes" in said
    assert main(["append", "--compare", "no-such-version", "--quick", "--folder", str(tmp_path)]) == 2
    assert "There is no version 'no-such-version' to compare with" in capsys.readouterr().out
