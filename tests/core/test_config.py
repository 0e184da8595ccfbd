"""Settings: what wins over what, and what is said of a wrong one."""

import math
import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import config
from holdfast.config import (
    Agent,
    BadConfig,
    Config,
    busy_modes,
    explain,
    home_folder,
    load,
    make_token,
    prepare_home,
    read_token,
    reset_policies,
)
from holdfast.config import agent as agents
from holdfast.config.agent import ModelPrice
from holdfast.config.agents import NamedAgent, as_agent
from holdfast.config.agents import key as named_key
from holdfast.core.busy import Mode
from holdfast.core.limits import SpendingLimits
from holdfast.core.resets import Policy


def write(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def test_without_anything_the_defaults_count(tmp_path: Path) -> None:
    assert load({"HOME": str(tmp_path)}) == Config(home=tmp_path / ".holdfast")


def test_the_command_line_wins_over_a_variable_over_the_file_over_the_default(tmp_path: Path) -> None:
    home = write(tmp_path, "port = 1\nmax_waiting = 2\nprofile = 'file'\n")
    environment = {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": "3", "HOLDFAST_MAX_WAITING": "4"}
    settings, sources = explain(environment, overrides={"port": 5, "host": None})
    assert (settings.port, settings.max_waiting, settings.profile, settings.host) == (5, 4, "file", "127.0.0.1")
    assert {name: sources[name] for name in ("port", "max_waiting", "profile", "host", "home")} == {
        "port": "--port",
        "max_waiting": "HOLDFAST_MAX_WAITING",
        "profile": "config.toml",
        "host": "default",
        "home": "HOLDFAST_HOME",
    }


def test_every_setting_has_a_source(tmp_path: Path) -> None:
    assert set(explain({"HOME": str(tmp_path)})[1]) == {"home", *config.SETTINGS}


def test_the_home_folder_is_the_option_then_the_variable_then_a_default(tmp_path: Path) -> None:
    environment = {"HOME": "/someone", "HOLDFAST_HOME": "/variable"}
    assert home_folder(environment, "/option") == Path("/option")
    assert home_folder(environment) == Path("/variable")
    assert home_folder({"HOME": "/someone", "HOLDFAST_HOME": ""}) == Path("/someone/.holdfast")
    assert home_folder({}, "relative") == Path.cwd() / "relative"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert load({"HOME": str(tmp_path), "HOLDFAST_PORT": "", "HOLDFAST_ALLOWED_HOSTS": ""}).port == config.DEFAULT_PORT


def test_allowed_hosts_in_a_variable_have_commas_between_them(tmp_path: Path) -> None:
    settings = load({"HOME": str(tmp_path), "HOLDFAST_ALLOWED_HOSTS": "a.example, b.example,"})
    assert settings.allowed_hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 'many'", "Invalid port 'many' (from config.toml). It must be a number from 0 to 65535"),
        ("port = 70000", "Invalid port 70000 (from config.toml). It must be a number from 0 to 65535 (0 takes a free port)."),
        ("prot = 1", "prot in"),
        ("home = '/elsewhere'", "home in"),
        ("port = ", "not valid TOML"),
        ("allowed_hosts = [1]", 'Invalid allowed_hosts [1] (from config.toml). It must be a list of texts, for example ["one", "two"].'),
        ("max_waiting = 0", "Invalid max_waiting 0 (from config.toml). It must be a number of at least 1."),
        ("turn_idle_timeout_s = nan", "Invalid turn_idle_timeout_s nan"),
        ("keep_streams_s = inf", "Invalid keep_streams_s inf"),
        ("drain_timeout_s = -1", "Invalid drain_timeout_s -1"),
        ("stop_timeout_s = -1", "Invalid stop_timeout_s -1"),
        ("stop_timeout_s = inf", "Invalid stop_timeout_s inf"),
        ("profile = ''", "Invalid profile: it is empty"),
        ("crash_window_s = -1", "Invalid crash_window_s -1"),
        ("resume_window_s = nan", "Invalid resume_window_s nan (from config.toml)."),
        ("crash_policy = 'ignore'", "Invalid crash_policy 'ignore' (from config.toml). It must be resume or suspend."),
        ("auto_resume = 'perhaps'", "Invalid auto_resume 'perhaps' (from config.toml). It must be true or false."),
        ("resets = 'idle 60'", "Invalid resets 'idle 60' (from config.toml). It must be a table"),
        ("[resets]\ndefault = 'idle 0'", "'idle 0' is not a reset policy"),
        ("[resets]\nchat = 5", "resets"),
        ("[busy]\ndefault = 'shout'", "Invalid busy: 'shout' is not a busy policy. Use queue, steer, interrupt or reject."),
        ("[busy]\n'telegram:*' = 'steer'", "'telegram:*' matches no session key."),
        ("log_format = 'xml'", "text or json"),
        ("log_level = 'loud'", "debug, info, warning or error"),
        ("host = '0.0.0.0'", "allowed_hosts"),
        (
            "public_url = 'chat.example'",
            "Invalid public_url: 'chat.example' is not the address of a whole site, such as https://chat.example.org.",
        ),
        (
            "trusted_proxies = ['nginx']",
            "Invalid trusted_proxies: 'nginx' is neither an address nor a network, such as 127.0.0.1 or 10.0.0.0/8.",
        ),
        (
            "[tools]\nsandbox = 'docker'",
            "Invalid tools.sandbox 'docker' (from config.toml). It must be auto, bubblewrap, landlock or none.",
        ),
        (
            "[tools]\nfolder = '/etc/passwd/x'",
            "Invalid tools.folder '/etc/passwd/x': /etc/passwd is not a folder that commands can work in.",
        ),
        ("[tools]\nfolder = '/proc/x'", "Invalid tools.folder '/proc/x': /proc is not a folder that commands can work in."),
        ("[tools]\nfetch_private = ['10.0.0.0/99']", "Invalid tools.fetch_private: '10.0.0.0/99' does not appear to be"),
        ("[tools]\ntimeout_s = 0", "Invalid tools.timeout_s 0.0 (from config.toml). It must be a number of at least 1."),
        ("[tools]\nnetwork = 'perhaps'", "Invalid tools.network 'perhaps' (from config.toml). It must be true or false."),
        ("[tools]\nshared = true", "[tools] has shared = true but no folder. Set folder to the one that all conversations should share."),
        (
            "[tools]\nfolder = 'blobs'",
            "Invalid tools.folder 'blobs': commands would work among Holdfast's own files. Choose a folder outside",
        ),
        ("[tools]\nfolder = '.'\nshared = true", "Invalid tools.folder '.': commands would work among Holdfast's own files."),
        ("[agent]\nwindow = 10", "Invalid agent.window 10. It must be a number of at least 1000."),
        ("[agent.prices.mine]\ninput = 1", 'Invalid [agent.prices."mine"]. It must be named PROVIDER:NAME, as in model.'),
        ("[agent.prices.'chat:a']\ninput = 1", "has only one of input and output. Set both, or neither."),
        ("[agent.prices.'chat:a']\ninput = -1\noutput = 1", "Prices are US dollars for a million tokens, 0 or more."),
        ("[agent.prices.'chat:a']\nwindow = 1", "Invalid window 1 in"),
        ("agent.prices = 5", "Invalid agent.prices 5 (from config.toml). It must be a table of prices for each model"),
        (
            "[agent]\ntakes = ['video']",
            "Invalid agent.takes: 'video' is nothing that a model takes besides text. Use image, audio or file.",
        ),
        (
            "[agent]\ntakes = 'image'",
            'Invalid agent.takes \'image\' (from config.toml). It must be a list of texts, for example ["one", "two"].',
        ),
        ("[agent.extra]\nstream = false\nmodel = 'x'", "Invalid agent.extra: Holdfast itself sets model and stream in each request."),
        ("[agent]\nextra = 'top_p'", "Invalid agent.extra 'top_p' (from config.toml). It must be a table"),
        ("[agent]\nmodel = 'chat:a'\ntranscriber = 'whisper'", "Invalid model 'whisper' in [agent]. It must be PROVIDER:NAME"),
        ("[agent]\ntranscriber = 'openai:whisper-1'", "[agent] has a transcriber but no model."),
        ("undo_delete_s = -1", "Invalid undo_delete_s -1.0 (from config.toml). It must be a number of at least 0."),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path, text: str, said: str) -> None:
    home = write(tmp_path, text)
    with pytest.raises(BadConfig) as caught:
        load({}, home=str(home))
    assert said in str(caught.value)


def test_reset_policies_are_a_table_in_the_file_and_one_line_in_a_variable(tmp_path: Path) -> None:
    """A19"""
    home = write(tmp_path, "[resets]\ndefault = 'idle 60'\n'chat.group' = 'daily 4'\n")
    expected = {"default": Policy(idle_min=60), "chat.group": Policy(daily_hour=4)}
    assert reset_policies(load({}, home=str(home))) == expected
    variable = {"HOME": str(tmp_path), "HOLDFAST_RESETS": " default=idle 60; chat.group = daily 4 ;"}
    assert reset_policies(load(variable)) == expected
    assert reset_policies(load({"HOME": str(tmp_path)})) == {}


def test_busy_policies_are_a_table_in_the_file_and_one_line_in_a_variable(tmp_path: Path) -> None:
    home = write(tmp_path, "[busy]\ndefault = 'steer'\n'agent:main:chat:*' = 'reject'\n")
    expected = {"default": Mode.STEER, "agent:main:chat:*": Mode.REJECT}
    assert busy_modes(load({}, home=str(home))) == expected
    variable = {"HOME": str(tmp_path), "HOLDFAST_BUSY": "default=steer; agent:main:chat:* = reject"}
    assert busy_modes(load(variable)) == expected
    assert busy_modes(load({"HOME": str(tmp_path)})) == {}


@pytest.mark.parametrize(("text", "window"), [("0", 0.0), ("-1", -1.0), ("inf", math.inf), ("90.5", 90.5)])
def test_the_window_of_freshness_may_be_never_and_always(tmp_path: Path, text: str, window: float) -> None:
    """R6"""
    assert load({"HOME": str(tmp_path), "HOLDFAST_RESUME_WINDOW_S": text}).resume_window_s == window


@pytest.mark.parametrize(("text", "automatic"), [("true", True), ("false", False), ("1", True), ("0", False)])
def test_automatic_resume_can_be_switched_off_by_a_variable(tmp_path: Path, text: str, automatic: bool) -> None:
    """R7"""
    assert load({"HOME": str(tmp_path), "HOLDFAST_AUTO_RESUME": text}).auto_resume is automatic


def test_what_was_cut_is_resumed_by_default(tmp_path: Path) -> None:
    """A16, R6, R7"""
    settings = load({"HOME": str(tmp_path)})
    assert (settings.auto_resume, settings.resume_window_s, settings.crash_policy, settings.crash_window_s) == (True, 3600, "resume", 120)


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        BadConfig, match=r"Invalid port 'many' \(from HOLDFAST_PORT\)\. It must be a number from 0 to 65535 \(0 takes a free port\)\."
    ):
        load({"HOME": str(tmp_path), "HOLDFAST_PORT": "many"})


