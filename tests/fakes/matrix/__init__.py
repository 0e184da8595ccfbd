"""A real homeserver, the people at it, and a proxy in front of it that does what wires do."""

from tests.fakes.matrix.homeserver import Homeserver
from tests.fakes.matrix.people import Person, Shown
from tests.fakes.matrix.proxy import Proxy

__all__ = ["Homeserver", "Person", "Proxy", "Shown"]
