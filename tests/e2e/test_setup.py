"""`holdfast setup`: from nothing to a model that answers, and what is said where it does not."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.command_line import Said, command, environment, holdfast, is_one_sentence
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import ROOT, Serving, files_with, wait_until
from tests.e2e.window import Window
from tests.fakes.models.script import Reply, Script, text
from tests.ports import free_port

KEY = "sk-of-the-test-0123456789"
READY = Script(replies=(Reply(say=text("ready")),), models=("small", "large"), key=KEY)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ModelProcess]:
    with ModelProcess(tmp_path / "model", READY) as server:
        yield server


def set_up(home: Path, server: ModelProcess, *words: str, key: str = KEY, **variables: str) -> Said:
    return holdfast(home, "setup", "--model", "chat:small", "--base-url", server.url, "--key-stdin", *words, given=key, **variables)


def test_a_model_that_is_set_up_answers_and_a_kill_in_mid_answer_loses_nothing(tmp_path: Path) -> None:
    """P3, P4, A27: a clean home, setup, serve, send, kill -9, and the answer is whole."""
    words = [f"word{number} " for number in range(40)]
    replies = (Reply(say=text("ready")), Reply(say=text(*words), delay_s=0.1), Reply(say=text(*words)))
    home = tmp_path / "home"
    with ModelProcess(tmp_path / "model", Script(replies=replies, models=("small",), key=KEY)) as server:
        said = set_up(home, server)
        assert said.code == 0 and "It answers" in said.out and "Next: " in said.out, said
        assert KEY not in said.out + said.err and files_with(home, KEY) == ["chat.key"]
        assert (home / "chat.key").stat().st_mode & 0o777 == 0o600 and home.stat().st_mode & 0o777 == 0o700
        assert (
            home / "config.toml"
        ).read_text() == f'[agent]\nmodel = "chat:small"\nbase_url = "{server.url}"\napi_key_file = "chat.key"\n'
        with Serving(home) as serving:
            session_id = serving.new_session()
            with subprocess.Popen(command(home, "send", session_id, "Go"), stdout=subprocess.PIPE, env=environment()) as sending:
                wait_until(lambda: "word3 " in str(serving.session(session_id)["messages"]))
                serving.kill()
                serving.start()
                session = serving.wait_for(session_id)
                out = sending.communicate(timeout=60)[0].decode()
        assert session["messages"][-1]["text"] == "".join(words) and session["turns"][-1]["attempt"] == 2
        assert "word39" in out and sending.returncode == 0
        assert files_with(home, KEY) == ["chat.key"]


@pytest.mark.parametrize(
    ("words", "key", "told"),
    [
        ((), "sk-wrong-0123456789", "Incorrect API key provided. Check the key: is it whole, and a key of this provider?"),
        (("--model", "chat:smal"), KEY, "The model smal does not exist. Choose one that there is: small, large."),
        (("--base-url", "http://127.0.0.1:9/v1"), KEY, "(127.0.0.1:9): Connection refused. Start that server, or set the address"),
        (("--base-url", "http://nowhere.invalid/v1"), KEY, "Check the network and the address (base_url)."),
    ],
)
def test_what_does_not_answer_is_told_in_one_sentence_and_nothing_is_written(
    tmp_path: Path, server: ModelProcess, words: tuple[str, ...], key: str, told: str
) -> None:
    said = set_up(tmp_path / "home", server, *words, key=key)
    note, _, sentence = said.err.partition("\n")
    assert said.code == 1 and note.startswith("Trying ") and is_one_sentence(sentence), said.err
    assert told in sentence and sentence.endswith("Nothing was written.\n") and key not in said.out + said.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(status=402, error={"error": {"message": "No credit"}}), "Add credit to the account at the provider"),
        (Reply(status=403, error={"error": {"message": "Not for you"}}), "Allow this key to use the model"),
        (Reply(status=404, error={"error": {"message": "No such model"}}), "Check the name of the model, and the address (base_url)."),
        (
            Reply(status=400, error={"error": {"message": "m does not support tools"}}),
            "does not take what Holdfast sends, which includes tools.",
        ),
        (Reply(status=529, error={"error": {"message": "Overloaded"}}), "Try again later, or choose another model."),
        (Reply(say=text("rea", "dy"), stop_after=1), "Try again later, or choose another model."),
        (Reply(body="<html>", content_type="text/html"), "Is base_url right? Choose another model, or set base_url"),
    ],
)
def test_every_refusal_says_what_to_do(tmp_path: Path, reply: Reply, told: str) -> None:
    with ModelProcess(tmp_path / "model", Script(replies=(reply,))) as server:
        said = set_up(tmp_path / "home", server)
    assert said.code == 1 and told in said.err and not (tmp_path / "home").exists(), said.err


def test_what_is_in_the_settings_already_stays_and_an_old_address_gets_no_new_key(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        '# mine\nmax_waiting = 7\n\n[agent]\neffort = "low"  # enough\nbase_url = "http://old.invalid"\nmodel = "vllm:x"\n'
    )
    said = holdfast(
        home, "setup", "--provider", "openrouter", "--model", "small", "--key-stdin", given=KEY, HOLDFAST_MODEL_BASE_URL=server.url
    )
    assert said.code == 0 and "HOLDFAST_MODEL_BASE_URL is set here and wins" in said.err, said.err
    assert (home / "config.toml").read_text() == (
        '# mine\nmax_waiting = 7\n\n[agent]\neffort = "low"  # enough\nmodel = "openrouter:small"\napi_key_file = "openrouter.key"\n'
    )
    again = holdfast(home, "setup", "--model", "openrouter:large", HOLDFAST_MODEL_BASE_URL=server.url)
    assert again.code == 0 and 'model = "openrouter:large"' in (home / "config.toml").read_text(), again.err
    other = set_up(home, server)
    assert other.code == 0 and "chat.key" in (home / "config.toml").read_text()
    back = holdfast(home, "setup", "--model", "openrouter:small", HOLDFAST_MODEL_BASE_URL=server.url)
    assert back.code == 0 and 'api_key_file = "openrouter.key"' in (home / "config.toml").read_text(), back.err
    assert {asked["headers"]["authorization"] for asked in server.requests} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "Give --provider NAME."),
        (("--model", "small"), 2, "Name the provider of 'small' too"),
        (("--provider", "chat", "--model", "x"), 2, "Give --base-url URL."),
        (("--model", "chat:x", "--base-url", "http://me:pw@127.0.0.1/v1"), 1, "The address holds a name or password"),
        (("--model", "openai:x"), 1, "There is no key for openai. Give it with --key-file PATH or --key-stdin, or set OPENAI_API_KEY."),
        (("--model", "openai:x", "--key-stdin"), 1, "There is no key in standard input: it is empty."),
        (("--model", "openai:x", "--key-file", "/nowhere/key"), 1, "The key file /nowhere/key cannot be read: No such file or directory."),
        (("--model", "openai:a b", "--key-stdin"), 78, "Invalid model 'openai:a b'"),
    ],
)
def test_what_a_script_forgot_is_told(tmp_path: Path, words: tuple[str, ...], code: int, told: str) -> None:
    said = holdfast(tmp_path / "home", "setup", *words, given="sk-x" if code == 78 else "", OPENAI_API_KEY="")
    assert said.code == code and told in said.err and "Traceback" not in said.err, said.err


def test_settings_that_leave_no_room_for_a_model_are_told_before_it_is_asked(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for written, told in (
        ('[agent]\nmodule = "my_agent:agent"\n', "[agent] has both a model and a module."),
        ('agent = {effort = "low"}\n', 'Write this below [agent] yourself: model = "chat:small"'),
        ("[agent]\napi_key = 'sk-secret'\n", "a key does not belong there"),
    ):
        (home / "config.toml").write_text(written)
        said = set_up(home, server)
        assert said.code == 78 and told in said.err, said.err
        assert (home / "config.toml").read_text() == written and KEY not in said.err
    assert files_with(home, KEY) == [] and server.requests == []


def test_a_list_of_models_is_told_to_a_script_that_names_none(tmp_path: Path, server: ModelProcess) -> None:
    said = holdfast(tmp_path / "home", "setup", "--provider", "chat", "--base-url", server.url, "--key-stdin", given=KEY)
    assert said.code == 2 and "Give --model NAME. There is: small, large." in said.err


def asked(window: Window, words: str, times: int) -> None:
    wait_until(lambda: window.text.count(words) == times)


def test_at_a_terminal_it_asks_and_the_key_is_seen_nowhere(tmp_path: Path, server: ModelProcess) -> None:
    """Neither on the screen nor in the list of processes."""
    home = tmp_path / "home"
    with Window(command(home, "setup"), cwd=ROOT) as window:
        window.wait_for("Provider:")
        window.press("chatty\n")
        window.wait_for("'chatty' is not one of")
        window.press("Chat\n")
        window.wait_for("Address of the server:")
        window.press(f"{server.url}\n")
        window.wait_for("Key (not shown")
        window.press("sk-wrong-0123456789\n")
        window.wait_for("Try again?")
        assert "Check the key" in window.text
        window.press("\n")
        window.wait_for("Provider [chat]:")
        window.press("\n")
        window.wait_for(f"Address of the server [{server.url}]:")
        window.press("\n")
        asked(window, "Key (not shown", 2)
        window.press(f"{KEY}\n")
        window.wait_for("2  large")
        assert KEY not in " ".join(word for each in psutil.process_iter() for word in _words(each))
        window.press("largo\n")
        asked(window, "Try again?", 2)
        assert "Choose one that there is: large, small." in window.text and not home.exists()
        for words in ("Provider", "Address", "Model ("):  # The key was right, so it is not asked for again.
            number = window.text.count(words) + 1
            window.press("\n")
            asked(window, words, number)
        window.press("2\n")
        assert window.wait() == 0
    assert "Next: " in window.text and KEY not in window.text and "sk-wrong" not in window.text
    assert 'model = "chat:large"' in (home / "config.toml").read_text() and files_with(home, KEY) == ["chat.key"]


def test_a_key_that_was_typed_for_one_provider_is_not_sent_to_another(tmp_path: Path, server: ModelProcess) -> None:
    """Not even when the first one cannot be reached and the person chooses another."""
    variables = {"HOLDFAST_MODEL_BASE_URL": server.url}
    with Window(command(tmp_path / "home", "setup", "--model", "xai:none"), cwd=ROOT, variables=variables) as window:
        window.wait_for("Key (not shown")
        window.press(f"{KEY}\n")
        window.wait_for("Try again?")
        window.press("\n")
        window.wait_for("Provider [xai]:")
        window.press("groq\n")
        asked(window, "Key (not shown", 2)
    assert {asked["body"]["model"] for asked in server.requests} == {"none"}


def test_a_person_who_gives_up_leaves_nothing_behind(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    with Window(command(home, "setup", "--model", "chat:none", "--base-url", server.url), cwd=ROOT) as window:
        window.wait_for("Key (not shown")
        window.press(f"{KEY}\n")
        window.wait_for("Try again?")
        window.press("n\n")
        assert window.wait() == 1 and "Nothing was written." in window.text
    assert not home.exists()


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_running_gateway_uses_the_new_model_after_a_restart(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    with Serving(home, port=str(free_port())) as serving:
        said = set_up(home, server)
        assert "holdfast restart" in said.out and said.out.endswith("`; it interrupts no answer.\n")
        assert holdfast(home, "restart").code == 0
        answered = holdfast(home, "send", "new", "hello")
        assert answered.code == 0 and "ready" in answered.out
        serving.stop()


# What the documents say


def sh(text: str) -> list[list[str]]:
    """The lines of each block, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [[line.partition(" # ")[0].strip() for line in block.splitlines()] for block in blocks]


