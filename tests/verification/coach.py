"""A coach of the stack under test, who causes events."""

import json

from local_stack import call

COACH = "verifying"
EVENTS = ["new_client", "check_in_submitted", "message_received"]


class Coach:
    """A coach with a workspace, a key and a session."""

    def __init__(self, base_url, aws_url):
        self.base_url, self.aws_url, self.facts = base_url, aws_url, 0
        workspace = {
            "coach_id": COACH,
            "email": "coach@coaches.example",
            "name": "Coach",
            "team_id": None,
            "canonical_host": "https://coach.example",
            "time_zone": "America/New_York",
            "country": "US",
            "plan": {"client_cap": None},
            "entitlements": {"partner_api": True, "pro_crm": True, "gym": False},
            "crm": None,
        }
        self.publish("workspace.saved", workspace)
        self.bearer = "Bearer " + call(f"{base_url}/_local/session", {"coach_id": COACH})["token"]
        self.key = self.settings("keys", {"name": "Verifying", "scope": "partner"})["key"]

    def settings(self, path, body=None):
        return call(f"{self.base_url}/settings/{path}", body, authorization=self.bearer)

    def publish(self, name, detail):
        """Publishes a fact of the application and waits for its effects."""
        self.facts += 1
        detail = {"id": f"fact-{self.facts}", "occurred_at": "2026-01-01T00:00:00Z"} | detail
        entry = {"EventBusName": "partner-api", "Source": "coaching.application", "DetailType": name}
        put = call(self.aws_url, {"Entries": [entry | {"Detail": json.dumps(detail)}]}, x_amz_target="AWSEvents.PutEvents")
        assert put["FailedEntryCount"] == 0, put
        self.settle()

    def settle(self):
        call(f"{self.base_url}/_local/settle", {})

    def create_client(self, number):
        """Creates a client by a fact. Returns the number of its events."""
        client = {
            "client_id": f"client-{number}",
            "coach_id": COACH,
            "email": f"client-{number}@example.com",
            # Not ASCII: decoding and encoding the body again has to give the same bytes.
            "full_name": "Zoë 张伟 🙂",
            "is_active": True,
            "created_at": "2026-01-01T00:00:00Z",
            "origin": "import",
        }
        absent = ("phone", "goals", "health_notes", "height_in", "weight_lbs")
        absent += ("current_phase", "phase_started_on", "programme_id")
        self.publish("client.saved", client | dict.fromkeys(absent))
        return 1

    def book(self, number):
        """Books a time on a calendar by a fact. Returns the booking's id."""
        booking = {
            "event_id": f"019a9f0c-6d5e-7b3c-8f1a-{number:012}",
            "coach_id": COACH,
            "calendar_id": "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f77",
            "lead_id": None,
            "starts_at": "2030-01-01T09:00:00Z",
            "ends_at": "2030-01-01T10:00:00Z",
            "status": "confirmed",
        }
        self.publish("calendar_event.saved", booking)
        return booking["event_id"]

    def emit_events(self):
        """Creates clients by facts and by the API, a check-in and a message. Returns the number of events."""
        count = 0
        for number in range(3):
            count += self.create_client(number)
            body = {"email": f"partner-{number}@example.com", "full_name": "Ada Lovelace"}
            call(f"{self.base_url}/v1/clients", body, x_api_key=self.key)
            count += 1
        check_in = {"client_id": "client-0", "check_in_id": "check-in-1", "submitted_at": "2026-01-02T00:00:00Z"}
        self.publish("check_in.submitted", check_in | {"scores": {}, "grades": {}})
        message = {"client_id": "client-0", "message_id": "message-1", "received_at": "2026-01-02T00:00:00Z"}
        self.publish("message.received", message)
        return count + 2