def test_a_file_that_is_not_text_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadConfig):
        load({}, home=str(tmp_path))


def test_an_address_others_can_reach_needs_the_names_it_answers_to(tmp_path: Path) -> None:
    home = write(tmp_path, "host = '0.0.0.0'\nallowed_hosts = ['chat.example']\n")
    assert load({}, home=str(home)).host == "0.0.0.0"


def test_the_home_folder_is_made_and_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    prepare_home(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    home.chmod(0o755)
    prepare_home(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert list(home.iterdir()) == []


def test_a_home_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfig, match="cannot be used"):
        prepare_home(tmp_path / "file")


def test_a_shared_folder_is_not_closed_to_everyone_else(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(BadConfig, match="Other programs use"):
        prepare_home(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_the_users_own_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadConfig, match="Other programs use"):
        prepare_home(tmp_path)


def test_a_token_is_long_random_and_closed_to_others(tmp_path: Path) -> None:
    assert read_token(tmp_path) is None
    first = make_token(tmp_path)
    assert read_token(tmp_path) == first and len(first) >= 43
    assert make_token(tmp_path) != first
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_an_empty_token_is_none(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    assert read_token(tmp_path) is None
    assert read_token(tmp_path / "token") is None


def test_a_token_that_does_not_read_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(BadConfig, match="cannot be read"):
        read_token(tmp_path)


def test_nothing_is_read_from_the_environment_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HOLDFAST_PORT", "1")
    assert load({"HOME": str(tmp_path)}).port == config.DEFAULT_PORT


@given(drain_s=st.floats(0, 1e6), stop_s=st.floats(0, 1e6))
def test_the_window_of_a_drain_and_the_deadline_of_a_stop_never_disagree(drain_s: float, stop_s: float) -> None:
    """C23: one number is derived from the other, so no value of either makes the deadline fall into the window."""
    settings = Config(drain_timeout_s=drain_s, stop_timeout_s=stop_s)
    window, deadline = config.drain_window_s(settings), config.stop_deadline_s(settings)
    assert 0 <= window <= drain_s and deadline > 0
    assert window == 0 or deadline - window >= config.LEAST_CLOSING_S - 1e-6
    if stop_s:
        assert deadline == stop_s
    else:  # Nobody kills it: the whole window, and time to close behind it.
        assert window == drain_s and abs(deadline - drain_s - config.CLOSING_S) < 1e-6


@pytest.mark.parametrize(
    ("drain_s", "stop_s", "window", "deadline"),
    [(0, 0, 0, 30), (20, 0, 20, 50), (20, 60, 20, 60), (60, 30, 22, 30), (60, 8, 0, 8), (60, 1, 0, 1), (22, 30, 22, 30)],
)
def test_a_supervisor_that_kills_early_shortens_the_window(drain_s: float, stop_s: float, window: float, deadline: float) -> None:
    """C23"""
    settings = Config(drain_timeout_s=drain_s, stop_timeout_s=stop_s)
    assert (config.drain_window_s(settings), config.stop_deadline_s(settings)) == (window, deadline)


# [agent]


def test_a_setting_of_a_table_is_named_by_both_and_has_its_source(tmp_path: Path) -> None:
    home = write(tmp_path, "[agent]\nmodel = 'openai:gpt-5'\nmodels = ['openai:gpt-5', 'ollama:qwen3']\nmax_tokens = 5\n")
    environment = {"HOLDFAST_HOME": str(home), "HOLDFAST_MODEL": "anthropic:claude", "HOLDFAST_AGENT_FALLBACKS": "a:b, c:d"}
    settings, sources = explain(environment | {"HOLDFAST_MODEL_BASE_URL": "http://127.0.0.1:1", "HOLDFAST_AGENT_TEMPERATURE": "0.5"})
    agent = settings.agent
    assert (agent.model, agent.fallbacks, agent.max_tokens, agent.temperature) == ("anthropic:claude", ("a:b", "c:d"), 5, 0.5)
    assert agent.choices == ("anthropic:claude", "openai:gpt-5", "ollama:qwen3")
    found = {name: source for name, source in sources.items() if name.startswith("agent.") and source != config.DEFAULT}
    assert found == {
        "agent.model": "HOLDFAST_MODEL",
        "agent.models": "config.toml",
        "agent.fallbacks": "HOLDFAST_AGENT_FALLBACKS",
        "agent.base_url": "HOLDFAST_MODEL_BASE_URL",
        "agent.max_tokens": "config.toml",
        "agent.temperature": "HOLDFAST_AGENT_TEMPERATURE",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent = 'demo'", "It must be a table: write its settings below a line [agent]."),
        ("[agent]\nmodle = 'a:b'", "Unknown setting agent.modle"),
        ("[agent]\nmodel = 5", "Invalid agent.model 5 (from config.toml). It must be text in quotes."),
        ("[agent]\nmax_tokens = 'many'", "Invalid agent.max_tokens 'many' (from config.toml). It must be a whole number."),
        ("[agent]\nmodel = 'claude'", "It must be PROVIDER:NAME"),
        ("[agent]\nmodel = 'a:b'\nfallbacks = ['b']", "Invalid model 'b' in [agent]"),
        ("[agent]\nmodel = 'a:b'\nmodule = 'c:d'", "write the other one in a table [agents.NAME]"),
        ("[agent]\nmodule = 'my_agent'", "MODULE:OBJECT"),
        ("[agent]\nmodels = ['a:b']", "but no model"),
        ("[agent]\ninstructions = 'a'\ninstructions_file = 'b'", "Keep one"),
        ("[agent]\nmax_tokens = 0", "at least 1"),
        ("[agent]\ntimeout_s = 0", "Invalid agent.timeout_s 0.0 (from config.toml). It must be a number of at least 1."),
        ("[agent]\napi_key = 'sk-secret'", "Move it to a file that only you can read (chmod 600)"),
    ],
)
def test_a_wrong_setting_of_the_agent_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load({}, home=str(write(tmp_path, text)))
    assert said in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_a_key_comes_from_a_file_that_is_closed_to_others_or_from_a_variable(tmp_path: Path) -> None:
    environment = {config.MODEL_KEY: "from-variable"}
    assert agents.key(Agent(), tmp_path, environment) == "from-variable"
    assert agents.key(Agent(), tmp_path, {}) is None
    named = Agent(api_key_file="key")
    with pytest.raises(BadConfig, match="cannot be read: No such file"):
        agents.key(named, tmp_path, environment)
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o640)
    with pytest.raises(BadConfig, match="chmod 600"):
        agents.key(named, tmp_path, environment)
    file.chmod(0o600)
    assert agents.key(named, tmp_path, environment) == "from-file"
    file.write_text("\n")
    with pytest.raises(BadConfig, match="is empty"):
        agents.key(named, tmp_path, environment)


# [agents.NAME]


def test_agents_with_names_are_chosen_from_one_list_with_the_models(tmp_path: Path) -> None:
    text = "[agents.mine]\nmodule = 'my:agent'\n[agents.local]\nmodel = 'ollama:qwen3'\ninstructions = 'Be brief.'\n"
    alone = load({}, home=str(write(tmp_path, text)))
    assert config.choices(alone) == ("mine", "local") and config.has_agent(alone)
    with_model = load({"HOLDFAST_MODEL": "openai:gpt-5", "HOLDFAST_AGENT_MODELS": "a:b"}, home=str(alone.home))
    assert config.choices(with_model) == ("openai:gpt-5", "a:b", "mine", "local")
    assert config.choices(load({"HOLDFAST_AGENT_MODULE": "my:default"}, home=str(alone.home)))[0] == "my:default"
    variable = load({"HOLDFAST_AGENTS": '{"demo": {"demo": true}}'}, home=str(tmp_path / "other"))
    assert config.choices(variable) == ("demo",) and not config.has_agent(variable)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents = 'mine'", "Write a table [agents.NAME] for each agent"),
        ("[agents]\nmodel = 'a:b'", "Write a table [agents.NAME] for each agent"),
        ("[agents.Mine]\ndemo = true", "Invalid name in [agents.Mine]. It must be at most 40 small letters and digits"),
        ("[agents.7]\ndemo = true", "beginning with a letter"),
        ("[agents.holdfast]\ndemo = true", "and not default or holdfast"),
        ("[agents.mine]\nmodle = 'a:b'", "Invalid [agents.mine] (from config.toml): Object contains unknown field `modle`."),
        ("[agents.mine]\ninstructions = 'x'", "[agents.mine] needs exactly one of model, module, acp and demo."),
        ("[agents.mine]\nmodel = 'a:b'\nmodule = 'c:d'", "[agents.mine] needs exactly one of model, module, acp and demo."),
        ("[agents.mine]\nmodule = 'c:d'\nbase_url = 'http://x'", "[agents.mine] has no model, and only a model has base_url. Remove that."),
        ("[agents.mine]\nmodule = 'c'", "Invalid agents.mine.module 'c'. It must be MODULE:OBJECT"),
        ("[agents.mine]\nmodel = 'claude'", "Invalid model 'claude' in [agents.mine]. It must be PROVIDER:NAME"),
        ("[agents.mine]\nmodel = 'a:b'\ninstructions = 'a'\ninstructions_file = 'b'", "[agents.mine] has both instructions and"),
        ("[agents.mine]\nmodel = 'a:b'\napi_key = 'sk-secret'", "Move it to a file that only you can read (chmod 600)"),
    ],
)
def test_a_wrong_setting_of_a_named_agent_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load({}, home=str(write(tmp_path, text)))
    assert said in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("named", "key", "base_url", "takes"),
    [
        ({"model": "chat:other"}, "main", "http://main", ("image",)),
        ({"model": "chat:other", "base_url": "http://main"}, "main", "http://main", ("image",)),
        ({"model": "chat:other", "base_url": "http://elsewhere"}, None, "http://elsewhere", None),
        ({"model": "chat:other", "api_key_file": "own"}, "own", "http://main", ("image",)),
        ({"model": "openai:gpt-5"}, None, "", None),
        ({"model": "openai:gpt-5", "api_key_file": "own"}, "own", "", None),
    ],
)
def test_the_key_of_the_agent_goes_to_its_own_provider_at_its_own_address_and_to_no_other(
    tmp_path: Path, named: dict[str, str], key: str | None, base_url: str, takes: tuple[str, ...] | None
) -> None:
    for name in ("main", "own"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o600)
    made = NamedAgent(**named)  # type: ignore[arg-type]
    for file, environment in (("main", {}), ("", {config.MODEL_KEY: "main"})):
        agent = Agent(model="chat:main", base_url="http://main", api_key_file=file, takes=("image",), extra={"top_p": 1})
        alone = as_agent(made, agent)
        assert named_key(made, agent, tmp_path, environment) == key
        assert (alone.base_url, alone.takes, alone.extra) == (base_url, takes, {"top_p": 1} if takes else {})


