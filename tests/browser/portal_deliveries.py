"""Flows of the portal about deliveries, the event catalog and the check of signatures."""

import json
import re

from playwright.sync_api import expect
from portal_kit import HANG, receiver_without_tls, parse_time, until

# More than the service reads for one page of a filter.
MANY = 2_100
PAGE = 50
NEW_CLIENT = re.compile("^New client")
TIME = r"[A-Z][a-z]{2} \d+, \d{4}, \d+:\d\d [AP]M (EST|EDT)"


def looks_through_deliveries(kit, hand):
    """Two thousand events: pages, filters, "back" to the same list, and links with a filter that cannot be."""
    coach = kit.coach()
    busy = coach.webhook(f"{kit.receiver.url}/busy", ["message_received"], description="Busy")
    coach.webhook(f"{kit.receiver.url}/quiet", ["new_client"])
    [client] = coach.clients("ada")
    # Entries of a paused webhook are in the log without being sent.
    coach.api("PATCH", f"/webhooks/{busy['id']}", {"enabled": False})
    coach.messages(client, MANY)
    stored = lambda: coach.api("GET", f"/webhooks/{busy['id']}")["last_24h"]["failed"] == MANY
    until(stored, 240, every_s=1)
    with kit.visit(coach, hand) as visitor:
        visitor.open("/deliveries")
        expect(visitor.rows()).to_have_count(PAGE)
        expect(visitor.frame.locator("nav [aria-current=page]")).to_have_text("Webhooks")
        visitor.look("deliveries")
        visitor.press("Show more")
        expect(visitor.rows()).to_have_count(2 * PAGE)
        expect(visitor.rows().nth(PAGE)).to_be_focused()
        ids = visitor.rows().locator("a").evaluate_all("links => links.map(link => link.href)")
        assert len(set(ids)) == 2 * PAGE, "no delivery is shown twice"
        expect(visitor.rows().locator("a").first).to_have_accessible_name(re.compile(f"^Message received of {TIME}, to .+ \\(Busy\\)$"))
        visitor.unfold("Filter")
        visitor.select("Event", "New client")
        visitor.press("Apply the filter")
        # The only event of the filter is the oldest of all.
        visitor.sees("Nothing found yet. Looked at up to 2,000 events so far, newest first.")
        expect(visitor.rows()).to_have_count(0)
        visitor.look("deliveries-so-far")
        visitor.press("Look further")
        expect(visitor.rows()).to_have_count(1)
        expect(visitor.rows()).to_be_focused()
        expect(visitor.frame.get_by_role("button", name="Look further")).to_have_count(0)
        visitor.look("deliveries-filtered")
        visitor.follow(NEW_CLIENT)
        visitor.go_back()
        visitor.sees("Nothing found yet.")
        visitor.press("Show all")
        expect(visitor.rows()).to_have_count(PAGE)
        visitor.unfold("Filter")
        visitor.select("Status", "Waiting")
        visitor.press("Apply the filter")
        visitor.sees("No event fits the filter")
        visitor.look("deliveries-none")
        visitor.go(f"/webhooks/{busy['id']}")
        expect(visitor.rows()).to_have_count(PAGE)
        visitor.unfold("Filter")
        visitor.write("Id of the event", "not an id")
        with visitor.expecting(400):
            visitor.press("Apply the filter")
            visitor.sees("This is not the id of an event.")
        visitor.look("deliveries-refused")
        [event] = coach.api("GET", f"/webhooks/{busy['id']}/deliveries?limit=1")["data"]
        visitor.write("Id of the event", event["webhook_id"])
        visitor.press("Apply the filter")
        expect(visitor.rows()).to_have_count(1)
        with visitor.expecting(400):
            visitor.go("/deliveries?type=of_an_earlier_release")
            visitor.sees_heading("This cannot be shown")
        visitor.look("refused")
        visitor.follow("Show it without a filter")
        expect(visitor.rows()).to_have_count(PAGE)


