"""A day's mistakes of a client, and what the request log shows of each.

`client` is a way to send requests with somebody's library. Each of its methods takes a key, and returns the `Exchange`:
`create` creates a client of the coach, and `read` reads a list, given a text with a parameter that refuses the text.
Clients of the whole API also have `read_client`, `free_time` and `book`, and `find_request`, which reads the log.
"""

import json
import uuid

CREATE, BOOK, READ_CLIENT = "/v1/clients", "/v1/crm/bookings", "/v1/clients/{clientId}"
UNKNOWN_CLIENT = "client_" + 32 * "0"


def new_reference():
    """A text that becomes an idempotency key, as it is or hashed."""
    return str(uuid.uuid4())


def mistakes_with_clients(log, client):
    """A bad body, a bad query, a repeat, a taken address, a key of the wrong scope and a revoked key."""
    partner, crm, revoked = log.key("partner"), log.key("crm"), log.revoked_key()

    def create(key, email=None, name=None, reference=None):
        email = email or f"{log.word()}@example.com"
        return client.create(key, email=email, name=name or log.word(), reference=reference or new_reference())

    log.shows(partner, create(partner, email=f"{log.word()} at example.com"), CREATE, 400, "invalid_request")
    refused = client.read(partner, log.word())
    assert refused.method == "GET" and "?" in refused.url, refused
    log.shows(partner, refused, refused.path, 400, "invalid_request")
    # A read that succeeds is not kept.
    assert client.read(partner).status == 200

    values = {"email": f"{log.word()}@example.com", "name": log.word()}
    repeated = values | {"reference": new_reference()}
    made, again = create(partner, **repeated), create(partner, **repeated)
    assert (made.replayed, again.replayed, made.answer) == (False, True, again.answer), again
    log.shows(partner, made, CREATE, 201)
    log.shows(partner, again, CREATE, 201)
    log.shows(partner, create(partner, **values), CREATE, 409, "email_taken")

    log.shows(crm, create(crm), CREATE, 403, "wrong_scope")
    log.shows(revoked, create(revoked), CREATE, 401, "unauthorized")


def mistakes_with_paths(log, client):
    """An e-mail address in place of an id, which the log does not show, and the id of nobody, which the log shows."""
    partner = log.key("partner")
    address = client.read_client(partner, f"{log.word()}@example.com")
    log.shows(partner, address, READ_CLIENT, 404, "not_found")
    nobody = client.read_client(partner, UNKNOWN_CLIENT)
    record = log.shows(partner, nobody, READ_CLIENT, 404, "not_found", target=UNKNOWN_CLIENT)
    # The client finds its own record. The log does not keep that it looked.
    found = client.find_request(partner, nobody.request_id)
    assert json.loads(found.answer)["data"] == [record], found


def mistakes_with_bookings(log, client, lead, calendar):
    """A booking and its repeat, a second booking of the same time, and a key of the wrong scope."""
    partner, crm = log.key("partner"), log.key("crm")
    # `free_time` is a POST that reads, so it is not kept.
    wanted = {"lead": lead, "calendar": calendar, "reference": new_reference()}
    wanted["time"] = client.free_time(crm, lead, calendar)
    made, again = client.book(crm, **wanted), client.book(crm, **wanted)
    assert (made.replayed, again.replayed, made.answer) == (False, True, again.answer), again
    log.shows(crm, made, BOOK, 201)
    log.shows(crm, again, BOOK, 201)
    log.shows(crm, client.book(crm, **wanted | {"reference": new_reference()}), BOOK, 409, "slot_unavailable")
    log.shows(partner, client.book(partner, **wanted | {"reference": new_reference()}), BOOK, 403, "wrong_scope")


def mistakes_with_everything(log, client, lead, calendar):
    mistakes_with_clients(log, client)
    mistakes_with_paths(log, client)
    mistakes_with_bookings(log, client, lead, calendar)
