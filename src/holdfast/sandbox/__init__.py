"""The sandbox of commands: what it shows them, the programs that make one, and the trial that says which of them holds on this machine
(`trial.choose`, loaded where it is needed).
"""

from holdfast.sandbox.sandbox import FOLDER, Mode, Place, Sandbox

__all__ = ["FOLDER", "Mode", "Place", "Sandbox"]
