"""What the commands of `holdfast service` share: the installed service, how it should be described, and the gateway that it runs."""

import os
import pwd
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click

from holdfast import config
from holdfast.cli.access import running
from holdfast.cli.options import chosen_home, home
from holdfast.core.errors import Refused
from holdfast.install import systemctl, unit_state
from holdfast.install.description import Service, describe
from holdfast.install.installation import Gateway, Installation
from holdfast.install.systemctl import NoSystemd, Scope, is_there

# --- what is there


def installation_of(scope: Scope, name: str) -> Installation:
    return Installation(name, systemctl.unit_path(scope, name, os.environ), systemctl.Systemctl(scope, os.environ), look)


def existing(scope: str | None, name: str) -> Installation:
    """The installed service: without a scope, the user's own comes first."""
    if sys.platform == "darwin":
        raise Refused(by_hand(name))
    if not is_there():
        raise NoSystemd
    scopes = [Scope(scope)] if scope else [Scope.USER, Scope.SYSTEM]
    found = [each for each in (installation_of(choice, name) for choice in scopes) if each.path.exists()]
    installation = found[0] if found else installation_of(scopes[0], name)
    installation.require()
    installation.systemctl.require()
    return installation


def look(folder: Path) -> Gateway:
    found = running.find(folder)
    return Gateway(found.status, found.alive, found.alive and found.status is not None and _answers(found.status.url))


def _answers(url: str | None) -> bool:
    if not url:
        return False
    # Never through a proxy: it is this very machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def home_in(installation: Installation) -> str:
    """The home folder of the installed service, which may not be that of the user who asks."""
    described = installation.described
    return described.home if described else str(home())


def stale(text: str, described: Service | None) -> list[str]:
    if described is None:
        return unit_state.stale(text, None, None, python_exists=True, home_exists=True)
    wanted, findings = None, []
    try:
        wanted = describe_for(described.name, described.user, Path(described.home), path=described.environment.get("PATH", ""))
    except config.BadConfig as error:
        findings = [f"Its settings are wrong, so it cannot start. {error}"]
    python_exists, home_exists = os.access(described.command[0], os.X_OK), os.path.isdir(described.home)
    return findings + unit_state.stale(text, described, wanted, python_exists=python_exists, home_exists=home_exists)


# --- what is wanted


def runner(scope: Scope, run_as: str | None) -> str | None:
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
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise Refused(f"There is no user {user!r} on this machine.") from None


def home_for(user: str | None) -> Path:
    """Where the service keeps everything: the chosen folder, or one in the folder of the user who runs it."""
    if user is None or chosen_home() or os.environ.get("HOLDFAST_HOME"):
        return home()
    return Path(_account(user).pw_dir) / ".holdfast"


def describe_for(name: str, user: str | None, folder: Path, path: str | None = None) -> Service:
    # What the service itself will read: its file, and none of the variables that are set here.
    settings = config.load({}, home=str(folder))
    return describe(
        name=name,
        python=sys.executable,
        home=str(folder),
        folder=_account(user).pw_dir if user else os.path.expanduser("~"),
        user=user,
        drain_timeout_s=settings.drain_timeout_s,
        environment={"PATH": os.environ.get("PATH", "") if path is None else path},
    )


def make_home(folder: Path, user: str | None) -> None:
    """Before the first start, and owned by the user who runs it."""
    if folder.exists():
        return
    config.prepare_home(folder)
    if user:
        account = _account(user)
        os.chown(folder, account.pw_uid, account.pw_gid)


# --- stopping


def ask_gateway_to_stop(installation: Installation) -> None:
    """The gateway records an operator's stop and ends by itself; systemd then only notices."""
    described = installation.described
    if described is None:
        return
    gateway = installation.gateway(described.home)
    if gateway.alive and gateway.status is not None and gateway.status.pid == installation.shown().main_pid:
        words = [sys.executable, "-P", "-m", "holdfast", "--home", described.home, "stop"]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


# --- macOS


def by_hand(name: str) -> str:
    plist = f"~/Library/LaunchAgents/{name}.plist"
    return (
        f"`launchctl bootstrap gui/$UID {plist}` starts it, `launchctl bootout gui/$UID/{name}` stops it, "
        f"`launchctl print gui/$UID/{name}` shows its state; the log is service.log in the home folder."
    )