# What a selection of the whole text puts on the clipboard.
COPIED = """node => new Promise(resolve => {
  addEventListener("copy", event => resolve(event.clipboardData.getData("text/plain")), { once: true });
  getSelection().selectAllChildren(node);
  document.execCommand("copy");
})"""


def waits_for_a_minute(delivery):
    last = max(parse_time(attempt["at"]) for attempt in delivery["attempts"])
    return delivery["next_attempt_at"] and (parse_time(delivery["next_attempt_at"]) - last).total_seconds() > 30


def reads_one_delivery(kit, hand):
    """What was sent, byte for byte; each attempt in words; sent again; and the check of its signature."""
    coach = kit.coach()
    where, base, webhook = kit.hook(coach, "one", mode="contact_details")
    kit.receiver.answers[where] = 401
    coach.clients("ada")
    [delivery] = coach.api("GET", f"{base}/deliveries")["data"]
    path = f"{base}/deliveries/{delivery['id']}"
    with kit.visit(coach, hand) as visitor:
        visitor.open(path)
        visitor.sees_heading("New client")
        visitor.sees("The other system refused access (401)")
        visitor.sees("Next try")
        visitor.sees(re.compile(TIME))
        visitor.unfold("Names and ids")
        visitor.sees(delivery["webhook_id"])
        visitor.press("The answer", "tab")
        visitor.sees("HTTP 401")
        visitor.sees("<b>no</b>")
        visitor.look("delivery-answer")
        visitor.press("What was sent", "tab")
        body = until(lambda: [body for path, _, body in kit.receiver.seen if path == where])[-1].decode()
        shown = visitor.frame.get_by_label("Body as sent", exact=True)
        assert shown.text_content() == shown.evaluate(COPIED) == body, (shown.text_content(), body)
        visitor.press("Copy: Body as sent")
        visitor.hears("Body as sent is")
        visitor.look("delivery-waiting")
        visitor.press("Send again")
        visitor.sees("It was sent again, but it failed: the other system refused access (401).")
        visitor.look("delivery-failed-again")
        # The first retry comes after seconds, and nothing is sent again beside it. The second one is a minute away.
        until(lambda: waits_for_a_minute(coach.api("GET", path)))
        kit.receiver.answers[where] = 200
        earlier = kit.receiver.count(where)
        # The first look for the result comes after a second, and the screen does not have the retry yet.
        kit.stack.local("faults", {"function": "deliver", "store_latency_ms": 1500})
        visitor.double_press("Send again")
        visitor.sees("It was sent again, and the other system accepted it.")
        kit.stack.local("faults", {"function": "", "store_latency_ms": 0})
        visitor.sees("The other system accepted the event (200)")
        assert kit.receiver.count(where) == earlier + 1, "sent again once"
        visitor.look("delivery-delivered")
        visitor.press("Send again")
        visitor.sees("Send it a second time?")
        visitor.look("delivery-again")
        visitor.press("Cancel")
        visitor.press("Send again")
        visitor.press("Send again")
        expect(visitor.frame.locator("dialog")).to_have_count(0)
        visitor.hears("Sending…")
        # The notice of the first time is still on the screen until the page shows the second.
        expect(visitor.frame.locator("main").get_by_text("Sending…")).to_have_count(0, timeout=40_000)
        visitor.sees("It was sent again, and the other system accepted it.")
        expect(visitor.frame.get_by_role("button", name="Send again")).to_be_focused()
        visitor.unfold("Check the signature of this message")
        visitor.write("Secret", webhook["secret"])
        visitor.press("Check")
        visitor.sees("The signature is right: a receiver has to accept this message.")
        visitor.look("delivery-verified")
        headers = visitor.frame.get_by_label("Headers of the last try", exact=True).text_content()
        verifies(visitor, headers, body, webhook["secret"])
        coach.api("DELETE", base)
        with visitor.expecting(404):
            visitor.go(path)
            visitor.sees("It cannot be sent again: its webhook was deleted.")
        visitor.look("delivery-of-a-deleted-webhook")
        visitor.follow(re.compile("Sent events"))
        visitor.sees_heading("Sent events")


