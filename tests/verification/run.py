"""The receivers that the guide to verifying shows, against real deliveries: each takes every event once, whatever comes twice, and refuses
what is not ours, what was changed and what is old.

Takes the paths of the stack under test, of the receiver in Rust and of a folder for what npm and Go bring. Runs with PYTHONPATH=tests.
Needs `standardwebhooks` from PyPI.
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
# More than a signature may be off.
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
        self.tell("workspace.saved", workspace)
        self.bearer = "Bearer " + call(f"{base_url}/_local/session", {"coach_id": COACH})["token"]
        self.key = self.settings("keys", {"name": "Verifying", "scope": "partner"})["key"]

    def settings(self, path, body=None):
        return call(f"{self.base_url}/settings/{path}", body, authorization=self.bearer)

    def tell(self, name, detail):
        """A fact from the application, and all that follows from it."""
        self.facts += 1
        detail = {"id": f"fact-{self.facts}", "occurred_at": "2026-01-01T00:00:00Z"} | detail
        entry = {"EventBusName": "partner-api", "Source": "coaching.application", "DetailType": name}
        put = call(self.aws_url, {"Entries": [entry | {"Detail": json.dumps(detail)}]}, x_amz_target="AWSEvents.PutEvents")
        assert put["FailedEntryCount"] == 0, put
        self.settle()

    def settle(self):
        call(f"{self.base_url}/_local/settle", {})

    def hand_over(self, number):
        """A client whom the application knows. How many events that is."""
        client = {
            "client_id": f"client-{number}",
            "coach_id": COACH,
            "email": f"client-{number}@example.com",
            # Not ASCII: whoever decodes and encodes again has to get the same bytes.
            "full_name": "Zoë 张伟 🙂",
            "is_active": True,
            "created_at": "2026-01-01T00:00:00Z",
            "origin": "import",
        }
        absent = ("phone", "goals", "health_notes", "height_in", "weight_lbs")
        absent += ("current_phase", "phase_started_on", "programme_id")
        self.tell("client.saved", client | dict.fromkeys(absent))
        return 1

    def make_events(self):
        """Clients by both ways, a check-in and a message. How many events that is."""
        count = 0
        for number in range(3):
            count += self.hand_over(number)
            body = {"email": f"partner-{number}@example.com", "full_name": "Ada Lovelace"}
            call(f"{self.base_url}/v1/clients", body, x_api_key=self.key)
            count += 1
        check_in = {"client_id": "client-0", "check_in_id": "check-in-1", "submitted_at": "2026-01-02T00:00:00Z"}
        self.tell("check_in.submitted", check_in | {"scores": {}, "grades": {}})
        message = {"client_id": "client-0", "message_id": "message-1", "received_at": "2026-01-02T00:00:00Z"}
        self.tell("message.received", message)
        return count + 2


class Receiver:
    """A receiver that runs, with an endpoint of the coach that leads to it."""

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
        output, errors = (scope.enter_context((self.folder / name).open("w")) for name in ("output", "errors"))
        self.process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=output, stderr=errors)
        scope.callback(self.end)
        self.until(self.listens)

    def end(self):
        self.process.kill()
        self.process.wait()

    def said(self):
        return (self.folder / "output").read_text() + (self.folder / "errors").read_text()

    def until(self, holds):
        """Waits for what is about to be so."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
            assert self.process.poll() is None and time.monotonic() < deadline, f"{self.language}: {self.said()}"

    def listens(self):
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True

    def accepted(self):
        """Id and type of what it worked on."""
        lines = (line.split() for line in (self.folder / "output").read_text().splitlines())
        return sorted((words[1], words[2]) for words in lines if len(words) == 3)

    def kept(self):
        return sorted(file.name for file in (self.folder / "inbox").iterdir())

    def deliveries(self):
        return self.coach.settings(f"webhooks/{self.id}/deliveries")["data"]

    def replace_secret(self):
        """From now on both secrets sign, for a day. The receiver goes on with the old one."""
        assert self.coach.settings(f"webhooks/{self.id}/rotate-secret", {})["secret"] != self.secret

    def expect_events(self, count):
        """So many events were sent, taken at the first attempt, kept, and worked on once each."""
        deliveries = self.deliveries()
        for delivery in deliveries:
            codes = [attempt["status_code"] for attempt in delivery["attempts"]]
            assert (delivery["status"], codes) == ("delivered", [204]), f"{self.language}: {delivery} {self.said()}"
        sent = sorted((delivery["webhook_id"], delivery["type"]) for delivery in deliveries)
        assert len(sent) == count, f"{self.language}: {sent}"
        self.until(lambda: len(self.accepted()) >= count)
        assert self.accepted() == sent, f"{self.language}: {self.accepted()}, sent {sent}"
        assert self.kept() == [event_id for event_id, _ in sent], f"{self.language}: {self.kept()}"

    def expect_refusals(self):
        """What is signed right and in time is taken; what is off by one thing is not. How many were refused."""
        before, refused = self.accepted(), 0
        event_id = next(event_id for event_id, event_type in before if event_type == "new_client")
        body = (self.folder / "inbox" / event_id).read_bytes()
        for what, headers, sent in forgeries(self.secret, event_id, body):
            status = post(self.url, headers, sent)
            assert status == 400, f"{self.language} answers {status} to {what}: {self.said()}"
            refused += 1
        # Nothing else is wrong with them, and the receiver is still there. It knows the event.
        status = post(self.url, signed(self.secret, event_id, body), body)
        assert status == 204, f"{self.language} answers {status} to what is right: {self.said()}"
        assert self.accepted() == before and len(self.kept()) == len(before), self.language
        return refused

    def expect_repeat(self):
        """An event that the coach has sent again is answered with 2xx, and not worked on again."""
        before, delivery = self.accepted(), self.deliveries()[0]
        self.coach.settings(f"webhooks/{self.id}/deliveries/{delivery['id']}/retry", {})
        self.coach.settle()
        [again] = [other for other in self.deliveries() if other["id"] == delivery["id"]]
        assert again["status"] == "delivered", f"{self.language}: {again}"
        assert [attempt["status_code"] for attempt in again["attempts"]] == [204, 204], f"{self.language}: {again}"
        assert self.accepted() == before and len(self.kept()) == len(before), self.language

    def expect_tolerance(self, count):
        """The service itself is refused while its clock is further ahead than signatures may be. By then so many events were worked on."""
        [waiting] = [delivery for delivery in self.deliveries() if delivery["status"] == "pending"]
        codes = [attempt["status_code"] for attempt in waiting["attempts"]]
        assert codes == [400], f"{self.language}: {waiting}"
        assert len(self.accepted()) == len(self.kept()) == count, f"{self.language}: {self.accepted()}"


def main(binary, rust, tools):
    began = time.monotonic()
    runnable = commands(pathlib.Path(rust).resolve(), pathlib.Path(tools).resolve())
    prepared = time.monotonic()
    with contextlib.ExitStack() as scope:
        coach = Coach(*scope.enter_context(stack(binary)))
        receivers = [Receiver(language, command, coach, scope) for language, command in runnable.items()]
        count = coach.make_events()
        for receiver in receivers:
            receiver.expect_events(count)
            receiver.replace_secret()
        count += coach.hand_over("rotated")
        for receiver in receivers:
            receiver.expect_events(count)
            refused = receiver.expect_refusals()
            receiver.expect_repeat()
        call(f"{coach.base_url}/_local/clock", {"advance_s": AHEAD_S})
        coach.hand_over("ahead")
        for receiver in receivers:
            receiver.expect_tolerance(count)
    seconds = f"{time.monotonic() - prepared:.1f} s, and {prepared - began:.1f} s to prepare"
    print(f"receivers of the guide in {', '.join(runnable)}: {count} events, {refused} forgeries each; {seconds}")


if __name__ == "__main__":
    main(*sys.argv[1:])