# [policy]


def test_patterns_of_a_policy_are_read_from_the_file_and_from_variables(tmp_path: Path) -> None:
    home = write(tmp_path, "[policy]\nallow = ['terminal(git status *)']\ndeny = ['terminal(rm *)']\n")
    settings, sources = explain({"HOLDFAST_HOME": str(home), "HOLDFAST_POLICY_ASK": "write_file, fetch_url(*.example.com)"})
    rules = settings.policy.rules
    assert [str(each) for each in (*rules.allow, *rules.ask, *rules.deny)] == [
        *("terminal(git status *)", "write_file"),
        *("fetch_url(*.example.com)", "terminal(rm *)"),
    ]
    assert (sources["policy.allow"], sources["policy.ask"]) == ("config.toml", "HOLDFAST_POLICY_ASK")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\nallow = ['terminal(']", "Invalid pattern in [policy]: 'terminal(' is not a pattern. Write a tool's name"),
        ("[policy]\ndeny = ['terminal()']", "has empty parentheses. Write terminal alone"),
        ("[policy]\nallow = ['terminal(sudo *)']", "Write the exact line instead"),
        ("[policy]\nallow = 'terminal'", "Invalid policy.allow 'terminal' (from config.toml). It must be a list of texts"),
        ("[policy]\nforbid = []", "Unknown setting policy.forbid"),
    ],
)
def test_a_bad_pattern_of_a_policy_is_named_with_what_to_write(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadConfig, match=re.escape(said)):
        load({"HOLDFAST_HOME": str(write(tmp_path, text))})


