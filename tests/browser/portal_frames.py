"""Flows of the portal in frames: dialogs keep their buttons in the frame and the focus in sight, whatever happens to their
content, whoever frames the page."""

from contextlib import contextmanager

from playwright.sync_api import expect
from portal_kit import until

WINDOW = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 700}
TURNED_PHONE = {"width": 700, "height": 390}
# Applications that frame the portal: on the portal's own origin, on another site, and one that does not listen to the
# height and gives the frame 30rem. At last the portal without a frame.
FRAMES = ("own", "foreign", "fixed", "none")
APPLICATION = """<!doctype html><html lang="en"><title>Application</title><link rel="icon" href="data:,">
<style>body { margin: 0 } header { height: 220px } iframe { width: 100%%; height: 30rem; border: 0; display: block }</style>
<header><h1>Application</h1></header><iframe title="Portal" src="%s/portal" allow="clipboard-write"></iframe><script>
const frame = document.querySelector("iframe"), portal = new URL(frame.src).origin;
addEventListener("message", ({ data, source, origin }) => {
  if (origin !== portal || source !== frame.contentWindow) return;
  if (data.type === "ready") source.postMessage({ type: "session", token: "%s" }, portal);
  if (data.type === "resize" && %s) frame.style.height = `${data.height}px`;
});
</script></html>"""


@contextmanager
def framed(kit, hand, coach, kind):
    """A visitor of an application that frames the portal."""
    base_url = kit.stack.base_url
    portal = base_url.replace("127.0.0.1", "localhost") if kind == "foreign" else base_url
    body = APPLICATION % (portal, coach.token(), "false" if kind == "fixed" else "true")
    with kit.visit(coach, hand) as visitor:
        visitor.page.set_viewport_size(WINDOW)
        if kind == "none":
            visitor.open()
            yield visitor
            return
        visitor.page.route("**/application", lambda route: route.fulfill(body=body, content_type="text/html"))
        # Chromium takes the test's page for one of the internet, which may not frame a page of this machine.
        visitor.page.route("**/portal", lambda route: route.fulfill(response=route.fetch()))
        visitor.page.goto(f"{base_url}/application")
        visitor.frame = visitor.page.frame_locator("iframe")
        visitor.is_signed_in()
        yield visitor


def focus_is_in_sight(visitor):
    """Asserts that the element with the focus is in the window, as a whole or as far as it fits."""

    def is_in_sight():
        box = visitor.frame.locator(":focus").bounding_box()
        height = visitor.page.viewport_size["height"]
        return box and box["y"] > -1 and box["y"] + min(box["height"], height) < height + 1

    until(lambda: visitor.page.wait_for_timeout(50) or is_in_sight())


def dialog_is_within_reach(visitor):
    """Asserts that the whole dialog lies in the frame, or in what the frame can scroll, and the focus in the window."""
    dialog = visitor.frame.locator("dialog[open]")
    reach = """node => {
        const { top, bottom } = node.getBoundingClientRect(), { scrollHeight } = document.documentElement;
        const isWhole = bottom - top + 1 >= node.scrollHeight || getComputedStyle(node).overflowY === "auto";
        return top + scrollY >= 0 && bottom + scrollY <= scrollHeight + 1 && isWhole;
    }"""
    until(lambda: visitor.page.wait_for_timeout(50) or dialog.evaluate(reach))
    for button in dialog.get_by_role("button").all():
        button.click(trial=True)
    focus_is_in_sight(visitor)


def is_as_high_as_its_page(visitor):
    """Returns true if the frame has the height of the page in it, without the dialog that was closed."""
    page = visitor.page.frames[1].evaluate("document.body.getBoundingClientRect().height")
    return abs(visitor.page.locator("iframe").bounding_box()["height"] - page) <= 1


def offline(visitor):
    """An error line above the buttons."""
    with visitor.expecting("offline"):
        visitor.page.route("**/settings/**", lambda route: route.abort("connectionreset"))
        visitor.within().locator("form button").first.press("Enter")
        visitor.sees("nothing is done twice")
        visitor.page.unroute("**/settings/**")


