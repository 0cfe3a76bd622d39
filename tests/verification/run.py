"""The guide's receivers against real deliveries: each processes every event once, duplicates included, and refuses
forged, changed and old requests.

Takes the paths of the stack under test, of the receiver in Rust and of a folder for the libraries from npm and Go.
Runs with PYTHONPATH=tests. Needs `standardwebhooks` from PyPI.
"""

import contextlib
import pathlib
import sys
import time

from coach import EVENTS, Coach
from forgery import forgeries, post, signed
from languages import commands
from local_stack import call, stack
from running import Running

# More than the tolerance of signatures.
AHEAD_S = 360


class Receiver(Running):
    """A running receiver with an endpoint of the coach."""

    def __init__(self, language, command, coach, scope):
        super().__init__(language, scope)
        self.coach = coach
        wanted = {"url": self.url, "events": EVENTS, "payload_mode": "contact_details"}
        endpoint = coach.settings("webhooks", wanted)
        self.id, self.secret = endpoint["id"], endpoint["secret"]
        self.start(command, self.secret)

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
