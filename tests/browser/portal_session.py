"""Flows of the portal about the session and the states that any screen can be in."""

from playwright.sync_api import expect
from portal_coaches import Application, page_of_another_origin
from portal_kit import until

DAY_S = 24 * 3_600
# A page that frames the portal, answers each message with a token, and notes the messages.
STRANGER = """<!doctype html><title>Stranger</title><script>
window.heard = [];
addEventListener("message", event => {
  heard.push(event.data);
  event.source.postMessage({ type: "session", token: "stolen" }, "*");
});
</script><iframe src="%s/portal"></iframe>"""


def is_framed_by_the_application(kit, hand):
    """The application frames the portal, signs the coach in, and gives the frame its height."""
    coach = kit.coach()
    coach.webhook(f"{kit.receiver.url}/framed")
    with kit.visit(coach, hand) as visitor:
        visitor.open_framed()
        # A screen that is higher than a frame is at least.
        visitor.follow("Events")
        visitor.sees_heading("Events")
        frame = visitor.page.locator("iframe")
        inside = visitor.page.frames[1]
        tall = lambda: frame.bounding_box()["height"] - inside.evaluate("document.body.getBoundingClientRect().height")
        expect(frame).to_be_visible()
        until(lambda: visitor.page.wait_for_timeout(50) or abs(tall()) <= 1)
        assert "token" not in inside.url, inside.url
        visitor.look("framed")
        # The token ends; the portal asks the application for another, and the coach notices nothing.
        kit.stack.advance(31 * DAY_S)
        with visitor.expecting(401):
            visitor.follow("Webhooks")
            visitor.sees_heading("Webhooks")


def tells_a_stranger_nothing(kit, hand):
    """A page of another origin that frames the portal hears nothing, and its token is not taken."""
    context = kit.browser.new_context()
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    with page_of_another_origin(STRANGER % kit.stack.base_url) as stranger:
        page.goto(stranger)
        page.wait_for_timeout(2_000)
        assert page.evaluate("heard") == [], page.evaluate("heard")
        assert not any("/settings/" in url or "/portal/assets/" in url for url in requests), requests
    context.close()


# Frames the portal a second time, and beside it a window of the same origin that is not the portal's parent.
SIBLING = """() => {
  const [portal, sibling] = ["/portal", "about:blank"].map(src => Object.assign(document.createElement("iframe"), { src, title: src }));
  document.body.append(portal, sibling);
  return new Promise(resolve => portal.addEventListener("load", () => {
    Object.assign(window, { portal: portal.contentWindow, sibling: sibling.contentWindow });
    resolve();
  }));
}"""
STEAL = "() => sibling.eval(`parent.portal.postMessage({ type: 'session', token: 'stolen' }, parent.origin)`)"


