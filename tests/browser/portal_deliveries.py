"""Flows of the portal about deliveries, the event catalog and the check of signatures."""

import json
import re

from playwright.sync_api import expect
from portal_kit import until

MANY = 1_000
PAGE = 50


def looks_through_deliveries(kit, hand):
    """A thousand deliveries: pages, filters, and "back" to the same list."""
    coach = kit.coach()
    busy = coach.webhook(f"{kit.receiver.url}/busy", ["message_received"], description="Busy")
    coach.webhook(f"{kit.receiver.url}/quiet", ["new_client"])
    [client] = coach.clients("ada")
    coach.messages(client, MANY)
    delivered = lambda: coach.api("GET", f"/webhooks/{busy['id']}")["last_24h"]["delivered"] == MANY
    until(delivered, 120)
    with kit.visit(coach, hand) as visitor:
        visitor.open("/deliveries")
        expect(visitor.frame.locator(".card")).to_have_count(PAGE)
        visitor.look("deliveries")
        visitor.press("Show more")
        expect(visitor.frame.locator(".card")).to_have_count(2 * PAGE)
        expect(visitor.frame.locator(".card").nth(PAGE)).to_be_focused()
        ids = visitor.frame.locator(".card a").evaluate_all("links => links.map(link => link.href)")
        assert len(set(ids)) == 2 * PAGE, "no delivery is shown twice"
        visitor.unfold("Filter")
        visitor.select("Event", "New client")
        visitor.press("Apply the filter")
        expect(visitor.frame.locator(".card")).to_have_count(1)
        visitor.look("deliveries-filtered")
        visitor.follow("New client")
        visitor.go_back()
        expect(visitor.frame.locator(".card")).to_have_count(1)
        visitor.press("Show all")
        expect(visitor.frame.locator(".card")).to_have_count(PAGE)
        visitor.unfold("Filter")
        visitor.select("Status", "Failed")
        visitor.press("Apply the filter")
        visitor.sees("No delivery fits the filter.")
        visitor.look("deliveries-none")
        visitor.go(f"/webhooks/{busy['id']}")
        expect(visitor.frame.locator(".card")).to_have_count(PAGE)
        visitor.unfold("Filter")
        visitor.write("Id of the event (evt_…)", "not an id")
        with visitor.expecting(400):
            visitor.press("Apply the filter")
            visitor.sees("This must be evt_ and 32 hexadecimal digits")
        visitor.look("deliveries-refused")
        [event] = coach.api("GET", f"/webhooks/{busy['id']}/deliveries?limit=1")["data"]
        visitor.write("Id of the event (evt_…)", event["webhook_id"])
        visitor.press("Apply the filter")
        expect(visitor.frame.locator(".card")).to_have_count(1)


def reads_one_delivery(kit, hand):
    """What was sent, byte for byte; each attempt in words; sent again; and the check of its signature."""
    coach = kit.coach()
    where = f"/{coach.id}-one"
    webhook = coach.webhook(f"{kit.receiver.url}{where}", mode="contact_details")
    kit.receiver.answers[where] = 401
    coach.clients("ada")
    [delivery] = coach.api("GET", f"/webhooks/{webhook['id']}/deliveries")["data"]
    path = f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}"
    with kit.visit(coach, hand) as visitor:
        visitor.open(path)
        visitor.sees_heading("New client")
        visitor.sees("The other system refused access (401)")
        visitor.sees("Next attempt")
        visitor.unfold("What it answered")
        visitor.sees("<b>no</b>")
        body = until(lambda: [body for path, _, body in kit.receiver.seen if path == where])[-1].decode()
        shown = visitor.frame.get_by_label("Body as sent", exact=True)
        assert shown.text_content() == body, (shown.text_content(), body)
        visitor.look("delivery-waiting")
        kit.receiver.answers[where] = 200
        visitor.double_press("Send again")
        visitor.sees("It was sent again")
        visitor.sees("The other system accepted the event (200)")
        assert [path for path, *_ in kit.receiver.seen].count(where) == 2, "sent again once"
        visitor.look("delivery-delivered")
        visitor.press("Send again")
        visitor.sees("Send it a second time?")
        visitor.look("delivery-again")
        visitor.press("Cancel")
        visitor.unfold("Check the signature of this message")
        visitor.write("Secret", webhook["secret"])
        visitor.press("Check")
        visitor.sees("The signature is right")
        visitor.look("delivery-verified")
        headers = visitor.frame.get_by_label("Headers of the latest attempt", exact=True).text_content()
        verifies(visitor, headers, body, webhook["secret"])


