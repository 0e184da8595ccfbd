"""Who may talk to the agent in a chat, and who may decide for others. Nobody may, unless the operator said so."""

from enum import Enum, auto

import msgspec

from holdfast.core import keys
from holdfast.core.inbound import Source

MOST_OF_A_NAME = 80


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows on one platform. `users`, `admins` and `blocked`: ids. `chats`: groups in which everybody may talk.
    `everybody`: who writes to the account may talk to it. `mention`: in a group only what is addressed to us is meant for us, except in the
    chats that are `listening`. `pairing`: a stranger gets a code that the operator can approve. `apart`: in a group each person has a
    conversation of their own.
    """

    users: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()
    everybody: bool = False
    mention: bool = True
    listening: frozenset[str] = frozenset()
    pairing: bool = True
    apart: bool = True


class Verdict(Enum):
    """NOT_MEANT: people talk with each other. STRANGER: its sender may not talk here."""

    ALLOWED = auto()
    NOT_MEANT = auto()
    STRANGER = auto()


def verdict(policy: Policy, source: Source, *, paired: bool, addressed: bool) -> Verdict:
    if source.shared and policy.mention and not addressed and source.chat not in policy.listening:
        return Verdict.NOT_MEANT
    return Verdict.ALLOWED if allows(policy, source.user, source.chat, paired=paired) else Verdict.STRANGER


def allows(policy: Policy, user: str, chat: str, *, paired: bool) -> bool:
    if user in policy.blocked:
        return False
    return policy.everybody or paired or user in policy.users or user in policy.admins or chat in policy.chats


def operates(policy: Policy, user: str) -> bool:
    """Whether somebody may do what concerns others, such as a restart."""
    return user in policy.admins and user not in policy.blocked


def sender(platform: str, user: str) -> str:
    """Under which name a person of a platform is known in the log."""
    return f"{platform}:{user}"


def user_of(platform: str, sender: str) -> str | None:
    """The exact inverse of `sender`; None for somebody of elsewhere."""
    return sender.removeprefix(f"{platform}:") if sender.startswith(f"{platform}:") else None


def shown_name(name: str) -> str:
    """What a person calls themselves, on one line, and no longer than anybody reads."""
    return " ".join(name.split())[:MOST_OF_A_NAME]


def session_key(profile: str, platform: str, source: Source, policy: Policy) -> str:
    """The lane that a source belongs to. A private chat is keyed by chat and thread, a thread is shared, a group is as the policy says."""
    apart = source.shared and source.thread is None and policy.apart
    return str(keys.SessionKey(profile, platform, source.chat_type, source.chat, source.thread or None, source.user if apart else None))
