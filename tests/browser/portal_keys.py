"""Flows of the portal about keys, the overview, the activity, and the guide for applications that embed the page."""

import json
import pathlib
import re
import urllib.error
import urllib.request

from playwright.sync_api import expect
from portal_kit import iso

GUIDE = pathlib.Path(__file__).parents[2] / "infra" / "guides" / "portal.md"
HOSTILE_NAME = ("<b>Key</b> \u202eמפתח 🔑 " + "x" * 100)[:99]  # An emoji counts twice in the field's limit of 100.
MOST_LIVE = 50
CLIENT_PERMISSIONS = (
    "See clients",
    "Add clients, and switch them on and off",
    "See compliance, check-ins and daily logs",
    "Sign clients in",
)
MORE_THAN_A_PAGE = 105
DAY_S = 24 * 3_600


def creates_a_key(kit, hand):
    """A coach who starts creates a key for clients, and the key works."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open()
        visitor.sees("Connect another system")
        visitor.look("overview-empty")
        visitor.follow("Keys")
        visitor.sees("No keys yet")
        visitor.look("keys-empty")
        visitor.follow("Create a key")
        visitor.sees_heading("Create a key")
        visitor.press("Create the key")
        assert visitor.frame.locator(":focus").get_attribute("name") == "name", "the browser asks for a name"
        visitor.write("Name", "Website")
        visitor.press("Create the key")
        assert coach.api("GET", "/keys")["keys"] == [], "no kind is chosen beforehand"
        visitor.check("Clients")
        for permission in CLIENT_PERMISSIONS:
            visitor.check(permission, "checkbox")
        visitor.check("In one year")
        visitor.look("key-create")
        visitor.double_press("Create the key")
        visitor.press("Copy: The key")
        visitor.hears("The key is")
        expect(visitor.within().get_by_role("button", name=re.compile("^(Copied|Selected: copy it now): The key$"))).to_be_visible()
        secret = visitor.take_secret("key-secret")
        visitor.sees_heading("Website")
        visitor.sees("The key is created and works at once.")
        keys = coach.api("GET", "/keys")["keys"]
        assert len(keys) == 1, "a double click creates one"
        assert (keys[0]["scope"], keys[0]["expires_at"] is None) == ("partner", False), keys
        assert (len(keys[0]["permissions"]), keys[0]["events"]) == (len(CLIENT_PERMISSIONS), None), keys
        assert status_of(kit, "/v1/ping", secret) == 200
        visitor.look("key")
        visitor.follow("Overview")
        visitor.sees("1 of at most 50")
        visitor.look("overview")


def creates_a_crm_key(kit, hand):
    """A key for the CRM may do what was chosen, and needs at least one choice."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys/new")
        visitor.write("Name", "Booking desk")
        visitor.check("CRM")
        assert not visitor.frame.locator("input[type=checkbox]:checked").count(), "nothing is chosen beforehand"
        expect(visitor.frame.get_by_role("group", name="What may it do?")).to_have_accessible_description(re.compile("^Choose at least one."))
        visitor.press("Create the key")
        assert coach.api("GET", "/keys")["keys"] == [], "a key without permissions cannot be created"
        visitor.check("See contacts", "checkbox")
        visitor.check("On a date that I choose")
        write_date(visitor, "03012031")
        visitor.look("key-create-crm")
        visitor.press("Create the key")
        secret = visitor.take_secret("key-secret-crm")
        key = coach.api("GET", "/keys")["keys"][0]
        assert (key["permissions"], key["expires_at"]) == (["contacts.read"], "2031-03-02T05:00:00.000Z"), key
        assert (status_of(kit, "/v1/crm/contacts", secret), status_of(kit, "/v1/crm/bookings", secret)) == (200, 403)