def answer_questions(window: Window, provider: str, model: str) -> None:
    window.wait_for("Provider")
    window.press(f"{provider}\n")
    window.wait_for("Key (not shown")
    window.press(f"{KEY}\n")
    window.wait_for("Model (")
    window.press(f"{model}\n")


def test_the_readme_leads_to_a_model_as_it_is_written(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text().partition("## A real model")[2].partition("\n## ")[0]
    [setup, serve, send], [alone] = sh(section)
    [settings] = re.findall(r"^```toml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    script = Script(replies=(Reply(say=text("I can help.")),), models=("claude-sonnet-4-5", "qwen3"))
    with ModelProcess(tmp_path / "model", script) as server:
        home = tmp_path / "home"
        variables = {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": str(free_port()), "HOLDFAST_MODEL_BASE_URL": server.url}

        def typed(line: str) -> Window:
            return Window(["sh", "-c", line], cwd=ROOT, variables=variables)

        with typed(setup) as window:
            answer_questions(window, "anthropic", "claude-sonnet-4-5")
            assert window.wait() == 0, window.text
        assert (home / "config.toml").read_text() == settings and files_with(home, KEY) == ["anthropic.key"]
        for line, served in ((serve, "anthropic:claude-sonnet-4-5"), (alone, "ollama:qwen3")):
            with typed(line) as serving:
                serving.wait_for(f"serves {served}. Try to break it.")
                with typed(send) as sending:
                    assert sending.wait() == 0 and "I can help." in sending.text
                serving.press("\x03")
                serving.wait_for("Stopped.")
                serving.wait()
        assert [(asked["wire"], asked["body"]["model"]) for asked in server.requests] == [
            *[("anthropic", "claude-sonnet-4-5")] * 2,
            ("chat", "qwen3"),
        ]


def test_the_commands_about_setting_up_in_the_documentation_do_what_they_say(tmp_path: Path) -> None:
    """Where they name an address, that of a server of ours counts."""
    [setup, serve], scripted, [doctor], *_ = sh((ROOT / "docs" / "models.md").read_text())
    assert (setup, serve, doctor) == ("holdfast setup", "holdfast serve", "holdfast doctor --deep") and len(scripted) == 3
    for name in ("openai.txt", "key.txt"):
        (tmp_path / name).write_text(f"{KEY}\n")
    home = tmp_path / "home"
    with ModelProcess(tmp_path / "model", Script(replies=READY.replies)) as server:
        variables = {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": "0", "HOLDFAST_MODEL_BASE_URL": server.url}

        def script(line: str) -> list[str]:
            return ["sh", "-c", f'holdfast() {{ "{sys.executable}" -m holdfast "$@"; }}\n{line}']

        for line in (*scripted, doctor):
            done = subprocess.run(script(line), capture_output=True, text=True, cwd=tmp_path, env=environment(**variables), timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"^ok +model +chat:llama answers", done.stdout, re.MULTILINE)
        with Window(script(setup), cwd=ROOT, variables=variables) as window:
            answer_questions(window, "xai", "small")
            assert window.wait() == 0, window.text
    assert [asked["body"]["model"] for asked in server.requests] == ["gpt-5", "qwen3", "llama", "llama", "small"]
    assert files_with(home, KEY) == ["chat.key", "openai.key", "xai.key"]


# The doctor


def checked(home: Path, *words: str, **variables: str) -> list[tuple[str, str]]:
    said = holdfast(home, "doctor", "--json", *words, HOLDFAST_PORT="0", **variables)
    found = [each for each in said.json["checks"] if each["check"] in ("agent", "model", "prices", "transcriber")]
    return [(each["state"], f"{each['text']} {each['advice']}") for each in found]


def test_the_doctor_checks_the_model_and_its_key(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    [(state, told)] = checked(home)
    assert state == "ok" and "the demo agent answers" in told
    [(state, told)] = checked(home, HOLDFAST_AGENT_MODULE="my_agent:agent")
    assert state == "ok" and "my_agent:agent" in told
    [(state, told), _] = checked(home, HOLDFAST_MODEL="anthropic:claude-sonnet-4-5", ANTHROPIC_API_KEY="")
    assert state == "fail" and "There is no key for anthropic" in told and "setup" in told and "ANTHROPIC_API_KEY" in told
    [(state, told), _, (priced, prices)] = checked(
        home,
        HOLDFAST_MODEL="anthropic:claude-sonnet-4-5",
        ANTHROPIC_API_KEY=KEY,
        HOLDFAST_AGENT_FALLBACKS="xai:x-of-nobody",
        XAI_API_KEY=KEY,
    )
    assert state == "ok" and "ANTHROPIC_API_KEY" in told and KEY not in told
    assert priced == "warn" and "No price is known for" in prices and "xai:x-of-nobody" in prices
    set_up(home, server)
    assert checked(home)[0] == ("ok", "chat:small, with the key in chat.key; --deep tries it with one request ")
    [(state, told)] = checked(home, "--deep")
    assert state == "ok" and told.startswith("chat:small answers")
    (home / "chat.key").write_text("sk-wrong-0123456789")
    [(state, told)] = checked(home, "--deep")
    assert state == "fail" and "Check the key" in told and "sk-wrong" not in told
    (home / "chat.key").chmod(0o640)
    [(state, told)] = checked(home)
    assert state == "fail" and "Others can read the key" in told and "chmod 600" in told


def test_the_doctor_loads_agents_of_ones_own_in_a_process_of_their_own(tmp_path: Path) -> None:
    """What such a module does when it is loaded does nothing to the doctor."""
    home, modules = tmp_path / "home", tmp_path / "modules"
    modules.mkdir()
    (modules / "fine_agent.py").write_text("async def agent(request, turn): ...\n")
    (modules / "broken_agent.py").write_text("import sys\nprint('hello')\nimport nothing_of_the_kind\n")
    (modules / "rude_agent.py").write_text("import os\nos._exit(3)\n")
    (modules / "no_agent.py").write_text("agent = 5\n")
    variables = {"PYTHONPATH": f"{modules}:{ROOT / 'src'}"}
    names = ("fine", "broken", "rude", "no")
    settings = {name: {"module": f"{name}_agent:agent"} for name in names} | {"toy": {"demo": True}}
    told = checked(home, "--deep", HOLDFAST_AGENTS=json.dumps(settings), **variables)
    assert [state for state, _ in told] == ["ok", "fail", "fail", "fail", "ok"], told
    assert "fine is fine_agent:agent, which can be loaded" in told[0][1] and "toy is the demo agent" in told[4][1]
    assert "broken: The agent 'broken_agent:agent' cannot be loaded: ModuleNotFoundError" in told[1][1] and "PYTHONPATH" in told[1][1]
    assert "its process ended with 3" in told[2][1] and "'no_agent:agent' is no agent" in told[3][1]
    [(state, said)] = checked(home, "--deep", HOLDFAST_AGENT_MODULE="broken_agent:agent", **variables)
    assert state == "fail" and said.startswith("The agent 'broken_agent:agent' cannot be loaded")


def test_the_doctor_tries_the_transcriber_and_models_of_named_agents_and_tells_of_windows_that_are_guesses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = Script(replies=READY.replies, transcripts=("", 401), key=KEY)
    with ModelProcess(tmp_path / "model", script) as server:
        set_up(home, server)
        variables = {"HOLDFAST_AGENT_TRANSCRIBER": "chat:whisper", "HOLDFAST_AGENTS": '{"poet": {"model": "chat:verse"}}'}
        assert [told for _, told in checked(home, **variables)] == [
            "chat:small, with the key in chat.key; --deep tries it with one request ",
            "chat:verse of poet, with the key in chat.key; --deep tries it with one request ",
            "chat:whisper; --deep tries it with a second of silence ",
        ]
        deep = [checked(home, "--deep", **variables) for _ in range(2)]
        assert [[state for state, _ in each] for each in deep] == [["ok"] * 3, ["ok", "ok", "fail"]], deep
        assert "chat:whisper answers" in deep[0][2][1] and "Check the key" in deep[1][2][1]
        checks = holdfast(home, "doctor", "--json", HOLDFAST_PORT="0", **variables).json["checks"]
        [window] = [each for each in checks if each["check"] == "window"]
        assert window["state"] == "warn" and window["text"].startswith(
            "How much chat:small and chat:verse can be given is not known, so 8,192"
        )
        checks = holdfast(home, "doctor", "--json", HOLDFAST_PORT="0", HOLDFAST_AGENT_WINDOW="32768").json["checks"]
        assert not [each for each in checks if each["check"] == "window"]


def test_the_settings_that_are_shown_hold_no_key(tmp_path: Path, server: ModelProcess) -> None:
    home = tmp_path / "home"
    set_up(home, server)
    for words in (("config",), ("config", "--json")):
        shown = holdfast(home, *words, ANTHROPIC_API_KEY=KEY, HOLDFAST_MODEL_API_KEY=KEY).out
        assert "chat:small" in shown and "chat.key" in shown and KEY not in shown


def test_the_doctor_fails_and_serve_warns_about_instructions_that_cannot_be_read(tmp_path: Path, server: ModelProcess) -> None:
    """A model that is not told its work does something else; nobody should have to guess why."""
    home = tmp_path / "home"
    with asking(home, server, agent_instructions_file="work.md"):
        wait_until(lambda: "agent.instructions_file is" in (home / "holdfast.log").read_text())
        variables = {"HOLDFAST_MODEL": "chat:test", "HOLDFAST_MODEL_BASE_URL": server.url, "HOLDFAST_AGENT_INSTRUCTIONS_FILE": "work.md"}
        [found] = found_about("instructions", home, **variables)
        assert found["state"] == "fail" and f"{home / 'work.md'}, which cannot be read: No such file" in found["text"]
        (home / "work.md").write_text("Speak French.")
        assert found_about("instructions", home, **variables) == []


def found_about(check: str, home: Path, **variables: str) -> list[dict[str, Any]]:
    checks = holdfast(home, "doctor", "--json", HOLDFAST_PORT="0", **variables).json["checks"]
    return [each for each in checks if each["check"] == check]
