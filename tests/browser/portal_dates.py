"""Flows of the portal about days and times: days where the clocks change, years that nobody means, and a browser whose
clock is wrong."""

from datetime import timedelta

from playwright.sync_api import expect
from portal_kit import parse_time

# A zone, the time there as an instant, the first day that can be chosen for a key, and the end of a key on that day.
DAYS = [
    ("America/New_York", "2027-06-15T16:00:00Z", "2027-06-16", "2027-06-17T04:00:00.000Z"),
    ("America/New_York", "2027-11-07T04:30:00Z", "2027-11-08", "2027-11-09T05:00:00.000Z"),
    ("America/New_York", "2027-11-08T04:30:00Z", "2027-11-08", "2027-11-09T05:00:00.000Z"),
    ("America/New_York", "2027-03-14T04:30:00Z", "2027-03-14", "2027-03-15T04:00:00.000Z"),
    ("America/New_York", "2027-03-15T03:30:00Z", "2027-03-15", "2027-03-16T04:00:00.000Z"),
    ("America/New_York", "2028-01-01T04:30:00Z", "2028-01-01", "2028-01-02T05:00:00.000Z"),
    ("Pacific/Kiritimati", "2027-06-15T09:59:00Z", "2027-06-16", "2027-06-16T10:00:00.000Z"),
    # There the clocks go from 24:00 to 01:00: the next day begins an hour late.
    ("America/Santiago", "2027-09-03T16:00:00Z", "2027-09-04", "2027-09-05T04:00:00.000Z"),
]


def chooses_a_day_where_the_clocks_change(kit, hand):
    """The first day for a key is the next day of the calendar where the coach is, and the key ends with that day."""
    coach = kit.coach()
    for zone, now, first, end in DAYS:
        with kit.visit(coach, hand, zone=zone) as visitor:
            visitor.open()
            visitor.context.clock.set_system_time(now)
            visitor.go("/keys/new")
            visitor.write("Name", "Website")
            visitor.check_clients()
            visitor.check("On a date that I choose")
            field = visitor.frame.get_by_label("Last day")
            expect(field).to_have_attribute("min", first)
            field.fill(first)
            visitor.press("Create the key")
            visitor.take_secret("key-secret")
            key = coach.api("GET", "/keys")["keys"][0]
            assert key["expires_at"] == end, (zone, now, key["expires_at"])
            day = parse_time(f"{first}T12:00:00Z").strftime("%b %-d, %Y")
            visitor.sees(f"Works until the end of {day}")
            coach.api("DELETE", f"/keys/{key['id']}")


def searches(visitor, things):
    visitor.go("/deliveries")
    visitor.unfold("Filter")
    return [("From", "Apply the filter"), ("Before", "Apply the filter")]


def filters(visitor, things):
    visitor.go(f"/webhooks/{things['webhook']}")
    visitor.unfold("Filter")
    return [("From", "Apply the filter"), ("Before", "Apply the filter")]


def counts(visitor, things):
    visitor.go(f"/webhooks/{things['webhook']}/recover")
    visitor.check("Between two times")
    return [("From", "Count the events"), ("Before (optional)", "Count the events")]


def creates(visitor, things):
    visitor.go("/keys/new")
    visitor.write("Name", "Website")
    visitor.check_clients()
    visitor.check("On a date that I choose")
    return [("Last day", "Create the key")]


def changes(visitor, things):
    visitor.go("/keys")
    visitor.follow("Desk")
    visitor.press("Change when it ends")
    visitor.check("On a date that I choose")
    return [("Last day", "Save")]


UP_TO = "Choose a date up to the year 2100."


def refuses_years_that_nobody_means(kit, hand):
    """Each field for a date takes years up to 2100, says so before, and says at the field what is wrong."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/years")
    coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open()
        for begin in (searches, filters, counts, changes, creates):
            for label, button in begin(visitor, {"webhook": webhook["id"]}):
                field = visitor.within().get_by_label(label, exact=True)
                time = "T00:00" if field.get_attribute("type") == "datetime-local" else ""
                expect(field).to_have_accessible_description("Years up to 2100.")
                for text, words in (
                    ("20270-01-01", UP_TO),
                    ("2101-01-01", UP_TO),
                    ("0207-01-01", "Choose a date from"),
                ):
                    field.fill(text + time)
                    visitor.press(button)
                    visitor.sees(words)
                    expect(field).to_be_focused()
                    expect(field).to_have_attribute("aria-invalid", "true")
                    visitor.hears(words)
                visitor.look(f"date-refused-{begin.__name__}")
                field.fill("2100-12-31" + time)
                expect(visitor.within().locator(".error", has_text="Choose")).to_have_count(0)
                assert field.evaluate("field => field.validity.valid")
                assert not visitor.frame.get_by_text("Something went wrong").count()
                if label == "From":
                    field.fill("2027-01-01" + time)


def is_told_the_times_of_the_service(kit, hand):
    """Until when an old key or secret works is what the service says, whatever time the browser has."""
    coach = kit.coach()
    soon = (parse_time(kit.stack.now()) + timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    for expires_at in (None, soon):
        key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner", "expires_at": expires_at})
        with kit.visit(coach, hand) as visitor:
            visitor.open(f"/keys/{key['id']}")
            visitor.context.clock.set_system_time(parse_time(kit.stack.now()) - timedelta(hours=9))
            visitor.press("Replace")
            visitor.press("Replace the key")
            visitor.take_secret("key-replaced-secret")
            visitor.sees("This is the new key.")
            [old] = [one for one in coach.api("GET", "/keys")["keys"] if one["id"] == key["id"]]
            expect(visitor.frame.locator("main > .notice time").first).to_have_attribute("datetime", old["works_until"])
    webhook = coach.webhook(f"{kit.receiver.url}/times")
    with kit.visit(coach, hand) as visitor:
        visitor.open(f"/webhooks/{webhook['id']}")
        visitor.context.clock.set_system_time(parse_time(kit.stack.now()) - timedelta(hours=9))
        visitor.press("Replace the secret")
        visitor.within().get_by_role("button", name="Cancel").wait_for()
        visitor.press("Replace the secret")
        visitor.take_secret("webhook-new-secret")
        visitor.sees("The secret is replaced.")
        [line, *_] = coach.api("GET", "/audit")["data"]
        end = (parse_time(line["at"]) + timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%S.")
        shown = visitor.frame.locator("main > .notice time").get_attribute("datetime")
        assert shown.startswith(end), (shown, end)


FLOWS = [
    chooses_a_day_where_the_clocks_change,
    refuses_years_that_nobody_means,
    is_told_the_times_of_the_service,
]
