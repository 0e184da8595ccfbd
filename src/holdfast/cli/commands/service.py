"""`holdfast service`: lets the operating system run the gateway: start it at boot, and again when it dies."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import fields, wrap
from holdfast.cli.terminal.output import as_typed, note, print_json, say
from holdfast.core.errors import Refused

if TYPE_CHECKING:
    from holdfast.install.installation import Installation
    from holdfast.install.unit_state import Shown

F = TypeVar("F", bound=Callable[..., Any])
COMES_UP_S = 30.0
LOOK_S = 0.05


def _service_options(function: F) -> F:
    for option in (
        json_option,
        click.option("--name", metavar="NAME", default="holdfast", show_default=True, help="The name of the service."),
        click.option("--system", "scope", flag_value="system", help="A service of the machine; needs root."),
        click.option("--user", "scope", flag_value="user", help="A service of your own; needs no root. [default]"),
        home_option,
    ):
        function = option(function)
    return function


@click.group("service")
@home_option
def command() -> None:
    """Let the system run the gateway: start it at boot, and again when it dies.

    Works with systemd. For launchd it writes the file and says how to use it; this has never been tested on macOS. A container usually has
    no service manager: see docs/service.md.
    """


@command.command("install")
@_service_options
@click.option("--run-as", metavar="USER", help="The user who runs it, with --system. [default: the user who called sudo]")
def install(scope: str | None, name: str, as_json: bool, run_as: str | None) -> int:
    """Write the service, enable it, start it, and check that it is up.

    The service reads its settings from config.toml in the home folder; it does not see the variables that are set here. Run this again
    after an upgrade or a change of the drain timeout. Exit code 1 if it does not come up; it is then stopped and disabled.
    """
    from holdfast import config
    from holdfast.cli import service
    from holdfast.install import systemctl
    from holdfast.install.description import left_behind

    if sys.platform == "darwin":
        return _write_untried(name)
    chosen = systemctl.Scope(scope or "user")
    user = service.runner(chosen, run_as)
    installation = service.installation_of(chosen, name)
    installation.systemctl.require()
    wanted = service.describe_for(name, user, service.home_for(user))
    service.make_home(Path(wanted.home), user)
    shown = installation.install(wanted)
    lingers = systemctl.let_linger(os.environ) if chosen is systemctl.Scope.USER else None
    if as_json:
        print_json({"installed": True, "lingers": lingers} | _facts(installation, shown, []))
        return 0
    click.echo(f"Installed {name} ({installation.path}); it starts {'when you log in' if lingers is False else 'at boot'}.")
    _say_up(installation, wanted.home, shown)
    if lingers is False:
        note("It stops when you log out. To keep it running: `sudo loginctl enable-linger $USER`.")
    names = {variable: name for name, variable in config.VARIABLES.items()}
    for variable in left_behind(os.environ, list(names)):
        note(f"{variable} is set here, but the service does not see it: write {names[variable]} into config.toml.")
    return 0


@command.command("uninstall")
@_service_options
def uninstall(scope: str | None, name: str, as_json: bool) -> int:
    """Stop the service and remove it. The home folder with all conversations stays."""
    from holdfast.cli import service

    installation = service.existing(scope, name)
    service.ask_gateway_to_stop(installation)
    installation.uninstall()
    if as_json:
        print_json({"installed": False, "unit": str(installation.path)})
    else:
        say(f"Stopped and removed {name} ({installation.path}). The conversations stay where they are.")
    return 0


@command.command("start")
@_service_options
def start(scope: str | None, name: str, as_json: bool) -> int:
    """Start the service, and check that it is up.

    In a container that waits because the gateway was stopped, this undoes the stop.
    """
    from holdfast.cli import service

    if _waits_in_container():
        return _start_in_container(as_json)
    installation = service.existing(scope, name)
    home_of_it = service.home_in(installation)
    shown = installation.start("start", home_of_it)
    _report(installation, home_of_it, shown, as_json)
    return 0


@command.command("stop")
@_service_options
def stop(scope: str | None, name: str, as_json: bool) -> int:
    """Stop the service and wait until it is gone. It starts again with `holdfast service start`, or at boot.

    Turns that this interrupts continue at the next start.
    """
    from holdfast.cli import service

    installation = service.existing(scope, name)
    before = installation.shown()
    service.ask_gateway_to_stop(installation)
    answer = installation.stop()
    shown = installation.shown()
    if shown.is_up or answer.code != 0:
        raise Refused(f"The service {name} is still {shown.active}: {answer.said}.")
    if as_json:
        print_json(_facts(installation, shown, []))
    else:
        click.echo(f"Stopped {name} (process {before.main_pid})." if before.main_pid else f"{name} was not running.")
    return 0


@command.command("restart")
@_service_options
@click.option("--full", is_flag=True, help="Stop and start it; this interrupts running turns, which are then resumed.")
def restart(scope: str | None, name: str, as_json: bool, full: bool) -> int:
    """Restart without interrupting a turn: a new process takes over from the running one.

    Exit code 1 if the new one did not take over; the old one still serves.
    """
    from holdfast.cli import service

    installation = service.existing(scope, name)
    home_of_it = service.home_in(installation)
    before = installation.shown()
    shown = installation.hand_over(home_of_it) if before.is_up and not full else installation.start("restart", home_of_it)
    _report(installation, home_of_it, shown, as_json)
    return 0


@command.command("status")
@_service_options
def status(scope: str | None, name: str, as_json: bool) -> int:
    """Show whether the service is installed and running, and whether its unit file is up to date.

    Exit code 0 if it is up, 1 if not.
    """
    from holdfast.cli import service
    from holdfast.install import unit_state

    installation = service.existing(scope, name)
    text, described, shown = installation.require(), installation.described, installation.shown()
    findings = service.stale(text, described)
    missing: str | None = f"the service is {shown.active}"
    if described is not None:
        gateway = installation.gateway(described.home)
        missing = unit_state.not_up(shown, gateway.status, alive=gateway.alive, answers=gateway.answers)
    elif shown.is_up:
        missing = None
    if as_json:
        print_json(_facts(installation, shown, findings) | {"up": missing is None, "missing": missing})
        return 1 if missing else 0
    pairs = [
        ("state", click.style(shown.active, fg="green" if missing is None else "yellow") + (f": {missing}" if missing else "")),
        ("process", str(shown.main_pid or "none")),
        ("restarts", f"{shown.restarts} by systemd since it was started"),
        ("starts", {"enabled": "at boot", "disabled": "only by hand"}.get(shown.enabled, shown.enabled or "not known")),
        ("home", described.home if described else "not known"),
        ("unit", str(installation.path)),
    ]
    click.echo("\n".join([f"The service {name}", *fields(pairs)]))
    for finding in findings:
        click.echo("\n".join(["", *wrap(as_typed(finding), "")]))
    if missing and not findings:
        say("\n`holdfast service start` starts it; `holdfast service logs` shows what happened.")
    return 1 if missing else 0


@command.command("logs")
@_service_options
@click.option("--lines", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="How many lines.")
@click.option("--follow", is_flag=True, help="Show new lines as they come, until Ctrl-C.")
def logs(scope: str | None, name: str, as_json: bool, lines: int, follow: bool) -> int:
    """Show what the service wrote to the journal."""
    from holdfast.cli import service

    installation = service.existing(scope, name)
    words = [f"--lines={lines}", *(["--follow"] if follow else []), *(["--output=json"] if as_json else [])]
    sys.stdout.flush()
    try:
        return subprocess.run(installation.systemctl.journal_command(name, *words), env=installation.systemctl.environment).returncode
    except FileNotFoundError:
        raise Refused("journalctl is missing here, so the journal cannot be shown.") from None


# --- containers


def _waits_in_container() -> bool:
    from holdfast.install.entry import is_waiting

    return is_waiting(home())


def _start_in_container(as_json: bool) -> int:
    from holdfast import status_file
    from holdfast.cli import service

    status_file.forget(home())
    deadline = time.monotonic() + COMES_UP_S
    while not (gateway := service.look(home())).answers:
        if time.monotonic() >= deadline:
            raise Refused(
                f"The stop was undone, but no gateway came up on {home()} within {COMES_UP_S:.0f} s. The container's log says why."
            )
        time.sleep(LOOK_S)
    pid = gateway.status.pid if gateway.status else None
    if as_json:
        print_json({"up": True, "pid": pid})
    else:
        click.echo(f"The stop was undone, and the container has started the gateway (process {pid}).")
    return 0


# --- macOS


def _write_untried(name: str) -> int:
    from holdfast.cli import service
    from holdfast.install import launchd

    wanted = service.describe_for(name, None, home())
    service.make_home(Path(wanted.home), None)
    path = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(launchd.plist(wanted), encoding="utf-8")
    click.echo(f"Wrote {path}. Nothing is started yet: this has never been tested on macOS.")
    say(service.by_hand(name))
    return 0


# --- what people see


def _facts(installation: "Installation", shown: "Shown", findings: list[str]) -> dict[str, Any]:
    from holdfast.cli import service

    return {
        "name": installation.name,
        "scope": str(installation.systemctl.scope),
        "unit": str(installation.path),
        "home": service.home_in(installation),
        "state": shown.active,
        "result": shown.result,
        "pid": shown.main_pid or None,
        "restarts": shown.restarts,
        "enabled": shown.enabled == "enabled",
        "stale": findings,
    }


def _report(installation: "Installation", folder: str, shown: "Shown", as_json: bool) -> None:
    if as_json:
        print_json(_facts(installation, shown, []))
    else:
        _say_up(installation, folder, shown)


def _say_up(installation: "Installation", folder: str, shown: "Shown") -> None:
    gateway = installation.gateway(folder)
    url = gateway.status.url if gateway.status else None
    click.echo(f"It is up: systemd reports it as {shown.active}, and process {shown.main_pid} answers at {url}.")
