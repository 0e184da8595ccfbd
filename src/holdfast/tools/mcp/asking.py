"""What a server wants to know from the user, as we ask it, and the answers as the server takes them."""

from typing import cast

from mcp_types import ElicitRequest, ElicitRequestParams, ElicitRequestURLParams, ElicitResult, InputRequiredResult, InputResponses

from holdfast.core.elicitation import ACCEPT, DECLINE, Given, Request
from holdfast.core.texts import storable, storable_value
from holdfast.ports.tools import Answers, Asks
from holdfast.tools.mcp.errors import ServerError

# In the place of a key, where the protocol needs none.
ONLY = "only"


def asks(result: InputRequiredResult) -> Asks:
    """Raises `ServerError` for what nobody can be asked."""
    requests: list[Request] = []
    for key, wanted in (result.input_requests or {}).items():
        if not isinstance(wanted, ElicitRequest):
            raise ServerError(f"it asks for {wanted.method}, which it cannot have here")
        requests.append(request(wanted.params, storable(key)))
    return Asks(requests=tuple(requests), state=result.request_state)


def request(params: ElicitRequestParams, key: str = ONLY) -> Request:
    if isinstance(params, ElicitRequestURLParams):
        return Request(key=key, message=storable(params.message), url=storable(params.url))
    return Request(key=key, message=storable(params.message), schema=storable_value(dict(params.requested_schema)))


def responses(answers: Answers) -> InputResponses:
    return {key: result(given) for key, given in answers.given.items()}


def result(given: Given | None) -> ElicitResult:
    """None: nobody answered."""
    if given is None:
        return ElicitResult(action="cancel")
    if given.action == ACCEPT:
        return ElicitResult(action="accept", content=cast(dict[str, str | int | float | bool | list[str] | None] | None, given.content))
    return ElicitResult(action="decline" if given.action == DECLINE else "cancel")
