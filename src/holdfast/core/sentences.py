"""Our sentences at a terminal: hints as a person types them there, and lines that break between words."""

import re
import shlex
import textwrap

NAME = "holdfast"
_COMMAND = re.compile(rf"`(sudo )?{NAME}((?: [^`]*)?)`")
_QUOTED = re.compile(r"`[^`]*`")
_GLUE = "\N{NO-BREAK SPACE}"


def rewrite(text: str, *, program: str, home: str | None = None) -> str:
    """Each `holdfast WORDS` in backticks as a person types it here; `home` is the folder chosen on the command line."""
    folder = f" --home {shlex.quote(home)}" if home else ""

    def typed(found: re.Match[str]) -> str:
        words = found[2]
        return f"`{found[1] or ''}{program}{words}{'' if '--home' in words else folder}`"

    return _COMMAND.sub(typed, text)


def fold(text: str, columns: int | None) -> str:
    """Lines of at most so many columns. Text in backticks stays on one line, so that it can be copied."""
    if columns is None:
        return text
    glued = _QUOTED.sub(lambda found: found[0].replace(" ", _GLUE), text)
    lines = [
        textwrap.fill(line, columns, break_long_words=False, break_on_hyphens=False) if len(line) > columns else line
        for line in glued.split("\n")
    ]
    return "\n".join(lines).replace(_GLUE, " ")
