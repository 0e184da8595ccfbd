"""`holdfast service`: lets the operating system run the gateway: start it with the machine, and again when it dies."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.options import chosen_home, home, home_option, json_option
from holdfast.cli.terminal.layout import fields, wrap
from holdfast.cli.terminal.output import as_typed, note, print_json, say
from holdfast.core.errors import Refused

if TYPE_CHECKING:
    from holdfast.install.description import Service
    from holdfast.install.installation import Gateway, Installation
    from holdfast.install.standing import Shown
    from holdfast.install.systemctl import Scope

F = TypeVar("F", bound=Callable[..., Any])
COMES_UP_S = 30.0
LOOK_S = 0.05


def _service_options(function: F) -> F:
    for option in (
        json_option,
        click.option("--name", metavar="NAME", default="holdfast", show_default=True, help="The name of the service."),
        click.option("--system", "scope", flag_value="system", help="The machine's own service; needs root."),
        click.option("--user", "scope", flag_value="user", help="A service of your own, which needs no root. [default]"),
        home_option,
    ):
        function = option(function)
    return function


@click.group("service")
@home_option
def command() -> None:
    """Let the system run the gateway: start it with the machine, and again when it dies.

    Works with systemd. For launchd it writes the file and says how to use it; that was never tried. A container usually has
    no service manager: docs/service.md says what to do there.
    """


@command.command("install")
@_service_options
@click.option("--run-as", metavar="USER", help="Who runs it, with --system. [default: the user who called sudo]")
def install(scope: str | None, name: str, as_json: bool, run_as: str | None) -> int:
    """Write the service, enable it, start it, and check that it is up.

    Settings come from config.toml in the home folder; variables that are set here do not reach the service. Run it again after an
    upgrade or a change of the drain timeout. Exit code 1 when it did not come up; it is then stopped and disabled.
    """
    from holdfast import config
    from holdfast.install import systemctl
    from holdfast.install.description import left_behind

    if sys.platform == "darwin":
        return _write_untried(name)
    chosen = systemctl.Scope(scope or "user")
    user = _runner(chosen, run_as)
    installation = _installation(chosen, name)
    installation.systemctl.require()
    service = _describe(name, user, _home_of(user))
    _make_home(Path(service.home), user)
    shown = installation.install(service)
    lingers = systemctl.let_linger(os.environ) if chosen is systemctl.Scope.USER else None
    if as_json:
        print_json({"installed": True, "lingers": lingers} | _facts(installation, shown, []))
        return 0
    click.echo(f"Installed {name} ({installation.path}); it starts {'at your login' if lingers is False else 'with the machine'}.")
    _say_up(installation, service.home, shown)
    if lingers is False:
        note("It ends when you log out. To keep it: `sudo loginctl enable-linger $USER`.")
    for variable in left_behind(os.environ, [f"HOLDFAST_{setting.upper()}" for setting in config.SETTINGS]):
        note(f"{variable} is set here and does not reach the service: write {variable.removeprefix('HOLDFAST_').lower()} into config.toml.")
    return 0


@command.command("uninstall")
@_service_options
def uninstall(scope: str | None, name: str, as_json: bool) -> int:
    """Stop the service and remove it. The home folder with all conversations stays."""
    installation = _existing(scope, name)
    _ask_gateway_to_stop(installation)
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

    In a container that waits because the gateway was stopped, this takes the stop back.
    """
    if _waits_in_container():
        return _start_in_container(as_json)
    installation = _existing(scope, name)
    home_of_it = _home_in(installation)
    shown = installation.start("start", home_of_it)
    _report(installation, home_of_it, shown, as_json)
    return 0


@command.command("stop")
@_service_options
def stop(scope: str | None, name: str, as_json: bool) -> int:
    """Stop the service and wait until it is gone. It starts again with `holdfast service start`, or with the machine.

    A turn that is interrupted by this continues at the next start.
    """
    installation = _existing(scope, name)
    before = installation.shown()
    _ask_gateway_to_stop(installation)
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
@click.option("--full", is_flag=True, help="Stop it and start it again, which interrupts running turns; they are resumed.")
def restart(scope: str | None, name: str, as_json: bool, full: bool) -> int:
    """Let a new process take over from the running one, without interrupting a turn.

    Exit code 1 when the new one did not take over; the old one still serves.
    """
    installation = _existing(scope, name)
    home_of_it = _home_in(installation)
    before = installation.shown()
    shown = installation.hand_over(home_of_it) if before.is_up and not full else installation.start("restart", home_of_it)
    _report(installation, home_of_it, shown, as_json)
    return 0


