"""Positive requests to the routes of a sandbox need existing people and zones, which a schema alone cannot give."""

import itertools
import uuid

from crm_hooks import KEPT_KEYS, MISSING_RECORDS, make_key_unique

ZONES = ["UTC", "America/New_York", "Asia/Kathmandu"]
# The types of events about contacts begin so. The others are about clients.
OF_CONTACTS = ("contact_", "opportunity_", "booking_")


class SandboxRequests:
    """Requests of two coaches. One of them is emptied again and again, the other one makes all the other requests."""

    def __init__(self, access):
        self.trying, self.emptied = itertools.cycle(access["trying"]), itertools.cycle(access["emptied"])
        self.client, self.contact = access["client"], access["contact"]
        self.zones = itertools.cycle(ZONES)

    def next_key(self, path):
        return next(self.emptied if path == "/v1/test/data" else self.trying)

    def prepare(self, case, turn):
        """Makes a request unique and, if it is positive, about existing people and zones."""
        if turn % KEPT_KEYS:
            make_key_unique(case, f"{turn:08x}")
        if isinstance(case.body, dict) and case.meta.generation.mode.is_positive:
            if case.operation.path == "/v1/test/events":
                self.set_person(case, turn)
            elif "time_zone" in case.body:
                case.body = case.body | {"time_zone": next(self.zones)}

    def set_person(self, case, turn):
        """Leaves out the id that does not go with an event, and sets the other one, sometimes to that of nobody. The
        schema says neither which event goes with which id nor which characters ids have."""
        if str(case.body.get("type")).startswith(OF_CONTACTS):
            name, known, nobody = "contact_id", self.contact, str(uuid.UUID(int=turn))
        else:
            name, known, nobody = "client_id", self.client, f"nobody-{turn}"
        body = {other: value for other, value in case.body.items() if other not in ("client_id", "contact_id")}
        if case.body.get(name):
            body[name] = known if turn % MISSING_RECORDS else nobody
        case.body = body
