"""The coach whom assistants work for: clients with a history, contacts, calendars, and keys as a coach makes them."""

import datetime

import crm_world
from coach import COACH, EVENTS, Coach
from local_stack import call

CLIENT, OTHER_CLIENT = "client-ada", "client-zoe"
CLIENT_NAME, CLIENT_EMAIL = "Ada Lovelace", "ada@example.com"
# The application knows addresses that are not ASCII. No JSON Schema of `format: email` accepts them.
CONTACT_NAME, CONTACT_EMAIL = "Bob Bücher", "bob@bücher.example"
CONTACT = crm_world.record_id("contact", 0)
HEALTH_NOTES = "Not for an assistant"
WITHOUT_BOOKING = [permission for permission in crm_world.PERMISSIONS if permission != "bookings.write"]
CRM_EVENTS = ["contact_created", "booking_created", "booking_rescheduled", "booking_cancelled"]


class Scene(Coach):
    """A coach with clients and a CRM. Each client under test gets keys of its own, since a key has a limit a minute."""

    def __init__(self, base_url, aws_url):
        super().__init__(base_url, aws_url)
        self.url = f"{base_url}/mcp"
        self.publish_crm()
        self.publish_client(CLIENT, CLIENT_NAME, CLIENT_EMAIL)
        self.publish_client(OTHER_CLIENT, "Zoë Żółć", "zoe@example.com")
        self.publish_history()

    def make_key(self, scope, permissions=None):
        """Makes a key that may read events, and returns it with its id. `permissions` are those of a crm key."""
        types = CRM_EVENTS if scope == "crm" else EVENTS
        events = {"types": types, "payload_mode": "contact_details"}
        wanted = {"name": f"Assistant {scope}", "scope": scope, "permissions": permissions, "events": events}
        return self.settings("keys", wanted)

    def revoked_key(self):
        made = self.make_key("partner")
        call(f"{self.base_url}/settings/keys/{made['id']}", method="DELETE", authorization=self.bearer)
        return made["key"]

    def partner_key(self):
        return self.make_key("partner")["key"]

    def crm_key(self):
        return self.make_key("crm", crm_world.PERMISSIONS)["key"]

    def key_without_booking(self):
        return self.make_key("crm", WITHOUT_BOOKING)["key"]

    def publish_crm(self):
        workspace = {
            "coach_id": COACH,
            "email": "coach@coaches.example",
            "name": "Coach",
            "team_id": None,
            "canonical_host": "https://coach.example",
            "time_zone": "America/New_York",
            "country": "US",
            "plan": {"client_cap": None},
            "entitlements": {"partner_api": True, "pro_crm": True, "gym": True},
            "crm": {"pipeline_id": crm_world.PIPELINE["pipeline_id"], "initial_stage": "new"},
        }
        self.publish("workspace.saved", workspace | {"occurred_at": "2026-01-01T00:00:01Z"})
        mine = {"coach_id": COACH}
        self.publish("pipeline.saved", mine | crm_world.PIPELINE)
        # The first is CONTACT, the second has the address of the client.
        people = ((CONTACT_NAME, CONTACT_EMAIL), (CLIENT_NAME, CLIENT_EMAIL))
        for number, (name, email) in enumerate(people):
            self.publish("contact.saved", mine | crm_world.contact(number) | {"name": name, "email": email})
        for calendar in (crm_world.calendar(crm_world.CALENDAR, 0), crm_world.calendar(crm_world.PAID_CALENDAR, 5_000)):
            self.publish("calendar.saved", mine | calendar)
        workflow = {"workflow_id": crm_world.record_id("workflow", 0), "name": "Welcome", "active": True}
        workflow |= {"trigger": "contact_created", "activated_at": None, "updated_at": "2026-01-01T00:00:00Z"}
        self.publish("workflow.saved", mine | workflow)

    def publish_client(self, client, name, email):
        absent = ("phone", "height_in", "weight_lbs", "current_phase", "phase_started_on", "programme_id")
        known = {"client_id": client, "coach_id": COACH, "email": email, "full_name": name, "is_active": True}
        known |= {"goals": "Sleep", "health_notes": HEALTH_NOTES, "origin": "application"}
        self.publish("client.saved", known | {"created_at": "2026-01-01T00:00:00Z"} | dict.fromkeys(absent))

    def publish_history(self):
        """A check-in, and a dose and a daily log of the last two days."""
        client = {"client_id": CLIENT}
        submitted = {"submitted_at": "2026-01-02T00:00:00Z", "scores": {}, "grades": {}}
        self.publish("check_in.submitted", client | {"check_in_id": "check-in-1"} | submitted)
        dose = {"dose_id": "dose-1", "per_day": 1, "from": "2026-01-01", "until": None}
        self.publish("dose_schedule.saved", client | {"doses": [dose]})
        for number in range(2):
            date = str(datetime.date.today() - datetime.timedelta(days=number + 1))
            self.publish("daily_log.saved", client | {"date": date})
            self.publish("dose.logged", client | {"dose_log_id": f"log-{number}", "dose_id": "dose-1", "date": date})
