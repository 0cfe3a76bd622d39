"""Parts of the portal's browser tests: coaches on the local stack, a receiver whose answers the test chooses, and a
visitor who uses the portal by mouse or by keyboard alone.

A visitor fails on any error or warning in the console (violations of CSP and Trusted Types among them), on a request to
another host, and on a server's refusal that the test did not announce.
"""

import json
import re
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer

from accessibility import SCHEMES, audit
from local_stack import call
from playwright.sync_api import expect

# A busy machine needs more than the five seconds of Playwright.
expect.set_options(timeout=40_000)

WIDTHS = (360, 390, 1280)
# The widths with a layout of their own.
LAYOUTS = (360, 1280)
HEIGHT = 800
# A name of an element without a role is ignored by screen readers, and axe only marks it for review.
NAMED_WITHOUT_ROLE = ":is(code, pre, div, span, p)[aria-label]:not([role])"
# Another `display`, as on a phone, takes the roles of a table away in some browsers.
TABLE_WITHOUT_ROLE = "main :is(table, thead, tbody, tr, th, td):not([role])"
MOST_TABS = 600
REFUSAL = re.compile(r"the server responded with a status of (\d+)")
SETTINGS = re.compile(r"https?://[^/]+(/settings/[^?#]*)")


# An answer of the receiver: none, until the path gets another one. The service gives up after 15 seconds.
HANG = "hang"
HANG_S = 20
NOT_TLS = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"


@contextmanager
def serving(server):
    """Has a server answer until the block ends."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


@contextmanager
def receiver():
    """Starts a receiver of webhooks. `answers` gives a path its status (200 by default), `None` to hang up, or `HANG`;
    `seen` lists the requests, and `count` counts those to a path: earlier flows' failures are retried meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.split("?")[0]
            server.seen.append((path, dict(self.headers), body))
            answer = server.answers.get(path, 200)
            end = time.monotonic() + HANG_S
            while server.answers.get(path) == HANG and time.monotonic() < end:
                time.sleep(0.1)
            if answer in (None, HANG):
                self.close_connection = True
                return
            text = b"<b>no</b> \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d" if answer >= 300 else b"ok"
            self.send_response(answer)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        server.answers, server.seen = {}, []
        server.count = lambda path: [seen for seen, *_ in server.seen].count(path)
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server