def lets_a_key_read_events(kit, hand):
    """A key reads the events that were chosen, with or without contact details, until they are taken away."""
    coach = kit.coach()
    read = lambda: coach.api("GET", "/keys")["keys"][0]["events"]
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys/new")
        visitor.write_key("Patient records")
        visitor.check("Yes")
        visitor.press("Create the key")
        assert coach.api("GET", "/keys")["keys"] == [], "no event and no data are chosen beforehand"
        visitor.check("New client", "checkbox")
        visitor.check("Message received", "checkbox")
        visitor.check("With contact details")
        visitor.look("key-create-events")
        visitor.press("Create the key")
        visitor.take_secret("key-secret")
        assert read() == {"types": ["new_client", "message_received"], "payload_mode": "contact_details"}
        visitor.sees("Message received")
        visitor.sees("With contact details")
        visitor.look("key-events")
        visitor.follow("Change events")
        visitor.sees_heading("Change which events the key reads")
        assert visitor.frame.get_by_role("checkbox", name="Message received").is_checked()
        visitor.check("Check-in submitted", "checkbox")
        visitor.check("Without contact details")
        visitor.look("key-events-change")
        visitor.press("Save")
        visitor.sees("The events of the key are changed.")
        assert read() == {"types": ["new_client", "check_in_submitted", "message_received"], "payload_mode": "identifiers"}
        visitor.follow("Keys")
        visitor.sees("reads events")
        visitor.look("keys-events")
        visitor.follow("Patient records")
        visitor.follow("Change events")
        visitor.check("No")
        visitor.look("key-events-none")
        visitor.press("Save")
        visitor.sees("The events of the key are changed.")
        visitor.sees("None")
        assert read() is None
        visitor.follow("Change events")
        visitor.check("Yes")
        visitor.check("New client", "checkbox")
        visitor.check("Without contact details")
        coach.api("POST", f"/keys/{coach.api('GET', '/keys')['keys'][0]['id']}/rotate")
        with visitor.expecting(409):
            visitor.press("Save")
            visitor.sees("This key has ended or was replaced already, so nothing was changed.")
        visitor.look("key-events-refused")
        visitor.press("Cancel", "link")
        visitor.press("Leave")
        visitor.sees("This key was replaced")
        assert not visitor.frame.get_by_role("link", name="Change events", exact=True).count(), "a replaced key keeps its events"
        visitor.follow("Activity")
        visitor.sees("changed: events")


def changes_a_key(kit, hand):
    """A key is renamed, gets another end, is replaced, and both are told apart until the old one is revoked."""
    coach = kit.coach()
    first = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys")
        visitor.follow("Desk")
        visitor.press("Rename")
        visitor.look("key-rename")
        visitor.page.keyboard.press("Escape")
        visitor.press("Rename")
        visitor.write("Name", HOSTILE_NAME)
        visitor.press("Save")
        visitor.sees("The key is renamed.")
        assert coach.api("GET", "/keys")["keys"][0]["name"] == HOSTILE_NAME
        visitor.look("key-hostile")
        visitor.press("Change when it ends")
        visitor.check("On a date that I choose")
        write_date(visitor, "12312030")
        visitor.look("key-end")
        visitor.press("Save")
        visitor.sees("The end of the key is changed.")
        visitor.sees("Works until the end of Dec 31, 2030")
        chosen = coach.api("GET", "/keys")["keys"][0]["expires_at"]
        for end in (chosen, "2030-12-31T17:30:00.000Z"):
            coach.api("PATCH", f"/keys/{first['id']}", {"expires_at": end})
            visitor.go("/keys")
            visitor.follow(HOSTILE_NAME)
            visitor.press("Change when it ends")
            visitor.press("Save")
            visitor.sees("The end of the key is changed.")
            assert coach.api("GET", "/keys")["keys"][0]["expires_at"] == end, "nothing was changed in the form"
        visitor.press("Change when it ends")
        visitor.check("Never")
        visitor.press("Save")
        visitor.sees("Works until you revoke it")
        visitor.press("Replace")
        visitor.sees("The old key goes on working for 24 hours.")
        visitor.look("key-replace")
        visitor.double_press("Replace the key")
        second = visitor.take_secret("key-replaced-secret")
        assert len(coach.api("GET", "/keys")["keys"]) == 2, "a double click replaces once"
        visitor.follow("The old key")
        visitor.sees("This key was replaced")
        assert [status_of(kit, "/v1/ping", secret) for secret in (first["key"], second)] == [200, 200]
        visitor.follow("Overview")
        visitor.sees("A replaced key still works")
        visitor.look("overview-replaced")
        visitor.go(f"/keys/{first['id']}")
        visitor.sees("This key was replaced")
        visitor.look("key-replaced")
        visitor.press("Revoke")
        visitor.sees("Whatever uses it stops working at once.")
        visitor.sees("Last used")
        visitor.look("key-revoke")
        visitor.press("Cancel")
        assert status_of(kit, "/v1/ping", first["key"]) == 200
        visitor.press("Revoke")
        visitor.press("Revoke the key")
        visitor.sees("The key is revoked.")
        visitor.look("key-revoked")
        assert [status_of(kit, "/v1/ping", secret) for secret in (first["key"], second)] == [401, 200]


