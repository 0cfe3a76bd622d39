"""Flows of the portal about the requests of other systems: the list, one request, and keys that are used after their
end."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from datetime import timedelta

from playwright.sync_api import expect
from portal_keys import HOSTILE_NAME, status_of
from portal_kit import iso, parse_time

PAGE = 50
DAY_S = 24 * 3_600
# Of the refusals of an ended key, the first of a minute is kept.
APART_S = 120
CODES = "/docs/guides/errors#codes"
UNUSED = "Patient records"
PROGRAM = "Website/1.0 <b>shop</b>"


def send(kit, key, method, path, body=None, **headers):
    """Sends a request with a key. Returns the status and the id of the request. Underscores in header names become
    hyphens."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"authorization": f"Bearer {key['key']}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{kit.stack.base_url}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers["x-request-id"]
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers["x-request-id"]


def looks_through_requests(kit, hand):
    """What other systems asked for, in words: done, refused, and repeated. Filters, pages, and nothing at all."""
    coach = kit.coach()
    desk = coach.api("POST", "/keys", {"name": HOSTILE_NAME, "scope": "crm", "permissions": ["contacts.write"]})
    site = coach.api("POST", "/keys", {"name": "Website", "scope": "partner"})
    coach.api("POST", "/keys", {"name": UNUSED, "scope": "partner"})
    with kit.visit(coach, hand) as visitor:
        visitor.open("/requests")
        visitor.sees("No request in the last 14 days")
        visitor.sees("Each is kept for 14 days")
        visitor.sees("What was turned away before it reached this service is not here.")
        expect(visitor.frame.locator("nav [aria-current=page]")).to_have_text("Requests")
        visitor.look("requests-empty")
        contact = {"name": "Hedy Lamarr", "email": "hedy@contacts.example"}
        for _ in range(2):
            assert send(kit, desk, "POST", "/v1/crm/contacts", contact, idempotency_key="lead-1")[0] == 201
        assert send(kit, site, "GET", "/v1/crm/contacts?email=hedy@contacts.example")[0] == 403
        assert send(kit, site, "POST", "/v1/clients", {"email": "no address"})[0] == 400
        visitor.follow("Overview")
        visitor.follow("Requests")
        expect(visitor.rows()).to_have_count(4)
        bad, scope, repeat, first = (visitor.rows().nth(number) for number in range(4))
        has_words(bad, "Add a client", "Refused", "Website", "A header, parameter or field is missing or breaks its rule.")
        has_words(scope, "Find contacts", "Refused", "Website", "The key is valid, but has another scope.")
        has_words(repeat, "Add a contact", "Done", "Repeat", HOSTILE_NAME, "got the stored answer again: nothing was done twice.")
        has_words(first, "Add a contact", "Done", HOSTILE_NAME)
        expect(first).not_to_contain_text("Repeat")
        expect(scope.get_by_role("link", name="What to do")).to_have_attribute("href", CODES)
        assert "`" not in visitor.frame.locator("main").inner_text(), "code is marked as such"
        visitor.look("requests")
        visitor.unfold("Filter")
        visitor.select("Outcome", "Done")
        visitor.press("Apply the filter")
        visitor.hears("2 requests.")
        expect(visitor.rows()).to_have_count(2)
        assert visitor.page.url.endswith("#/requests?status=2xx"), visitor.page.url
        visitor.look("requests-filtered")
        with visitor.another_screen():
            visitor.hand.press(first_link(visitor))
        visitor.sees_heading("Add a contact")
        visitor.go_back()
        expect(visitor.rows()).to_have_count(2)
        visitor.select("Outcome", "Failed")
        visitor.press("Apply the filter")
        visitor.sees("Nothing failed in this time")
        visitor.select("Outcome", "Refused")
        visitor.select("Key", UNUSED)
        visitor.press("Apply the filter")
        visitor.sees("Nothing was refused in this time")
        visitor.look("requests-nothing-refused")
        visitor.follow("Show it without a filter")
        expect(visitor.rows()).to_have_count(4)
        visitor.unfold("Filter")
        visitor.select("Key", "Website")
        visitor.press("Apply the filter")
        expect(visitor.rows()).to_have_count(2)
        visitor.press("Show all")
        expect(visitor.rows()).to_have_count(4)
        reads_page_by_page(kit, visitor, site)
        filters_by_time(kit, visitor)
        with visitor.expecting(400):
            visitor.go("/requests?status=600")
            visitor.sees_heading("This cannot be shown")


