"""Flows of the portal of a sandbox: every screen and every title says that nothing is real."""

from playwright.sync_api import expect
from portal_kit import until

BAND = "Sandbox: nothing here is real"
TITLE = "Sandbox: "
BELOW_THE_BAND = """heading => heading.isConnected
    && document.querySelector("aside").getBoundingClientRect().bottom <= heading.getBoundingClientRect().top"""


def says_that_it_is_a_sandbox(visitor):
    """Asserts the band above the screen, and the beginning of the title. A fixed band would lie on the screen."""
    band = visitor.frame.locator("aside")
    expect(band).to_be_visible()
    expect(band).to_have_text(BAND)
    assert band.evaluate("band => getComputedStyle(band).position") == "static", "the band is not in the page's flow"
    # A screen that is drawn again replaces its heading, so both are measured at once, and a replaced one again.
    until(lambda: visitor.frame.locator("h1").evaluate(BELOW_THE_BAND))
    document = visitor.page if visitor.frame is visitor.page else visitor.page.frames[1]
    until(lambda: document.title().startswith(TITLE))
    assert document.title().count(TITLE) == 1, document.title()


def says_on_every_screen_that_nothing_is_real(kit, hand):
    """Opened by its own link: before and after the sign-in, on each screen, and where there is none."""
    coach = kit.coach()
    key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    _, webhook, _ = kit.hook(coach, "sandbox")
    with kit.visit(coach, hand, width=360) as visitor:
        visitor.page.goto(f"{visitor.base_url}/portal")
        visitor.sees_heading("Not signed in", focused=False)
        says_that_it_is_a_sandbox(visitor)
        visitor.look("sandbox-no-session")
        visitor.open()
        says_that_it_is_a_sandbox(visitor)
        visitor.look("sandbox-overview")
        lists = ["/keys", "/webhooks", "/deliveries", "/events", "/requests", "/activity"]
        for place in [*lists, "/keys/new", f"/keys/{key['id']}", "/webhooks/new", webhook, "/verify", "/nowhere"]:
            visitor.go(place)
            says_that_it_is_a_sandbox(visitor)
        visitor.go("/keys")
        visitor.look("sandbox-keys")


def says_in_a_frame_that_nothing_is_real(kit, hand):
    """Framed by the application: the band is part of the height that the application is told."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open_framed()
        says_that_it_is_a_sandbox(visitor)
        visitor.follow("Events")
        visitor.sees_heading("Events")
        says_that_it_is_a_sandbox(visitor)
        frame, inside = visitor.page.locator("iframe"), visitor.page.frames[1]
        tall = lambda: frame.bounding_box()["height"] - inside.evaluate("document.body.getBoundingClientRect().height")
        until(lambda: visitor.page.wait_for_timeout(50) or abs(tall()) <= 1)
        visitor.look("sandbox-framed")


FLOWS = [says_on_every_screen_that_nothing_is_real, says_in_a_frame_that_nothing_is_real]
