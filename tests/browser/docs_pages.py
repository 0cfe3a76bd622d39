"""The documentation in a real browser: every page fits a desk and a phone and passes axe in both colour schemes, requests no
other host, and violates no policy of its own. A reader finds answers by search and by keyboard, and copies samples.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs Chromium, and `playwright` and `axe-playwright-python` from PyPI.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager

from accessibility import SCHEMES, audit
from local_stack import call, stack
from login_pages import PHONE
from playwright.sync_api import expect, sync_playwright

# A busy machine needs more than the five seconds of Playwright.
expect.set_options(timeout=40_000)

DESK = {"width": 1280, "height": 900}
# A desk at 400 %, or a phone with text of 120 %.
SMALL = {"width": 320, "height": 700}
# What a reader asks for, and a page that has to be among the first results.
QUESTIONS = {
    "verify signature": "/docs/guides/verifying",
    "409": "/docs/guides/errors#codes",
    "email_taken": "/docs/guides/errors#codes",
    "booking_created": "/docs/events#booking_created",
    "paging": "/docs/guides/getting-started#page-through-a-list",
    "cursor": "/docs/guides/getting-started#page-through-a-list",
    "limits": "/docs/guides/limits",
    "rate limit": "/docs/guides/limits#requests",
    "changes": "/docs/guides/changes",
    "deprecated": "/docs/guides/changes#when-something-ends",
    "create client": "/docs/reference/clients#create-a-client",
    "Idempotency-Key": "/docs/guides/idempotency",
    "hmac sha256": "/docs/guides/verifying",
    # Words that only samples have.
    "urlencode": "/docs/guides/syncing#changes",
    "axum": "/docs/guides/verifying#receivers",
    # Words that readers have for what the pages name otherwise.
    "authentication": "/docs/guides/getting-started#get-a-key",
    "canceled booking": "/docs/reference/crm-bookings#cancel-a-booking",
    "GDPR": "/docs/guides/syncing#changes",
    "pagination": "/docs/guides/getting-started#page-through-a-list",
    "timeout": "/docs/guides/events#answer-then-work",
    "unsubscribe": "/docs/reference/settings-webhooks#delete-a-webhook-endpoint",
    "unsubscribe contact": "/docs/guides/crm#contacts",
}
FIRST_RESULTS = 5
# Pages that answer what readers ask for most: one or two clicks from the start page.
ANSWERS = ["guides/verifying", "guides/errors#codes", "events", "guides/getting-started#page-through-a-list", "guides/limits", "guides/changes"]


@contextmanager
def watched(page, base_url):
    """Asserts that the page meanwhile logs no error or warning and requests no other host."""
    complaints, strangers = [], []

    def listen(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def check_host(request):
        if not request.url.startswith((f"{base_url}/", "data:")):
            strangers.append(request.url)

    page.on("console", listen)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", check_host)
    yield
    assert not complaints and not strangers, (page.url, complaints, strangers)


def expect_page(page, base_url, path, width):
    """Asserts that a page is complete and fits the screen."""
    with watched(page, base_url):
        page.goto(f"{base_url}{path}")
        page.wait_for_load_state("networkidle")
    assert page.locator("h1").count() == 1 and page.locator("a[aria-current=page]").count() == 1, path
    found = page.evaluate("document.documentElement.scrollWidth")
    assert found <= width, f"{path} is {found} px wide"


def expect_answers(page, base_url):
    """Asserts that one search leads to what a reader asks for, and that links of the start page do."""
    for question, answer in QUESTIONS.items():
        page.goto(f"{base_url}/docs/search")
        page.get_by_role("searchbox").fill(question)
        expect(page.get_by_role("status")).to_contain_text(f"“{question}”")
        links = [link.get_attribute("href") for link in page.locator("#results a").all()]
        assert answer in links[:FIRST_RESULTS], f"{question}: {links}"
    page.get_by_role("searchbox").fill("no such words here")
    expect(page.get_by_role("status")).to_contain_text("0 sections")
    # What is typed is in the address.
    page.get_by_role("searchbox").fill("axum & serde")
    expect(page).to_have_url(f"{base_url}/docs/search?q=axum+%26+serde")
    shown = page.locator("#results").inner_text()
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("“axum & serde”")
    assert shown and page.locator("#results").inner_text() == shown, shown
    page.goto(f"{base_url}/docs")
    links = [link.get_attribute("href") for link in page.locator("main a").all()]
    assert all(f"/docs/{answer}" in links for answer in ANSWERS), links


def expect_search_dialog(page, base_url):
    """Asserts that the search opens by keys and by mouse, follows the typing, and is used by keyboard alone."""
    page.goto(f"{base_url}/docs/guides/limits")
    for opens in ("/", "Control+k"):
        page.keyboard.press(opens)
        box = page.get_by_role("combobox", name="Search the documentation")
        expect(box).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("link", name="Search").click()
    page.keyboard.type("verify sign")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("option").first.locator("mark").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[aria-selected=true]").get_attribute("data-href")
    assert page.get_by_role("option").nth(1).get_attribute("data-href") == chosen
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base_url}{chosen}")


def expect_samples(context, base_url):
    """Asserts that a sample is copied whole, and that the language that a reader chooses is kept on every page."""
    page = context.new_page()
    page.goto(f"{base_url}/docs/reference/clients")
    shown = page.locator("section[aria-labelledby=create-a-client] .tabs").first
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == shown.locator("code:visible").text_content() and copied.startswith("curl "), copied
    expect(shown.get_by_role("button", name="Copy")).to_be_visible()
    # By keyboard, in a circle.
    tabs = shown.get_by_role("tab")
    tabs.first.focus()
    names = []
    for key in ("ArrowLeft", "Home", "End", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        expect(shown.locator("[aria-selected=true]")).to_be_focused()
        names.append(page.evaluate("document.activeElement.textContent"))
    assert names == ["PHP", "curl", "PHP", "curl", "Python"], names
    for path in ("/docs/reference/clients", "/docs/reference/event-feed"):
        page.goto(f"{base_url}{path}")
        chosen = page.locator("[data-sync=language] [aria-selected=true]").all_text_contents()
        assert set(chosen) == {"Python"} and len(chosen) > 1, chosen
        assert page.locator("[data-sync=language] code:visible").first.text_content().startswith("# pip install requests")


def expect_marks(page, base_url):
    """Asserts that the operation that is read is marked in the navigation while the page scrolls."""
    page.goto(f"{base_url}/docs/reference/clients")
    for name in ("read-a-client", "list-clients", "change-a-client"):
        page.evaluate("name => document.getElementById(name).scrollIntoView({ behavior: 'instant' })", name)
        expect(page.locator("#pages ul ul [aria-current]")).to_have_attribute("href", f"#{name}")
    page.goto(f"{base_url}/docs/guides/limits")
    page.evaluate("document.getElementById('times').scrollIntoView({ behavior: 'instant' })")
    expect(page.locator(".here [aria-current]")).to_have_attribute("href", "#times")


def expect_menu(context, base_url):
    """Asserts that a phone has all pages behind a button, and that Escape closes them."""
    page = context.new_page()
    page.goto(f"{base_url}/docs/guides/limits")
    button = page.get_by_role("button", name="All pages")
    expect(page.locator("#pages")).to_be_hidden()
    button.click()
    expect(page.locator("#pages")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#pages")).to_be_hidden()
    expect(button).to_be_focused()


def expect_console(page, base_url, key):
    """Asserts that the console sends reads at once and writes after a question, and shows refusals: a taken address,
    and a limit that is used up. Nothing is stored."""

    def operation(path, section):
        page.goto(f"{base_url}{path}")
        page.locator(f"section[aria-labelledby={section}]").get_by_role("button", name="Try it").click()
        form = page.locator("form.console")
        form.get_by_label("Partner key").fill(key)
        return form

    form = operation("/docs/reference/clients", "list-clients")
    form.get_by_role("button", name="Send").click()
    answer = form.get_by_role("status")
    expect(answer).to_contain_text("200 OK")
    expect(answer).to_contain_text('"clients"')
    expect(answer).to_contain_text("ratelimit-policy")

    form = operation("/docs/reference/clients", "create-a-client")
    body = form.get_by_label("Body")
    body.fill(body.input_value().replace("grace@", "console@"))
    answer = form.get_by_role("status")
    form.get_by_role("button", name="Send").click()
    expect(answer).to_contain_text("real data")
    form.get_by_role("button", name="Do not send").click()
    expect(answer).to_be_empty()
    form.get_by_role("button", name="Send").click()
    form.get_by_role("button", name="Send it").click()
    expect(answer).to_contain_text("201 Created")
    # The same key: the answer is a replay.
    form.get_by_role("button", name="Send", exact=True).click()
    expect(answer).to_contain_text("idempotent-replay: true")
    form.get_by_role("button", name="New idempotency key").click()
    form.get_by_role("button", name="Send", exact=True).click()
    expect(answer).to_contain_text("409 Conflict")
    expect(answer).to_contain_text("email_taken")

    # Requests of this test alone use up the limit of the key. It begins anew with the minute.
    now = call(f"{base_url}/_local/health")["now"]
    call(f"{base_url}/_local/clock", {"advance_s": 60 - int(now[17:19])})
    form = operation("/docs/reference/key", "check-a-key")
    page.evaluate(
        """async (key) => {
            const headers = { Authorization: `Bearer ${key}` };
            const left = (answer) => answer.status !== 429;
            while (left(await fetch("/v1/ping", { headers, cache: "no-store" }))) {}
        }""",
        key,
    )
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_role("status")).to_contain_text("429 Too Many Requests")
    kept = page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])")
    assert key not in kept, kept


def expect_keyboard(page, base_url):
    """Asserts that the first stop skips to the content, and that every stop is seen."""
    page.goto(f"{base_url}/docs/guides/errors")
    # A screen reader reads a heading once.
    expect(page.get_by_role("heading", name="Order of checks", exact=True)).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"{base_url}/docs/reference/clients")
    for _ in range(90):
        page.keyboard.press("Tab")
        focused = page.evaluate("(({ width, height }) => [width, height])(document.activeElement.getBoundingClientRect())")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert min(focused) > 0 and outline == "solid", (page.evaluate("document.activeElement.outerHTML"), outline)


def expect_print(page, base_url):
    """Asserts that paper shows the text without the navigation, and samples in one language."""
    page.goto(f"{base_url}/docs/reference/clients")
    page.emulate_media(media="print")
    for hidden in (".top", "#pages", ".copy", ".foot", ".try"):
        assert not page.locator(hidden).first.is_visible(), hidden
    shown = page.locator("section[aria-labelledby=list-clients] pre:visible").all_text_contents()
    assert sum(sample.startswith(("curl", "# pip", "const", "<?php")) for sample in shown) == 1, shown


def expect_without_script(context, base_url):
    """Asserts that a page is complete without its scripts: samples, navigation, and the page of the search."""
    page = context.new_page()
    page.goto(f"{base_url}/docs/reference/clients")
    samples = page.locator("section[aria-labelledby=list-clients] .tabs").first.locator("pre")
    assert samples.count() == 4 and all(sample.is_visible() for sample in samples.all())
    assert not page.locator(".try").first.is_visible()
    page.locator(".menu").click()
    expect(page.locator("#pages")).to_be_visible()
    page.get_by_role("link", name="Close the list").click()
    expect(page.locator("#pages")).to_be_hidden()
    page.locator(".seek").click()
    page.wait_for_url(f"{base_url}/docs/search")
    assert "needs JavaScript" in page.locator("main").inner_text()


def main(binary):
    began = time.monotonic()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with stack(binary) as (base_url, _), sync_playwright() as playwright:
        with urllib.request.urlopen(f"{base_url}/docs") as answer:
            start = answer.read().decode()
        navigation = start[start.index('<nav id="pages"') : start.index("</nav>", start.index('<nav id="pages"'))]
        paths = [*re.findall(r'href="(/[^"#]+)"', navigation), "/docs/search?q=client"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for scheme in SCHEMES:
            for screen in (DESK, PHONE):
                seen = browser.new_context(viewport=screen, color_scheme=scheme)
                audited = browser.new_context(viewport=screen, color_scheme=scheme, bypass_csp=True).new_page()
                page = seen.new_page()
                for path in paths:
                    expect_page(page, base_url, path, screen["width"])
                    audited.goto(f"{base_url}{path}")
                    audit(audited, scheme, path)
        small = browser.new_context(viewport=SMALL).new_page()
        for path in paths:
            expect_page(small, base_url, path, SMALL["width"])
        readers = browser.new_context(viewport=DESK, permissions=["clipboard-read", "clipboard-write"])
        expect_answers(readers.new_page(), base_url)
        expect_search_dialog(readers.new_page(), base_url)
        expect_samples(readers, base_url)
        expect_marks(readers.new_page(), base_url)
        expect_keyboard(readers.new_page(), base_url)
        expect_print(readers.new_page(), base_url)
        expect_menu(browser.new_context(viewport=PHONE), base_url)
        expect_without_script(browser.new_context(viewport=PHONE, java_script_enabled=False), base_url)
        with tempfile.TemporaryDirectory() as folder, stack(binary, "--data-dir", f"{folder}/.local") as (demo_url, _):
            key = json.loads(pathlib.Path(folder, ".local", "demo.json").read_text())["partner_key"]
            page = browser.new_page()
            strangers = []
            page.on("request", lambda request: request.url.startswith(f"{demo_url}/") or strangers.append(request.url))
            expect_console(page, demo_url, key)
            assert not strangers, strangers
        browser.close()
    seconds = time.monotonic() - began
    print(f"documentation: {len(paths)} pages on two screens, light and dark, {len(QUESTIONS)} searches, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