def has_words(row, *words):
    for text in words:
        expect(row).to_contain_text(text)


def first_link(visitor):
    return visitor.rows().first.get_by_role("link").first


def reads_page_by_page(kit, visitor, key):
    """More than a page of refusals, read to the end."""
    for _ in range(PAGE):
        assert send(kit, key, "POST", "/v1/clients", {})[0] == 400
    visitor.go("/requests?status=4xx")
    expect(visitor.rows()).to_have_count(PAGE)
    visitor.press("Show more")
    expect(visitor.rows()).to_have_count(PAGE + 2)
    expect(visitor.rows().nth(PAGE)).to_be_focused()
    visitor.hears("2 more.")
    ids = visitor.rows().locator("th a").evaluate_all("links => links.map(link => link.href)")
    assert len(set(ids)) == PAGE + 2, "no request is shown twice"
    expect(visitor.frame.get_by_role("button", name="Show more")).to_have_count(0)


def filters_by_time(kit, visitor):
    """All requests are before tomorrow noon where the coach is, and none is after it."""
    tomorrow = (parse_time(kit.stack.now()) + timedelta(days=1)).strftime("%Y-%m-%dT12:00")
    visitor.go("/requests")
    visitor.unfold("Filter")
    visitor.frame.get_by_label("Before", exact=True).fill(tomorrow)
    visitor.press("Apply the filter")
    visitor.hears(f"{PAGE} requests, and there may be more.")
    visitor.frame.get_by_label("From", exact=True).fill(tomorrow)
    visitor.press("Apply the filter")
    visitor.sees("No request fits the filter")
    assert "since=" in visitor.page.url and "until=" in visitor.page.url, visitor.page.url


def reads_one_request(kit, hand):
    """All that is kept of a request. It is found by its address alone, and its id can be copied."""
    coach = kit.coach()
    key = coach.api("POST", "/keys", {"name": "Website", "scope": "partner"})
    [client] = coach.clients("ada")
    path = f"/v1/clients/{client}"
    status, refused = send(kit, key, "PATCH", path, {"is_active": "maybe"}, user_agent=PROGRAM)
    assert status == 400
    assert send(kit, key, "POST", "/v1/clients", {"email": f"eve-{hand.name}@clients.example"}, idempotency_key="signup-1")[0] == 201
    with kit.visit(coach, hand, width=360) as visitor:
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visitor.open("/requests")
        with visitor.another_screen():
            visitor.hand.press(visitor.rows().nth(1).get_by_role("link").first)
        visitor.sees_heading("Change a client")
        expect(visitor.frame.locator("h1")).to_contain_text("Refused")
        visitor.sees("A header, parameter or field is missing or breaks its rule.")
        visitor.sees(refused)
        visitor.press("Copy: The id of the request")
        visitor.hears("The id of the request is copied.")
        assert visitor.page.evaluate("navigator.clipboard.readText()") == refused
        visitor.unfold("For your developer")
        for text in ("PATCH /v1/clients/{clientId}", "invalid_request", PROGRAM):
            visitor.sees(text)
        assert "maybe" not in visitor.frame.locator("main").inner_text(), "nothing is kept of the body"
        visitor.look("request-refused")
        address = visitor.page.url.split("#")[1]
        visitor.open(address)
        visitor.sees(refused)
        visitor.follow("Website")
        visitor.sees_heading("Website")
        visitor.follow("See its requests")
        expect(visitor.rows()).to_have_count(2)
        expect(visitor.frame.get_by_label("Key", exact=True)).to_have_value(key["id"])
        with visitor.another_screen():
            visitor.hand.press(first_link(visitor))
        visitor.sees_heading("Add a client")
        expect(visitor.frame.locator("h1")).to_contain_text("Done")
        visitor.unfold("For your developer")
        visitor.sees("Its SHA-256 begins with")
        visitor.look("request-done")
        visitor.go(f"/requests/{urllib.parse.quote(refused, safe='')}?at=2025-01-01T00:00:00.000Z")
        visitor.sees_heading("Not found")


