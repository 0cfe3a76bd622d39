"""The documentation in a real browser: the reference shows every operation and event, no page requests another host or
violates its own policy, the guides fit a phone and pass axe in both colour schemes.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs Chromium, and `playwright` and `axe-playwright-python` from PyPI.
"""

import json
import os
import shutil
import sys
import time
import urllib.request
from contextlib import contextmanager

from local_stack import stack
from login_pages import PHONE, audit
from playwright.sync_api import sync_playwright

DESK = {"width": 1280, "height": 900}
SCHEMES = ("light", "dark")


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


def expect_reference(page, base_url, document):
    """Asserts that the reference shows the whole document and that an operation opens."""
    with watched(page, base_url):
        page.goto(f"{base_url}/docs")
        page.wait_for_selector(".opblock")
        operations = sum(len(path) for path in document["paths"].values()) + len(document["webhooks"])
        assert page.locator(".opblock").count() == operations, page.locator(".opblock").count()
        page.locator(".opblock-summary-control", has_text="Create a client").first.click()
        page.wait_for_selector(".opblock.is-open .responses-table")
        text = page.locator(".opblock.is-open").inner_text()
        assert "Idempotency-Key" in text and "email_taken" in text, text


def expect_guide(page, base_url, path):
    """Asserts that a guide is complete and fits the phone."""
    with watched(page, base_url):
        page.goto(f"{base_url}{path}")
    assert page.locator("h1").count() == 1 and page.locator("nav a[aria-current=page]").count() == 1
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"], f"{path} is {width} px wide"


def main(binary):
    began = time.monotonic()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with stack(binary) as (base_url, _), sync_playwright() as playwright:
        with urllib.request.urlopen(f"{base_url}/openapi.json") as answer:
            document = json.load(answer)
        pages = next(
            parameter["schema"]["enum"]
            for parameter in document["paths"]["/docs/guides/{page}"]["get"]["parameters"]
            if parameter["name"] == "page"
        )
        guides = [f"/docs/guides/{name}" for name in pages]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for scheme in SCHEMES:
            expect_reference(browser.new_context(viewport=DESK, color_scheme=scheme).new_page(), base_url, document)
            phone = browser.new_context(viewport=PHONE, color_scheme=scheme)
            for path in guides:
                expect_guide(phone.new_page(), base_url, path)
            audited = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
            for path in guides:
                audit(audited.new_page(), f"{base_url}{path}", scheme)
        browser.close()
    seconds = time.monotonic() - began
    print(f"documentation: the reference and {len(guides)} guides, light and dark, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
