"""Who answers to which name: the wire, the address and the variable of the key of each provider, and the client for a choice."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import BadInput
from holdfast.core.events import Usage
from holdfast.ports.models import ModelClient, Transcriber

if TYPE_CHECKING:
    from holdfast.agents.wires.client import Wire

TIMEOUT_S = 300.0


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """`base_url` None: must be configured. `key_variable` None: it needs no key. `takes`: what all of its models take besides text.
    `asks_usage`, `call_extra`: see `chat.Dialect`.
    """

    wire: str
    base_url: str | None = None
    key_variable: str | None = None
    takes: frozenset[str] = frozenset()
    asks_usage: bool = True
    call_extra: dict[str, Any] = {}


_SEES = frozenset({"image"})
_READS = frozenset({"image", "file"})

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(wire="responses", base_url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY", takes=_READS),
    "anthropic": Provider(wire="anthropic", base_url="https://api.anthropic.com", key_variable="ANTHROPIC_API_KEY", takes=_READS),
    "openrouter": Provider(wire="chat", base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
    "groq": Provider(wire="chat", base_url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    # Tells usage unasked, and refuses fields that it does not know.
    "mistral": Provider(wire="chat", base_url="https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY", asks_usage=False),
    "deepseek": Provider(wire="chat", base_url="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    "gemini": Provider(
        wire="chat",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        takes=frozenset({"image", "audio"}),
        # It wants a signature with each call; this one says that there is none because another model wrote it.
        call_extra={"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}},
    ),
    "xai": Provider(wire="chat", base_url="https://api.x.ai/v1", key_variable="XAI_API_KEY", takes=_SEES),
    "ollama": Provider(wire="chat", base_url="http://127.0.0.1:11434/v1"),
    "vllm": Provider(wire="chat", base_url="http://127.0.0.1:8000/v1"),
    "llamacpp": Provider(wire="chat", base_url="http://127.0.0.1:8080/v1"),
    "lmstudio": Provider(wire="chat", base_url="http://127.0.0.1:1234/v1"),
    # Any other server, at the configured address.
    "chat": Provider(wire="chat"),
    "responses": Provider(wire="responses"),
}


class Choice(msgspec.Struct, frozen=True):
    provider: str
    model: str


def choice(text: str) -> Choice:
    """`PROVIDER:NAME`. A name may hold colons itself."""
    provider, colon, model = text.strip().partition(":")
    if not provider or not colon or not model:
        raise BadInput(f"Invalid model {text!r}: write PROVIDER:NAME, such as anthropic:NAME or ollama:NAME.")
    return Choice(provider.lower(), model)


def client(
    chosen: str,
    *,
    key: str | None = None,
    base_url: str | None = None,
    timeout_s: float = TIMEOUT_S,
    takes: frozenset[str] | None = None,
) -> ModelClient:
    """The client for `PROVIDER:NAME`. Opens nothing yet. Loads what the wire needs, and only that."""
    named = choice(chosen)
    known = PROVIDERS.get(named.provider)
    if known is None:
        return _other(named, timeout_s, takes or frozenset())
    address = _address(chosen, base_url or known.base_url)
    from holdfast.agents.wires.client import Client

    wire = _wire(known, known.takes if takes is None else takes)
    return Client(wire, provider=named.provider, model=named.model, base_url=address, key=_checked(key), timeout_s=timeout_s)


def transcriber(
    chosen: str,
    *,
    key: str | None = None,
    base_url: str | None = None,
    timeout_s: float = TIMEOUT_S,
    price: Callable[[Usage], float] | None = None,
) -> Transcriber:
    """The one for `PROVIDER:NAME`. Opens nothing yet. `price`: of tokens, if it is known."""
    named = choice(chosen)
    known = PROVIDERS.get(named.provider)
    if known is None or known.wire == "anthropic":
        raise BadInput(f"Holdfast knows no transcriptions of {named.provider!r}. Use a provider that has them, such as openai or groq.")
    from holdfast.agents.wires.transcriptions import Transcriptions

    address = _address(chosen, base_url or known.base_url)
    return Transcriptions(provider=named.provider, model=named.model, base_url=address, key=_checked(key), timeout_s=timeout_s, price=price)


def _address(chosen: str, address: str | None) -> str:
    if address is None:
        raise BadInput(f"The model {chosen!r} needs an address: set base_url.")
    if not _is_address(address):
        raise BadInput(f"Invalid base_url for {chosen!r}: it must be an address such as http://127.0.0.1:8000/v1.")
    return address


def _other(named: Choice, timeout_s: float, takes: frozenset[str]) -> ModelClient:
    try:
        from holdfast.agents.wires import pydantic_ai
    except ImportError:
        raise BadInput(
            f"Unknown provider {named.provider!r}. Known: {', '.join(PROVIDERS)}. For others install Holdfast with its extra `providers`."
        ) from None
    try:
        model = pydantic_ai.known(f"{named.provider}:{named.model}")
    except BadInput as error:
        raise BadInput(f"{named.provider!r} is none of Holdfast's own providers ({', '.join(PROVIDERS)}), and {error}") from error
    return pydantic_ai.Bridge(model, provider=named.provider, name=named.model, timeout_s=timeout_s, takes=takes)


def _wire(provider: Provider, takes: frozenset[str]) -> "Wire":
    match provider.wire:
        case "anthropic":
            from holdfast.agents.wires.anthropic import Anthropic

            return Anthropic(takes)
        case "responses":
            from holdfast.agents.wires.responses import Responses

            return Responses(takes)
        case _:
            from holdfast.agents.wires.chat import Chat, Dialect

            return Chat(takes, Dialect(usage=provider.asks_usage, call_extra=provider.call_extra))


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _checked(key: str | None) -> str | None:
    """Without the line end that files have. The words of the error hold nothing of it."""
    plain = key.strip() if key else ""
    if not plain.isascii() or not plain.isprintable():
        raise BadInput("The key of the model holds characters that no key has. Was it copied whole, and nothing else with it?")
    return plain or None
