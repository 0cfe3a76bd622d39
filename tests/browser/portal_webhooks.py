"""Flows of the portal about webhooks: create, test, change, pause, repair, end."""

import json
import re
from datetime import timedelta

from playwright.sync_api import expect
from portal_kit import Refused, parse_time, until

HOUR_S = 3_600
DAY_S = 24 * HOUR_S
PAGE = 50
NEW_CLIENT = re.compile("^New client")
LONGEST_URL = 2_048
# Secrets of a webhook that work at once.
MOST_SECRETS = 10
HOSTILE_NOTE = "<b>Büro</b> \u202eשלום 🎉 <script>alert(1)</script> " + "x" * 100


def creates_a_webhook(kit, hand):
    """A coach without webhooks creates one in steps, on a bad line, and sees a test event arrive."""
    coach = kit.coach()
    with kit.visit(coach, hand) as visitor:
        visitor.open("/webhooks")
        visitor.sees("You have no webhook yet")
        visitor.look("webhooks-empty")
        visitor.follow("Create a webhook")
        visitor.sees_heading("Create a webhook")
        visitor.sees("Step 1 of 4")
        visitor.press("Next")
        visitor.sees("Step 1 of 4")
        visitor.look("webhook-create-1")
        visitor.write("Web address", "https://10.0.0.1/coaching")
        visitor.press("Next")
        visitor.sees("Step 2 of 4")
        assert not visitor.frame.locator("input:checked").count(), "no event is chosen beforehand"
        visitor.look("webhook-create-2")
        visitor.check("New client", "checkbox")
        visitor.press("Next")
        visitor.sees("Step 3 of 4")
        visitor.press("Next")
        visitor.sees("Step 3 of 4")
        visitor.sees("cannot be changed later")
        visitor.check("Without contact details")
        visitor.look("webhook-create-3")
        visitor.press("Next")
        visitor.sees("Step 4 of 4")
        assert not visitor.frame.get_by_text("Note", exact=True).count(), "no note was written"
        visitor.look("webhook-create-4")
        with visitor.expecting(400):
            visitor.press("Create the webhook")
            visitor.sees("This must not point to a private")
        visitor.sees("Step 1 of 4")
        expect(visitor.frame.locator(":focus")).to_have_attribute("aria-invalid", "true")
        visitor.look("webhook-create-refused")
        visitor.write("Web address", f"{kit.receiver.url}/{coach.id}-created")
        visitor.write("Note (optional)", "Booking desk")
        visitor.press("Next")
        visitor.press("Back")
        for _ in range(3):
            visitor.press("Next")
        with visitor.expecting("offline"):
            visitor.lose_answer("**/settings/webhooks")
            visitor.press("Create the webhook")
            visitor.sees("nothing is done twice")
        visitor.look("webhook-create-offline")
        until(lambda: coach.api("GET", "/webhooks")["endpoints"])
        visitor.double_press("Create the webhook")
        secret = visitor.take_secret("webhook-secret")
        assert secret.startswith("whsec_"), secret
        webhooks = coach.api("GET", "/webhooks")["endpoints"]
        assert len(webhooks) == 1, "neither a lost answer nor a double click makes a second one"
        assert (webhooks[0]["events"], webhooks[0]["description"]) == (["new_client"], "Booking desk"), webhooks
        visitor.sees("Try it")
        visitor.press("Send a test event")
        visitor.hears("Sending…")
        visitor.sees("It works: the other system accepted the test event (200).")
        visitor.look("webhook-created")
        visitor.has_dropped(secret)
        assert kit.receiver.count(f"/{coach.id}-created") == 1
        visitor.follow("Done")
        visitor.sees_heading("Webhook to 127.0.0.1")
        visitor.go("/webhooks")
        visitor.sees("1 delivered")
        visitor.look("webhooks")


