"""What Slack tells an app over HTTP: signed, events as JSON, clicks and commands as forms."""

import json
import time
from typing import Any
from urllib.parse import urlencode

from slack_sdk.signature import SignatureVerifier

from tests.fakes.hooks import Hook

SECRET = "0123456789abcdef0123456789abcdef"
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def tell(hook: Hook, kind: str, payload: Any) -> None:
    """`kind`: as in Socket Mode. Only events are told again."""
    match kind:
        case "events_api":
            body, media_type = json.dumps(payload), JSON
        case "interactive":
            body, media_type = urlencode({"payload": json.dumps(payload)}), FORM
        case _:
            body, media_type = urlencode(payload), FORM

    def signed() -> dict[str, str]:
        stamp = str(int(time.time()))
        signature = SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body)
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": str(signature), "Content-Type": media_type}

    hook.tell(body.encode(), signed, repeats=kind == "events_api")
