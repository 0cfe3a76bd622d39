"""Flows of the portal about whose session it is: another coach in the middle of something, links with a token, and
sessions of nobody."""

import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import expect
from portal_kit import serving, until

DAY_S = 24 * 3_600
# An application that gives the tokens of `tokens` one after the other, once there are any.
APPLICATION = """<!doctype html><html lang="en"><title>Application</title><link rel="icon" href="data:,"><script>
const tokens = [];
addEventListener("message", ({ data, source }) => {
  if (data.type === "ready" && tokens.length) source.postMessage({ type: "session", token: tokens.shift() }, origin);
});
</script><main><h1>Application</h1><iframe title="Portal" src="/portal%s" style="width: 100%%; height: 60rem; border: 0"></iframe></main>"""


class Application:
    """An application that frames the portal, and signs in whom the test says."""

    def __init__(self, kit, visitor, fragment=""):
        self.kit, self.visitor = kit, visitor
        body = APPLICATION % fragment
        visitor.page.route("**/application", lambda route: route.fulfill(body=body, content_type="text/html"))
        visitor.page.goto(f"{kit.stack.base_url}/application")
        visitor.frame = visitor.page.frame_locator("iframe")

    def give(self, *tokens):
        """Has the application answer the next requests for a session with these tokens."""
        self.visitor.page.evaluate("given => { tokens.push(...given); }", tokens)

    def sign_in(self, coach):
        """Signs a coach in. Returns the coach's token."""
        token = coach.token()
        self.give(token)
        self.visitor.is_in_the_workspace_of(coach)
        return token


def writes_a_webhook(visitor, things):
    visitor.go_in_frame("/webhooks/new")
    visitor.write_webhook(f"{visitor.kit.receiver.url}/of-ada")
    return "Create the webhook"


def writes_a_key(visitor, things):
    visitor.go_in_frame("/keys/new")
    visitor.write_key("Of Ada")
    return "Create the key"


def asks(place, button, verb):
    """Opens the question of a button."""

    def open_question(visitor, things):
        visitor.go_in_frame(place.format(**things))
        visitor.press(button)
        # The question may have a button of the same name as the page.
        expect(visitor.frame.locator("dialog[open]")).to_have_count(1)
        return verb

    return open_question


def renames(visitor, things):
    verb = asks("/keys/{key}", "Rename", "Save")(visitor, things)
    visitor.write("Name", "Renamed")
    return verb


def looks_at_a_list(visitor, things):
    visitor.go_in_frame("/keys")
    return "Webhooks"


# What a coach is in the middle of when the session ends. Each returns the button to press then.
UNDER_WAY = [
    writes_a_webhook,
    writes_a_key,
    renames,
    asks("/keys/{key}", "Replace", "Replace the key"),
    asks("/keys/{key}", "Revoke", "Revoke the key"),
    asks("/webhooks/{webhook}", "Replace the secret", "Replace the secret"),
    asks("/webhooks/{webhook}", "Pause", "Pause"),
    asks("/webhooks/{webhook}", "Delete", "Delete the webhook"),
    looks_at_a_list,
]


def drops_what_another_coach_began(kit, hand):
    """The application signs another coach in where the session of the first has ended: nothing is sent for either."""
    ada, grace = kit.coach(name="Ada Lovelace"), kit.coach(name="Grace Hopper")
    key = ada.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    webhook = ada.webhook(f"{kit.receiver.url}/ada")
    things = {"key": key["id"], "webhook": webhook["id"]}
    state = lambda coach: (coach.api("GET", "/keys")["keys"], coach.api("GET", "/webhooks")["endpoints"])
    before = state(ada)
    for begin in UNDER_WAY:
        with kit.visit(ada, hand) as visitor:
            application = Application(kit, visitor)
            token = application.sign_in(ada)
            verb = begin(visitor, things)
            visitor.refuse(token)
            application.give(grace.token())
            writes = len(visitor.writes)
            with visitor.expecting(401):
                visitor.press(verb, "link" if begin is looks_at_a_list else "button")
                visitor.sees_heading("Private integrations of Grace Hopper")
            visitor.sees("This is the workspace of Grace Hopper now.")
            visitor.sees("What was not finished in the workspace of Ada Lovelace is dropped.")
            expect(visitor.frame.locator("dialog")).to_have_count(0)
            visitor.is_in_the_workspace_of(grace)
            assert set(visitor.writes[writes:]) <= {token}, "nothing is sent as another coach"
            visitor.look("another-coach")
            visitor.follow("Keys")
            visitor.sees("No keys yet")
    assert (state(ada), state(grace)) == (before, ([], []))


