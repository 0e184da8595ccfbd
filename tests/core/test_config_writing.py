"""`config.toml` is changed where it must be, and its author finds everything else as it was."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import BadConfig
from holdfast.config.writing import Edit, edited

ADDRESS = 'base_url = "http://127.0.0.1/v1"'
MODEL = {"model": "chat:new", "base_url": "http://127.0.0.1/v1", "api_key_file": None}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[agent]\nmodel = "chat:new"\nbase_url = "http://127.0.0.1/v1"\n'),
        ("port = 1", 'port = 1\n\n[agent]\nmodel = "chat:new"\nbase_url = "http://127.0.0.1/v1"\n'),
        (
            "# mine\n[agent] # it answers\n  model = 'chat:old'   # cheap\n\neffort = 'low'\n[tools]\nshared = false\n",
            f"# mine\n[agent] # it answers\n  model = \"chat:new\"   # cheap\n{ADDRESS}\n\neffort = 'low'\n[tools]\nshared = false\n",
        ),
        (
            '[agent]\napi_key_file = "old.key"\nfallbacks = [\n  "a:b",\n]\nmodel = "x:y"\n[policy]\n',
            '[agent]\nfallbacks = [\n  "a:b",\n]\nmodel = "chat:new"\nbase_url = "http://127.0.0.1/v1"\n[policy]\n',
        ),
        ("[agent]\r\nmodel = 'a:b'\r\n", '[agent]\r\nmodel = "chat:new"\r\nbase_url = "http://127.0.0.1/v1"\r\n'),
        (
            '[agent]\nmodel = "chat:new"\nbase_url = "http://127.0.0.1/v1"\n',
            '[agent]\nmodel = "chat:new"\nbase_url = "http://127.0.0.1/v1"\n',
        ),
    ],
)
def test_only_the_lines_of_the_settings_change(before: str, after: str) -> None:
    assert edited(before, "agent", MODEL) == after


@pytest.mark.parametrize(
    "text",
    [
        'agent = {model = "a:b"}\n',
        'agent.model = "a:b"\n',
        "agent = 3\n",
        "[agent]\nmodel = '''a:b'''\n",
        '[agent]\ninstructions = """\nmodel = "x"\n"""\n',
        'log_level = """\n[agent]\n"""\n',
        "[agent\n",
    ],
)
def test_what_is_written_in_another_way_is_left_alone_and_the_lines_are_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(BadConfig) as caught:
        Edit(file, "agent", MODEL)
    assert 'model = "chat:new"; base_url = "http://127.0.0.1/v1"; no api_key_file.' in str(caught.value)
    assert file.read_text() == text


def write(path: Path) -> None:
    edit = Edit(path, "agent", {"model": "a:b"})
    assert edit.changes
    edit.make()


def test_the_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "kept.toml", tmp_path / "config.toml"
    file.write_text("# mine\n")
    file.chmod(0o640)
    link.symlink_to(file)
    write(link)
    assert not Edit(link, "agent", {"model": "a:b"}).changes
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    assert file.read_text() == '# mine\n\n[agent]\nmodel = "a:b"\n'
    write(tmp_path / "new.toml")
    assert (tmp_path / "new.toml").stat().st_mode & 0o777 == 0o600


LINES = st.lists(
    st.sampled_from(
        (
            *(
                "[agent]",
                "[tools]",
                "[agent.more]",
                "model = 'a'",
                'base_url = "b" # why',
                "api_key_file = 'c'",
                "models = [",
                "  'x',",
                "]",
            ),
            *("# comment", "", "port = 1", "instructions = '''", "'''", "[[agent]]", "agent.model = 'z'", 'model = "a\\"b"'),
        )
    ),
    max_size=8,
).map("\n".join)


@given(text=LINES, model=st.text(), key=st.none() | st.text())
def test_whatever_the_file_is_the_result_means_what_was_asked_for_or_there_is_none(text: str, model: str, key: str | None) -> None:
    new = edited(text, "agent", {"model": model, "api_key_file": key})
    if new is None:
        return
    before, after = tomllib.loads(text), tomllib.loads(new)
    assert after["agent"].get("model") == model and after["agent"].get("api_key_file") == key
    for values in (before, after):
        for name in ("model", "api_key_file"):
            values.setdefault("agent", {}).pop(name, None)
    assert before == after
