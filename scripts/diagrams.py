"""Writes the tables and diagrams of docs/architecture.md from the tables in the code. `--check` only says whether they are true."""

import sys
from pathlib import Path

from holdfast.core import commands, delivery, lifecycle, resume, turns

DOCUMENT = Path(__file__).parents[1] / "docs" / "architecture.md"


def states(table: dict[tuple[str, str], str]) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {before} --> {after}: {happened}" for (before, happened), after in table.items()]
    return "\n".join([*lines, "```"])


def rules() -> str:
    lines = ["| rule | name | what it says | decision |", "|---|---|---|---|"]
    lines += [f"| {rule.label} | {rule.name} | {rule.sentence} | {rule.decision} |" for rule in resume.RULES]
    return "\n".join(lines)


def asked_for() -> str:
    lines = ["| command | what it does |", "|---|---|"]
    lines += [f"| `{usage.form}` | {usage.sentence} |" for usage in commands.COMMANDS.values()]
    return "\n".join(lines)


def plain(table: dict[tuple[object, object], object]) -> dict[tuple[str, str], str]:
    return {(str(before), str(happened)): str(after) for (before, happened), after in table.items()}


def filled(text: str) -> str:
    sections = {
        "turns": states(plain(turns.TABLE)),  # type: ignore[arg-type]
        "lifecycle": states(plain(lifecycle.TABLE)),  # type: ignore[arg-type]
        "delivery": states(plain(delivery.TABLE)),  # type: ignore[arg-type]
        "rules": rules(),
        "commands": asked_for(),
    }
    for name, content in sections.items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, tail = rest.partition(f"<!-- end {name} -->")
        text = f"{head}<!-- {name} -->\n{content}\n<!-- end {name} -->{tail}"
    return text


def main() -> int:
    before = DOCUMENT.read_text()
    after = filled(before)
    if "--check" in sys.argv:
        return int(before != after)
    DOCUMENT.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
