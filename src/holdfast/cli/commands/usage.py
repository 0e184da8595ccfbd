"""`holdfast usage`: what models used and cost."""

from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import one_line, table
from holdfast.cli.terminal.output import print_json

REMOVED = "(removed conversations)"


@click.command("usage")
@home_option
@click.option("--days", type=click.IntRange(min=1, max=366), default=7, show_default=True, metavar="N", help="Up to today.")
@json_option
def command(days: int, as_json: bool) -> None:
    """Show what models used and cost: day by day, and for each model and each person if there are several.

    Tokens of the input include those that the provider had kept (CACHED). The cost is known only for models whose price is known;
    docs/models.md says how to set a price. Works with and without a running gateway.
    """
    from holdfast.cli.access import conversations

    found = conversations.usage(home(), days)
    if as_json:
        print_json(found)
    elif not found["days"]:
        click.echo(f"No model was asked since {found['since']}.")
    else:
        click.echo("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    rows = [(day["day"], str(day["turns"]), *_sums(day["usage"])) for day in found["days"]]
    if len(rows) > 1:
        rows.append(("total", str(sum(day["turns"] for day in found["days"])), *_sums(found["total"])))
    sums = ("TURNS", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST")
    lines = table(("DAY", *sums), rows, flexible=0)
    if len(found["models"]) > 1:
        models = [(one_line(each["model"] or REMOVED), str(each["turns"]), *_sums(each["usage"])) for each in found["models"]]
        lines += ["", *table(("MODEL", *sums), models, flexible=0)]
    if len(found["senders"]) > 1:
        people = [(one_line(each["sender"] or REMOVED), str(each["turns"]), *_sums(each["usage"])) for each in found["senders"]]
        lines += ["", *table(("PERSON", *sums), people, flexible=0)]
    if unpriced := found["total"]["unpriced"]:
        lines += ["", f"The price of {unpriced} of {found['total']['requests']} requests is not known; their cost is not counted."]
    return lines


def _sums(usage: dict[str, Any]) -> tuple[str, ...]:
    tokens = (f"{usage[name]:,}" for name in ("requests", "input", "cached", "output"))
    return (*tokens, "unknown" if usage["cost"] is None else f"${usage['cost'] / 1_000_000:,.4f}")
