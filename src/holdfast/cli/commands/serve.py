"""`holdfast serve`: the one command that starts the gateway itself."""

import contextlib
import gc
import importlib
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.options import chosen_home, home, home_option, keep_files_private
from holdfast.cli.terminal import program
from holdfast.core import sentences

if TYPE_CHECKING:
    from holdfast.locks import OwnerLock

SUCCESSION = "HOLDFAST_SUCCESSION"
NICE = 10


class Port(click.ParamType[int]):
    name = "port"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not value.isdecimal() or int(value) > 65535:
            self.fail(f"{value!r} is not a number from 0 to 65535. 0 takes a free port.", param, ctx)
        return int(value)


@click.command("serve")
@home_option
@click.option("--port", type=Port(), metavar="N", help="The port to listen on; 0 takes a free one. [default: 8420]")
@click.option("--host", metavar="H", help="The address to listen on. [default: 127.0.0.1]")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="The format of the log. [default: text]")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="The lowest level to write. [default: info]")
def command(port: int | None, host: str | None, log_format: str | None, log_level: str | None) -> int:
    """Run the gateway in the foreground until it is stopped.

    Prints the address of the web page and the process id. Ctrl-C, SIGTERM and `holdfast stop` stop it. Turns that this interrupts
    continue at the next start.

    The log goes to holdfast.log in the home folder (`holdfast logs` shows it) and to standard error. At a terminal, standard error gets
    only warnings, unless a log level is set.
    """
    from holdfast import config

    overrides = {"port": port, "host": host, "log_format": log_format, "log_level": log_level}
    try:
        settings, sources = config.explain(os.environ, home=chosen_home(), overrides=overrides)
        keep_files_private()
        config.prepare_home(settings.home)
    except config.BadConfig as error:
        if SUCCESSION in os.environ:  # The process that started this one to take over waits for its word.
            from holdfast import main

            main.decline(str(error))
        raise
    lock = None if SUCCESSION in os.environ else _be_seen(settings.home)
    gc.disable()  # Nearly all that a start loads stays: looking through it for garbage would take a tenth of the start.
    with _not_loading("rich"):
        import structlog  # noqa: F401 - before all those that need it.
    if SUCCESSION in os.environ:
        _load_in_the_background()
        _begin_a_session()
    from holdfast import main  # Last: it loads the whole gateway, and neither a wrong setting nor a stop should wait for that.
    from holdfast.core import exits

    shows_log = sources["log_level"] != config.DEFAULT
    named, chosen = program.typed(), chosen_home()
    program.forget(os.environ)
    code = main.serve(settings, lock=lock, as_typed=lambda text: sentences.rewrite(text, program=named, home=chosen), shows_log=shows_log)
    if code == exits.HELD and sys.stderr.isatty() and "HOLDFAST_SUPERVISOR" not in os.environ:
        _lead_to_the_one_that_serves()
    return code


@contextlib.contextmanager
def _not_loading(name: str) -> Iterator[None]:
    """What is imported meanwhile does without this module. structlog loads rich wherever it is installed, to draw tracebacks in a way that
    the log does not use: a fifth of the start, and three megabytes.
    """
    known = name in sys.modules
    if not known:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if not known:
            del sys.modules[name]  # An agent of one's own may want it.


def _be_seen(folder: Path) -> "OwnerLock | None":
    """From now on a stop finds this process, though it has not loaded the gateway yet. None if the disk does not take the lock: the gateway
    says what is wrong.
    """
    from holdfast import locks, processes

    try:
        return locks.OwnerLock(folder, f"o_{secrets.token_hex(10)}", processes.this_process())
    except OSError:
        return None


def _load_in_the_background() -> None:
    """Loads the gateway while another process serves: a third of a second of work that must not take the processor from its clients. Linux
    counts niceness by thread, so this one's is gone when it ends.
    """

    def load() -> None:
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with contextlib.suppress(Exception):  # The import below meets the same error, where it can be told.
            importlib.import_module("holdfast.main")

    loading = threading.Thread(target=load)
    loading.start()
    loading.join()


def _begin_a_session() -> None:
    """The launcher made this process deaf to Ctrl-C, which is meant for the one that serves (`process.handover`)."""
    if os.getsid(0) != os.getpid():  # The launcher of an earlier version has done it.
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _lead_to_the_one_that_serves() -> None:
    """Someone who starts it a second time usually wants to open the page."""
    from holdfast.cli.commands import link
    from holdfast.core.errors import HoldfastError

    try:
        made = link.fresh(home())
    except HoldfastError:
        return  # Another program has the port, or the other gateway is just ending: that was reported already.
    click.echo(f"\n  open  {made['url']}\n        ({link.lasts(made)})\n", err=True)
