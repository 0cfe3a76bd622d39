"""The login pages in a real browser: they fit a phone, work without scripts and by keyboard, submit their form within
the page's policy and only once, and pass axe in both colour schemes. So does the page of a sandbox's used link.

Takes the path of the stack under test. Runs with PYTHONPATH=tests. Needs Chromium, and `playwright` and `axe-playwright-python` from PyPI.
"""

import json
import os
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from accessibility import SCHEMES, audit
from local_stack import call, stack
from playwright.sync_api import sync_playwright

PHONE = {"width": 360, "height": 740}
LEAST_BUTTON_PX = 44
HELD_AT_MOST_S = 60
# A word wider than the phone, and characters that need escaping.
COACH_NAME = "Wolfeschlegelsteinhausenbergerdorff & <b>Sons</b>"
CLIENT_NAME = "Hubert Wolfeschlegelsteinhausenbergerdorff <i>Sr.</i>"


@contextmanager
def application():
    """Starts a coach's host that answers every request, in place of the application. Yields its URL."""

    class Anything(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Application</title>")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Anything)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


class KeepRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


@contextmanager
def holding(base_url):
    """Starts a proxy of the stack that holds each POST until an event is set. Yields its URL, the event, and the
    statuses of its POSTs."""
    opener, released, statuses = urllib.request.build_opener(KeepRedirects), threading.Event(), []

    class Holding(BaseHTTPRequestHandler):
        def do_GET(self):
            self.forward()

        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            assert released.wait(HELD_AT_MOST_S), "a POST is held for too long"
            statuses.append(self.forward(b""))

        def forward(self, body=None):
            request = urllib.request.Request(base_url + self.path, data=body, method=self.command)
            try:
                answer = opener.open(request)
            except urllib.error.HTTPError as error:
                answer = error
            content = answer.read()
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The browser has aborted this request.
            return answer.status

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Holding)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", released, statuses
    finally:
        server.shutdown()


class Coach:
    """A coach with a partner key and one client."""

    def __init__(self, base_url, aws_url, coach_id, canonical_host):
        self.base_url, self.canonical_host = base_url, canonical_host
        workspace = {
            "id": f"fact-{coach_id}",
            "occurred_at": "2026-01-01T00:00:00Z",
            "coach_id": coach_id,
            "email": f"{coach_id}@coaches.example",
            "name": COACH_NAME,
            "team_id": None,
            "canonical_host": canonical_host,
            "time_zone": "UTC",
            "country": "US",
            "plan": {"client_cap": None},
            "entitlements": {"partner_api": True, "pro_crm": False, "gym": False},
            "crm": None,
        }
        entry = {
            "EventBusName": "partner-api",
            "Source": "coaching.application",
            "DetailType": "workspace.saved",
            "Detail": json.dumps(workspace),
        }
        call(aws_url, {"Entries": [entry]}, x_amz_target="AWSEvents.PutEvents")
        call(f"{base_url}/_local/settle", {})
        session = call(f"{base_url}/_local/session", {"coach_id": coach_id})
        key = {"name": "Browser", "scope": "partner"}
        made = call(f"{base_url}/settings/keys", key, authorization=f"Bearer {session['token']}")
        self.key = made["key"]
        client = {"email": f"client@{coach_id}.example", "full_name": CLIENT_NAME, "send_welcome": False}
        self.client_id = call(f"{base_url}/v1/clients", client, x_api_key=self.key)["client_id"]

    def link(self):
        """Mints a link and points it to the stack, as a path rule of the coach's host would."""
        made = call(f"{self.base_url}/v1/clients/{self.client_id}/login-link", {}, x_api_key=self.key)
        assert made["login_url"].startswith(f"{self.canonical_host}/login/"), made
        return made["login_url"].replace(self.canonical_host, self.base_url)


def expect_page(page, url, status):
    """Opens a page and asserts that it is well-formed, fits the phone and obeys its own policy."""
    blocked = []

    def listen(message):
        if "Content Security Policy" in message.text:
            blocked.append(message.text)

    page.on("console", listen)
    answer = page.goto(url)
    page.remove_listener("console", listen)
    assert answer.status == status, (url, answer.status)
    assert not blocked, blocked
    assert page.locator("h1").count() == 1 and page.locator("main").count() == 1
    assert page.locator("html[lang=en]").count() == 1 and page.title()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"], f"{url} is {width} px wide"
    # The browser's default font would mean that the style was not applied.
    font = page.evaluate("getComputedStyle(document.body).fontFamily")
    assert "system-ui" in font, font


def sign_in(page, coach, by_keyboard):
    """Opens a link, presses its button, and asserts that the link is dead afterwards. Returns the link."""
    link = coach.link()
    for _ in range(2):
        expect_page(page, link, 200)
    assert COACH_NAME in page.locator("h1").inner_text()
    button = page.get_by_role("button")
    assert button.count() == 1 and button.is_visible()
    box = button.bounding_box()
    assert min(box["height"], box["width"]) >= LEAST_BUTTON_PX, box
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] and box["y"] + box["height"] <= PHONE["height"], box
    if by_keyboard:
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outline")
        assert page.evaluate("document.activeElement.tagName") == "BUTTON" and "solid" in outline, outline
        page.keyboard.press("Enter")
    else:
        button.click()
    page.wait_for_url(f"{coach.canonical_host}/session#token=*")
    assertion = page.url.split("#token=")[1]
    assert assertion.count(".") == 2, page.url
    expect_page(page, link, 410)
    assert page.locator("button, form, a").count() == 0
    return link


