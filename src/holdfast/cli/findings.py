"""What a check of `holdfast doctor` found."""

from typing import NamedTuple


class Finding(NamedTuple):
    """`state` is ok, warn or fail; `advice` what to do about it."""

    check: str
    state: str
    text: str
    advice: str = ""