def verifies(visitor, headers, body, secret):
    """Pastes a message into the check, whole and then with one mistake after the other."""
    stale = re.sub(r"(webhook-timestamp: )\d+", r"\g<1>1", headers)
    wrong_secret = "whsec_" + "A" * 43 + "="
    spaced = json.dumps(json.loads(body), indent=2)
    pairs = dict(line.split(": ", 1) for line in headers.splitlines())
    go = f"map[{' '.join(f'{name.title()}:[{value}]' for name, value in pairs.items())}]"
    cgi = "\n".join(f"[HTTP_{name.upper().replace('-', '_')}] => {value}" for name, value in pairs.items())
    lists = json.dumps({name: [value] for name, value in pairs.items()}, indent=2)
    cases = [
        ("right", headers, body, secret, "The signature is right"),
        ("pretty", headers, spaced, secret, "read as JSON and written again"),
        ("go", go, body, secret, "The signature is right"),
        ("blank", headers, body + " ", secret, "blanks or line breaks were added"),
        ("cgi", cgi, body, secret, "The signature is right"),
        ("other-secret", headers, body, wrong_secret, "the secret of another address"),
        ("lists", lists, body, secret, "The signature is right"),
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
    visitor.go("/webhooks")
    visitor.has_forgotten(secret)


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
    where = lambda answer: f"/{coach.id}-hostile-{answer}"

    def sends_to(url):
        """Sends a test event. Returns the path of its delivery."""
        webhook = f"/webhooks/{coach.webhook(url)['id']}"
        delivery = coach.api("POST", f"{webhook}/test", {})["delivery_id"]
        return f"{webhook}/deliveries/{delivery}"

    # Each answer has a webhook of its own, so that the retries end as the first try did.
    for answer in [*FAILURES, HANG]:
        kit.receiver.answers[where(answer)] = answer
    hanging, *_ = [sends_to(f"{kit.receiver.url}{where(answer)}") for answer in [HANG, *FAILURES]]
    sends_to("http://127.0.0.1:9/nobody")
    until(lambda: coach.api("GET", hanging)["attempts"], 40, every_s=1)
    with kit.visit(coach, hand) as visitor, receiver_without_tls() as address:
        sends_to(address)
        kit.stack.local("settle", {})
        visitor.open("/deliveries")
        for words in FAILURES.values():
            visitor.sees(words)
        visitor.sees("The other system took more than 15 seconds to answer.")
        visitor.sees("The other system refused the connection.")
        visitor.sees("The other system offers no secure connection at this address.")
        visitor.look("deliveries-hostile-receivers")
        visitor.go(hanging)
        visitor.sees("It should answer first and work afterwards.")
    # Later flows wait until nothing is under way.
    kit.receiver.answers[where(HANG)] = 200


def sees_an_erased_client(kit, hand):
    """After a client's erasure, the delivery says so and cannot be sent again."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/erased")
    [client] = coach.clients("ada")
    [delivery] = coach.api("GET", f"/webhooks/{webhook['id']}/deliveries")["data"]
    kit.stack.publish([("client.erased", {"client_id": client})])
    with kit.visit(coach, hand, width=360, locale="de-DE") as visitor:
        visitor.open(f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}")
        visitor.sees("The client was erased")
        visitor.sees(re.compile(TIME))
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
        expect(visitor.frame.locator(".cards > .card")).to_have_count(len(types))
        first = types[0]
        visitor.sees(first["description"])
        visitor.unfold(f"Example of “{first['title']}”")
        shown = visitor.frame.locator(".code [role=tabpanel]:not([hidden]) pre").first
        for title, example in (
            ("Without contact details", first["examples"]["identifiers"]),
            ("With contact details", first["examples"]["contact_details"]),
            ("JSON Schema", first["schema"]),
        ):
            visitor.press(title, "tab")
            assert json.loads(shown.text_content()) == example
        visitor.look("event")


FLOWS = [
    looks_through_deliveries,
    reads_one_delivery,
    understands_each_failure,
    sees_an_erased_client,
    reads_the_catalog,
]
