"""Good requests to the CRM about what is there: a schema alone knows no contact, no free time, and no key that was not used before."""

import itertools

MAX_KEY_CHARS = 255
# One request in so many keeps the idempotency key that it was given, which others have too: it is a replay or a conflict.
KEPT_KEYS = 10
# And one in so many is about what there is not.
STRANGERS = 4
# And one in so many comes with a key that has another scope, or lacks the permission.
POOR_KEYS = 20


def own_key(case, mark):
    """Gives a request that has an idempotency key one of its own, which is as long."""
    key = case.headers.get("Idempotency-Key")
    if key and len(key) <= MAX_KEY_CHARS:
        case.headers["Idempotency-Key"] = mark + key[len(mark) :]


class CrmRequests:
    """Goes round over what there is."""

    def __init__(self, access):
        given = {name: itertools.cycle(access[name]) for name in access}
        self.keys, self.poor_keys = given["keys"], given["poor_keys"]
        self.contacts, self.calendars = given["contacts"], given["calendars"]
        self.opportunities, self.bookings, self.slots = given["opportunities"], given["bookings"], given["slots"]
        self.stages = itertools.cycle(["qualified", "lost", "new", "won"])
        self.calls = itertools.count(1)

    def next_key(self):
        return next(self.keys if next(self.calls) % POOR_KEYS else self.poor_keys)

    def prepare(self, case, turn):
        """Makes a request one of its own and, where it is a good one, about something that is there."""
        if turn % KEPT_KEYS:
            own_key(case, f"{turn:08x}")
        if case.meta.generation.mode.is_positive and turn % STRANGERS:
            # A request of a chain is about what the chain has made.
            if case.meta.phase.name.value != "stateful":
                self.name_records(case)
            self.choose(case)
        self.agree(case)

    def name_records(self, case):
        """Has a request name records that there are."""
        path, named = case.operation.path, {}
        if path == "/v1/crm/bookings/{id}":
            case.path_parameters["id"], named["leadId"] = next(self.bookings)
        elif path == "/v1/crm/contacts/{id}":
            case.path_parameters["id"] = next(self.contacts)
        elif path == "/v1/crm/opportunities/{id}":
            case.path_parameters["id"] = next(self.opportunities)
        else:
            contact, calendar = next(self.contacts), next(self.calendars)
            named = {"leadId": contact, "contactId": contact, "calendarId": calendar}
            named["date"], named["time"] = next(self.slots)
        self.put(case, named)

    def choose(self, case):
        """Has a change lead somewhere: to a time that is free, to a stage that there is."""
        if case.operation.path == "/v1/crm/bookings/{id}":
            self.put(case, dict(zip(["date", "time"], next(self.slots))))
        elif isinstance(case.body, dict) and case.body.keys() & {"stage", "lostReason"}:
            case.body = self.to_stage(case.body)

    def agree(self, case):
        """Has a query name the contact that the body does, none where the body does not, and the booking's where there is no body: either
        place is enough."""
        if case.operation.path == "/v1/crm/bookings/{id}" and case.method == "DELETE":
            query = dict(case.query or {})
            if isinstance(case.body, dict):
                if query.pop("leadId", None) is not None and "leadId" in case.body:
                    query["leadId"] = case.body["leadId"]
            elif case.meta.generation.mode.is_positive:
                case.path_parameters["id"], query["leadId"] = next(self.bookings)
            case.query = query

    def put(self, case, values):
        """Puts values in the place of those that a body has."""
        if isinstance(case.body, dict):
            case.body = case.body | {name: value for name, value in values.items() if name in case.body}

    def to_stage(self, body):
        """The same body for a stage that there is."""
        stage = next(self.stages)
        rest = {name: value for name, value in body.items() if name not in ("stage", "lostReason")}
        return rest | {"stage": stage} | ({"lostReason": "No time."} if stage == "lost" else {})
