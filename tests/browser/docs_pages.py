"""The documentation in a real browser: every page fits a desk and a phone and passes axe in both colour schemes, requests no
other host, and violates no policy of its own. A reader finds answers by search and by keyboard, and copies samples.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs Chromium, and `playwright` and `axe-playwright-python` from PyPI.
"""

import os
import re
import shutil
import sys
import time
import urllib.request
from contextlib import contextmanager

from local_stack import stack
from login_pages import PHONE, audit
from playwright.sync_api import expect, sync_playwright

DESK = {"width": 1280, "height": 900}
SCHEMES = ("light", "dark")
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
    assert page.locator("h1").count() == 1 and page.locator("nav a[aria-current=page]").count() == 1, path
    found = page.evaluate("document.documentElement.scrollWidth")
    assert found <= width, f"{path} is {found} px wide"


def expect_answers(page, base_url):
    """Asserts that one search leads to what a reader asks for, and that links of the start page do."""
    for question, answer in QUESTIONS.items():
        page.goto(f"{base_url}/docs")
        page.get_by_role("searchbox").fill(question)
        page.keyboard.press("Enter")
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


def expect_samples(context, base_url):
    """Asserts that a sample is copied whole, and that the language that a reader chooses is kept."""
    page = context.new_page()
    page.goto(f"{base_url}/docs/reference/clients")
    shown = page.locator("#create-a-client ~ details.sample").first
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f"{copied}\n" == shown.locator("code").text_content() and copied.startswith("curl "), copied
    expect(shown.get_by_role("button")).to_have_text("Copy")
    # By keyboard.
    python = page.locator("details.sample", has_text="Python").first.locator("summary")
    python.focus()
    page.keyboard.press("Enter")
    open_now = page.locator("details.sample[open] > summary")
    assert set(open_now.all_text_contents()) == {"Python"}, open_now.all_text_contents()
    page.goto(f"{base_url}/docs/reference/event-feed")
    assert set(open_now.all_text_contents()) == {"Python"}, open_now.all_text_contents()


def expect_keyboard(page, base_url):
    """Asserts that the first stop skips to the content, and that every stop is seen."""
    page.goto(f"{base_url}/docs/guides/errors")
    # A screen reader reads a heading once.
    expect(page.get_by_role("heading", name="Order of checks", exact=True)).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.evaluate("(({ width, height }) => [width, height])(document.activeElement.getBoundingClientRect())")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert min(focused) > 0 and outline == "solid", (page.evaluate("document.activeElement.outerHTML"), outline)


def expect_print(page, base_url):
    """Asserts that paper shows the text without the navigation."""
    page.goto(f"{base_url}/docs/reference/clients")
    page.emulate_media(media="print")
    for hidden in ("body > header", "#pages", ".contents", ".copy", "footer"):
        assert not page.locator(hidden).first.is_visible(), hidden
    assert page.locator(".sample[open] pre").first.is_visible()


def expect_without_script(context, base_url):
    """Asserts that a page is readable without its scripts."""
    page = context.new_page()
    page.goto(f"{base_url}/docs/reference/clients")
    assert page.locator("details.sample[open] pre").first.is_visible()
    page.goto(f"{base_url}/docs/search?q=limits")
    assert "needs JavaScript" in page.locator("main").inner_text()


def main(binary):
    began = time.monotonic()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with stack(binary) as (base_url, _), sync_playwright() as playwright:
        with urllib.request.urlopen(f"{base_url}/docs") as answer:
            start = answer.read().decode()
        navigation = start[start.index('<nav id="pages"') : start.index("</nav>", start.index('<nav id="pages"'))]
        paths = [*re.findall(r'href="([^"]+)"', navigation), "/docs/search?q=client"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for scheme in SCHEMES:
            for screen in (DESK, PHONE):
                seen = browser.new_context(viewport=screen, color_scheme=scheme)
                audited = browser.new_context(viewport=screen, color_scheme=scheme, bypass_csp=True).new_page()
                page = seen.new_page()
                for path in paths:
                    expect_page(page, base_url, path, screen["width"])
                    audit(audited, f"{base_url}{path}", scheme)
        readers = browser.new_context(viewport=DESK, permissions=["clipboard-read", "clipboard-write"])
        expect_answers(readers.new_page(), base_url)
        expect_samples(readers, base_url)
        expect_keyboard(readers.new_page(), base_url)
        expect_print(readers.new_page(), base_url)
        expect_without_script(browser.new_context(viewport=PHONE, java_script_enabled=False), base_url)
        browser.close()
    seconds = time.monotonic() - began
    print(f"documentation: {len(paths)} pages on two screens, light and dark, {len(QUESTIONS)} searches, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