def test_the_folders_of_tools_are_in_the_home_folder_unless_it_is_said_where(tmp_path: Path) -> None:
    assert config.tools_folder(load({}, home=str(tmp_path))) == tmp_path / "work"
    home = write(tmp_path, "[tools]\nfolder = 'work/here'\n")
    assert config.tools_folder(load({}, home=str(home))) == home / "work" / "here"
    variables = {"HOLDFAST_TOOLS_FOLDER": "/srv/agents", "HOLDFAST_TOOLS_SHARED": "true", "HOLDFAST_TOOLS_NETWORK": "false"}
    settings = load(variables, home=str(home))
    assert (config.tools_folder(settings), settings.tools.shared, settings.tools.network) == (Path("/srv/agents"), True, False)


def test_prices_are_tables_of_the_file_or_json_in_a_variable(tmp_path: Path) -> None:
    folder = tmp_path / ".holdfast"
    folder.mkdir()
    (folder / "config.toml").write_text('[agent.prices."chat:a"]\ninput = 1\noutput = 2.5\nwindow = 9000\n')
    found = load({"HOME": str(tmp_path)}).agent.prices
    assert found == {"chat:a": ModelPrice(input=1, output=2.5, window=9000)}
    written = '{"chat:b": {"input": 0, "output": 0}}'
    assert load({"HOME": str(tmp_path), "HOLDFAST_AGENT_PRICES": written}).agent.prices == {"chat:b": ModelPrice(input=0, output=0)}
    with pytest.raises(BadConfig, match=r"Invalid agent.prices 'cheap' \(from HOLDFAST_AGENT_PRICES\)"):
        load({"HOME": str(tmp_path), "HOLDFAST_AGENT_PRICES": "cheap"})