def believes_its_parent_alone(kit, hand):
    """Another window of the application's origin cannot sign the portal in; the parent can."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        tokens = set()
        visitor.page.on("request", lambda request: tokens.add(request.headers.get("authorization")))
        visitor.open_framed()
        visitor.page.evaluate(SIBLING)
        second = visitor.page.frame_locator("iframe[title='/portal']")
        expect(second.get_by_text("Signing you in")).to_be_visible()
        visitor.page.evaluate(STEAL)
        visitor.page.wait_for_timeout(500)
        expect(second.get_by_text("Signing you in")).to_be_visible()
        token = coach.token()
        visitor.page.evaluate("token => portal.postMessage({ type: 'session', token }, origin)", token)
        expect(second.locator("nav")).to_be_visible()
        assert "Bearer stolen" not in tokens and f"Bearer {token}" in tokens, tokens


def says_that_the_session_ended(kit, hand):
    """Opened by its own link, the portal says when the session ends; nothing that was written is lost."""
    coach = kit.coach()
    with kit.visit(coach, hand, width=390, scheme="dark") as visitor:
        visitor.page.goto(f"{visitor.base_url}/portal")
        visitor.sees("Not signed in")
        visitor.look("no-session")
        visitor.open("/webhooks/new")
        visitor.write_webhook(f"{kit.receiver.url}/ended")
        kit.stack.advance(31 * DAY_S)
        with visitor.expecting(401):
            visitor.press("Create the webhook")
            visitor.sees("Your session has ended. Copy what you still need")
        visitor.look("session-ended-in-form")
        with visitor.expecting(401):
            visitor.page.evaluate("location.hash = '/webhooks'")
            visitor.press("Leave")
            visitor.sees_heading("Your session has ended")
        visitor.look("session-ended")
        assert not coach.api("GET", "/webhooks")["endpoints"]


PATIENCE_MS = 8_000


def waits_for_a_slow_application(kit, hand):
    """A late application signs the coach in by itself, or after "Try again"; a refused token is no answer."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        give = Application(kit, visitor).give
        visitor.sees("Signing you in")
        visitor.context.clock.fast_forward(PATIENCE_MS)
        visitor.sees("Your application did not sign you in here in time.")
        visitor.look("no-answer")
        visitor.press("Try again")
        expect(visitor.frame.get_by_text("Signing you in")).to_be_visible()
        token = coach.token()
        give(token)
        visitor.sees("Connect another system")
        visitor.refuse(token)
        with visitor.expecting(401):
            visitor.press("Keys", "link")
            visitor.sees("Loading…")
            visitor.context.clock.fast_forward(PATIENCE_MS)
            visitor.sees_heading("Your session has ended")
            give("refused", coach.token())
            visitor.press("Try again")
            visitor.sees_heading("Keys")


def waits_for_the_workspace(kit, hand):
    """Before the application's first fact, each screen says that the workspace is being set up."""
    coach = kit.coach(has_workspace=False)
    with kit.visit(coach, hand, width=360) as visitor, visitor.expecting(409):
        # A page that was just opened leaves the focus where the browser puts it.
        visitor.open("/")
        visitor.sees("Your workspace is being set up")
        visitor.look("no-workspace")
        for place in ("/keys", "/webhooks", "/deliveries", "/requests", "/activity"):
            visitor.go(place)
            visitor.sees_heading("Your workspace is being set up")


def survives_a_bad_line(kit, hand):
    """Offline, too many requests, and a fault of the service: each says so, and "Try again" is the way out."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/line")
    with kit.visit(coach, hand, width=360, scheme="dark") as visitor:
        visitor.open("/")
        with visitor.expecting("offline"):
            visitor.context.set_offline(True)
            visitor.go("/webhooks")
            visitor.sees_heading("No connection")
            visitor.look("offline")
            visitor.press("Try again")
            visitor.sees_heading("No connection")
            visitor.context.set_offline(False)
        visitor.press("Try again")
        visitor.sees_heading("Webhooks")
        with visitor.expecting(500, 503):
            kit.stack.local("faults", {"store_failures": 50})
            visitor.go(f"/webhooks/{webhook['id']}")
            visitor.sees_heading("Not available at the moment")
            kit.stack.local("faults", {"store_failures": 0})
        visitor.look("unavailable")
        visitor.press("Try again")
        visitor.sees_heading("Webhook to 127.0.0.1")
        # The limit counts whole minutes of the stack's clock: all requests, and the page's, have to be in one of them.
        kit.stack.advance_to_the_next_minute()
        for _ in range(300):
            coach.api_or_refusal("GET", "/webhooks")
        with visitor.expecting(429):
            visitor.go("/webhooks")
            visitor.sees_heading("Too many requests")
            visitor.sees("Try again in")
            visitor.look("too-many-requests")
        kit.stack.advance(60)
        visitor.press("Try again")
        visitor.sees_heading("Webhooks")
        visitor.go("/nowhere/at/all")
        visitor.sees_heading("This page does not exist")
        visitor.look("nowhere")


FLOWS = [
    is_framed_by_the_application,
    tells_a_stranger_nothing,
    believes_its_parent_alone,
    says_that_the_session_ended,
    waits_for_a_slow_application,
    waits_for_the_workspace,
    survives_a_bad_line,
]
