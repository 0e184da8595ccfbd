"""A model behind the page: what it thought, which one answered, what that cost, and what is said while it does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.acting import WAIT_MS, answers, send
from tests.browser.conftest import printed_address, tab
from tests.e2e.models import ModelProcess, asking
from tests.fakes.models.script import Reply, Script, call, text, thought

PRICED = '[agent.prices."chat:test"]\ninput = 2.0\ncached = 0.5\noutput = 10.0\n'
BUSY = Reply(status=503, error={"error": {"message": "The engine is overloaded", "type": "server_error"}}, headers={"retry-after": "4"})
WORKS = Reply(
    say=(*thought("They want ", "a greeting."), *text("I will look."), call("terminal", {"command": "echo hi"})), usage=(1200, 20, 400)
)
OVERLAP = """() => {
  const [a, b] = ['.composer .seg', '.composer select'].map(each => document.querySelector(each).getBoundingClientRect());
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}"""
HELLO = Reply(say=text("Hello to you."), usage=(100, 0, 0))
DONE = Reply(say=text("It said hi."), usage=(1300, 10, 1200))


@contextmanager
def talking(browser: Browser, folder: Path, script: Script, **settings: str) -> Iterator[Page]:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(PRICED)
    with ModelProcess(folder / "model", script) as server, asking(home, server, **settings) as serving, tab(browser) as page:
        page.goto(printed_address(serving))
        page.get_by_test_id("composer").wait_for()
        yield page


def test_an_answer_says_which_model_gave_it_and_what_it_cost_and_its_thoughts_are_folded(browser: Browser, tmp_path: Path) -> None:
    """Cost: of the answer and of the conversation, the same live and after loading. So are thoughts."""
    with talking(browser, tmp_path, Script(by="steps", replies=(HELLO, WORKS, DONE))) as page:
        send(page, "Hello")
        expect(answers(page).first).to_contain_text("Hello to you.", timeout=WAIT_MS)
        send(page, "Say hello")
        answer = answers(page).nth(1)
        expect(answer).to_contain_text("It said hi.", timeout=WAIT_MS)
        cost = "2,500 in (1,600 cached) · 30 out · $0.0029"
        expect(answer.get_by_test_id("answer-cost")).to_have_text(f"chat:test · {cost}", timeout=WAIT_MS)
        expect(page.get_by_test_id("conversation-cost")).to_have_text("2,600 in (1,600 cached) · 30 out · $0.0031", timeout=WAIT_MS)
        thoughts = page.get_by_test_id("thoughts")
        expect(thoughts.get_by_text("They want a greeting.")).to_be_hidden()
        thoughts.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(thoughts.get_by_text("They want a greeting.")).to_be_visible()
        page.reload()
        expect(thoughts).to_contain_text("They want a greeting.", timeout=WAIT_MS)
        expect(answer.get_by_test_id("answer-cost")).to_have_text(f"chat:test · {cost}", timeout=WAIT_MS)
        expect(page.get_by_test_id("conversation-cost")).to_have_text("2,600 in (1,600 cached) · 30 out · $0.0031", timeout=WAIT_MS)


def test_a_model_that_fails_is_told_of_while_it_is_asked_again_and_behind_the_answer(browser: Browser, tmp_path: Path) -> None:
    """B10: also to somebody who loads the page while it waits."""
    with talking(browser, tmp_path, Script(replies=(BUSY, Reply(say=text("Here I am."))))) as page:
        send(page, "Are you there?")
        again = page.get_by_test_id("asking-again")
        expect(again).to_contain_text("Asking chat:test again", timeout=WAIT_MS)
        expect(again).to_contain_text("overloaded")
        page.reload()
        expect(again.or_(answers(page)).first).to_contain_text("overloaded", timeout=WAIT_MS)
        expect(answers(page).first).to_contain_text("Here I am.", timeout=WAIT_MS)
        expect(again).to_have_count(0)
        failures = page.get_by_test_id("model-failures")
        failures.locator("summary").click(timeout=WAIT_MS)
        expect(failures).to_contain_text("chat:test did not answer (try 1)")


def test_the_model_of_a_conversation_is_chosen_on_the_page(browser: Browser, tmp_path: Path) -> None:
    """It counts from the next message on, for this conversation, and in every tab. A model also names a conversation that began here."""
    hello, asks = Reply(say=text("Hello.")), Reply(say=(call("ask_user", {"question": "Which way?"}),))
    script = Script(by="steps", replies=(hello, hello, asks))
    with talking(browser, tmp_path, script, agent_models="chat:other", agent_titles="true") as page:
        send(page, "one")
        expect(page.get_by_test_id("answer-cost")).to_contain_text("chat:test", timeout=WAIT_MS)
        choice = page.get_by_label("Model of this conversation")
        expect(choice).to_have_value("chat:test")
        other = page.context.new_page()
        other.goto(page.url)
        expect(other.get_by_label("Model of this conversation")).to_have_value("chat:test", timeout=WAIT_MS)
        choice.select_option("chat:other")
        expect(other.get_by_label("Model of this conversation")).to_have_value("chat:other", timeout=WAIT_MS)
        send(page, "two")
        expect(page.get_by_test_id("answer-cost").nth(1)).to_contain_text("chat:other", timeout=WAIT_MS)
        expect(choice).to_have_value("chat:other")
        for shown in (
            page.get_by_role("heading", name="Hello", exact=True),
            page.get_by_test_id("conversation-item").get_by_text("Hello", exact=True),
        ):
            expect(shown).to_be_visible(timeout=WAIT_MS)
        send(page, "three")
        expect(page.get_by_test_id("question")).to_be_visible(timeout=WAIT_MS)
        page.set_viewport_size({"width": 390, "height": 780})
        expect(choice).to_be_visible()
        assert not page.evaluate(OVERLAP), "on a phone the choice of a model lies over what a message does"