def sign_in_to_a_sandbox(page, coach):
    """Opens a link, presses its button, and asserts that the link then says whom it would have signed in. Returns the
    link."""
    link = coach.link()
    expect_page(page, link, 200)
    assert CLIENT_NAME not in page.locator("main").inner_text()
    page.get_by_role("button").click()
    page.get_by_role("heading", name=CLIENT_NAME).wait_for()
    assert page.url == link, page.url
    # The page comes again, as its own policy and a phone's width allow it.
    expect_page(page, link, 200)
    text = page.locator("main").inner_text()
    assert all(said in text for said in (CLIENT_NAME, COACH_NAME, f"{coach.canonical_host}/session", "sandbox")), text
    assert page.locator("button, form, a").count() == 0
    return link


def sandbox(binary, browser):
    """Follows links in a sandbox, with scripts and without. Returns the number of audits."""
    with stack(binary, "--no-demo", "--ephemeral", "--mode", "test") as (base_url, aws_url):
        coach = Coach(base_url, aws_url, "sandbox", "https://coach.example")
        contexts = [browser.new_context(viewport=PHONE, java_script_enabled=enabled) for enabled in (False, True)]
        used = [sign_in_to_a_sandbox(context.new_page(), coach) for context in contexts]
        for scheme in SCHEMES:
            page = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True).new_page()
            page.goto(used[0])
            audit(page, scheme, used[0])
    return len(SCHEMES)


def centre(button):
    box = button.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def double_click(page, at):
    page.mouse.dblclick(*at)


def click_twice(page, at):
    for _ in range(2):
        page.mouse.click(*at)


def click_while_waiting(page, at):
    with page.expect_request(lambda request: request.method == "POST"):
        page.mouse.click(*at)
    page.mouse.click(*at)


def press_twice(page, at):
    page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("Enter")


def click_and_press(page, at):
    page.mouse.click(*at)
    page.keyboard.press("Enter")


IMPATIENCE = [double_click, click_twice, click_while_waiting, press_twice, click_and_press]


def press_impatiently(page, coach, proxy, press):
    """Presses a link's button twice while the proxy holds the request, and asserts a single sign-in."""
    address, released, statuses = proxy
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    link = coach.link().replace(coach.base_url, address)
    expect_page(page, link, 200)
    before = len(statuses)
    released.clear()
    press(page, centre(page.get_by_role("button")))
    released.set()
    page.wait_for_url(f"{coach.canonical_host}/session#token=*")
    assert statuses[before:] == [303], (press.__name__, statuses[before:])
    policy = [text for text in blocked if "Content Security Policy" in text]
    assert not policy, policy
    expect_page(page, link, 410)


def send_again(page, coach):
    """Asserts that a page restored from the back-forward cache submits its form again, and a loaded page does not."""
    expect_page(page, coach.link(), 200)
    page.evaluate(
        "window.held = []; addEventListener('submit', (event) => { held.push(event.defaultPrevented); event.preventDefault(); })"
    )
    button = page.get_by_role("button")
    for persisted in (None, False, True, None):
        if persisted is not None:
            page.evaluate(f"dispatchEvent(new PageTransitionEvent('pageshow', {{ persisted: {json.dumps(persisted)} }}))")
        button.click()
    held = page.evaluate("held")
    assert held == [False, True, False, True], held


def main(binary):
    began = time.monotonic()
    chromium = shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with stack(binary) as (base_url, aws_url), application() as host, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        # The stack's own host, as in the demo, and another origin as the redirect's target.
        coaches = [Coach(base_url, aws_url, "own", base_url), Coach(base_url, aws_url, "other", host)]
        context = browser.new_context(viewport=PHONE, java_script_enabled=False)
        used = [sign_in(context.new_page(), coach, by_keyboard) for coach in coaches for by_keyboard in (False, True)]
        # The link is opened on the stack directly and over the proxy.
        context = browser.new_context(viewport=PHONE)
        with holding(base_url) as proxy:
            for press in IMPATIENCE:
                press_impatiently(context.new_page(), coaches[1], proxy, press)
        send_again(context.new_page(), coaches[0])
        used += [sign_in(context.new_page(), coach, by_keyboard) for coach in coaches for by_keyboard in (False, True)]
        audits = 0
        for scheme in SCHEMES:
            context = browser.new_context(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
            for url in (coaches[0].link(), used[0]):
                page = context.new_page()
                page.goto(url)
                audit(page, scheme, url)
                audits += 1
        audits += sandbox(binary, browser)
        browser.close()
    seconds = time.monotonic() - began
    print(f"login pages: {len(used)} links signed in and died, {len(IMPATIENCE)} pressed twice, {audits} audits by axe without violations, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