def test_limits_of_money_are_dollars_in_the_settings(tmp_path: Path) -> None:
    variables = {"HOLDFAST_LIMITS_DAY_COST": "1.5", "HOLDFAST_LIMITS_SENDER_TURNS": "3", "HOLDFAST_LIMITS_THEN": "end"}
    assert load(variables, home=str(tmp_path)).limits.spending == SpendingLimits(day_cost=1_500_000, sender_turns=3, asks=False)
    assert load({}, home=str(tmp_path)).limits.spending == SpendingLimits()
    with pytest.raises(BadConfig, match=r"Invalid limits.day_cost -1.0 \(from HOLDFAST_LIMITS_DAY_COST\)"):
        load({"HOLDFAST_LIMITS_DAY_COST": "-1"}, home=str(tmp_path))
    with pytest.raises(BadConfig, match="It must be ask or end"):
        load({"HOLDFAST_LIMITS_THEN": "explode"}, home=str(tmp_path))


def test_what_a_model_takes_and_is_given_besides_is_a_list_and_a_table_or_a_variable(tmp_path: Path) -> None:
    home = str(write(tmp_path, "[agent]\ntakes = []\n[agent.extra]\ntop_p = 0.9\nprovider = { order = ['a'] }\n"))
    found = load({}, home=home).agent
    assert (found.takes, found.extra) == ((), {"top_p": 0.9, "provider": {"order": ["a"]}})
    found = load({"HOLDFAST_AGENT_TAKES": "image, audio", "HOLDFAST_AGENT_EXTRA": '{"top_k": 5}'}, home=home).agent
    assert (found.takes, found.extra) == (("image", "audio"), {"top_k": 5})
    assert (Agent().takes, Agent().extra) == (None, {})


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"HOLDFAST_MODEL": "openai:gpt"}, True),
        ({"HOLDFAST_MODEL": "chat:m", "HOLDFAST_MODEL_BASE_URL": "https://models.example/v1"}, True),
        ({"HOLDFAST_MODEL": "chat:m", "HOLDFAST_MODEL_BASE_URL": "http://127.0.0.1:8000/v1"}, False),
        ({"HOLDFAST_MODEL": "chat:m", "HOLDFAST_MODEL_BASE_URL": "http://[::1]:8000/v1"}, False),
        ({"HOLDFAST_MODEL": "ollama:m"}, False),
        ({"HOLDFAST_MODEL": "ollama:m", "HOLDFAST_AGENT_TITLES": "true"}, True),
        ({"HOLDFAST_MODEL": "openai:gpt", "HOLDFAST_AGENT_TITLES": "false"}, False),
    ],
)
def test_a_model_on_this_machine_gives_titles_only_if_that_is_wanted(tmp_path: Path, variables: dict[str, str], wanted: bool) -> None:
    """It answers one request after the other: a title would be in the way of the next answer."""
    assert agents.wants_titles(load(variables, home=str(tmp_path)).agent) is wanted
