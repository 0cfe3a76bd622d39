"""Flows of the portal about numbers and about cost: bars of what was sent, a receiver that does not answer, and how much
the page reads when much is wrong."""

import re
from collections import Counter
from zoneinfo import ZoneInfo

from accessibility import SCHEMES
from playwright.sync_api import expect
from portal_kit import parse_time, until

DAY_S = 24 * 3_600
ZONE = "Europe/Berlin"
WEEK_HOURS = 7 * 24
MAX_WEBHOOKS = 20
MAX_REQUESTS = 8
# Least contrast of a shape that carries a meaning, by WCAG 2.2.
LEAST_CONTRAST = 3


def per_row(hours, name):
    """Adds up the hours of an answer by the name of their row, in the visitor's time zone: `[name, delivered, failed]`."""
    delivered, failed = Counter(), Counter()
    for hour in hours:
        row = name(parse_time(hour["at"]).astimezone(ZoneInfo(ZONE)))
        delivered[row] += hour["delivered"]
        failed[row] += hour["failed"]
    return [[row, str(delivered[row]), str(failed[row])] for row in delivered]


def day(at):
    return f"{at:%a, %b} {at.day}"


def hour(at):
    return f"{at:%a}, {at.hour % 12 or 12} {at:%p}"


def has_bars(visitor, hours, name, bars):
    """Asserts the numbers of a table, of the words above it, and of the bars."""
    rows = visitor.frame.locator("figure tbody tr").evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    assert rows == per_row(hours, name), (rows, per_row(hours, name))
    delivered, failed = (sum(hour[side] for hour in hours) for side in ("delivered", "failed"))
    expect(visitor.frame.locator("figcaption .delivered")).to_have_text(f"{delivered} event{'s' * (delivered != 1)} delivered")
    expect(visitor.frame.locator("figcaption .failed")).to_have_text(f"{failed} failed tr{'y' if failed == 1 else 'ies'}")
    drawn = [visitor.frame.locator(f".plot rect.{side}").count() for side in ("delivered", "failed")]
    assert drawn == bars, drawn


def luminance(colour):
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def can_be_told_apart(visitor):
    """Asserts that bars stand out in both schemes, and that failed tries differ in more than the colour."""
    colour = lambda place, name: visitor.frame.locator(place).first.evaluate(f"node => getComputedStyle(node).{name}")
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        back = colour("body", "backgroundColor")
        for place, name in (("rect.delivered", "fill"), ("rect.failed", "stroke")):
            found = contrast(colour(place, name), back)
            assert found >= LEAST_CONTRAST, (scheme, place, found)
        assert "url(" in colour("rect.failed", "fill"), "failed tries are hatched"
    tops = [visitor.frame.locator(f".plot rect.{side}").last.bounding_box()["y"] for side in ("delivered", "failed")]
    assert tops[0] < tops[1], "delivered events are above failed tries"