def keeps_no_key_of_a_request_for_another_coach(kit, hand):
    """A request whose answer was lost is not repeated for another coach, even if the content is the same."""
    ada, grace = kit.coach(name="Ada Lovelace"), kit.coach(name="Grace Hopper")
    with kit.visit(ada, hand) as visitor:
        keys = []
        visitor.page.on("request", lambda request: keys.append(request.headers.get("idempotency-key")))
        application = Application(kit, visitor)
        token = application.sign_in(ada)
        writes_a_key(visitor, {})
        with visitor.expecting("offline", 401):
            visitor.lose_answer("**/settings/keys")
            visitor.press("Create the key")
            visitor.sees("nothing is done twice")
            visitor.refuse(token)
            application.give(grace.token())
            visitor.press("Create the key")
            visitor.sees_heading("Private integrations of Grace Hopper")
        assert len(ada.api("GET", "/keys")["keys"]) == 1
        sent = set(filter(None, keys))
        writes_a_key(visitor, {})
        visitor.press("Create the key")
        visitor.take_secret("key-secret-of-another-coach")
        assert len(grace.api("GET", "/keys")["keys"]) == 1
        assert len(sent) == 1 and len(set(filter(None, keys)) - sent) == 1, keys


def goes_on_as_another_coach_only_if_asked(kit, hand):
    """A link with a token of the same coach renews the session; one of another coach is a question first."""
    ada, grace = kit.coach(name="Ada Lovelace"), kit.coach(name="Grace Hopper")
    with kit.visit(ada, hand) as visitor:
        link = lambda token: visitor.page.evaluate("token => { location.hash = `token=${token}`; }", token)
        visitor.open("/keys/new")
        visitor.write_key("Kept")
        visitor.refuse(visitor.token)
        with visitor.expecting(401):
            visitor.press("Create the key")
            visitor.sees("Your session has ended.")
        link(grace.token())
        visitor.sees("Go on as Grace Hopper?")
        assert "token" not in visitor.page.url, visitor.page.url
        visitor.look("go-on")
        visitor.press("Cancel")
        visitor.sees_heading("Create a key")
        # The page reads whose token it is before it goes on with it.
        with visitor.page.expect_event("requestfinished", lambda request: request.url.endswith("/settings/workspace")):
            link(ada.token())
        visitor.page.wait_for_url("**/keys/new")
        visitor.press("Create the key")
        visitor.take_secret("key-secret")
        assert [key["name"] for key in ada.api("GET", "/keys")["keys"]] == ["Kept"]
        visitor.is_in_the_workspace_of(ada)
        with visitor.expecting(401):
            link("nonsense")
            visitor.sees("Go on with the session of the link?")
            visitor.press("Go on")
            visitor.sees("This link does not sign you in any more.")
            visitor.press("Cancel")
        visitor.press("Rename")
        visitor.write("Name", "Of the first coach")
        link(grace.token())
        visitor.sees("Go on as Grace Hopper?")
        with visitor.another_screen():
            visitor.frame.get_by_role("button", name="Go on", exact=True).press("Enter")
        visitor.sees_heading("Private integrations of Grace Hopper")
        expect(visitor.frame.locator("dialog")).to_have_count(0)
        visitor.follow("Keys")
        visitor.sees("No keys yet")
        assert [key["name"] for key in ada.api("GET", "/keys")["keys"]] == ["Kept"]


# Everything that a script of the page can read of its addresses.
ADDRESSES = """() => JSON.stringify([performance.getEntries(), navigation.entries().map(entry => entry.url), navigation.activation?.entry.url,
  navigation.activation?.from?.url, document.URL, document.baseURI, document.referrer, window.name, history.state])"""


