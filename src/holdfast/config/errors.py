"""What is said of a setting that is wrong."""

from holdfast.core.errors import Refused


class BadConfig(Refused):
    """The operator must fix something; the exit code is 78."""

    code = "bad_config"


def invalid(name: str, value: object, source: str, why: str) -> BadConfig:
    return BadConfig(f"Invalid {name} {value!r} (from {source}). {why}")
