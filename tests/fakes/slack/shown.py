"""What people see of a message that was posted with blocks."""

from typing import Any

_RICH = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_INSIDE = ("text", "link")
_STYLES = {"bold", "italic", "strike", "code"}


def seen_text(said: dict[str, Any]) -> str:
    rich = [block for block in said.get("blocks") or () if block["type"] == "rich_text"]
    if not rich:
        return str(said["text"]).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return "\n".join("".join(piece["text"] for piece in element["elements"]) for block in rich for element in block["elements"])


def seen_buttons(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [button for block in said.get("blocks") or () if block["type"] == "actions" for button in block["elements"]]


def check_blocks(blocks: list[dict[str, Any]], most: int, refusal: type[Exception]) -> None:
    """Refuses what Slack refuses."""
    if len(seen_text({"text": "", "blocks": blocks})) > most:
        raise refusal("msg_blocks_too_long")
    for block in blocks:
        for element in block["elements"]:
            if not _holds(block["type"], element):
                raise refusal("invalid_blocks")


def _holds(kind: str, element: dict[str, Any]) -> bool:
    if kind == "actions":
        return 0 < len(element["text"]["text"]) <= 75 and len(element["value"]) <= 2000 and bool(element["action_id"])
    inside = element["elements"]
    styled = element["type"] == "rich_text_preformatted"
    fine = all(piece["type"] in _INSIDE and piece["text"] and set(piece.get("style", {})) <= _STYLES for piece in inside)
    return kind == "rich_text" and element["type"] in _RICH and bool(inside) and fine and not (styled and any("style" in p for p in inside))
