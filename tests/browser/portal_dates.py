"""Flows of the portal about days and times: days where the clocks change, years that nobody means, and times by the
service's clock. That of the browser is wrong in every flow."""

import json
import re
from datetime import timedelta
from urllib.parse import parse_qs

from playwright.sync_api import expect
from portal_kit import iso, parse_time

# A zone, the time there as an instant, the first day that can be chosen for a key, and the end of a key on that day.
# Other flows move the clock by months, so the years are far ahead.
DAYS = [
    ("America/New_York", "2038-06-15T16:00:00Z", "2038-06-16", "2038-06-17T04:00:00.000Z"),
    ("America/New_York", "2038-11-07T04:30:00Z", "2038-11-08", "2038-11-09T05:00:00.000Z"),
    ("America/New_York", "2038-11-08T04:30:00Z", "2038-11-08", "2038-11-09T05:00:00.000Z"),
    ("America/New_York", "2038-03-14T04:30:00Z", "2038-03-14", "2038-03-15T04:00:00.000Z"),
    ("America/New_York", "2038-03-15T03:30:00Z", "2038-03-15", "2038-03-16T04:00:00.000Z"),
    ("America/New_York", "2039-01-01T04:30:00Z", "2039-01-01", "2039-01-02T05:00:00.000Z"),
    ("Pacific/Kiritimati", "2038-06-15T09:59:00Z", "2038-06-16", "2038-06-16T10:00:00.000Z"),
    # There the clocks go from 24:00 to 01:00: the next day begins an hour late.
    ("America/Santiago", "2038-09-03T16:00:00Z", "2038-09-04", "2038-09-05T04:00:00.000Z"),
]


def chooses_a_day_where_the_clocks_change(kit, hand):
    """The first day for a key is the next day of the calendar where the coach is, and the key ends with that day."""
    coach = kit.coach()
    for zone, now, first, end in DAYS:
        with kit.visit(coach, hand, zone=zone) as visitor:
            visitor.open()
            with visitor.told(parse_time(now)):
                visitor.go("/keys/new")
                visitor.write_key("Website")
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


def filter_events(visitor):
    visitor.unfold("Filter")


def choose_two_times(visitor):
    visitor.check("Between two times")


def change_the_end(visitor):
    visitor.press("Change when it ends")
    visitor.check("On a date that I choose")


def write_a_key(visitor):
    visitor.write_key("Website")
    visitor.check("On a date that I choose")


# Each form with dates: the screen, the way to the fields, their labels, and the button.
DATED = [
    ("/deliveries", filter_events, ["From", "Before"], "Apply the filter"),
    ("/webhooks/{webhook}", filter_events, ["From", "Before"], "Apply the filter"),
    ("/requests", filter_events, ["From", "Before"], "Apply the filter"),
    ("/webhooks/{webhook}/recover", choose_two_times, ["From", "Before (optional)"], "Count the events"),
    ("/keys/{key}", change_the_end, ["Last day"], "Save"),
    ("/keys/new", write_a_key, ["Last day"], "Create the key"),
]
UP_TO = "Choose a date up to the year 2100."


def refuses_years_that_nobody_means(kit, hand):
    """Each field for a date takes years up to 2100, says so before, and says at the field what is wrong."""
    coach = kit.coach()
    things = {
        "webhook": coach.webhook(f"{kit.receiver.url}/years")["id"],
        "key": coach.api("POST", "/keys", {"name": "Desk", "scope": "partner"})["id"],
    }
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open()
        for number, (place, begin, labels, button) in enumerate(DATED):
            visitor.go(place.format(**things))
            begin(visitor)
            for label in labels:
                field = visitor.within().get_by_label(label, exact=True)
                time = "T00:00" if field.get_attribute("type") == "datetime-local" else ""
                expect(field).to_have_accessible_description("Years up to 2100.")
                for text, words in (("20270-01-01", UP_TO), ("2101-01-01", UP_TO), ("0207-01-01", "Choose a date from")):
                    field.fill(text + time)
                    visitor.press(button)
                    visitor.sees(words)
                    expect(field).to_be_focused()
                    expect(field).to_have_attribute("aria-invalid", "true")
                    visitor.hears(words)
                visitor.look(f"date-refused-{number}")
                field.fill("2100-12-31" + time)
                expect(visitor.within().locator(".error", has_text="Choose")).to_have_count(0)
                assert field.evaluate("field => field.validity.valid")
                assert not visitor.frame.get_by_text("Something went wrong").count()
                if label == "From":
                    field.fill("2027-01-01" + time)