def verifies(visitor, headers, body, secret):
    """Pastes a message into the check, whole and then with one mistake after the other."""
    stale = re.sub(r"(webhook-timestamp: )\d+", r"\g<1>1", headers)
    wrong_secret = "whsec_" + "A" * 43 + "="
    spaced = json.dumps(json.loads(body), indent=2)
    cases = [
        ("right", headers, body, secret, "The signature is right"),
        ("pretty", headers, spaced, secret, "read as JSON and written again"),
        ("blank", headers, body + " ", secret, "blanks or line breaks were added"),
        ("other-secret", headers, body, wrong_secret, "the secret of another address"),
        ("key", headers, body, "svc_live_abc", "An API key is something else"),
        ("cut", headers, body, secret[:20], "not a whole secret"),
        ("stale", stale, body, secret, "It does not fit"),
        ("header", headers.replace("webhook-id", "x-id"), body, secret, "Missing: webhook-id"),
        ("form", headers.replace("v1,", "v9,"), body, secret, "no signature of the form"),
        ("time", re.sub(r"(webhook-timestamp: )\d+", r"\g<1>soon", headers), body, secret, "not a number"),
    ]
    visitor.go("/verify")
    visitor.sees_heading("Check a signature")
    for name, pasted, text, with_secret, words in cases:
        visitor.write("Headers", pasted)
        visitor.write("Body", text)
        visitor.write("Secret", with_secret)
        visitor.press("Check")
        visitor.sees(words)
        visitor.look(f"verify-{name}")
    visitor.has_forgotten_after_leaving(secret)


# A receiver's answer, None for none, and the words for it.
FAILURES = {
    301: "The other system pointed to another address (301).",
    400: "The other system did not accept the event (400).",
    403: "The other system refused access (403).",
    404: "Nothing was found at this web address (404).",
    413: "The event was too large for the other system (413).",
    429: "The other system asked to slow down (429).",
    500: "The other system answered with an error (500).",
    None: "The other system hung up before it answered.",
}


def understands_each_failure(kit, hand):
    """The list says in plain words how each hostile receiver has answered."""
    coach = kit.coach()
    where = f"/{coach.id}-hostile"
    webhook = coach.webhook(f"{kit.receiver.url}{where}")
    for answer in FAILURES:
        kit.receiver.answers[where] = answer
        coach.api("POST", f"/webhooks/{webhook['id']}/test", {})
        kit.stack.local("settle", {})
    unreachable = coach.webhook("http://127.0.0.1:9/nobody")
    coach.api("POST", f"/webhooks/{unreachable['id']}/test", {})
    kit.stack.local("settle", {})
    with kit.visit(coach, hand) as visitor:
        visitor.open(f"/webhooks/{webhook['id']}")
        for words in FAILURES.values():
            visitor.sees(words)
        visitor.look("webhook-hostile-receiver")
        visitor.go("/deliveries")
        visitor.sees("The other system refused the connection.")


def sees_an_erased_client(kit, hand):
    """After a client's erasure, the delivery says so and cannot be sent again."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/erased")
    [client] = coach.clients("ada")
    [delivery] = coach.api("GET", f"/webhooks/{webhook['id']}/deliveries")["data"]
    kit.stack.publish([("client.erased", {"client_id": client})])
    with kit.visit(coach, hand, width=360) as visitor:
        visitor.open(f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}")
        visitor.sees("The client was erased")
        visitor.sees("The body was erased with the client.")
        assert not visitor.frame.get_by_role("button", name="Send again").count()
        visitor.look("delivery-erased")


def reads_the_catalog(kit, hand):
    """All events with their examples, without and with contact details."""
    coach = kit.coach()
    types = coach.api("GET", "/event-types")["data"]
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/events")
        visitor.look("events")
        assert visitor.frame.locator(".card").count() == len(types)
        first = types[0]
        visitor.sees(first["description"])
        visitor.unfold(f"Example of “{first['title']}”")
        shown = visitor.frame.get_by_label(f"Example of {first['title']}", exact=True)
        assert json.loads(shown.text_content()) == first["examples"]["identifiers"]
        visitor.check("With contact details")
        assert json.loads(shown.text_content()) == first["examples"]["contact_details"]
        visitor.look("event")


FLOWS = [
    looks_through_deliveries,
    reads_one_delivery,
    understands_each_failure,
    sees_an_erased_client,
    reads_the_catalog,
]
