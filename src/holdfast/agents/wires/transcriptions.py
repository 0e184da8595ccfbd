"""A model that turns recordings into words, at a provider's `/audio/transcriptions`: one request, no retries inside."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import aiohttp
import msgspec

from holdfast.agents.wires.client import CONNECT_S, failure, proxy, refusal
from holdfast.agents.wires.reading import count
from holdfast.core.events import Usage, Used
from holdfast.ports.models import ModelError, Rejected, Transcript

# What providers know a recording by is the ending of its name.
ENDINGS = {
    "audio/aac": "m4a",
    "audio/flac": "flac",
    "audio/m4a": "m4a",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/webm": "webm",
    "audio/x-m4a": "m4a",
    "audio/x-wav": "wav",
}
_KNOWN = frozenset({*ENDINGS.values(), "mp4", "mpeg", "mpga", "oga"})


class _Transcript(msgspec.Struct):
    """`usage`: in tokens of some models, in seconds or not at all of others."""

    text: str
    usage: Any = None


class Transcriptions:
    """`timeout_s`: how long the provider may be silent between two bytes. `key` is sent in a header and shown nowhere. `price`: of tokens,
    in millionths of a US dollar, None if it is not known.
    """

    def __init__(
        self, *, provider: str, model: str, base_url: str, key: str | None, timeout_s: float, price: Callable[[Usage], float] | None = None
    ) -> None:
        self._price = price
        self._provider, self._model, self._key = provider, model, key
        self._url = f"{base_url.rstrip('/')}/audio/transcriptions"
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=timeout_s)

    async def words(self, recording: bytes, *, name: str, media_type: str) -> Transcript:
        form = aiohttp.FormData()
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        form.add_field("file", BytesIO(recording), filename=_file_name(name, media_type), content_type=media_type)
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        problem: ModelError
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
                # A redirect is not followed: the key would go along.
                session.post(self._url, data=form, headers=headers, allow_redirects=False, proxy=proxy(self._url)) as response,
            ):
                if response.status != 200:
                    raise await refusal(response, self._provider, self._key)
                told = msgspec.json.decode(await response.read(), type=_Transcript)
                return Transcript(told.text.strip(), self._used(told.usage))
        except msgspec.MsgspecError:
            problem = Rejected(f"{self._provider} answered with something that is no transcript. Is base_url right?")
        except (aiohttp.ClientError, OSError) as error:
            problem = failure(self._provider, self._url, error, answered=False)
        # Raised here, so that it does not carry the library's error, which may hold the request with its headers.
        raise problem

    def _used(self, told: object) -> Used:
        usage = Usage(input=count(told, "input_tokens"), output=count(told, "output_tokens"))
        cost = round(self._price(usage)) if self._price is not None and usage != Usage() else None
        return Used(usage=usage, cost=cost, provider=self._provider, model=self._model)


def _file_name(name: str, media_type: str) -> str:
    """With an ending that tells what it is; the rest of its name is nobody's business."""
    ending = name.rpartition(".")[2].lower()
    return f"recording.{ending if ending in _KNOWN else ENDINGS.get(media_type.partition(';')[0].strip().lower(), 'ogg')}"
