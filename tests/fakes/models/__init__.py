"""Servers on loopback that speak the wires of model providers, reply by script, and record what they were asked.

In a test: `async with serving(Reply(...), Reply(...)) as server`. For real processes: `python -m tests.fakes.models --script FILE`.
"""

from tests.fakes.models.script import Reply, Say, Script, call, text, thought
from tests.fakes.models.server import Asked, ModelServer, serving

__all__ = ["Asked", "ModelServer", "Reply", "Say", "Script", "call", "serving", "text", "thought"]
