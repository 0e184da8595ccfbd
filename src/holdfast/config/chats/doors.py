"""Who may talk on a platform: the same settings in the table of each."""

import msgspec

from holdfast.core.rights import Policy


class Doors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Users and chats are named by their ids."""

    allowed_users: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    blocked_users: tuple[str, ...] = ()
    allowed_chats: tuple[str, ...] = ()
    everybody: bool = False
    mention: bool = True
    listen_chats: tuple[str, ...] = ()
    pairing: bool = True
    shared_groups: bool = False

    @property
    def policy(self) -> Policy:
        return Policy(
            users=frozenset(self.allowed_users),
            admins=frozenset(self.admins),
            blocked=frozenset(self.blocked_users),
            chats=frozenset(self.allowed_chats),
            everybody=self.everybody,
            mention=self.mention,
            listening=frozenset(self.listen_chats),
            pairing=self.pairing,
            apart=not self.shared_groups,
        )

    @property
    def anybody(self) -> bool:
        """Whether there is a way in for somebody."""
        return bool(self.everybody or self.allowed_users or self.admins or self.allowed_chats or self.pairing)
