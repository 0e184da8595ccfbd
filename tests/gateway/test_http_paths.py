"""Which resource a path leads to, with which parameters."""

import pytest
from starlette.types import Receive, Scope, Send

from holdfast.web.paths import Paths


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError


PATHS = ("/api/sessions", "/api/sessions/{id}", "/api/sessions/all", "/api/sessions/{key}/turns/{turn}/events", "/api/blobs/{digest}")


def paths() -> Paths:
    made = Paths(Named("default"))
    for path in PATHS:
        made.add(path, Named(path))
    made.add("/hooks/{platform}/{rest}", Named("hooks"), rest=True)
    return made


@pytest.mark.parametrize(
    ("path", "name", "params"),
    [
        ("/api/sessions", PATHS[0], {}),
        ("/api/sessions/s_1", PATHS[1], {"id": "s_1"}),
        ("/api/sessions/all", PATHS[2], {}),  # A word that is known goes first,
        ("/api/sessions/all/turns/t1/events", PATHS[3], {"key": "all", "turn": "t1"}),  # unless it leads nowhere.
        ("/api/sessions/a b/turns/{turn}/events", PATHS[3], {"key": "a b", "turn": "{turn}"}),
        ("/api/blobs/ü", PATHS[4], {"digest": "ü"}),
        ("/hooks/slack/a/b//c", "hooks", {"platform": "slack", "rest": "a/b//c"}),
        ("/hooks/slack/", "hooks", {"platform": "slack", "rest": ""}),
        *(
            (path, "default", {})
            for path in ("", "/", "/api", "/api/", "/api/sessions/", "/api/sessions/s_1/", "/api/sessions//turns/t/events")
        ),
        *((path, "default", {}) for path in ("/hooks/slack", "/hooks//a", "//api/sessions", "/api/sessions/s_1\n/x", "/API/sessions")),
    ],
)
def test_a_path_leads_to_one_resource_with_its_parameters_or_to_the_default(path: str, name: str, params: dict[str, str]) -> None:
    resource, found = paths().find(path)
    assert isinstance(resource, Named) and (resource.name, found) == (name, params)
