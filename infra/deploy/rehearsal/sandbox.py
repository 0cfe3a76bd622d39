"""Drives the functions of a sandbox: a coach whom nobody has told of, facts, mails, the removal of test data."""

from cloud import eventually
from drive import PERSONAL, Drive

COACH = "coach_of_the_sandbox"
CLIENT = "client_of_the_sandbox"
# A removal waits until everything that was under way has ended.
REMOVAL_TIMEOUT_S = 120


class Sandbox(Drive):
    def steps(self):
        yield "a coach whom the sandbox has not seen gets a workspace and a key", self.make_key
        yield "facts are stored by a route, and due clients evaluated", self.store_facts
        yield "a mail is stored in place of being sent", self.store_mail
        yield "the example of an event is emitted", self.emit
        yield "a removal of test data ends", self.remove
        yield "the wipe accepts the schedule's event", lambda: self.schedule("WipeFunction")
        yield "the dead-letter queues are empty", self.dead_letters
        yield "logs are JSON and metrics without personal data", self.logs

    def make_key(self):
        made = self.request("SettingsFunction", "POST", "/settings/keys", {"name": "Rehearsal", "scope": "partner"}, coach=COACH)
        assert made[0] == 201 and made[1]["key"].startswith("svc_test_"), made
        self.key = made[1]["key"]
        known = self.request("PingFunction", "GET", "/v1/key", key=self.key)
        assert (known[1]["mode"], known[2]["x-mode"]) == ("test", "test"), known
        webhook = {"url": self.receiver.url, "events": ["new_client"], "payload_mode": "identifiers"}
        made = self.request("SettingsFunction", "POST", "/settings/webhooks", webhook, coach=COACH)
        assert made[0] == 201, made
        self.endpoint = made[1]
        return self.key[:9]

    def store_facts(self):
        none = dict.fromkeys(("email", "phone", "goals", "health_notes", "height_in", "weight_lbs", "current_phase", "phase_started_on"))
        saved = {"client_id": CLIENT, "full_name": PERSONAL[3], "is_active": True, "programme_id": None, "origin": "import"}
        saved |= none | {"created_at": "2026-01-01T00:00:00Z", "occurred_at": "2026-01-01T00:00:00Z"}
        steps = [{"kind": "webhook", "endpoint_id": self.endpoint["id"]}]
        trigger = {"event": "daily_log_inactivity", "days": 3}
        automation = {"automation_id": "automation", "name": "No log", "active": True, "trigger": trigger, "steps": steps}
        facts = [{"type": "client.saved", "detail": saved}, {"type": "automation.saved", "detail": automation}]
        stored = self.request("SandboxFunction", "POST", "/v1/test/facts", {"facts": facts}, key=self.key)
        assert [fact["result"] for fact in stored[1]["data"]] == ["stored", "stored"], stored
        evaluated = self.request("SandboxFunction", "POST", "/v1/test/evaluate", key=self.key)
        assert evaluated[0] == 200 and evaluated[1]["evaluated"] == 1, evaluated
        return str(evaluated[1])

    def store_mail(self):
        draft = {"email": PERSONAL[0], "full_name": PERSONAL[1]}
        made = self.request("ClientsFunction", "POST", "/v1/clients", draft, key=self.key)
        assert made[0] == 201 and made[1]["welcome_email_sent"], made
        mails = self.request("SandboxFunction", "GET", "/v1/test/mail", key=self.key)
        assert [mail["to"] for mail in mails[1]["data"]] == [PERSONAL[0]], mails
        return "1 mail"

    def emit(self):
        sent = self.request("SandboxFunction", "POST", "/v1/test/events", {"type": "phase_eligible"}, key=self.key)
        assert sent[0] == 202, sent
        is_ours = lambda request: request[0]["webhook-id"] == sent[1]["id"] and request[0]["x-service-mode"] == "test"
        eventually("the event", lambda: any(map(is_ours, self.receiver.requests)), REMOVAL_TIMEOUT_S)
        return sent[1]["id"]

    def remove(self):
        started = self.request("SandboxFunction", "DELETE", "/v1/test/data", key=self.key)
        refused = self.request("ClientsFunction", "POST", "/v1/clients", {"email": PERSONAL[0]}, key=self.key)
        assert started[0] == 202 and (refused[0], refused[1]["code"]) == (409, "test_data_wiping"), (started, refused)

        def is_done():
            return self.request("SandboxFunction", "GET", "/v1/test/data", key=self.key)[1]["status"] == "done"

        eventually("the end of the removal", is_done, REMOVAL_TIMEOUT_S)
        left = self.request("ClientsFunction", "GET", "/v1/clients", key=self.key)
        assert left[1]["clients"] == [], left
        return started[1]["job"]