def is_told_the_times_of_the_service(kit, hand):
    """Until when an old key works is what the service says."""
    coach = kit.coach()
    soon = iso(kit.stack.later(hours=5))
    for expires_at in (None, soon):
        key = coach.api("POST", "/keys", {"name": "Desk", "scope": "partner", "expires_at": expires_at})
        with kit.visit(coach, hand) as visitor:
            visitor.open(f"/keys/{key['id']}")
            visitor.press("Replace")
            visitor.press("Replace the key")
            visitor.take_secret("key-replaced-secret")
            visitor.sees("This is the new key.")
            [old] = [one for one in coach.api("GET", "/keys")["keys"] if one["id"] == key["id"]]
            expect(visitor.frame.locator("main > .callout time").first).to_have_attribute("datetime", old["works_until"])


# Each `time` of the screen: the instant, and the words for it.
TIMES = "() => [...document.querySelectorAll('main time, dialog time')].map(node => [node.dateTime, node.textContent])"
RELATIVE = re.compile(r"(in )?(\d+) (day|hour|minute)s?( ago)?")
UNITS = {"day": 86_400, "hour": 3_600, "minute": 60}
LEEWAY_S = 10


def fits(iso, words, now):
    """Returns true if words such as "3 hours ago" are right about an instant. A date is no such words."""
    left_s = (parse_time(iso) - now).total_seconds()
    if words in ("just now", "in less than a minute", "now"):
        return abs(left_s) < UNITS["minute"] + LEEWAY_S
    if not (found := RELATIVE.fullmatch(words)):
        return True
    ahead, number, unit, past = found.groups()
    passed_s = left_s if ahead else -left_s
    return bool(ahead) != bool(past) and -LEEWAY_S <= passed_s - int(number) * UNITS[unit] <= UNITS[unit] + LEEWAY_S


