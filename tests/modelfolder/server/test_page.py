"""The page to try a model, in a real browser: what it shows is what the server said, as text."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Page, expect

import opened_browser
from ova.modelfolder.folder import Model
from ova.modelfolder.server.app import create
from ova.modelfolder.server.gate import Door
from ova.modelfolder.server.run import listen

pytestmark = pytest.mark.browser
browser = opened_browser.browser
HOSTILE = '<img src=x onerror="document.title=1">'
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
ARTEFACTS = Path(__file__).resolve().parents[3] / "artefacts"


class Quiet(uvicorn.Server):
    """A server in a thread, which leaves signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(model: Model, **options: Any) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listening:
        config = uvicorn.Config(create(model, **options), log_level="warning", ws="none")
        server = Quiet(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(60)


@contextmanager
def opened(browser: Any, at: str, size: str = "desktop") -> Iterator[Page]:
    """The page, which must say nothing on the console and ask nobody else."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(at)
    yield page
    context.close()
    assert said == []
    assert all(url.startswith((at, "blob:")) for url in asked)


def test_a_sentence_is_answered_and_the_threshold_decides(browser: Any, text: Model) -> None:
    with served(text) as at, opened(browser, at) as page:
        expect(page.locator("#about")).to_contain_text("3 classes")
        expect(page.locator("#promise")).to_have_text("\n".join(text.shown.lines(text.classes)))
        page.fill("#text", "tell me about rain and the sun")
        with page.expect_response("**/predict*") as reply:
            page.press("#text", "Enter")
        said = reply.value.json()["answers"][0]
        expect(page.locator("#label")).to_have_text(said["label"] or "none of the above")
        names = page.locator("#bars .name").all_text_contents()
        assert names == [each["label"] for each in said["classes"]]
        shown = page.locator("#bars .p").all_text_contents()
        assert shown == [f"{each['p']:.3f}" for each in said["classes"]]
        examples = page.locator("#examples span:first-child").all_text_contents()
        assert examples == [each["example"] for each in said["nearest"]]
        page.locator("#threshold").fill("1")
        expect(page.locator("#label")).to_have_text("none of the above")
        expect(page.locator("#why")).to_contain_text("is then void")
        page.locator("#threshold").fill("0")
        expect(page.locator("#label")).to_have_text(said["best_guess"])
        page.click("#own")
        expect(page.locator("#label")).to_have_text(said["label"] or "none of the above")


def test_a_row_is_filled_and_what_is_wrong_with_it_is_said(browser: Any, table: Model) -> None:
    with served(table) as at, opened(browser, at) as page:
        page.get_by_label("length").fill("5.97")
        page.get_by_label("width").fill("2.58")
        page.get_by_label("colour").select_option("green")
        page.get_by_role("button", name="Ask the model").click()
        expect(page.locator("#label")).to_have_text("d")
        expect(page.locator("#near")).to_be_hidden()


def test_a_refused_request_is_a_sentence_on_the_page(browser: Any, table: Model) -> None:
    with served(table) as at:
        context = browser.new_context()
        page = context.new_page()
        page.goto(at)
        page.get_by_label("length").fill("abc")
        page.get_by_role("button", name="Ask the model").click()
        expect(page.locator("#error")).to_contain_text("column 'length' is 'abc', no finite number")
        expect(page.locator("#answer")).to_be_hidden()
        context.close()


def test_an_image_is_chosen_or_dropped(browser: Any, image: Model, pictures: Path) -> None:
    files = sorted(pictures.rglob("*.png"))
    with served(image) as at, opened(browser, at, "phone") as page:
        page.set_input_files("#file", files[0])
        expect(page.locator("#picture")).to_have_js_property("complete", value=True)
        first = page.locator("#answer").get_attribute("data-id")
        data = page.evaluate_handle(
            """(bytes) => { const data = new DataTransfer();
              data.items.add(new File([new Uint8Array(bytes)], "a.png", { type: "image/png" }));
              return data; }""",
            list(files[-1].read_bytes()),
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": data})
        expect(page.locator("#answer")).not_to_have_attribute("data-id", first or "")
        expect(page.locator("#picture")).to_be_visible()
        assert page.locator("#picture").evaluate("image => image.naturalWidth") > 0


def test_whatever_the_model_says_is_text(browser: Any, text: Model) -> None:
    evidence = replace(text.evidence, examples=(HOSTILE,) * len(text.evidence.examples))
    hostile = replace(text, classes=(HOSTILE,) * 3, evidence=evidence)
    with served(hostile) as at, opened(browser, at) as page:
        page.fill("#text", HOSTILE)
        page.press("#text", "Enter")
        page.locator("#threshold").fill("0")
        expect(page.locator("#label")).to_have_text(HOSTILE)
        expect(page.locator("#examples")).to_contain_text(HOSTILE)
        assert page.locator("main img:not(#picture)").count() == 0
        assert page.title() == "Try the model"


def test_the_token_is_asked_for(browser: Any, table: Model) -> None:
    with served(table, door=Door("s3cret")) as at:
        context = browser.new_context()
        page = context.new_page()
        page.goto(at)
        page.fill("#token", "wrong")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#error")).to_have_text("That is not the token.")
        page.fill("#token", "s3cret")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#ask")).to_be_visible()
        expect(page.locator("#key")).to_be_hidden()
        context.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits(browser: Any, text: Model, size: str) -> None:
    with served(text) as at, opened(browser, at, size) as page:
        page.fill("#text", "zebra in the rain " * 20)
        page.press("#text", "Enter")
        expect(page.locator("#answer")).to_be_visible()
        wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not page.evaluate(wide)
        ARTEFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTEFACTS / f"try-{size}.png", full_page=True)
