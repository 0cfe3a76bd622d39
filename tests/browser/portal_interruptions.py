"""Flows of the portal about what comes between: slow and lost answers, and a coach who leaves before the end."""

import re

from playwright.sync_api import expect
from portal_kit import until

PATIENCE_MS = 30_000
# A browser without ARIA reflection: assigning to the property does not set the attribute.
WITHOUT_REFLECTION = "delete Element.prototype.ariaDisabled;"


def shows_what_a_slow_request_made(kit, hand):
    """A question cannot be left while its request runs, and a new key is shown even if the coach went back."""
    coach = kit.coach()
    coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/keys")
        visitor.follow("Desk")
        visitor.press("Replace")
        with visitor.slow("**/rotate", "POST") as arrived:
            visitor.press("Replace the key")
            arrived()
            for _ in range(3):
                visitor.page.keyboard.press("Escape")
            cancel = visitor.within().get_by_role("button", name="Cancel")
            expect(cancel).to_have_attribute("aria-disabled", "true")
            cancel.dispatch_event("click")
            visitor.look("key-replacing")
            with visitor.another_screen():
                visitor.page.evaluate("history.back()")
            visitor.sees("Replace the key")
        visitor.take_secret("key-replaced-late")
        visitor.sees_heading("Keys")
        assert len(coach.api("GET", "/keys")["keys"]) == 2
        visitor.follow(re.compile("^Desk"))
        visitor.press("Revoke")
        with visitor.slow("**/settings/keys/*", "DELETE") as arrived:
            visitor.press("Revoke the key")
            arrived()
            visitor.page.keyboard.press("Escape")
        visitor.sees("The key is revoked.")


def repeats_after_lost_answers(kit, hand):
    """The coach repeats what may not have happened, in another dialog or another order: everything happens once."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/lost")
    with kit.visit(coach, hand) as visitor, visitor.expecting("offline", 404):
        visitor.open("/keys/new")
        for name in ("One", "Two"):
            visitor.write_key(name)
            visitor.lose_answer("**/settings/keys")
            visitor.press("Create the key")
            visitor.sees("nothing is done twice")
            until(lambda: name in names_of_keys(coach))
        visitor.write("Name", "One")
        visitor.press("Create the key")
        visitor.take_secret("key-secret")
        assert names_of_keys(coach) == ["One", "Two"], names_of_keys(coach)
        visitor.press("Replace")
        visitor.lose_answer("**/rotate")
        visitor.press("Replace the key")
        visitor.sees("nothing is done twice")
        visitor.hears("nothing is done twice")
        visitor.look("key-replace-offline")
        visitor.press("Cancel")
        visitor.press("Replace")
        visitor.press("Replace the key")
        visitor.take_secret("key-replaced-secret")
        assert names_of_keys(coach) == ["One", "One", "Two"], names_of_keys(coach)
        visitor.go(f"/webhooks/{webhook['id']}")
        visitor.press("Delete")
        visitor.lose_answer(f"**/settings/webhooks/{webhook['id']}")
        visitor.press("Delete the webhook")
        visitor.sees("nothing is done twice")
        until(lambda: not coach.api("GET", "/webhooks")["endpoints"])
        # The service cannot tell a webhook that this page has deleted from one of another coach: that is no success.
        visitor.press("Delete the webhook")
        visitor.sees("It does not exist any more, or it belongs to another workspace.")
        visitor.look("webhook-delete-gone")
        assert not visitor.frame.get_by_text("The webhook is deleted.").count()


def names_of_keys(coach):
    return sorted(key["name"] for key in coach.api("GET", "/keys")["keys"])


def sees_one_test_event_arrive(kit, hand):
    """The line breaks while the outcome of a test event is read: the outcome is still shown, and one event was sent."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "test")
    with kit.visit(coach, hand) as visitor:
        visitor.open(path)
        with visitor.expecting("offline"):
            visitor.page.route("**/deliveries/*", lambda route: route.abort("connectionreset"), times=2)
            with visitor.slow("**/deliveries/*") as arrived:
                visitor.press("Send a test event")
                arrived()
                visitor.look("webhook-test-sending")
            visitor.sees("It works")
        assert kit.receiver.count(where) == 1


