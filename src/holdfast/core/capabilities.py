"""What a chat platform can do, as it states it itself. What is planned for a chat is planned from this, by no platform's name."""

import msgspec

MB = 1_000_000


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """How often something may be sent. `every_s`: messages of one chat; `edit_every_s`: edits of one message that is being written; both
    for a private chat and for one with several people. `burst`: how many messages of a chat may follow each other at once. `account_per_s`
    and `account_burst`: everything of an account together. `kept`: so many of the account's are kept for final texts; edits of what is
    still being written leave them alone.
    """

    every_s: tuple[float, float] = (1.0, 3.0)
    burst: int = 3
    edit_every_s: tuple[float, float] = (1.5, 4.0)
    account_per_s: float = 30.0
    account_burst: int = 30
    kept: int = 10


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """`text_limit`: how large one message may be, as the platform's `size` counts. `edits`, `removes`: of our own messages.

    How a send of unknown outcome is settled: `key_lasts_s`: a send with the same key within this time is one send; `finds`: the platform
    can be asked whether a message with a key arrived; `echoes_s`: our own messages come back through intake with their key, within this
    time. Where all three are missing, nobody can know.

    `buttons`: how many bytes the data of a button may have, 0 without buttons; `choices`: how many buttons a message may have.
    `typing_s`: how long "is typing" is shown, 0 where there is none. `bytes_in`, `bytes_out`: the largest file. `commands`: how many the
    platform lists in a menu that we set; 0 if there is none.
    `sees_edits`, `sees_removals`: of what people wrote.
    """

    text_limit: int
    rates: Rates = Rates()
    edits: bool = True
    removes: bool = True
    key_lasts_s: float = 0.0
    finds: bool = False
    echoes_s: float = 0.0
    buttons: int = 0
    choices: int = 8
    typing_s: float = 0.0
    bytes_in: int = 20 * MB
    bytes_out: int = 20 * MB
    caption_limit: int = 0
    commands: int = 0
    sees_edits: bool = True
    sees_removals: bool = True
