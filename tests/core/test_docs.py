"""The documentation is whole: a setting, a command or an option that nobody described fails here, and so does a pointer to nothing."""

import re
from pathlib import Path

import click
import pytest

from holdfast import config
from holdfast.cli.app import COMMANDS, cli
from scripts import suite

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
ROWS = {
    name: (variable, default)
    for name, variable, default in re.findall(r"^\| `([\w.]+)` \| `(HOLDFAST_\w+)` \| (.+?) \|", OPERATIONS, re.MULTILINE)
}


def section(name: str) -> str:
    found = re.search(rf"^### `holdfast {name}`\n(.*?)(?=^##)", OPERATIONS, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("name", config.SETTINGS)
def test_every_setting_is_documented_with_its_variable_and_its_default(name: str) -> None:
    variable, default = ROWS[name]
    assert variable == config.VARIABLES[name]
    assert default == as_written(config.value(config.Config(), name))


def as_written(value: object) -> str:
    if value in ((), {}, "", None):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) and value < 1e6 else f"`{value}`"


def test_no_setting_is_documented_that_does_not_exist() -> None:
    assert set(ROWS) == set(config.SETTINGS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_arguments_and_options(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Command)
    words = section(name)
    assert words, f"docs/operations.md has no section `holdfast {name}`"
    parts = list(command.commands.values()) if isinstance(command, click.Group) else []
    for each in (command, *parts):
        for parameter in each.params:
            named = (
                parameter.opts + parameter.secondary_opts
                if isinstance(parameter, click.Option)
                else [parameter.make_metavar(click.Context(each))]
            )
            for option in named:
                assert option in words or option == "--home", f"`holdfast {name}` does not tell of {option}"
    for part in parts:
        assert f"{name} {part.name}" in words


def test_no_command_is_documented_that_does_not_exist() -> None:
    assert re.findall(r"^### `holdfast (\w+)`", OPERATIONS, re.MULTILINE) == list(COMMANDS)


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_points_to_exists(document: Path) -> None:
    """Links, and the tests that prove what is promised."""
    text = document.read_text()
    links = {link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link}
    assert [link for link in sorted(links) if not (document.parent / link).exists()] == []
    files = set(re.findall(r"\btests/[\w/]+\.(?:py|sql)\b", text)) - {"tests/conformance/schema_N.sql"}
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []
    written = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    names = set(re.findall(r"`(test_\w+)`", text))
    assert [name for name in sorted(names) if f"def {name}(" not in written] == []


SETTINGS = [
    pytest.param(text, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, text in enumerate(re.findall(r"^```toml\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL), 1)
]


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_in_a_document_are_valid(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    _, sources = config.explain({"HOME": str(tmp_path)}, home=str(tmp_path))
    assert "config.toml" in sources.values()


def test_every_file_of_tests_is_run_once_by_the_test_command() -> None:
    run = [word for group in suite.GROUPS for part in suite.parts_of(group) for word in part.words if word.endswith(".py")]
    assert sorted(run) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