def leaves_while_something_loads(kit, hand):
    """A screen that was left neither speaks nor calls the coach back, and its words do not appear on another screen."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/left")
    key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    for number in range(51):
        coach.api("PATCH", f"/keys/{key['id']}", {"name": f"Desk {number}"})
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/activity")
        with visitor.slow("**/settings/audit?*") as arrived:
            visitor.press("Show more")
            arrived()
            visitor.follow("Keys")
        visitor.page.wait_for_timeout(300)
        assert not visitor.frame.get_by_text("Something went wrong").count()
        with visitor.slow("**/settings/keys?*"):
            visitor.page.evaluate(f"location.hash = '/keys/{key['id']}'")
            visitor.sees("Loading…")
            visitor.hears("Loading…")
            visitor.look("loading")
        visitor.sees_heading("Desk 50")
        visitor.press("Rename")
        visitor.write("Name", "Table")
        with visitor.slow("**/settings/keys?*") as arrived:
            visitor.press("Save")
            arrived()
            visitor.follow("Webhooks")
        visitor.sees_heading("Webhooks")
        assert not visitor.frame.get_by_text("The key is renamed.").count()
        visitor.go(f"/webhooks/{webhook['id']}/edit")
        visitor.write("Note (optional)", "Saved late")
        with visitor.slow(f"**/settings/webhooks/{webhook['id']}", "PATCH") as arrived:
            visitor.press("Save")
            arrived()
            visitor.press("Keys", "link")
            with visitor.another_screen():
                visitor.press("Leave")
            visitor.sees_heading("Keys")
        until(lambda: coach.api("GET", f"/webhooks/{webhook['id']}")["description"] == "Saved late")
        visitor.page.wait_for_timeout(300)
        visitor.sees_heading("Keys")


def is_asked_before_a_draft_is_lost(kit, hand):
    """The key form, and the steps and the edit of a webhook, ask before Back or a link drops what was written."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/draft", description="Before")
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/keys")
        visitor.follow("Create a key")
        visitor.follow("Overview")
        edit = f"/webhooks/{webhook['id']}/edit"
        for place, field in (("/keys/new", "Name"), ("/webhooks/new", "Web address"), (edit, "Note (optional)")):
            visitor.go("/activity")
            visitor.go(place)
            written = "https://draft.example/hook"
            visitor.write(field, written)
            if place == "/webhooks/new":
                visitor.press("Next")
            visitor.page.go_back()
            visitor.sees("Leave without saving?")
            visitor.page.keyboard.press("Escape")
            expect(visitor.frame.locator("dialog")).to_have_count(0)
            visitor.press("Keys", "link")
            visitor.sees("Leave without saving?")
            visitor.look("draft")
            visitor.press("Cancel")
            assert visitor.page.url.endswith(place), visitor.page.url
            if place == "/webhooks/new":
                visitor.press("Back")
            expect(visitor.frame.get_by_label(field, exact=True)).to_have_value(written)
            visitor.press("Keys", "link")
            with visitor.another_screen():
                visitor.press("Leave")
            visitor.sees_heading("Keys")
        assert coach.api("GET", f"/webhooks/{webhook['id']}")["description"] == "Before"


def keeps_what_was_chosen(kit, hand):
    """What belongs to a choice stays while another one is tried, and counts only if it is on the screen."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/chosen")
    boxes = ("See clients", "New client", "With contact details")
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys/new")
        is_checked = lambda name: visitor.frame.get_by_role("checkbox", name=name).or_(visitor.frame.get_by_role("radio", name=name)).is_checked()
        visitor.write_key("Website")
        visitor.check("Yes")
        visitor.check("New client", "checkbox")
        visitor.check("With contact details")
        visitor.check("On a date that I choose")
        last_day = visitor.frame.get_by_label("Last day")
        last_day.fill("2031-03-01")
        for other in ("CRM", "No", "Never"):
            visitor.check(other)
        assert not visitor.frame.get_by_text("New client").count() and not last_day.count()
        for first in ("Clients", "Yes", "On a date that I choose"):
            visitor.check(first)
        assert all(is_checked(name) for name in boxes), [is_checked(name) for name in boxes]
        expect(last_day).to_have_value("2031-03-01")
        visitor.check("No")
        visitor.press("Create the key")
        visitor.take_secret("key-secret")
        [key] = coach.api("GET", "/keys")["keys"]
        assert (key["permissions"], key["events"]) == (["clients.read"], None), key
        assert key["expires_at"] == "2031-03-02T05:00:00.000Z", key
        visitor.go(f"/webhooks/{webhook['id']}/recover")
        visitor.check("Between two times")
        visitor.frame.get_by_label("From", exact=True).fill("2027-01-01T10:00")
        visitor.check("Of the last 7 days")
        visitor.check("Between two times")
        expect(visitor.frame.get_by_label("From", exact=True)).to_have_value("2027-01-01T10:00")


def waits_half_a_minute_at_most(kit, hand):
    """A service that does not answer at all is as good as no connection."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open("/")
        with visitor.slow("**/settings/keys?*") as arrived:
            visitor.page.evaluate("location.hash = '/keys'")
            arrived()
            visitor.context.clock.fast_forward(PATIENCE_MS)
            visitor.sees_heading("No connection")
        visitor.press("Try again")
        visitor.sees_heading("Keys")


def presses_a_button_twice_in_an_older_browser(kit, hand):
    """A button works a second time in a browser without ARIA reflection."""
    with kit.visit(kit.coach(), hand) as visitor:
        visitor.page.add_init_script(WITHOUT_REFLECTION)
        visitor.open("/verify")
        for field in ("Headers", "Body", "Secret"):
            visitor.write(field, "webhook-id")
        visitor.press("Check")
        visitor.sees("Missing: webhook-id")
        visitor.write("Headers", "webhook-id: 1\nwebhook-timestamp: 1\nwebhook-signature: v1,x")
        visitor.press("Check")
        visitor.sees("A signing secret begins with whsec_.")


FLOWS = [
    shows_what_a_slow_request_made,
    repeats_after_lost_answers,
    sees_one_test_event_arrive,
    leaves_while_something_loads,
    is_asked_before_a_draft_is_lost,
    keeps_what_was_chosen,
    waits_half_a_minute_at_most,
    presses_a_button_twice_in_an_older_browser,
]