def sees_how_much_was_sent(kit, hand):
    """Bars of the last day on the overview and of the last week at a webhook, with the same numbers as a table."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "counted", ["new_client", "message_received"])
    minute = int(kit.stack.now()[14:16])
    kit.stack.advance((60 - minute) * 60)
    with kit.visit(coach, hand, width=360, zone=ZONE) as visitor:
        visitor.open("/")
        visitor.sees("Nothing was sent in the last 24 hours")
        visitor.look("overview-nothing-sent")
        visitor.go(path)
        visitor.sees("Nothing was sent in the last 7 days")
        [client] = coach.clients("ada")
        kit.stack.advance(3 * DAY_S)
        coach.messages(client, 12)
        kit.receiver.answers[where] = 500
        coach.clients("eve")
        # What waits ends with the pause, so that no retry is counted later.
        coach.api("PATCH", path, {"enabled": False})
        kit.receiver.answers[where] = 200
        kit.stack.advance(2 * DAY_S)
        coach.api("PATCH", path, {"enabled": True})
        coach.clients("grace", "mary")
        visitor.open("/")
        hours = coach.api("GET", "/deliveries/activity?hours=24")["data"]
        visitor.unfold("The same as a table")
        has_bars(visitor, hours, hour, [1, 0])
        visitor.look("overview-sent")
        visitor.go(path)
        hours = coach.api("GET", f"{path}/activity?hours={WEEK_HOURS}")["data"]
        sent = [sum(hour[side] for hour in hours) for side in ("delivered", "failed")]
        assert sent[0] == 15 and sent[1] > 0, sent
        visitor.unfold("The same as a table")
        has_bars(visitor, hours, day, [3, 1])
        visitor.look("webhook-week")
        can_be_told_apart(visitor)


def is_silent(kit, coach, path, least_s):
    """Has the service try a receiver that does not answer, until its next try is some time away."""
    at = coach.api("GET", path)["breaker_open_until"]
    left_s = (parse_time(at) - parse_time(kit.stack.now())).total_seconds() if at else 0
    return left_s >= least_s or kit.stack.advance(left_s + 1)


def waits_for_an_answer(kit, hand):
    """A receiver does not answer: the page says when the next try is, and that nothing is lost. Then it answers again."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "silent")
    kit.receiver.answers[where] = None
    coach.clients("one", "two", "three")
    until(lambda: is_silent(kit, coach, path, 300))
    coach.clients("four")
    with kit.visit(coach, hand, width=390) as visitor:
        visitor.open("/")
        visitor.sees("A webhook gets no answer")
        visitor.sees(re.compile(r"does not answer; the next try is at .+ \(in \d+ minutes\)\. Nothing is lost meanwhile"))
        visitor.sees("The last time, the other system hung up before it answered.")
        visitor.sees("Waiting: 4 events.")
        visitor.look("overview-no-answer")
        visitor.go("/webhooks")
        visitor.sees("Does not answer")
        visitor.sees("Next try")
        visitor.look("webhooks-no-answer")
        visitor.go(path)
        visitor.sees("The other system does not answer")
        visitor.sees(re.compile(r"the next try is at .+ \(in \d+ minutes\)"))
        visitor.sees("The last time, the other system hung up before it answered.")
        visitor.sees(re.compile(r"The first try is in \d+ minutes\."))
        visitor.sees("Send a test event below, to see that it works. It is sent at once")
        visitor.look("webhook-no-answer")
        visitor.follow(re.compile("^New client"))
        visitor.sees(re.compile(r"Next try.+ \(in \d+ minutes\)"))
        visitor.go_back()
        assert "breaker" not in visitor.frame.locator("main").inner_text()
        kit.receiver.answers[where] = 200
        before = kit.receiver.count(where)
        kit.stack.advance(DAY_S)
        assert kit.receiver.count(where) == before + 4, "what waited is sent by itself"
        visitor.open("/")
        visitor.sees("Everything works")


def tries_a_silent_webhook(kit, hand):
    """Test events that nobody answers are a problem of the webhook. One more is sent at once, and ends the problem."""
    coach = kit.coach()
    where, path, _ = kit.hook(coach, "tried")
    kit.receiver.answers[where] = None
    for _ in range(3):
        coach.api("POST", f"{path}/test", {})
    until(lambda: is_silent(kit, coach, path, 100))
    with kit.visit(coach, hand) as visitor:
        visitor.open("/")
        visitor.sees("A webhook gets no answer")
        visitor.sees("The last time, the other system hung up before it answered.")
        visitor.go(path)
        visitor.sees("The other system does not answer")
        visitor.look("webhook-no-answer-to-tests")
        kit.receiver.answers[where] = 200
        visitor.press("Send a test event")
        visitor.sees("It works: the other system accepted the test event (200).")
        visitor.go("/")
        visitor.sees("Everything works")


def asks_little_when_much_fails(kit, hand):
    """Twenty webhooks, most in trouble: the overview names each, and makes as few requests as ever."""
    coach = kit.coach()
    where = [f"/{coach.id}-{number}" for number in range(MAX_WEBHOOKS)]
    webhooks = [coach.webhook(f"{kit.receiver.url}{path}") for path in where]
    failing, paused = where[:6], webhooks[10:14]
    kit.receiver.answers.update({path: 500 for path in failing})
    for webhook in paused:
        coach.api("PATCH", f"/webhooks/{webhook['id']}", {"enabled": False})
    coach.clients("one", "two")
    for webhook in paused:
        coach.api("PATCH", f"/webhooks/{webhook['id']}", {"enabled": True})
    with kit.visit(coach, hand) as visitor:
        made = lambda: sum("/settings/" in address for address in visitor.addresses)
        visitor.open("/")
        visitor.sees("At a glance")
        assert made() <= MAX_REQUESTS, made()
        before = made()
        with visitor.another_screen():
            visitor.press("Look again")
        assert made() - before <= MAX_REQUESTS, made() - before
        expect(visitor.frame.get_by_text("A webhook is failing")).to_have_count(len(failing))
        expect(visitor.frame.get_by_text("Waiting: 2 events.")).to_have_count(len(failing))
        expect(visitor.frame.get_by_text("The last time, the other system answered with an error (500).")).to_have_count(2)
        expect(visitor.frame.get_by_text("Some events have failed")).to_have_count(len(paused))
        expect(visitor.frame.get_by_text("Failed in the last 24 hours: 2 events")).to_have_count(len(paused))
        visitor.look("overview-much-fails")
    kit.receiver.answers.update({path: 200 for path in failing})


FLOWS = [
    sees_how_much_was_sent,
    waits_for_an_answer,
    tries_a_silent_webhook,
    asks_little_when_much_fails,
]