@contextmanager
def page_of_another_origin(content):
    """Serves one page on an origin of its own."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Page)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def leaves_no_token_in_addresses(kit, hand):
    """The token of a link is nowhere in the page's addresses, whether the link opened the page or came later."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open()
        addresses = visitor.page.evaluate(ADDRESSES)
        assert "/portal" in addresses and visitor.token not in addresses and "token" not in addresses, addresses
        kit.stack.advance(1)
        later = coach.token()
        with visitor.another_screen():
            visitor.page.evaluate("token => { location.hash = `token=${token}`; }", later)
        assert later not in visitor.page.evaluate(ADDRESSES)
        visitor.page.go_back()
        visitor.page.go_forward()
        assert "token" not in visitor.page.evaluate("JSON.stringify(navigation.entries().map(entry => entry.url))")


def is_out_of_reach_of_its_opener(kit, hand):
    """A page that opens the portal has no hold of its window, so it cannot change the address there."""
    coach = kit.coach()
    context = kit.browser.new_context()
    with page_of_another_origin("<!doctype html><title>Opener</title>") as elsewhere:
        opener = context.new_page()
        opener.goto(elsewhere)
        with context.expect_page() as opened:
            opener.evaluate("address => { window.portal = open(address); }", f"{kit.stack.base_url}/portal#token={coach.token()}")
        portal = opened.value
        expect(portal.locator("#workspace")).to_have_text(f"Workspace: {coach.name}")
        until(lambda: opener.evaluate("portal.closed"))
        opener.evaluate("address => { portal.location = address; }", f"{kit.stack.base_url}/portal#token=stolen")
        portal.wait_for_timeout(300)
        expect(portal.locator("h1")).to_contain_text("Private integrations of")
        # The page hands its own token over in the window's name, which an opener chooses.
        with context.expect_page() as opened:
            opener.evaluate("([address, name]) => { open(address, name); }", [f"{kit.stack.base_url}/portal", f"portal-session:{coach.token()}"])
        expect(opened.value.locator("h1")).to_have_text("Not signed in")
    context.close()


def takes_no_token_from_the_address_of_a_frame(kit, hand):
    """In a frame, the application alone signs in: a token in the address is dropped."""
    ada, grace = kit.coach(name="Ada Lovelace"), kit.coach(name="Grace Hopper")
    with kit.visit(ada, hand) as visitor:
        application = Application(kit, visitor, f"#token={grace.token()}")
        expect(visitor.frame.get_by_text("Signing you in")).to_be_visible()
        application.sign_in(ada)
        visitor.page.frames[1].evaluate("token => { location.hash = `token=${token}`; }", grace.token())
        until(lambda: "token" not in visitor.page.frames[1].evaluate("location.href"))
        visitor.follow("Keys")
        visitor.is_in_the_workspace_of(ada)
        expect(visitor.frame.locator("dialog")).to_have_count(0)


def says_that_a_session_names_nobody(kit, hand):
    """A valid session without a usable coach is no ended session: the page says what is wrong and asks for no other."""
    for subject in ("service", "Ada Lovelace"):
        nobody = kit.coach(has_workspace=False)
        nobody.id = subject
        with kit.visit(nobody, hand) as visitor, visitor.expecting(403):
            application = Application(kit, visitor)
            application.give(nobody.token(), nobody.token())
            visitor.sees_heading("Your sign-in names no workspace", focused=False)
            visitor.sees("Ask the support of your application.")
            visitor.look("session-without-coach")
            assert visitor.page.evaluate("tokens.length") == 1, "the page asks for no other session"


def signs_in_with_an_id_of_auth0(kit, hand):
    """An id with a bar, as Auth0 has them, is a coach like any other."""
    coach = kit.coach(coach_id=f"auth0|5f7c8ec7c33c6c004bbafe82{hand.name}", name="Ada Lovelace")
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys/new")
        visitor.write_key("Website")
        visitor.press("Create the key")
        visitor.take_secret("key-secret")
        visitor.go("/activity")
        visitor.sees(re.compile("by you$"))


FLOWS = [
    drops_what_another_coach_began,
    keeps_no_key_of_a_request_for_another_coach,
    goes_on_as_another_coach_only_if_asked,
    leaves_no_token_in_addresses,
    is_out_of_reach_of_its_opener,
    takes_no_token_from_the_address_of_a_frame,
    says_that_a_session_names_nobody,
    signs_in_with_an_id_of_auth0,
]
