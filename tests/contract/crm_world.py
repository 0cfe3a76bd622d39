"""CRM data of the stack under test: pipeline, contacts, opportunities, calendars with events, a workflow."""

import datetime
import uuid

from local_stack import call

COACH = "crm"
CONTACTS = 20
MERGED = 3
OPPORTUNITIES = 20
BOOKINGS = 150
# Each booking takes one. They are passed in the environment, whose size is limited.
SLOTS = 1500
# Beyond the calendars' horizon, so that these bookings block no bookable time.
BOOKED_FROM_DAYS = 60
SCOPES = ["contacts", "opportunities", "bookings"]
PERMISSIONS = [f"{noun}.{verb}" for noun in SCOPES for verb in ("read", "write")] + ["workflows.read"]

PIPELINE = {
    "pipeline_id": "pipeline-1",
    "name": "Coaching",
    "stages": [
        {"id": "new", "name": "New", "kind": "open"},
        {"id": "qualified", "name": "Qualified", "kind": "open"},
        {"id": "won", "name": "Won", "kind": "won"},
        {"id": "lost", "name": "Lost", "kind": "lost"},
    ],
}


def record_id(kind, number):
    """A UUID that is the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}"))


CALENDAR, PAID_CALENDAR = record_id("calendar", 0), record_id("calendar", 1)


def records():
    """Records that other facts refer to."""
    yield "pipeline.saved", PIPELINE
    for number in range(CONTACTS):
        yield "contact.saved", contact(number)
    yield "calendar.saved", calendar(CALENDAR, 0)
    yield "calendar.saved", calendar(PAID_CALENDAR, 5_000)
    workflow = {"workflow_id": record_id("workflow", 0), "name": "Welcome", "trigger": "contact_created", "active": True}
    yield "workflow.saved", workflow | {"activated_at": None, "updated_at": "2026-01-01T00:00:00Z"}


def dependent_records():
    """Records that refer to others."""
    yield "contact.merged", {"contact_id": record_id("contact", MERGED), "merged_into": record_id("contact", 0)}
    for number in range(OPPORTUNITIES):
        yield "opportunity.saved", opportunity(number)
    for number in range(BOOKINGS):
        yield "calendar_event.saved", booking(number)


def contact(number):
    return {
        "contact_id": record_id("contact", number),
        "name": f"Contact {number}",
        "email": f"contact-{number}@example.com",
        "phone": None,
        "do_not_contact": False,
        "marketing": {"email": True, "sms": False},
    }


def calendar(identifier, price_cents):
    """A calendar that is open around the clock."""
    return {
        "calendar_id": identifier,
        "name": "Calls",
        "time_zone": "America/New_York",
        "price_cents": price_cents,
        "currency": "USD",
        "booking_url": "https://crm.example/book",
        "active": True,
        "slot_minutes": 15,
        "slot_interval_minutes": 15,
        "buffer_before_minutes": 0,
        "buffer_after_minutes": 0,
        "min_notice_minutes": 0,
        "horizon_days": 20,
        "weekly": {day: [["00:00", "24:00"]] for day in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")},
        "overrides": {},
    }


def opportunity(number):
    return {
        "opportunity_id": record_id("opportunity", number),
        "contact_id": record_id("contact", 0),
        "name": f"Opportunity {number}",
        "value_cents": 100 * number,
        "pipeline_id": "pipeline-1",
        "stage": "new",
        "lost_reason": None,
    }


def lead_of(number):
    """The contact of a booking, never the one that is merged away."""
    return record_id("contact", number % MERGED)


def booking(number):
    starts_at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=BOOKED_FROM_DAYS, hours=number)
    ends_at = starts_at + datetime.timedelta(minutes=15)
    return {
        "event_id": record_id("booking", number),
        "calendar_id": CALENDAR,
        "lead_id": lead_of(number),
        "starts_at": starts_at.isoformat(timespec="milliseconds"),
        "ends_at": ends_at.isoformat(timespec="milliseconds"),
        "status": "confirmed",
    }


def crm_access(base_url, session, key_count):
    """Keys of the coach, some without full access, and the records for requests."""

    def key(scope, permissions):
        wanted = {"name": "Contract", "scope": scope, "permissions": permissions}
        return call(f"{base_url}/settings/keys", wanted, authorization=f"Bearer {session}")["key"]

    weak = [key("partner", None), key("crm", ["workflows.read"])]
    keys = [key("crm", PERMISSIONS) for _ in range(key_count - len(weak))]
    wanted = {"leadId": record_id("contact", 0), "calendarId": CALENDAR}
    times = call(f"{base_url}/v1/crm/bookings/availability", wanted, x_api_key=keys[0])
    days = times["calendars"][0]["days"]
    slots = [[day["date"], slot] for day in days for slot in day["slots"]]
    return {
        "keys": keys,
        "weak_keys": weak,
        "contacts": [record_id("contact", number) for number in range(CONTACTS)],
        "opportunities": [record_id("opportunity", number) for number in range(OPPORTUNITIES)],
        "bookings": [[record_id("booking", number), lead_of(number)] for number in range(BOOKINGS)],
        "calendars": [CALENDAR, CALENDAR, PAID_CALENDAR],
        "slots": slots[-SLOTS:],
    }
