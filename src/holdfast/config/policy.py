"""`[policy]`: which tool calls run, which ask a person first, and which do not run."""

import msgspec

from holdfast.core import policy
from holdfast.core.policy import Rules


class ToolPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns, as `core.policy` reads them. `docs/security.md` says what they match."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def rules(self) -> Rules:
        """Raises `BadInput`."""
        return policy.parse_all(allow=self.allow, ask=self.ask, deny=self.deny)
