"""A connector's day: a first sync of 1,000 clients, then a poll every minute while the application and the API write,
with a restart that lost its cursor. At the end the connector has every event once, and every client as it is.

Takes the path of the stack under test. Runs with PYTHONPATH=tests.
"""

import collections
import datetime
import json
import random
import sys
import time
import urllib.parse
import urllib.request

from coach import COACH, EVENTS, Coach
from local_stack import call, stack

ROSTER = 1_000
MINUTES = 1_440
# The connector is restarted at this minute, and has lost its cursor.
RESTART = 700
OVERLAP = datetime.timedelta(minutes=1)
# Later than every event.
NO_EVENT = "9999-12-31T00:00:00Z"
# Earlier than every client.
LONG_AGO = "2000-01-01T00:00:00.000Z"
PAGE = 200
SEED = 48


class Connector:
    """Keeps a copy of the clients and all events, as the guides say. Counts its requests."""

    def __init__(self, base_url, key):
        self.base_url, self.key = base_url, key
        self.requests = collections.Counter()
        self.clients, self.events, self.repeated = {}, {}, 0
        self.cursor, self.latest = None, LONG_AGO

    def get(self, path, **query):
        self.requests[path] += 1
        url = f"{self.base_url}{path}?{urllib.parse.urlencode({'limit': PAGE} | query)}"
        request = urllib.request.Request(url, headers={"authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def read_clients(self):
        """Reads the clients that changed since a minute before the latest known change."""
        since = datetime.datetime.fromisoformat(self.latest.replace("Z", "+00:00")) - OVERLAP
        query = {"updated_since": since.isoformat()}
        while True:
            page = self.get("/v1/clients", **query)
            for client in page["clients"]:
                self.clients[client["client_id"]] = client
                self.latest = max(self.latest, client["updated_at"])
            if not page["next_cursor"]:
                return
            query["cursor"] = page["next_cursor"]

    def first_sync(self):
        """Takes the position of the feed first, so that nothing falls between the clients and the feed."""
        self.cursor = self.get("/v1/events", since=NO_EVENT)["next_cursor"]
        self.read_clients()

    def follow(self, **query):
        while True:
            page = self.get("/v1/events", **query)
            for event in page["data"]:
                self.repeated += event["id"] in self.events
                self.events.setdefault(event["id"], event)
            query = {"cursor": page["next_cursor"]}
            if not page["has_more"]:
                self.cursor = page["next_cursor"]
                return

    def poll(self):
        self.follow(cursor=self.cursor)
        self.read_clients()

    def restart_without_cursor(self):
        """Reads the whole feed, and skips the events that it has."""
        self.repeated = 0
        self.follow()


class Writers:
    """The application and a second system with a key, and what both have done."""

    def __init__(self, coach):
        self.coach, self.random = coach, random.Random(SEED)
        self.names, self.active = {}, {}
        self.expected = collections.Counter()
        self.entries, self.number = [], 0

    def fact(self, name, **detail):
        self.number += 1
        detail = {"id": f"day-{self.number}", "occurred_at": self.now} | detail
        entry = {"EventBusName": "partner-api", "Source": "coaching.application", "DetailType": name}
        self.entries.append(entry | {"Detail": json.dumps(detail)})

    def flush(self):
        """Puts the facts on the bus, ten in a request."""
        while self.entries:
            batch, self.entries = self.entries[:10], self.entries[10:]
            put = call(self.coach.aws_url, {"Entries": batch}, x_amz_target="AWSEvents.PutEvents")
            assert put["FailedEntryCount"] == 0, put

    def save(self, client, name, backfill=False):
        self.names[client] = name
        self.active.setdefault(client, True)
        absent = ("phone", "goals", "health_notes", "height_in", "weight_lbs")
        absent += ("current_phase", "phase_started_on", "programme_id")
        known = {"client_id": client, "coach_id": COACH, "email": f"{client}@example.com", "full_name": name}
        known |= {"is_active": self.active[client], "created_at": self.now, "origin": "application"}
        self.fact("client.saved", backfill=backfill, **(known | dict.fromkeys(absent)))

    def roster(self):
        for number in range(ROSTER):
            self.save(f"client-{number}", f"Client {number}", backfill=True)
        self.flush()
        self.coach.settle()

    def anybody(self):
        return self.random.choice(list(self.names))

    def write(self, minute):
        """A minute's work, of each kind in some minutes."""
        settled = self.anybody()
        if minute % 3 == 0:
            self.save(settled, f"{self.names[settled]}'")
        if minute % 10 == 0:
            self.save(f"new-{minute}", f"New {minute}")
            self.expected["new_client", f"new-{minute}"] += 1
        if minute % 2 == 0:
            known = {"client_id": settled, "check_in_id": f"check-{minute}", "submitted_at": self.now}
            self.fact("check_in.submitted", scores={}, grades={}, **known)
            self.expected["check_in_submitted", f"check-{minute}"] += 1
        for other in range(self.random.randrange(3)):
            message = f"message-{minute}-{other}"
            self.fact("message.received", client_id=settled, message_id=message, received_at=self.now)
            self.expected["message_received", message] += 1
        self.flush()
        if minute % 7 == 0:
            client = f"client-{self.random.randrange(ROSTER)}"
            self.coach.settle()
            self.active[client] = not self.active[client]
            self.send("PATCH", f"/v1/clients/{client}", {"is_active": self.active[client]})
        if minute % 60 == 30:
            made = self.send("POST", "/v1/clients", {"email": f"api-{minute}@example.com", "send_welcome": False})
            self.names[made["client_id"]], self.active[made["client_id"]] = f"api-{minute}", True
            self.expected["new_client", made["client_id"]] += 1

    def send(self, method, path, body):
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.coach.key}"}
        request = urllib.request.Request(self.coach.base_url + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def subject(event):
    """What an event is about, as the writers count it."""
    data = event["data"]
    return event["type"], (data.get("check_in") or data.get("message") or data["client"])["id"]


def main(binary):
    began = time.monotonic()
    with stack(binary) as (base_url, aws_url):
        coach = Coach(base_url, aws_url)
        allowed = {"types": EVENTS, "payload_mode": "identifiers"}
        key = coach.settings("keys", {"name": "Connector", "scope": "partner", "events": allowed})["key"]
        writers, connector = Writers(coach), Connector(base_url, key)
        writers.now = call(f"{base_url}/_local/health")["now"]
        writers.roster()
        connector.first_sync()
        assert len(connector.clients) == ROSTER and sum(connector.requests.values()) == 1 + ROSTER // PAGE
        first_sync = connector.requests.total()
        prepared = time.monotonic()
        for minute in range(MINUTES):
            writers.write(minute)
            writers.now = call(f"{base_url}/_local/clock", {"advance_s": 60})["now"]
            if minute == RESTART:
                assert connector.repeated == 0
                known = len(connector.events)
                connector.restart_without_cursor()
                assert connector.repeated == known and len(connector.events) >= known
                connector.repeated = 0
            connector.poll()
        assert connector.repeated == 0, "an event came twice to a reader that follows its cursor"
        found = collections.Counter(subject(event) for event in connector.events.values())
        assert found == writers.expected, f"missing {writers.expected - found}, too many {found - writers.expected}"

        shown = {client: (record["full_name"], record["is_active"]) for client, record in connector.clients.items()}
        assert shown == {client: (name, writers.active[client]) for client, name in writers.names.items()}
        fresh = Connector(base_url, key)
        fresh.read_clients()
        assert connector.clients == fresh.clients
    requests = connector.requests
    print(
        f"a connector's day: {len(connector.clients)} clients, {len(connector.events)} events; {first_sync} requests for the "
        f"first sync, {requests['/v1/events']} of the feed and {requests['/v1/clients']} of clients in all; "
        f"{prepared - began:.0f} s to prepare, {time.monotonic() - prepared:.0f} s for {MINUTES} polls"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