def tells_keys_of_one_name_apart(kit, hand):
    """Keys with one name are told apart by how they look, wherever the page names them."""
    coach = kit.coach()
    soon = iso(kit.stack.later(days=2))
    keys = [coach.api("POST", "/keys", {"name": "Desk", "scope": "partner", "expires_at": soon}) for _ in range(2)]
    titles = {f"Desk ({key['display']})" for key in keys}
    with kit.visit(coach, hand) as visitor:
        visitor.open()
        visitor.links_are_told_apart()
        for place in ("/keys", "/activity"):
            visitor.go(place)
            visitor.links_are_told_apart()
            assert titles <= set(visitor.frame.locator("main a").all_text_contents()), place
        for key in keys:
            visitor.go(f"/keys/{key['id']}")
            visitor.sees_heading(f"Desk ({key['display']})")
        visitor.press("Revoke")
        visitor.sees(f"Desk ({key['display']}) is refused from now on.")
        visitor.look("key-revoke-one-name")
        visitor.press("Cancel")


def sees_keys_end(kit, hand):
    """A key that ends soon is a problem; an ended key says so."""
    coach = kit.coach()
    key = coach.api("POST", "/keys", {"name": "Old site", "scope": "partner"})
    assert status_of(kit, "/v1/ping", key["key"]) == 200
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys")
        visitor.sees("Active")
        coach.api("PATCH", f"/keys/{key['id']}", {"expires_at": iso(kit.stack.later(days=2))})
        visitor.follow("Overview")
        visitor.sees("A key ends soon")
        visitor.look("overview-ending")
        visitor.follow("Old site")
        visitor.sees("This key ends soon")
        kit.stack.advance(3 * DAY_S)
        visitor.follow("Keys")
        visitor.sees("Ended")
        visitor.follow("Old site")
        visitor.sees("This key has ended")
        visitor.sees("Ended 1 day ago")
        visitor.look("key-expired")
        visitor.follow("Overview")
        visitor.sees("A key has ended")
        visitor.sees("what uses it is refused")
        visitor.look("overview-key-ended")


def reaches_the_limit(kit, hand):
    """With as many keys as a coach can have, the page says so before and after a try, and shows them page by page."""
    coach = kit.coach()
    kit.stack.advance(60)
    for number in range(MORE_THAN_A_PAGE):
        key = coach.api("POST", "/keys", {"name": f"Key {number}", "scope": "partner"})
        if number < MORE_THAN_A_PAGE - MOST_LIVE:
            coach.api("DELETE", f"/keys/{key['id']}")
    kit.stack.advance(60)
    with kit.visit(coach, hand) as visitor:
        visitor.open("/keys")
        visitor.sees("You have as many active keys as you can have")
        rows = visitor.rows()
        expect(rows).to_have_count(100)
        visitor.press("Show more")
        expect(rows).to_have_count(MORE_THAN_A_PAGE)
        visitor.look("keys-limit")
        visitor.go("/keys/new")
        visitor.write_key("One more")
        with visitor.expecting(409):
            visitor.press("Create the key")
            visitor.sees("Revoke one that you do not use")
        visitor.look("key-create-limit")
        live = coach.api("GET", "/keys?status=live")["keys"]
        coach.api("DELETE", f"/keys/{live[0]['id']}")
        visitor.press("Create the key")
        visitor.take_secret("key-secret-after-limit")


def is_not_entitled(kit, hand):
    """A coach whose plan has no integrations reads so before a key is created, and on the overview."""
    coach = kit.coach(entitled=False)
    with kit.visit(coach, hand) as visitor:
        visitor.open()
        visitor.sees("Your plan does not include integrations yet")
        visitor.look("overview-not-entitled-empty")
        visitor.follow("Create a key")
        visitor.check("CRM")
        visitor.sees("CRM keys are refused until your plan includes it.")
        visitor.hears("CRM keys are refused until your plan includes it.")
        visitor.write_key("Too early")
        visitor.sees("Keys for clients are refused until your plan includes it.")
        visitor.look("key-create-not-entitled")
        visitor.press("Create the key")
        secret = visitor.take_secret("key-secret-not-entitled")
        assert status_of(kit, "/v1/ping", secret) == 402
        visitor.follow("Overview")
        visitor.sees("Your plan does not include access to clients")
        visitor.look("overview-not-entitled")