def sees_a_revoked_key_in_use(kit, hand):
    """A key that is used after its end is a problem, until it is used no more. Without such a key nobody asks."""
    coach = kit.coach()
    used, unused = (coach.api("POST", "/keys", {"name": name, "scope": "partner"}) for name in ("Old newsletter", UNUSED))
    asks = lambda visitor: sum("/settings/requests/summary" in address for address in visitor.addresses)
    with kit.visit(coach, hand) as visitor:
        visitor.open("/")
        visitor.sees("Everything works")
        visitor.go(f"/keys/{used['id']}")
        assert asks(visitor) == 0, "no key has ended"
        for key in (used, unused):
            coach.api("DELETE", f"/keys/{key['id']}")
        visitor.follow("Keys")
        visitor.follow("Old newsletter")
        visitor.sees("This key is revoked")
        for _ in range(2):
            kit.stack.advance(APART_S)
            assert status_of(kit, "/v1/clients", used["key"]) == 401
        visitor.follow("Overview")
        visitor.sees(re.compile(r"^A key that you revoked on [A-Z][a-z]{2} \d+, \d{4} is still being used"))
        visitor.sees(re.compile("The key Old newsletter was tried last just now, and at least 2 times in the last 14 days"))
        expect(visitor.frame.get_by_text("is still being used")).to_have_count(1)
        assert asks(visitor) > 0
        visitor.links_are_told_apart()
        visitor.look("overview-revoked-in-use")
        visitor.follow("Old newsletter")
        visitor.sees("is still being used")
        visitor.sees("It is refused each time.")
        visitor.look("key-revoked-in-use")
        visitor.follow("See what it was used for")
        expect(visitor.rows()).to_have_count(2)
        has_words(visitor.rows().first, "Find clients", "Refused", "Old newsletter", "revoked or expired")
        visitor.go(f"/keys/{unused['id']}")
        visitor.sees("This key is revoked")
        kit.stack.advance(8 * DAY_S)
        visitor.go("/")
        visitor.sees("Everything works")


def sees_a_replaced_key_in_use(kit, hand):
    """A key that is used after its successor took over leads to the successor, and one that ended to a new key."""
    coach = kit.coach()
    old = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    new = coach.api("POST", f"/keys/{old['id']}/rotate")
    ended = coach.api("POST", "/keys", {"name": "Fair", "scope": "partner", "expires_at": iso(kit.stack.later(hours=20))})
    kit.stack.advance(2 * DAY_S)
    for key in (old, ended):
        assert status_of(kit, "/v1/ping", key["key"]) == 401
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/")
        expect(visitor.frame.get_by_text(re.compile("^A key that worked until .+ is still being used"))).to_have_count(2)
        visitor.links_are_told_apart()
        visitor.look("overview-ended-in-use")
        visitor.go(f"/keys/{ended['id']}")
        visitor.sees("is still being used")
        expect(visitor.frame.get_by_role("link", name="new key")).to_have_attribute("href", "#/keys/new")
        visitor.go(f"/keys/{old['id']}")
        visitor.sees("is still being used")
        visitor.look("key-replaced-in-use")
        visitor.follow("new key")
        visitor.sees_heading("Desk")
        assert new["id"] in visitor.page.url, visitor.page.url


FLOWS = [
    looks_through_requests,
    reads_one_request,
    sees_a_revoked_key_in_use,
    sees_a_replaced_key_in_use,
]