def is_told_how_long_ago_by_the_service(kit, hand):
    """What is said of a time relative to now is right on every screen, though the browser's clock is days off."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "times")
    paused = coach.webhook(f"{kit.receiver.url}{where}-paused", ["message_received"])
    kit.receiver.answers[where] = 500
    coach.clients("one")
    coach.api("PATCH", f"/webhooks/{paused['id']}", {"enabled": False})
    keys = [coach.api("POST", "/keys", {"name": name, "scope": "partner"})["id"] for name in ("Replaced", "Revoked")]
    coach.api("POST", f"/keys/{keys[0]}/rotate")
    coach.api("DELETE", f"/keys/{keys[1]}")
    [delivery] = coach.api("GET", f"{path}/deliveries")["data"]
    places = ["/webhooks", path, f"/webhooks/{paused['id']}", f"{path}/deliveries/{delivery['id']}", "/deliveries", "/keys"]
    with kit.visit(coach, hand) as visitor:
        visitor.open()
        [(shown, _)] = visitor.page.evaluate(TIMES)[-1:]
        assert abs((parse_time(shown) - parse_time(kit.stack.now())).total_seconds()) < LEEWAY_S, "as of now"
        relative = 0
        for place in [*places, *(f"/keys/{key}" for key in keys), "/activity", "/"]:
            visitor.go(place)
            now = parse_time(kit.stack.now())
            times = visitor.page.evaluate(TIMES)
            assert all(fits(iso, words, now) for iso, words in times), (place, times, now)
            relative += sum(bool(re.search("ago|now|^in ", words)) for _, words in times)
        assert relative > 10, relative
    kit.receiver.answers[where] = 200


# The hours around the end of summer time, in which an hour comes twice, and the names of the two.
PUT_BACK = [
    ("America/New_York", "2027-11-07T12:00:00Z", ["Sun, 1:00 AM EDT", "Sun, 1:00 AM EST"]),
    ("Europe/Berlin", "2027-10-31T12:00:00Z", ["Sun, 2:00 AM GMT+2", "Sun, 2:00 AM GMT+1"]),
    ("America/Havana", "2027-11-07T12:00:00Z", ["Sun, 12:00 AM GMT-4", "Sun, 12:00 AM GMT-5"]),
]


def hours_until(end):
    """An answer with the numbers of the 24 hours before a time."""
    hours = [(parse_time(end) - timedelta(hours=back)).strftime("%Y-%m-%dT%H:00:00.000Z") for back in range(24, 0, -1)]
    return json.dumps({"data": [{"at": at, "delivered": 1, "failed": 0} for at in hours]})


def tells_two_hours_apart(kit, hand):
    """On the day of 25 hours no two hours of the bars and their table have the same name."""
    coach = kit.coach()
    coach.webhook(f"{kit.receiver.url}/hours")
    for zone, end, names in PUT_BACK:
        with kit.visit(coach, hand, zone=zone) as visitor:
            visitor.page.route("**/deliveries/activity?*", lambda route: route.fulfill(body=hours_until(end)))
            visitor.open()
            visitor.unfold("The same as a table")
            rows = visitor.frame.locator("figure tbody th").all_text_contents()
            assert len(set(rows)) == 24 and [row for row in rows if row in names] == names, (zone, rows)
            titles = visitor.frame.locator(".plot title").all_text_contents()
            assert [title.split(": 1 delivered")[0] for title in titles] == rows, titles
            visitor.look("overview-two-hours")


def chooses_one_of_two_hours(kit, hand):
    """A time that comes twice is asked about, and stays as it was chosen. So does an instant between two minutes."""
    coach = kit.coach()
    webhook = coach.webhook(f"{kit.receiver.url}/twice")
    which = "“From”: which of the two?"
    with kit.visit(coach, hand) as visitor:
        visitor.open("/deliveries")
        since = lambda: parse_qs(visitor.page.url.split("?")[1])["since"]
        visitor.unfold("Filter")
        expect(visitor.frame.get_by_label(which)).to_be_hidden()
        visitor.frame.get_by_label("From", exact=True).fill("2025-11-02T01:30")
        visitor.hears(which)
        visitor.press("Apply the filter")
        visitor.sees("No event fits the filter")
        assert since() == ["2025-11-02T05:30:00.000Z"], since()
        visitor.select(which, "1:30 AM EST, the second")
        visitor.look("deliveries-two-hours")
        visitor.press("Apply the filter")
        visitor.page.wait_for_url("**/*06%3A30*")
        for chosen in ("2025-11-02T06:30:00.000Z", "2025-11-02T06:30:15.250Z", "2025-11-02T05:30:15.250Z"):
            visitor.go("/webhooks")
            visitor.go(f"/deliveries?since={chosen}")
            visitor.press("Apply the filter")
            visitor.hears("0 events.")
            assert since() == [chosen], (since(), chosen)
        visitor.frame.get_by_label("From", exact=True).fill("2025-11-02T02:30")
        expect(visitor.frame.get_by_label(which)).to_be_hidden()
        visitor.go(f"/webhooks/{webhook['id']}/recover")
        visitor.check("Between two times")
        visitor.frame.get_by_label("From", exact=True).fill("2025-11-02T01:30")
        visitor.select(which, "1:30 AM EST, the second")
        asked = []
        visitor.page.on("request", lambda request: request.post_data and asked.append(request.post_data_json["since"]))
        visitor.press("Count the events")
        visitor.sees("There is nothing to send again")
        assert asked == ["2025-11-02T06:30:00.000Z"], asked


FLOWS = [
    is_told_how_long_ago_by_the_service,
    tells_two_hours_apart,
    chooses_one_of_two_hours,
    chooses_a_day_where_the_clocks_change,
    refuses_years_that_nobody_means,
    is_told_the_times_of_the_service,
]
