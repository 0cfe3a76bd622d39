"""Positive requests to the CRM need existing contacts, free times and unused keys, which a schema alone cannot give."""

import itertools

MAX_KEY_CHARS = 255
# One request in this many keeps its generated idempotency key, which others share: a replay or a conflict.
KEPT_KEYS = 10
# One request in this many is about missing records.
MISSING_RECORDS = 4
# One request in this many has a key of another scope or without the permission.
WEAK_KEYS = 20


def make_key_unique(case, mark):
    """Replaces a request's idempotency key by a unique one of the same length."""
    key = case.headers.get("Idempotency-Key")
    if key and len(key) <= MAX_KEY_CHARS:
        case.headers["Idempotency-Key"] = mark + key[len(mark) :]


def in_chain(case):
    """True if the request follows links from the answers to earlier ones."""
    return case.meta.phase.name.value == "stateful"


class CrmRequests:
    """Cycles through the stored records."""

    def __init__(self, access):
        given = {name: itertools.cycle(access[name]) for name in access}
        self.keys, self.weak_keys = given["keys"], given["weak_keys"]
        # By the noun in paths. A booking comes with its contact.
        self.records = {noun: given[noun] for noun in ("contacts", "opportunities", "bookings")}
        self.contacts, self.calendars, self.bookings = given["contacts"], given["calendars"], given["bookings"]
        self.slots = given["slots"]
        self.stages = itertools.cycle(["qualified", "lost", "new", "won"])
        self.calls = itertools.count(1)

    def next_key(self):
        return next(self.keys if next(self.calls) % WEAK_KEYS else self.weak_keys)

    def prepare(self, case, turn):
        """Makes a request unique and, if it is positive, about existing records."""
        if turn % KEPT_KEYS:
            make_key_unique(case, f"{turn:08x}")
        if case.meta.generation.mode.is_positive and turn % MISSING_RECORDS:
            # A request in a chain uses the records that the chain has created.
            if not in_chain(case):
                self.set_records(case)
            self.set_target(case)
        self.align_lead(case)

    def set_records(self, case):
        """Sets existing records in a request."""
        path = case.operation.path
        if "{id}" in path:
            record = next(self.records[path.split("/")[3]])
            case.path_parameters["id"], *lead = record if isinstance(record, list) else [record]
            named = {"leadId": lead[0]} if lead else {}
        else:
            contact, calendar = next(self.contacts), next(self.calendars)
            named = {"leadId": contact, "contactId": contact, "calendarId": calendar}
            named["date"], named["time"] = next(self.slots)
        self.replace_members(case, named)

    def set_target(self, case):
        """Sets a free time or an existing stage in a change."""
        if case.method == "GET":
            return
        if case.operation.path.startswith("/v1/crm/bookings/{id}"):
            self.replace_members(case, dict(zip(["date", "time"], next(self.slots))))
        elif isinstance(case.body, dict) and case.body.keys() & {"stage", "lostReason"}:
            case.body = self.with_stage(case.body)

    def align_lead(self, case):
        """Aligns a cancellation's query with its body: the same contact, or none if the body has none. Without a body
        the query names the booking's contact."""
        if case.operation.path.startswith("/v1/crm/bookings/{id}") and case.method == "DELETE":
            query = dict(case.query or {})
            if isinstance(case.body, dict):
                if query.pop("leadId", None) is not None and "leadId" in case.body:
                    query["leadId"] = case.body["leadId"]
            elif case.meta.generation.mode.is_positive:
                case.path_parameters["id"], query["leadId"] = next(self.bookings)
            case.query = query

    def replace_members(self, case, values):
        """Replaces members that a body has."""
        if isinstance(case.body, dict):
            case.body = case.body | {name: value for name, value in values.items() if name in case.body}

    def with_stage(self, body):
        """The same body with an existing stage."""
        stage = next(self.stages)
        rest = {name: value for name, value in body.items() if name not in ("stage", "lostReason")}
        return rest | {"stage": stage} | ({"lostReason": "No time."} if stage == "lost" else {})