@contextmanager
def receiver_without_tls():
    """Starts a server that answers a TLS handshake in plain text. Yields its https address."""

    class Handler(BaseRequestHandler):
        def handle(self):
            self.request.recv(1)
            self.request.sendall(NOT_TLS)

    with serving(ThreadingTCPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"https://127.0.0.1:{server.server_address[1]}"


class Refused(Exception):
    """An answer of 400 or above."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


class Stack:
    """The local stack: its clock, its faults, and facts of the application."""

    def __init__(self, base_url, aws_url):
        self.base_url, self.aws_url = base_url, aws_url

    def local(self, path, body):
        return call(f"{self.base_url}/_local/{path}", body)

    def now(self):
        return call(f"{self.base_url}/_local/health")["now"]

    def later(self, **time):
        """A time some hours or days from now."""
        return parse_time(self.now()) + timedelta(**time)

    def advance(self, seconds):
        self.local("clock", {"advance_s": int(seconds)})

    def advance_to_the_next_minute(self):
        """Moves the clock to the beginning of a minute, where the windows of the rate limits begin."""
        self.advance(60 - int(self.now()[17:19]))

    def publish(self, facts):
        """Puts facts on the bus, `(name, fields)` each, and waits until the service has applied them."""
        at = self.now()
        entries = [
            {
                "EventBusName": "partner-api",
                "Source": "coaching.application",
                "DetailType": name,
                "Detail": json.dumps({"id": uuid.uuid4().hex, "occurred_at": at} | fields),
            }
            for name, fields in facts
        ]
        for first in range(0, len(entries), 10):
            call(self.aws_url, {"Entries": entries[first : first + 10]}, x_amz_target="AWSEvents.PutEvents")
        self.local("settle", {})


class Coach:
    """A coach with a workspace, and the settings API as this coach."""

    def __init__(self, stack, coach_id, name="Ada <b>Lovelace</b>", entitled=True, has_workspace=True):
        self.stack, self.id, self.name, self.has_workspace = stack, coach_id, name, has_workspace
        workspace = {
            "coach_id": coach_id,
            "email": "coach@coaches.example",
            "name": name,
            "team_id": None,
            "canonical_host": "https://coach.example",
            "time_zone": "UTC",
            "country": "US",
            "plan": {"client_cap": None},
            "entitlements": {"partner_api": entitled, "pro_crm": entitled, "gym": entitled},
            "crm": {"pipeline_id": "sales", "initial_stage": "new"} if entitled else None,
        }
        if has_workspace:
            stack.publish([("workspace.saved", workspace)])

    def token(self):
        return self.stack.local("session", {"coach_id": self.id})["token"]

    def api(self, method, path, body=None):
        """Calls the settings API."""
        headers = {"authorization": f"Bearer {self.token()}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.stack.base_url}/settings{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as answer:
            raise Refused(answer.status, answer.read()) from None

    def api_or_refusal(self, method, path):
        """Calls the settings API, whatever it answers."""
        try:
            return self.api(method, path)
        except Refused:
            return None

    def webhook(self, url, events=("new_client",), mode="identifiers", **more):
        """Registers a webhook. Returns it with its secret."""
        return self.api("POST", "/webhooks", {"url": url, "events": list(events), "payload_mode": mode, **more})

    def clients(self, *names):
        """Creates clients, which emits `new_client` for each. Returns their ids."""
        ids = [f"{self.id}-{name}" for name in names]
        self.stack.publish([("client.saved", self.client(client_id)) for client_id in ids])
        return ids

    def client(self, client_id):
        profile = {"full_name": "Grace Hopper", "email": f"{client_id}@clients.example", "phone": None, "goals": None}
        state = {"health_notes": None, "height_in": None, "weight_lbs": None, "is_active": True, "current_phase": None}
        origin = {"phase_started_on": None, "programme_id": None, "created_at": self.stack.now(), "origin": "application"}
        return {"client_id": client_id, "coach_id": self.id} | profile | state | origin

    def messages(self, client_id, number):
        """Has a client send messages, which emits `message_received` for each."""
        fact = {"client_id": client_id, "received_at": self.stack.now()}
        self.stack.publish([("message.received", fact | {"message_id": f"{client_id}-{n}"}) for n in range(number)])


class Hand:
    """A way to use the page."""

    def __init__(self, page):
        self.page = page

    def write(self, field, text):
        self.focus(field)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(text) if text else self.page.keyboard.press("Delete")


class Mouse(Hand):
    """Uses the page by mouse, and types into the field that was clicked. The clock of the browser is slow."""

    name = "mouse"
    clock_is_off_by = timedelta(days=-2, hours=-3)

    def press(self, target):
        target.click()

    focus = press

    def check(self, box):
        box.check()

    def select(self, box, text):
        box.select_option(label=text)


class Keyboard(Hand):
    """Uses the page by keyboard alone. The clock of the browser is fast."""

    name = "keyboard"
    clock_is_off_by = timedelta(days=2, hours=3)

    def reach(self, target, same="e => document.activeElement === e"):
        """Presses Tab until the target has the focus, which has to be visible."""
        target.wait_for()
        for _ in range(MOST_TABS):
            if target.evaluate(same):
                outline = target.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus on {target} cannot be seen"
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{target} cannot be reached by keyboard")

    def press(self, target):
        if target.get_attribute("role") == "tab":
            self.reach(target, "e => e.parentNode.contains(document.activeElement)")
            return self.go_on(target, "ArrowRight")
        self.reach(target)
        return self.page.keyboard.press("Enter")

    def go_on(self, target, arrow):
        """Goes on to another element of a group with an arrow."""
        for _ in range(MOST_TABS):
            if target.evaluate("e => document.activeElement === e"):
                return
            self.page.keyboard.press(arrow)
        raise AssertionError(f"{target} cannot be reached with arrows")

    def check(self, box):
        if box.get_attribute("type") == "radio":
            self.reach(box, "e => document.activeElement.name === e.name")
            self.go_on(box, "ArrowDown")
        else:
            self.reach(box)
        if not box.is_checked():
            self.page.keyboard.press("Space")
        assert box.is_checked(), box

    def select(self, box, text):
        self.reach(box)
        self.page.keyboard.press("Home")
        for _ in range(box.locator("option").count()):
            if box.evaluate("e => e.selectedOptions[0].label") == text:
                return
            self.page.keyboard.press("ArrowDown")
        assert box.evaluate("e => e.selectedOptions[0].label") == text, f"{text} is no option"

    def focus(self, field):
        self.reach(field)


class Visitor:
    """A coach in the portal, opened by its own link or framed by the stand-in of the application."""

    def __init__(self, kit, coach, hand, width=1280, scheme="light", locale="en-US", zone="America/New_York"):
        self.kit, self.coach, self.base_url = kit, coach, kit.stack.base_url
        viewport = {"width": width, "height": HEIGHT}
        # Colours that are on their way to another scheme have no contrast that counts.
        self.context = kit.browser.new_context(
            viewport=viewport, color_scheme=scheme, locale=locale, timezone_id=zone, reduced_motion="reduce"
        )
        self.context.clock.set_system_time(parse_time(kit.stack.now()) + hand.clock_is_off_by)
        self.page = self.context.new_page()
        self.hand = hand(self.page)
        self.frame = self.page
        self.announced, self.complaints, self.addresses = set(), [], []
        # The tokens of the requests that change something.
        self.writes = []
        self.page.on("console", self.listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self.note)

    def listen(self, message):
        refused = REFUSAL.search(message.text)
        expected = int(refused[1]) in self.announced if refused else "offline" in self.announced and "net::ERR" in message.text
        if message.type in ("error", "warning") and not expected:
            self.complaints.append(message.text)

    def note(self, request):
        self.addresses.append(request.url)
        # The same stack under another name is another site.
        if not request.url.replace("//localhost:", "//127.0.0.1:").startswith((f"{self.base_url}/", "data:")):
            self.complaints.append(f"requests {request.url}")
        if found := SETTINGS.match(request.url):
            self.kit.called.add((request.method, found[1]))
            if request.method != "GET":
                self.writes.append(request.headers["authorization"].removeprefix("Bearer "))

    def open(self, place="/"):
        """Opens a screen by the coach's own link."""
        self.token = self.coach.token()
        # Else a page that is open already would only take the token.
        self.page.goto("about:blank")
        self.page.goto(f"{self.base_url}/portal#token={self.token}")
        self.is_signed_in()
        assert "token" not in self.page.url, self.page.url
        return self.go(place) if place != "/" else self

    @contextmanager
    def told(self, time):
        """Has the service say until the block ends that it is another time than it is."""
        said = format_datetime(time, usegmt=True)

        def answer(route):
            if said is None:
                return route.fallback()
            answer = route.fetch()
            return route.fulfill(response=answer, headers=answer.headers | {"date": said or answer.headers["date"]})

        # The route stays: an answer may be under way when the block ends.
        self.page.route("**/settings/**", answer)
        yield
        said = None

    def open_framed(self):
        """Opens the overview as the application shows it."""
        self.page.goto(f"{self.base_url}/_local/settings#token={self.coach.token()}")
        self.frame = self.page.frame_locator("iframe")
        self.is_signed_in()
        return self

    def is_signed_in(self):
        """Waits until the first screen has replaced what the page shows while it signs in."""
        expect(self.frame.locator("nav")).to_be_visible()
        expect(self.frame.locator("main .loading")).to_have_count(0)

    def go(self, place):
        """Goes to a screen by its address, as a bookmark or a link in a mail would."""
        with self.another_screen():
            self.page.evaluate(f"location.hash = {json.dumps(place)}")
        if self.coach.has_workspace:
            self.is_in_the_workspace_of(self.coach)
        return self

    def is_in_the_workspace_of(self, coach):
        """Asserts that the screen says whose workspace it is."""
        expect(self.frame.locator("header #workspace")).to_have_text(f"Workspace: {coach.name}")

    def go_in_frame(self, place):
        """Goes to a screen of the framed portal by its address."""
        with self.another_screen():
            self.page.frames[1].evaluate(f"location.hash = {json.dumps(place)}")

    def go_back(self):
        """Goes back in the browser's history."""
        with self.another_screen():
            self.page.go_back()

    @contextmanager
    def another_screen(self):
        """Waits until another screen has replaced the present one."""
        self.frame.locator("h1").evaluate("heading => { heading.dataset.old = true; }")
        yield
        expect(self.frame.locator("h1[data-old]")).to_have_count(0)
        expect(self.frame.locator("h1")).to_have_count(1)

    def within(self):
        """The open dialog, or else the page."""
        dialog = self.frame.locator("dialog[open]")
        return dialog if dialog.count() else self.frame

    def press(self, name, role="button", nth=0):
        target = self.within().get_by_role(role, name=name, exact=True).nth(nth)
        # A button rests for a moment after its work, so that a double click is one.
        expect(target).not_to_have_attribute("aria-disabled", "true")
        self.hand.press(target)

    def follow(self, name, nth=0):
        """Follows a link to another screen."""
        with self.another_screen():
            self.press(name, "link", nth)

    def rows(self):
        """The rows of the screen's list."""
        return self.frame.locator("main .card > table tbody tr")

    def unfold(self, text):
        self.hand.press(self.within().locator("summary", has_text=text).first)

    def write(self, label, text):
        self.hand.write(self.within().get_by_label(label, exact=True).locator("visible=true"), text)

    def check(self, label, role="radio", nth=0):
        self.hand.check(self.within().get_by_role(role, name=re.compile(f"^{re.escape(label)}")).nth(nth))

    def write_key(self, name):
        """Fills in the form for a key for clients, with one permission."""
        self.write("Name", name)
        self.check("Clients")
        self.check("See clients", "checkbox")

    def write_webhook(self, url):
        """Goes through the steps of a new webhook to the last one."""
        self.write("Web address", url)
        self.press("Next")
        self.press("Next")
        self.check("Without contact details")
        self.press("Next")

    def confirm(self, question, verb=None):
        """Presses a button that asks first. Its question may have a button of the same name."""
        self.press(question)
        self.within().get_by_role("button", name="Cancel").wait_for()
        self.press(verb or question)

    def select(self, label, text):
        self.hand.select(self.within().get_by_label(label, exact=True), text)

    def sees(self, text):
        """Asserts that a text, or a match of a pattern, is on the screen within a few seconds."""
        places = self.frame.locator("main, dialog[open]")
        expect(places.get_by_text(text).locator("visible=true").first).to_be_visible()

    def sees_heading(self, text, focused=True):
        """Asserts the screen's heading and, unless the page has just been opened, that the focus is on the screen."""
        expect(self.frame.locator("h1")).to_contain_text(text)
        if focused:
            expect(self.frame.locator(":focus"), "the focus is lost").not_to_have_count(0)

    def double_press(self, name):
        """Presses a button twice, as an impatient coach does."""
        if self.hand.name == "mouse":
            self.within().get_by_role("button", name=name, exact=True).dblclick()
        else:
            self.press(name)
            self.page.keyboard.press("Enter")

    @contextmanager
    def expecting(self, *statuses):
        """Announces refusals of the service, or `offline`. The browser logs them as errors."""
        self.announced |= set(statuses)
        yield
        self.page.wait_for_timeout(50)
        self.announced -= set(statuses)

    @contextmanager
    def slow(self, address, method="GET"):
        """Holds requests of an address until the block ends. Yields a function that waits until one is held."""
        held = []

        def hold(route):
            held.append(route) if route.request.method == method else route.fallback()

        self.page.route(address, hold)
        yield lambda: until(lambda: self.page.wait_for_timeout(50) or held)
        self.page.unroute(address, hold)
        for route in held:
            route.fallback()

    def lose_answer(self, address):
        """Loses the answer to the next request of an address. The service has received the request."""

        def lose(route):
            route.fetch()
            route.abort("connectionreset")

        self.page.route(address, lose, times=1)

    def refuse(self, token):
        """Has the settings API refuse a token, as it does after the token's end."""

        def answer(route):
            is_refused = route.request.headers.get("authorization") == f"Bearer {token}"
            route.fulfill(status=401, json={"message": "Unauthorized"}) if is_refused else route.fallback()

        self.page.route("**/settings/**", answer)
        # Tokens of the same second are the same.
        self.kit.stack.advance(1)

    def links_are_told_apart(self):
        """Asserts that no two links of the screen have one name and lead to two places."""
        links = self.frame.locator("main a[href]").evaluate_all("links => links.map(link => [link.textContent, link.href])")
        places = {}
        for name, place in links:
            assert places.setdefault(name, place) == place, (name, place, places[name])

    def hears(self, text):
        """Asserts that screen readers say a text: the live region of an open dialog, or else of the page, has it."""
        dialog = self.frame.locator("dialog[open] > [role=status]")
        region = dialog if dialog.count() else self.frame.locator("#status")
        expect(region).to_contain_text(text)

    def take_secret(self, state):
        """Reads a secret from its dialog, which Escape does not close. The page has to forget it afterwards."""
        dialog = self.frame.locator("dialog[open]")
        expect(dialog).to_be_visible()
        secret = dialog.locator(".secret").inner_text()
        for _ in range(3):
            self.page.keyboard.press("Escape")
        expect(dialog).to_be_visible()
        self.look(state)
        self.press("I have stored it")
        expect(self.frame.locator("dialog")).to_have_count(0)
        self.has_forgotten(secret)
        return secret

    def has_forgotten(self, secret):
        kept = self.page.evaluate(
            """async () => JSON.stringify([document.documentElement.outerHTML, location.href, history.state, {...localStorage},
            {...sessionStorage}, document.cookie, await indexedDB.databases(), await caches.keys(),
            [...document.querySelectorAll('input, textarea')].map(field => field.value)])"""
        )
        assert secret not in kept, "the page keeps a secret"
        assert not any(secret in address for address in self.addresses), "a secret in an address"

    def has_dropped(self, secret):
        """Asserts that nothing in the page's memory holds a secret any more."""
        session, chunks = self.context.new_cdp_session(self.page), []
        session.on("HeapProfiler.addHeapSnapshotChunk", lambda event: chunks.append(event["chunk"]))
        session.send("HeapProfiler.collectGarbage")
        session.send("HeapProfiler.takeHeapSnapshot")
        session.detach()
        assert chunks and secret not in "".join(chunks), "the page's memory keeps a secret"

    def look(self, state):
        """Asserts for a state of a screen, at all widths and in both schemes: no sideways scroll, no finding of axe."""
        if state in self.kit.looked:
            return
        self.kit.looked.add(state)
        before = self.page.viewport_size
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                self.page.set_viewport_size({"width": width, "height": HEIGHT})
                wide = self.page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{state} is {wide} px wide at {width} px"
                assert not self.page.locator(NAMED_WITHOUT_ROLE).count(), f"{state}: a name that screen readers ignore"
                assert not self.page.locator(TABLE_WITHOUT_ROLE).count(), f"{state}: a table without roles"
                if width in LAYOUTS:
                    audit(self.page, scheme, f"{state} at {width} px")
                if self.kit.pictures:
                    self.page.screenshot(path=f"{self.kit.pictures}/{state}-{width}-{scheme}.png", full_page=True)
        self.page.set_viewport_size(before)
        self.page.emulate_media(color_scheme="light")

    def leave(self):
        """Ends the visit. Asserts that the console is clean."""
        assert not self.complaints, (self.page.url, self.complaints)
        self.context.close()


class Kit:
    """Everything that a flow gets. A flow takes the kit and a hand, and makes its own coach."""

    def __init__(self, stack, receiver, browser, pictures=None):
        self.stack, self.receiver, self.browser, self.pictures = stack, receiver, browser, pictures
        self.called, self.looked, self.coaches = set(), set(), 0

    def coach(self, coach_id=None, **workspace):
        self.coaches += 1
        return Coach(self.stack, coach_id or f"coach{self.coaches}", **workspace)

    def hook(self, coach, name, *args, **more):
        """Registers a webhook of a coach at the receiver. Returns its path there, its path in the API, and itself."""
        where = f"/{coach.id}-{name}"
        webhook = coach.webhook(f"{self.receiver.url}{where}", *args, **more)
        return where, f"/webhooks/{webhook['id']}", webhook

    @contextmanager
    def visit(self, coach, hand, **look):
        visitor = Visitor(self, coach, hand, **look)
        yield visitor
        visitor.leave()


def until(condition, deadline_s=20, every_s=0.1):
    """Waits for a condition and returns its value. A coach has 300 requests a minute."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(every_s)
    raise AssertionError("the condition was not met in time")


def iso(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def parse_time(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