def changes_a_webhook(kit, hand):
    """A webhook gets the longest address and a hostile note, is paused, started, given new secrets, and deleted."""
    coach = kit.coach()
    address = f"{kit.receiver.url}/" + "a" * LONGEST_URL
    webhook = coach.webhook(f"{kit.receiver.url}/changed")
    path = f"/webhooks/{webhook['id']}"
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open(path)
        visitor.follow("Edit")
        visitor.sees_heading("Edit the webhook")
        visitor.write("Web address", address[:LONGEST_URL])
        visitor.write("Note (optional)", HOSTILE_NOTE)
        visitor.check("Message received", "checkbox")
        visitor.look("webhook-edit")
        visitor.press("Save")
        visitor.sees("The changes are saved.")
        changed = coach.api("GET", path)
        assert (changed["url"], changed["description"]) == (address[:LONGEST_URL], HOSTILE_NOTE), changed
        assert changed["events"] == ["new_client", "message_received"], changed
        visitor.sees(HOSTILE_NOTE)
        visitor.look("webhook-hostile")
        visitor.unfold("more characters")
        visitor.sees(address[:LONGEST_URL])
        visitor.press("Pause")
        visitor.sees("Pause this webhook?")
        visitor.sees("No event was delivered in the last 30 days.")
        visitor.look("webhook-pause")
        visitor.page.keyboard.press("Escape")
        expect(visitor.frame.locator("dialog")).to_have_count(0)
        assert coach.api("GET", path)["status"] == "enabled"
        visitor.confirm("Pause")
        visitor.sees("The webhook is paused.")
        visitor.look("webhook-paused")
        visitor.press("Start sending again")
        visitor.sees("Sending is on.")
        visitor.press("Replace the secret")
        visitor.sees("both secrets are good")
        visitor.look("webhook-replace-secret")
        visitor.double_press("Replace the secret")
        secret = visitor.take_secret("webhook-new-secret")
        assert secret != webhook["secret"]
        visitor.sees("The secret is replaced. The old one works until")
        [line, *_] = coach.api("GET", "/audit")["data"]
        end = (parse_time(line["at"]) + timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%S.")
        shown = visitor.frame.locator("main > .callout time").get_attribute("datetime")
        assert shown.startswith(end), (shown, end)
        for _ in range(MOST_SECRETS - 2):
            coach.api("POST", f"{path}/rotate-secret")
        with visitor.expecting(409):
            visitor.confirm("Replace the secret")
            visitor.sees("The secret was replaced too often within 24 hours. Try again tomorrow.")
        visitor.look("webhook-secret-limit")
        visitor.press("Cancel")
        visitor.open(path)
        visitor.sees("Replaced. The old one works until")
        visitor.press("Delete")
        visitor.sees("Delete this webhook?")
        visitor.look("webhook-delete")
        visitor.press("Delete the webhook")
        visitor.sees("The webhook is deleted.")
        assert not coach.api("GET", "/webhooks")["endpoints"]
        with visitor.expecting(404):
            visitor.go(path)
            visitor.sees_heading("Not found")
        visitor.look("not-found")


def repairs_a_webhook(kit, hand):
    """At 11 at night: a receiver answers 500 until sending stops. The coach finds out why, repairs, and recovers."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "broken")
    kit.receiver.answers[where] = 500
    coach.clients("one", "two", "three")
    with kit.visit(coach, hand, width=360, scheme="dark") as visitor:
        visitor.open("/")
        visitor.sees("A webhook is failing")
        visitor.sees("The last time, the other system answered with an error (500).")
        visitor.sees("Waiting: 3 events. You need not do anything for that: the next try is")
        visitor.sees(re.compile(r"As of .+ E[SD]T"))
        visitor.look("overview-failing")
        visitor.follow(re.compile("^See this event and the answer of "))
        visitor.sees_heading("New client")
        visitor.go("/webhooks")
        visitor.follow("127.0.0.1:" + kit.receiver.url.rsplit(":")[-1])
        visitor.sees("This webhook is failing")
        visitor.sees(re.compile(r"has accepted nothing since .+ \((just now|\d minutes? ago)\)"))
        visitor.sees("the other system answered with an error (500)")
        visitor.sees("tried again up to 8 times, over about 27 hours. If nothing gets through for 5 days, sending stops.")
        visitor.sees("The next try is")
        visitor.look("webhook-failing")
        with visitor.told(kit.stack.later(days=1)):
            visitor.go("/deliveries")
            visitor.sees("The next try is now.")
        visitor.go(path)
        visitor.follow("Send the failed events again")
        visitor.press("Count the events")
        visitor.sees("There is nothing to send again")
        visitor.sees("Waiting: 3 events.")
        expect(visitor.frame.locator("h2:focus")).to_have_text("There is nothing to send again")
        visitor.go(path)
        visitor.press("Send a test event")
        visitor.sees("It did not work: the other system answered with an error (500).")
        visitor.look("webhook-test-failed")
        # Eight retries end after 27 hours. The decision falls at a failed attempt after five days.
        kit.stack.advance(5 * DAY_S + HOUR_S)
        coach.clients("four")
        visitor.go("/webhooks")
        visitor.sees("Stopped")
        visitor.go_back()
        visitor.sees("Sending has stopped")
        visitor.sees("Not sent: sending had stopped, because every delivery failed.")
        visitor.look("webhook-stopped")
        # More entries that were not sent than the list has on a page.
        coach.clients(*(f"late-{number}" for number in range(PAGE + 1)))
        visitor.go(f"{path}?status=delivered")
        visitor.sees("The last time, the other system answered with an error (500).")
        visitor.go("/")
        visitor.sees("A webhook has stopped")
        visitor.sees("The last time, the other system answered with an error (500).")
        visitor.look("overview-stopped")
        visitor.go(path)
        visitor.follow("Send the failed events again")
        visitor.sees("This webhook is not on")
        visitor.look("recover-off")
        kit.receiver.answers[where] = 200
        visitor.go(path)
        visitor.press("Start sending again")
        visitor.sees("Sending is on.")
        visitor.look("webhook-started")
        visitor.press("Send a test event")
        visitor.sees("It works")
        visitor.follow("Send failed events again")
        visitor.sees_heading("Send failed events again")
        assert visitor.frame.get_by_role("radio", name=re.compile("^Everything since")).is_checked(), "since the first failure"
        visitor.look("recover")
        before = kit.receiver.count(where)
        visitor.press("Count the events")
        number = 4 + PAGE + 1
        visitor.sees(f"Send {number} events again?")
        visitor.sees("They were created since")
        assert kit.receiver.count(where) == before, "counting sends nothing"
        visitor.look("recover-counted")
        visitor.double_press(f"Send {number} events again")
        visitor.sees(f"{number} events are being sent again.")
        kit.stack.local("settle", {})
        assert kit.receiver.count(where) == before + number, "each event is sent once"
        visitor.go(path + "/recover")
        assert visitor.frame.get_by_role("radio", name=re.compile("^All of the 30 days")).is_checked()
        visitor.press("Count the events")
        visitor.sees("There is nothing to send again")
        visitor.look("recover-nothing")
        visitor.unfold("Only some events")
        visitor.check("New client", "checkbox")
        visitor.check("Between two times")
        visitor.look("recover-choices")
        visitor.press("Count the events")
        expect(visitor.frame.get_by_label("From", exact=True)).to_be_focused()


def replaces_a_gone_webhook(kit, hand):
    """The receiver answers 410: the webhook is gone, and the coach creates another like it."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "gone", ["phase_advanced"], "contact_details")
    kit.receiver.answers[where] = 410
    with kit.visit(coach, hand, width=390, scheme="dark") as visitor:
        visitor.open(path)
        visitor.press("Send a test event")
        visitor.sees("the other system wants no more events (410)")
        visitor.go("/webhooks")
        visitor.sees("Gone")
        visitor.go_back()
        visitor.sees("The other system is gone")
        assert not visitor.frame.get_by_role("link", name="Edit", exact=True).count(), "a webhook that is gone stays as it is"
        visitor.look("webhook-gone")
        visitor.follow(re.compile("^Phase advanced"))
        visitor.sees("It cannot be sent again: the other system said that this address is gone for good.")
        visitor.look("delivery-gone")
        visitor.go("/activity")
        visitor.sees("Webhook ended, because the other system said that the address is gone for good")
        visitor.go(path)
        visitor.follow("Create a webhook like this one")
        visitor.write("Web address", f"{kit.receiver.url}/moved")
        visitor.press("Next")
        assert visitor.frame.get_by_role("checkbox", name="Phase advanced").is_checked()
        visitor.press("Next")
        assert visitor.frame.get_by_role("radio", name="With contact details").is_checked()
        visitor.press("Next")
        visitor.press("Create the webhook")
        visitor.take_secret("webhook-secret")
        visitor.follow("Done")
        visitor.sees("On")


def catches_up_after_a_pause(kit, hand):
    """Events of a pause are a problem until they are sent again. A count belongs to its choice of events."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "paused")
    kit.receiver.answers[where] = 500
    coach.clients("one")
    coach.api("PATCH", path, {"enabled": False})
    coach.clients("two")
    kit.receiver.answers[where] = 200
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/")
        visitor.sees("A webhook is paused")
        visitor.go(path)
        visitor.follow(NEW_CLIENT)
        visitor.sees("This event was never sent.")
        visitor.sees("To send it again, first start the webhook")
        visitor.look("delivery-never-sent")
        visitor.go(f"{path}/recover?since=2020-01-01T00:00:00Z")
        visitor.press("Start sending again")
        visitor.sees("Sending is on.")
        assert visitor.frame.get_by_role("radio", name=re.compile("^Everything since Dec 31, 2019")).is_checked()
        visitor.go("/")
        visitor.sees("Some events have failed")
        visitor.sees("Failed in the last 24 hours: 2 events")
        visitor.sees("The last time, the other system answered with an error (500).")
        assert not visitor.frame.get_by_text("Everything works").count()
        visitor.look("overview-failed-events")
        visitor.follow(re.compile("^Send them again to 127.0.0.1"))
        with visitor.slow("**/recover", "POST") as held:
            visitor.press("Count the events")
            held()
            visitor.check("Of the last 7 days")
        visitor.page.wait_for_timeout(500)
        assert not visitor.frame.get_by_text("Send 2 events again?").count(), "the count was of another choice"
        visitor.page.route("**/recover", in_part)
        visitor.press("Count the events")
        visitor.sees("Send at least 2 events again?")
        visitor.look("recover-in-part")
        before = kit.receiver.count(where)
        visitor.press("Send at least 2 events again")
        visitor.sees("At least 2 events are being sent again.")
        kit.stack.local("settle", {})
        assert kit.receiver.count(where) == before + 2, "each event is sent once"
        visitor.go("/")
        visitor.sees("Everything works")
        visitor.look("overview-well")
        visitor.go("/activity")
        visitor.sees("Webhook paused")
        visitor.sees("Webhook started")
        visitor.sees("Events sent again")


def in_part(route):
    """Answers a recovery, or its count, as if there were too many events to count."""
    answer = route.fetch()
    route.fulfill(response=answer, body=json.dumps(answer.json() | {"more": True}))


def is_running(route):
    """Answers a recovery as the service does while another one runs: a short one has ended before a coach sees it."""
    route.fulfill(status=409, headers={"retry-after": "60"}, json={"error": "a recovery runs", "code": "recovery_running"})


def waits_for_another_recovery(kit, hand):
    """Two recoveries of a webhook do not run at once: the page says so, and the second one works later."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "twice")
    coach.api("PATCH", path, {"enabled": False})
    coach.clients("one")
    coach.api("PATCH", path, {"enabled": True})
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open(f"{path}/recover")
        visitor.press("Count the events")
        visitor.sees("Send 1 event again?")
        visitor.page.route("**/recover", is_running, times=1)
        with visitor.expecting(409):
            visitor.press("Send 1 event again")
            visitor.sees("Events are being sent again already.")
        visitor.look("recover-running")
        assert coach.api("POST", f"{path}/recover", {"since": "2020-01-01T00:00:00Z"})["deliveries"] == 1
        kit.stack.local("settle", {})
        visitor.press("Send 1 event again")
        visitor.sees("0 events are being sent again.")
        kit.stack.local("settle", {})
        assert kit.receiver.count(where) == 1, "the event is sent once"


def reaches_the_limits(kit, hand):
    """20 webhooks are all; ten test events a minute are all; another coach's webhook is none."""
    coach, other = kit.coach(), kit.coach()
    webhooks = [coach.webhook(f"{kit.receiver.url}/{number}", description=f"{number} " + "🎉" * 99) for number in range(20)]
    try:
        coach.webhook(f"{kit.receiver.url}/more")
        raise AssertionError("a 21st webhook")
    except Refused as refused:
        assert refused.status == 409
    with kit.visit(coach, hand) as visitor:
        visitor.open("/webhooks")
        visitor.sees("You have as many webhooks as you can have")
        expect(visitor.rows()).to_have_count(20)
        visitor.look("webhooks-full")
        visitor.go("/webhooks/new")
        visitor.sees("The limit is 20.")
        visitor.look("webhook-create-full")
        kit.stack.advance_to_the_next_minute()
        for _ in range(10):
            coach.api("POST", f"/webhooks/{webhooks[0]['id']}/test", {})
        visitor.go(f"/webhooks/{webhooks[0]['id']}")
        with visitor.expecting(429):
            visitor.press("Send a test event")
            visitor.sees("Try again in")
        visitor.look("webhook-test-limit")
    with kit.visit(other, hand) as visitor, visitor.expecting(404):
        visitor.open(f"/webhooks/{webhooks[0]['id']}")
        visitor.sees_heading("Not found")


def tells_webhooks_of_one_host_apart(kit, hand):
    """Webhooks at one host, some with one note or one address, are told apart wherever the page names them."""
    coach = kit.coach()
    url = f"{kit.receiver.url}/{coach.id}"
    host = url.split("/")[2]
    long = ["a" * 90 + middle + "z" * 90 for middle in "12"]
    plan = [("/one", None), ("/two", None), ("/note", "Desk"), ("/desk/1", "Shared"), ("/desk/2", "Shared"), ("?to=1", None)]
    plan += [("/same", None), ("/same", "Same"), ("/same", "Same")] + [(f"/{path}", None) for path in long]
    made = [coach.webhook(url + path, description=note) for path, note in plan]
    broken = [f"/{coach.id}{path}" for path, _ in plan[:4]]
    kit.receiver.answers.update({path: 500 for path in broken})
    coach.clients("ada")
    [one, two, note, *_] = [f"/webhooks/{webhook['id']}" for webhook in made]
    for path in (one, two):
        coach.api("PATCH", path, {"enabled": False})
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open()
        visitor.links_are_told_apart()
        problems = visitor.frame.locator(".callout h2").all_text_contents()
        assert len(set(problems)) == 4, problems
        visitor.sees(f"{host}/{coach.id}/two was paused")
        visitor.go("/webhooks")
        visitor.links_are_told_apart()
        names = visitor.rows().locator("th a").all_text_contents()
        assert len(set(names)) == len(made), names
        assert {f"{host}/{coach.id}/one", f"{host} (Desk)", f"{host}/{coach.id}/desk/2", f"{host}/{coach.id}?to=1"} <= set(names), names
        visitor.look("webhooks-one-host")
        titles, headings = set(), set()
        for webhook in made:
            visitor.go(f"/webhooks/{webhook['id']}")
            titles.add(visitor.page.title())
            headings.add(visitor.frame.locator("h1").inner_text())
            visitor.links_are_told_apart()
        assert (len(titles), len(headings)) == (len(made), len(made)), (titles, headings)
        visitor.go(note)
        for button in ("Pause", "Replace the secret", "Delete"):
            visitor.press(button)
            expect(visitor.frame.locator("dialog[open]")).to_contain_text(f"{host} (Desk)")
            visitor.press("Cancel")
        visitor.confirm("Replace the secret")
        expect(visitor.frame.locator("dialog[open]")).to_contain_text(f"{url}/note")
        visitor.take_secret("webhook-secret-one-host")
        visitor.follow("Send failed events again")
        assert f"{host} (Desk)" in visitor.page.title(), visitor.page.title()
        visitor.go("/deliveries")
        visitor.links_are_told_apart()
        visitor.unfold("Filter")
        options = visitor.frame.get_by_label("Webhook", exact=True).locator("option").all_text_contents()
        assert len(set(options)) == len(made) + 1, options
        visitor.look("deliveries-one-host")
        visitor.select("Webhook", f"{host} (Desk)")
        visitor.press("Apply the filter")
        expect(visitor.rows()).to_have_count(1)
        for path in (one, two):
            coach.api("DELETE", path)
        visitor.go("/deliveries")
        visitor.sees(f"to a deleted webhook ({made[0]['id']})")
        visitor.go("/activity")
        visitor.links_are_told_apart()
        visitor.sees(re.compile(f"deleted: {made[1]['id']}"))
        # The only one of its host needs no more than the host.
        for webhook in made[3:]:
            coach.api("DELETE", f"/webhooks/{webhook['id']}")
        visitor.go(note)
        expect(visitor.frame.locator("h1")).to_contain_text(re.compile(f"^Webhook to {re.escape(host)} [A-Z]"))
    kit.receiver.answers.update({path: 200 for path in broken})


FLOWS = [
    creates_a_webhook,
    changes_a_webhook,
    repairs_a_webhook,
    catches_up_after_a_pause,
    waits_for_another_recovery,
    replaces_a_gone_webhook,
    reaches_the_limits,
    tells_webhooks_of_one_host_apart,
]
