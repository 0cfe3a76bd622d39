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
        # A request of a chain is about what the chain has made.
        in_chain = case.meta.phase.name.value == "stateful"
        if case.meta.generation.mode.is_positive and not in_chain and turn % STRANGERS:
            self.make_real(case)

    def make_real(self, case):
        real = {}
        if case.operation.path == "/v1/crm/bookings/{id}":
            case.path_parameters["id"], real["leadId"] = next(self.bookings)
        elif case.operation.path == "/v1/crm/contacts/{id}":
            case.path_parameters["id"] = next(self.contacts)
        elif case.operation.path == "/v1/crm/opportunities/{id}":
            case.path_parameters["id"] = next(self.opportunities)
        else:
            real |= {"leadId": next(self.contacts), "contactId": next(self.contacts), "calendarId": next(self.calendars)}
        real["date"], real["time"] = next(self.slots)
        if isinstance(case.body, dict):
            case.body = case.body | {name: value for name, value in real.items() if name in case.body}
            if "stage" in case.body:
                case.body = self.to_stage(case.body)

    def to_stage(self, body):
        """The same body for a stage that there is."""
        stage = next(self.stages)
        rest = {name: value for name, value in body.items() if name not in ("stage", "lostReason")}
        return rest | {"stage": stage} | ({"lostReason": "No time."} if stage == "lost" else {})
