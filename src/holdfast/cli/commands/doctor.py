"""`holdfast doctor`: checks everything the gateway needs, and says how to fix what is wrong."""

import click

from holdfast.cli.findings import Finding
from holdfast.cli.options import home_option, json_option
from holdfast.cli.terminal.layout import cells, width, wrap
from holdfast.cli.terminal.output import as_typed, print_json

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@home_option
@click.option(
    "--deep",
    is_flag=True,
    help="Also read all attachments whole, ask each model, load each agent, start each MCP server. May take minutes.",
)
@json_option
def command(deep: bool, as_json: bool) -> int:
    """Check everything the gateway needs, and say what to do.

    Changes nothing; works with and without a running gateway. Exit code 1 if a check fails.
    """
    from holdfast.cli import doctor

    found: list[Finding] = []
    for finding in doctor.run_all(deep=deep):
        found.append(finding)
        if not as_json:
            click.echo("\n".join(_lines(finding)))
    failed = any(finding.state == "fail" for finding in found)
    if as_json:
        print_json({"ok": not failed, "checks": [finding._asdict() for finding in found]})
    return 1 if failed else 0


def _lines(finding: Finding) -> list[str]:
    head = f"{finding.state:<5} {finding.check:<12}"
    indent = " " * len(head)
    columns = width()
    text = as_typed(finding.text if not finding.advice else f"{finding.text} {finding.advice}")
    lines = wrap(text, indent) if columns is None or cells(text) + len(head) > columns else [indent + text]
    styled = click.style(f"{finding.state:<5}", fg=COLOURS[finding.state]) + head[5:]
    return [styled + lines[0][len(head) :], *lines[1:]]
