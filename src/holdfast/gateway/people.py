"""Who may talk to the agent, as things are now: what the operator configured, and whom they let in since."""

from holdfast.core import keys, rights
from holdfast.core.inbound import Source
from holdfast.core.rights import Policy, Verdict
from holdfast.ports.pairings import Pairings


class People:
    """`policies`: by platform. A platform without one lets nobody in."""

    def __init__(self, store: Pairings, policies: dict[str, Policy]) -> None:
        self._store, self._policies = store, policies

    def policy(self, platform: str) -> Policy:
        return self._policies.get(platform, Policy())

    async def verdict(self, platform: str, source: Source, *, addressed: bool) -> Verdict:
        policy = self.policy(platform)
        found = rights.verdict(policy, source, paired=False, addressed=addressed)
        if found is Verdict.STRANGER and await self._store.is_paired(platform, source.user):
            return rights.verdict(policy, source, paired=True, addressed=addressed)
        return found

    async def allows(self, session_key: str, sender: str) -> bool:
        """Whether somebody may still use the agent there (R8)."""
        key = keys.parse(session_key)
        if key.on_page:
            return True
        user, policy = _user(key.platform, sender), self.policy(key.platform)
        if rights.allows(policy, user, key.chat_id, paired=False):
            return True
        return rights.allows(policy, user, key.chat_id, paired=await self._store.is_paired(key.platform, user))

    def operates(self, session_key: str, sender: str) -> bool:
        """Whether somebody may do there what concerns others, too."""
        key = keys.parse(session_key)
        return key.on_page or rights.operates(self.policy(key.platform), _user(key.platform, sender))


def _user(platform: str, sender: str) -> str:
    return rights.user_of(platform, sender) or sender