def reads_the_activity(kit, hand):
    """The activity tells who changed what, page by page."""
    coach = kit.coach()
    key = coach.api("POST", "/keys", {"name": HOSTILE_NAME, "scope": "partner"})
    with kit.visit(coach, hand) as visitor:
        # The session's subject, which the trail names, need not be the coach's id.
        visitor.page.route("**/settings/workspace", with_another_id)
        visitor.open("/activity")
        visitor.sees("Key created")
        visitor.sees("by you")
        for number in range(51):
            coach.api("PATCH", f"/keys/{key['id']}", {"name": f"Key {number}"})
        visitor.follow("Overview")
        visitor.follow("Activity")
        visitor.sees("changed: name")
        rows = visitor.rows()
        expect(rows).to_have_count(50)
        visitor.press("Show more")
        expect(rows).to_have_count(52)
        visitor.look("activity")
        visitor.page.route("**/settings/audit?*", with_an_operator)
        visitor.follow("Overview")
        visitor.follow("Activity")
        visitor.sees("Something that had failed was tried again")
        visitor.sees("reason: <b>The store</b> answers again")
        visitor.sees("by the service's operators")
        visitor.look("activity-operator")
        visitor.follow("Key 50")
        visitor.sees_heading("Key 50")


def with_an_operator(route):
    """Answers the trail with the act of an operator as its latest line."""
    answer = route.fetch()
    page = answer.json()
    line = {
        "at": page["data"][0]["at"],
        "actor": "operator:role/oncall",
        "action": "dead.redriven",
        "target": "fact-1",
        "detail": {"reason": "<b>The store</b> answers again"},
    }
    route.fulfill(response=answer, body=json.dumps(page | {"data": [line, *page["data"]]}))


def with_another_id(route):
    """Answers the workspace as one whose coach has another id than the session's subject."""
    answer = route.fetch()
    route.fulfill(response=answer, body=json.dumps(answer.json() | {"coach_id": "another"}))


def is_embedded_by_the_guide(kit, hand):
    """The lines of the guide give the page its session and its height, and another one when the first is refused."""
    coach = kit.coach()
    base_url = kit.stack.base_url
    snippet = GUIDE.read_text().split("```html\n")[1].split("```")[0].replace("https://api.example.com", base_url)
    tokens = ["refused", coach.token(), coach.token()]
    script = f"const tokens = {tokens!r}; window.given = []; function settingsToken() {{ given.push(tokens[given.length]); return given.at(-1); }}"
    with kit.visit(coach, hand) as visitor:
        body = f"<!doctype html><html lang='en'><title>Application</title><link rel='icon' href='data:,'><script>{script}</script>{snippet}"
        visitor.page.route("**/embedding", lambda route: route.fulfill(body=body, content_type="text/html"))
        with visitor.expecting(401):
            visitor.page.goto(f"{base_url}/embedding")
            visitor.frame = visitor.page.frame_locator("#integrations")
            visitor.sees("Connect another system")
        assert visitor.page.evaluate("given.length") == 2, "the page has asked again once"
        visitor.page.wait_for_function("frame.getBoundingClientRect().height > 400")
        before = visitor.page.evaluate("frame.getBoundingClientRect().height")
        visitor.follow("Create a key")
        visitor.page.wait_for_function(f"frame.getBoundingClientRect().height !== {before}")


FLOWS = [
    creates_a_key,
    creates_a_crm_key,
    lets_a_key_read_events,
    changes_a_key,
    tells_keys_of_one_name_apart,
    sees_keys_end,
    reaches_the_limit,
    is_not_entitled,
    reads_the_activity,
    is_embedded_by_the_guide,
]


def write_date(visitor, digits):
    """Types a date (MMDDYYYY) into the date field, as both hands do."""
    field = visitor.within().get_by_label("Last day")
    if visitor.hand.name == "mouse":
        field.click(position={"x": 14, "y": 16})
    else:
        visitor.hand.reach(field)
    visitor.page.keyboard.type(digits)


def status_of(kit, path, key):
    """The status of a request with a key."""
    request = urllib.request.Request(f"{kit.stack.base_url}{path}", headers={"authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code
