"""The guide's receivers against real deliveries: each processes every event once, duplicates included, and refuses
forged, changed and old requests.

Takes the paths of the stack under test, of the receiver in Rust and of a folder for the libraries from npm and Go.
Runs with PYTHONPATH=tests. Needs `standardwebhooks` from PyPI.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from forgery import forgeries, post, signed
from languages import commands
from local_stack import call, stack

COACH = "verifying"
EVENTS = ["new_client", "check_in_submitted", "message_received"]
DEADLINE_S = 20
# More than the tolerance of signatures.
AHEAD_S = 360


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
            "entitlements": {"partner_api": True, "pro_crm": False, "gym": False},
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


class Receiver:
    """A running receiver with an endpoint of the coach."""

    def __init__(self, language, command, coach, scope):
        self.language, self.coach = language, coach
        self.folder = pathlib.Path(scope.enter_context(tempfile.TemporaryDirectory()))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/coaching"
        wanted = {"url": self.url, "events": EVENTS, "payload_mode": "contact_details"}
        endpoint = coach.settings("webhooks", wanted)
        self.id, self.secret = endpoint["id"], endpoint["secret"]
        environment = os.environ | {"WEBHOOK_SECRET": self.secret, "PORT": str(self.port)}
        out, errors = (scope.enter_context((self.folder / name).open("w")) for name in ("output", "errors"))
        self.process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=out, stderr=errors)
        scope.callback(self.stop)
        self.until(self.is_listening)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def output(self):
        return (self.folder / "output").read_text() + (self.folder / "errors").read_text()

    def until(self, holds):
        """Waits until the condition holds. Fails after `DEADLINE_S`."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
            assert self.process.poll() is None and time.monotonic() < deadline, f"{self.language}: {self.output()}"

    def is_listening(self):
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True

    def accepted(self):
        """Id and type of each processed event."""
        lines = (line.split() for line in (self.folder / "output").read_text().splitlines())
        return sorted((words[1], words[2]) for words in lines if len(words) == 3)

    def stored(self):
        return sorted(file.name for file in (self.folder / "inbox").iterdir())

    def deliveries(self):
        return self.coach.settings(f"webhooks/{self.id}/deliveries")["data"]

    def replace_secret(self):
        """Rotates the secret: both sign for a day, and the receiver keeps the old one."""
        assert self.coach.settings(f"webhooks/{self.id}/rotate-secret", {})["secret"] != self.secret

    def expect_events(self, count):
        """Asserts that `count` events were delivered at the first attempt, stored, and processed once each."""
        deliveries = self.deliveries()
        for delivery in deliveries:
            codes = [attempt["status_code"] for attempt in delivery["attempts"]]
            assert (delivery["status"], codes) == ("delivered", [204]), f"{self.language}: {delivery} {self.output()}"
        sent = sorted((delivery["webhook_id"], delivery["type"]) for delivery in deliveries)
        assert len(sent) == count, f"{self.language}: {sent}"
        self.until(lambda: len(self.accepted()) >= count)
        assert self.accepted() == sent, f"{self.language}: {self.accepted()}, sent {sent}"
        assert self.stored() == [event_id for event_id, _ in sent], f"{self.language}: {self.stored()}"

    def expect_refusals(self):
        """Asserts that a valid signature is accepted and forgeries are refused. Returns the number of forgeries."""
        before, refused = self.accepted(), 0
        event_id = next(event_id for event_id, event_type in before if event_type == "new_client")
        body = (self.folder / "inbox" / event_id).read_bytes()
        for what, headers, sent in forgeries(self.secret, event_id, body):
            status = post(self.url, headers, sent)
            assert status == 400, f"{self.language} answers {status} to {what}: {self.output()}"
            refused += 1
        # The unchanged request is accepted as a duplicate, so the forgeries were refused for their difference only.
        status = post(self.url, signed(self.secret, event_id, body), body)
        assert status == 204, f"{self.language} answers {status} to the unchanged request: {self.output()}"
        assert self.accepted() == before and len(self.stored()) == len(before), self.language
        return refused

    def expect_repeat(self):
        """Asserts that a retried event is answered with 2xx and not processed again."""
        before, delivery = self.accepted(), self.deliveries()[0]
        self.coach.settings(f"webhooks/{self.id}/deliveries/{delivery['id']}/retry", {})
        self.coach.settle()
        [again] = [other for other in self.deliveries() if other["id"] == delivery["id"]]
        assert again["status"] == "delivered", f"{self.language}: {again}"
        assert [attempt["status_code"] for attempt in again["attempts"]] == [204, 204], f"{self.language}: {again}"
        assert self.accepted() == before and len(self.stored()) == len(before), self.language

    def expect_tolerance(self, count):
        """Asserts that a delivery from too far ahead is refused, and that `count` events were processed before."""
        [waiting] = [delivery for delivery in self.deliveries() if delivery["status"] == "pending"]
        codes = [attempt["status_code"] for attempt in waiting["attempts"]]
        assert codes == [400], f"{self.language}: {waiting}"
        assert len(self.accepted()) == len(self.stored()) == count, f"{self.language}: {self.accepted()}"


def main(binary, rust, tools):
    began = time.monotonic()
    runnable = commands(pathlib.Path(rust).resolve(), pathlib.Path(tools).resolve())
    prepared = time.monotonic()
    with contextlib.ExitStack() as scope:
        coach = Coach(*scope.enter_context(stack(binary)))
        receivers = [Receiver(language, command, coach, scope) for language, command in runnable.items()]
        count = coach.emit_events()
        for receiver in receivers:
            receiver.expect_events(count)
            receiver.replace_secret()
        count += coach.create_client("rotated")
        for receiver in receivers:
            receiver.expect_events(count)
            refused = receiver.expect_refusals()
            receiver.expect_repeat()
        call(f"{coach.base_url}/_local/clock", {"advance_s": AHEAD_S})
        coach.create_client("ahead")
        for receiver in receivers:
            receiver.expect_tolerance(count)
    seconds = f"{time.monotonic() - prepared:.1f} s, and {prepared - began:.1f} s to prepare"
    print(f"receivers of the guide in {', '.join(runnable)}: {count} events, {refused} forgeries each; {seconds}")


if __name__ == "__main__":
    main(*sys.argv[1:])