@command.command("status")
@_service_options
def status(scope: str | None, name: str, as_json: bool) -> int:
    """Say whether the service is installed and up, and whether its unit is still right.

    Exit code 0 when it is up, 1 when it is not.
    """
    from holdfast.install import standing

    installation = _existing(scope, name)
    text, described, shown = installation.require(), installation.described, installation.shown()
    findings = _stale(text, described)
    missing: str | None = f"the service is {shown.active}"
    if described is not None:
        gateway = installation.gateway(described.home)
        missing = standing.not_up(shown, gateway.status, lives=gateway.lives, answers=gateway.answers)
    elif shown.is_up:
        missing = None
    if as_json:
        print_json(_facts(installation, shown, findings) | {"up": missing is None, "missing": missing})
        return 1 if missing else 0
    pairs = [
        ("state", click.style(shown.active, fg="green" if missing is None else "yellow") + (f": {missing}" if missing else "")),
        ("process", str(shown.main_pid or "none")),
        ("restarts", f"{shown.restarts} by systemd since it was started"),
        ("starts", {"enabled": "by itself", "disabled": "only when asked to"}.get(shown.enabled, shown.enabled or "not known")),
        ("home", described.home if described else "not known"),
        ("unit", str(installation.path)),
    ]
    click.echo("\n".join([f"The service {name}", *fields(pairs)]))
    for finding in findings:
        click.echo("\n".join(["", *wrap(as_typed(finding), "")]))
    if missing and not findings:
        say("\n`holdfast service start` starts it; `holdfast service logs` says what happened.")
    return 1 if missing else 0


@command.command("logs")
@_service_options
@click.option("--lines", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="How many lines.")
@click.option("--follow", is_flag=True, help="Continue with new lines, until Ctrl-C.")
def logs(scope: str | None, name: str, as_json: bool, lines: int, follow: bool) -> int:
    """Show what the service wrote to the journal."""
    installation = _existing(scope, name)
    words = [f"--lines={lines}", *(["--follow"] if follow else []), *(["--output=json"] if as_json else [])]
    sys.stdout.flush()
    try:
        return subprocess.run(installation.systemctl.journal_command(name, *words), env=installation.systemctl.environment).returncode
    except FileNotFoundError:
        raise Refused("journalctl is missing here, so the journal cannot be shown.") from None


# --- what is there


def _installation(scope: "Scope", name: str) -> "Installation":
    from holdfast.install import installation, systemctl

    return installation.Installation(name, systemctl.unit_path(scope, name, os.environ), systemctl.Systemctl(scope, os.environ), _look)


def _existing(scope: str | None, name: str) -> "Installation":
    """The installed service: without a scope, the user's own comes first."""
    from holdfast.install.systemctl import NoSystemd, Scope, is_there

    if sys.platform == "darwin":
        raise Refused(_by_hand(name))
    if not is_there():
        raise NoSystemd
    scopes = [Scope(scope)] if scope else [Scope.USER, Scope.SYSTEM]
    found = [each for each in (_installation(choice, name) for choice in scopes) if each.path.exists()]
    installation = found[0] if found else _installation(scopes[0], name)
    installation.require()
    installation.systemctl.require()
    return installation


def _look(place: Path) -> "Gateway":
    from holdfast.cli.access import running
    from holdfast.install.installation import Gateway

    found = running.find(place)
    return Gateway(found.status, found.lives, found.lives and found.status is not None and _answers(found.status.url))


def _answers(url: str | None) -> bool:
    import urllib.error
    import urllib.request

    if not url:
        return False
    # Never through a proxy: it is this very machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _home_in(installation: "Installation") -> str:
    """The home folder of the installed service, which may not be that of the user who asks."""
    described = installation.described
    return described.home if described else str(home())


def _stale(text: str, described: "Service | None") -> list[str]:
    from holdfast.config import BadConfig
    from holdfast.install import standing

    if described is None:
        return standing.stale(text, None, None, python_exists=True, home_exists=True)
    wanted, findings = None, []
    try:
        wanted = _describe(described.name, described.user, Path(described.home), path=described.environment.get("PATH", ""))
    except BadConfig as error:
        findings = [f"Its settings are wrong, so it cannot start. {error}"]
    python_exists, home_exists = os.access(described.command[0], os.X_OK), os.path.isdir(described.home)
    return findings + standing.stale(text, described, wanted, python_exists=python_exists, home_exists=home_exists)


# --- what is wanted


