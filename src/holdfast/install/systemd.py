"""The systemd unit: its text, and the description found in one. Decides nothing about a running system."""

import re

import msgspec

from holdfast.core import exits
from holdfast.install.description import PAUSE_S, START_S, Service

DESCRIBED = "# holdfast: "
SECRETS = "service.env"
PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def unit(service: Service) -> str:
    """The whole unit. The comment with the description is read by `described_in`."""
    own = service.user is None
    lines = [
        "# Written by `holdfast service install`; changes made here are lost with the next one. Put yours into a drop-in",
        f"# (systemctl {'--user ' if own else ''}edit {service.name}).",
        DESCRIBED + msgspec.json.encode(service, order="sorted").decode(),
        "",
        "[Unit]",
        "Description=Holdfast, an AI agent behind chats and a web page",
        # A user's own systemd knows nothing of the network.
        *(() if own else ("Wants=network-online.target", "After=network-online.target")),
        # Never given up: a start that follows crashes resumes nothing at first, and safe mode ends a crash loop.
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        # The main process says that it serves, that it is alive and which process takes over; systemd believes no other.
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={command_line(service.command)}",
        # A hand-over: the next process takes over, and no turn is interrupted.
        "ExecReload=/bin/kill -HUP $MAINPID",
        *((f"User={_percent(service.user)}",) if service.user else ()),
        f"WorkingDirectory=-{_percent(service.folder)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in service.variables.items()),
        f"EnvironmentFile=-{_percent(service.home)}/{SECRETS}",
        # The main process alone is asked to stop: it knows what to do about the tools and the processes that retire. Background processes
        # have scopes of their own in a user's own systemd; the machine's gives an unprivileged user none, so it must leave them alone.
        f"KillMode={'mixed' if own else 'process'}",
        f"TimeoutStartSec={START_S}",
        f"TimeoutStopSec={service.killed_after_s}",
        f"WatchdogSec={service.watchdog_s}",
        "Restart=on-failure",
        f"RestartSec={PAUSE_S}",
        # A signal that nobody announced ends it with 75, also the one of `systemctl stop`: no failure, and started again unless systemd
        # itself wanted the end. Only what a human must change stays down.
        f"SuccessExitStatus={exits.AGAIN}",
        f"RestartForceExitStatus={exits.AGAIN}",
        f"RestartPreventExitStatus={exits.CONFIG}",
        # A tool that takes all memory is killed; the gateway stays, and tells how the tool ended.
        "OOMPolicy=continue",
        "UMask=0077",
        *_hardening(own),
        "",
        "[Install]",
        f"WantedBy={'default.target' if own else 'multi-user.target'}",
    ]
    return "\n".join(lines) + "\n"


def _hardening(own: bool) -> tuple[str, ...]:
    """Only what breaks no tool that people run through the gateway.

    In: NoNewPrivileges, although it keeps tools from sudo: what a model says must not become root. ProtectSystem=full for the machine's
    service: nothing that its unprivileged user could have written to. A user's own systemd would need a user namespace for it, in which
    files of root belong to nobody, and ssh refuses to work.

    Out: PrivateTmp, because tools share /tmp with their user (tmux, agents' sockets, files to look at), and so does the socket of a home
    folder with a long path. ProtectHome: the home folder and the user's work lie there. ProtectKernelTunables, ProtectControlGroups,
    ProtectProc and RestrictNamespaces: with them a tool can neither be shut into a sandbox nor run containers. LockPersonality,
    MemoryDenyWriteExecute and SystemCallFilter: they break debuggers, Node, compilers and browsers.
    """
    return ("NoNewPrivileges=yes",) if own else ("NoNewPrivileges=yes", "ProtectSystem=full")


def described_in(text: str) -> Service | None:
    """The description a unit was written from; None if it is not one of ours, or of a version that described more or less."""
    for line in text.splitlines():
        if line.startswith(DESCRIBED):
            try:
                return msgspec.json.decode(line.removeprefix(DESCRIBED), type=Service)
            except (msgspec.DecodeError, msgspec.ValidationError):
                return None
    return None


def command_line(command: tuple[str, ...]) -> str:
    """A dollar sign in the program's own path is no variable; in an argument it would be."""
    program, *arguments = command
    return " ".join([_quoted(program), *(_quoted(argument.replace("$", "$$")) for argument in arguments)])


def _quoted(word: str) -> str:
    word = _percent(word)
    if PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _percent(text: str) -> str:
    """A per cent sign stands for something else in a unit; two stand for one."""
    return text.replace("%", "%%")