def chooses_a_date(visitor):
    """More fields."""
    visitor.check("On a date that I choose")
    visitor.frame.get_by_label("Last day").wait_for()


def errs_in_a_date(visitor):
    """A field with an error."""
    chooses_a_date(visitor)
    visitor.frame.get_by_label("Last day").fill("20270-01-01")
    visitor.press("Save")
    visitor.sees("Choose a date up to the year 2100.")


# The screen (of a key, or of a webhook), the button that opens the dialog, and what happens to its content.
DIALOGS = [
    ("key", "Rename", offline),
    ("key", "Change when it ends", chooses_a_date),
    ("key", "Change when it ends", errs_in_a_date),
    ("key", "Revoke", offline),
    ("webhook", "Delete", offline),
]


def reaches_every_button_of_a_dialog(kit, hand):
    """Each dialog stays within reach with an error line, with more fields, and on a phone that is turned."""
    for kind in FRAMES:
        coach = kit.coach()
        key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
        webhook = coach.webhook(f"{kit.receiver.url}/framed")
        places = {"key": f"#/keys/{key['id']}", "webhook": f"#/webhooks/{webhook['id']}"}
        with framed(kit, hand, coach, kind) as visitor:
            for screen, button, changes in DIALOGS:
                visitor.page.set_viewport_size(WINDOW)
                with visitor.another_screen():
                    visitor.page.frames[-1].evaluate("place => { location.hash = '#/events'; location.hash = place; }", places[screen])
                visitor.press(button)
                dialog_is_within_reach(visitor)
                changes(visitor)
                dialog_is_within_reach(visitor)
                for size in (PHONE, TURNED_PHONE):
                    visitor.page.set_viewport_size(size)
                    dialog_is_within_reach(visitor)
                visitor.press("Cancel")
                focus_is_in_sight(visitor)
                if kind in ("own", "foreign"):
                    until(lambda: visitor.page.wait_for_timeout(50) or is_as_high_as_its_page(visitor))
            assert coach.api("GET", f"/webhooks/{webhook['id']}")["status"] == "enabled"


def keeps_the_focus_in_sight(kit, hand):
    """A new key is shown where the coach is, and Tab goes through the dialog without leaving the window."""
    for kind in FRAMES:
        coach = kit.coach()
        with framed(kit, hand, coach, kind) as visitor:
            visitor.follow("Keys")
            visitor.follow("Create a key")
            visitor.write_key("Website")
            visitor.press("Create the key")
            visitor.frame.locator("dialog[open]").wait_for()
            dialog_is_within_reach(visitor)
            for _ in range(6):
                visitor.page.keyboard.press("Tab")
                if visitor.frame.locator("dialog :focus").count():
                    focus_is_in_sight(visitor)
            visitor.press("I have stored it")
            visitor.sees_heading("Website")
            focus_is_in_sight(visitor)


def changes_events_in_a_frame(kit, hand):
    """The choices for events open and close within the frame, which grows and shrinks with them."""
    for kind in FRAMES:
        coach = kit.coach()
        key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
        with framed(kit, hand, coach, kind) as visitor:
            visitor.follow("Keys")
            visitor.follow("Desk")
            visitor.follow("Change events")
            for answer in ("Yes", "No", "Yes"):
                visitor.check(answer)
                if kind in ("own", "foreign"):
                    until(lambda: visitor.page.wait_for_timeout(50) or is_as_high_as_its_page(visitor))
            visitor.check("New client", "checkbox")
            visitor.check("Without contact details")
            visitor.press("Save")
            visitor.sees("The events of the key are changed.")
            focus_is_in_sight(visitor)
            read = [one["events"] for one in coach.api("GET", "/keys")["keys"] if one["id"] == key["id"]]
            assert read == [{"types": ["new_client"], "payload_mode": "identifiers"}], read


FLOWS = [reaches_every_button_of_a_dialog, keeps_the_focus_in_sight, changes_events_in_a_frame]
