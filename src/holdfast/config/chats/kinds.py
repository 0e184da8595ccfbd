"""What the configuration knows of a chat platform, besides the settings of its table."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Secret(NamedTuple):
    """`shape`: what the whole of it looks like. `wrong`: what to say of one that does not."""

    shape: re.Pattern[str]
    wrong: str


class Kind(NamedTuple):
    """`title`: what people call it. `secrets`: which settings of its table are, each of which may also stand in a file that `<name>_file`
    names; the account is set up once the first one is set. `check`: of a table and `public_url`; raises `BadConfig`.
    """

    title: str
    secrets: Mapping[str, Secret]
    check: Callable[[Any, str], None]