def _runner(scope: "Scope", run_as: str | None) -> str | None:
    from holdfast.install.systemctl import Scope

    if scope is Scope.USER:
        if run_as:
            raise click.UsageError("--run-as needs --system: a service of your own runs as you.")
        return None
    if os.geteuid() != 0:
        raise Refused("The machine's services belong to root. Run this with sudo, or install one of your own with --user.")
    user = run_as or os.environ.get("SUDO_USER")
    if not user:
        raise click.UsageError("Name the user who runs it: --run-as USER. Tools run as that user too, so choose an ordinary one.")
    _account(user)
    return user


def _account(user: str) -> Any:
    import pwd

    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise Refused(f"There is no user {user!r} on this machine.") from None


def _home_of(user: str | None) -> Path:
    """Where the service keeps everything: the chosen folder, or one in the folder of the user who runs it."""
    if user is None or chosen_home() or os.environ.get("HOLDFAST_HOME"):
        return home()
    return Path(_account(user).pw_dir) / ".holdfast"


def _describe(name: str, user: str | None, place: Path, path: str | None = None) -> "Service":
    from holdfast import config
    from holdfast.install.description import describe

    # What the service itself will read: its file, and none of the variables that are set here.
    settings = config.load({}, home=str(place))
    return describe(
        name=name,
        python=sys.executable,
        home=str(place),
        folder=_account(user).pw_dir if user else os.path.expanduser("~"),
        user=user,
        drain_timeout_s=settings.drain_timeout_s,
        environment={"PATH": os.environ.get("PATH", "") if path is None else path},
    )


def _make_home(place: Path, user: str | None) -> None:
    """Before the first start, and owned by the user who runs it."""
    from holdfast.config import prepare_home

    if place.exists():
        return
    prepare_home(place)
    if user:
        account = _account(user)
        os.chown(place, account.pw_uid, account.pw_gid)


# --- stopping


def _ask_gateway_to_stop(installation: "Installation") -> None:
    """The gateway records an operator's stop and ends by itself; systemd then only notices."""
    described = installation.described
    if described is None:
        return
    gateway = installation.gateway(described.home)
    if gateway.lives and gateway.status is not None and gateway.status.pid == installation.shown().main_pid:
        words = [sys.executable, "-P", "-m", "holdfast", "--home", described.home, "stop"]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


# --- containers


def _waits_in_container() -> bool:
    from holdfast.install.entry import is_waiting

    return is_waiting(home())


def _start_in_container(as_json: bool) -> int:
    from holdfast import status_file

    status_file.forget(home())
    deadline = time.monotonic() + COMES_UP_S
    while not (gateway := _look(home())).answers:
        if time.monotonic() >= deadline:
            raise Refused(
                f"The stop was taken back, but no gateway came up on {home()} within {COMES_UP_S:.0f} s. Its container's log says why."
            )
        time.sleep(LOOK_S)
    pid = gateway.status.pid if gateway.status else None
    if as_json:
        print_json({"up": True, "pid": pid})
    else:
        click.echo(f"The stop was taken back, and the container has started the gateway (process {pid}).")
    return 0


# --- macOS


def _write_untried(name: str) -> int:
    from holdfast.install import launchd

    service = _describe(name, None, home())
    _make_home(Path(service.home), None)
    path = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(launchd.plist(service), encoding="utf-8")
    click.echo(f"Wrote {path}. Nothing is started yet: this was never tried on macOS.")
    say(_by_hand(name))
    return 0


def _by_hand(name: str) -> str:
    plist = f"~/Library/LaunchAgents/{name}.plist"
    return (
        f"`launchctl bootstrap gui/$UID {plist}` starts it, `launchctl bootout gui/$UID/{name}` stops it, "
        f"`launchctl print gui/$UID/{name}` shows its state; the log is service.log in the home folder."
    )


# --- what people see


def _facts(installation: "Installation", shown: "Shown", findings: list[str]) -> dict[str, Any]:
    return {
        "name": installation.name,
        "scope": str(installation.systemctl.scope),
        "unit": str(installation.path),
        "home": _home_in(installation),
        "state": shown.active,
        "result": shown.result,
        "pid": shown.main_pid or None,
        "restarts": shown.restarts,
        "enabled": shown.enabled == "enabled",
        "stale": findings,
    }


def _report(installation: "Installation", place: str, shown: "Shown", as_json: bool) -> None:
    if as_json:
        print_json(_facts(installation, shown, []))
    else:
        _say_up(installation, place, shown)


def _say_up(installation: "Installation", place: str, shown: "Shown") -> None:
    gateway = installation.gateway(place)
    url = gateway.status.url if gateway.status else None
    click.echo(f"It is up: systemd calls it {shown.active}, its process {shown.main_pid} answers at {url}, and status.json names the same.")
