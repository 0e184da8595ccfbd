"""The command line: speaks HTTP to a running gateway, or reads its home folder. It loads no gateway, so that `--help` is instant."""

from holdfast.cli.app import main

__all__ = ["main"]
