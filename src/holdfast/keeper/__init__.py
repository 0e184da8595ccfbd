"""Processes that outlive the gateway: a keeper for each (`keep.py`, a program of its own), its files, and how it is started."""

from holdfast.keeper.keepers import KeeperProcesses

__all__ = ["KeeperProcesses"]
