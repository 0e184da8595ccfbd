"""WCAG 2.2 AA for every pair of tokens that lie on one another: 4.5 for words, 3 for shapes and the borders of fields. Axe cannot decide
about text in pictures. No browser is needed.
"""

import re
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[2] / "page" / "src" / "style" / "tokens.css"
TOKENS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLE.read_text())
}
GROUND = ("paper", "shore", "raised", "sunken")
WORDS = {
    "ink": (*GROUND, "kelp-soft", "kelp-tint", "deep-soft", "amber-soft", "red-soft", "line"),
    "ink-soft": (*GROUND, "kelp-tint"),
    "ink-faint": (*GROUND, "kelp-tint"),
    "kelp": (*GROUND, "kelp-soft", "kelp-tint"),
    "deep": (*GROUND, "deep-soft"),
    "amber": (*GROUND, "amber-soft"),
    "red": (*GROUND, "red-soft"),
    "on-kelp": ("kelp",),
}
SHAPES = {"edge": GROUND, "kelp": GROUND} | {f"{hue}-mid": ("raised", "paper") for hue in ("kelp", "deep", "amber", "red")}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("table", "least"), [(WORDS, 4.5), (SHAPES, 3.0)])
def test_what_lies_on_something_can_be_told_from_it_in_both_themes(table: dict[str, tuple[str, ...]], least: float) -> None:
    pairs = [(on, ground, theme) for on, grounds in table.items() for ground in grounds for theme in (0, 1)]
    assert not [pair for pair in pairs if contrast(TOKENS[pair[0]][pair[2]], TOKENS[pair[1]][pair[2]]) < least]


def test_contrast_is_counted_as_the_guidelines_do() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
