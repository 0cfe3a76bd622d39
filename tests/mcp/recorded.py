"""What the request log shows of an assistant: tool and client of each write and each refusal."""

import json
import re

import crm_world
from assistant import MODERN, assistant, refusal
from request_log import RequestLog, digits
from scene import CONTACT
from times import free_times, next_week

CONTACTS, OPPORTUNITIES = "/v1/crm/contacts", "/v1/crm/opportunities"
BOOKINGS, BOOKING = "/v1/crm/bookings", "/v1/crm/bookings/{id}"
# Reads the key, and so finds out that it is revoked.
OWN_KEY = "/v1/key"
NOTHING_ELSE = {"replayed": False, "target": None, "parameters": []}
REQUEST_ID, CLIENT_INFO = "partner-api/request_id", "io.modelcontextprotocol/clientInfo"


class Recorded:
    """An assistant whose calls are compared with their records."""

    def __init__(self, log, key, one):
        self.log, self.key, self.one = log, key, one

    async def shows(self, tool, arguments, status, method, route, **expected):
        """Calls a tool that succeeds, and finds its record. Returns the result."""
        result = await self.one.result(tool, **arguments)
        seen = {"status": status, "code": None, "method": method, "route": route}
        self.compare(tool, result.meta[REQUEST_ID], arguments, NOTHING_ELSE | seen | expected)
        return result.structured_content

    async def shows_refusal(self, tool, arguments, status, code, method, route, **expected):
        """Calls a tool that is refused with this code, and finds its record."""
        text = await self.one.fails(tool, code, **arguments)
        [request_id] = re.findall(r"request_id: (\S+)$", text)
        seen = {"status": status, "code": code, "method": method, "route": route}
        self.compare(tool, request_id, arguments, NOTHING_ELSE | seen | expected)

    def sent(self):
        """The messages that the client sent, newest first."""
        return (response.request.content.decode() for response in reversed(self.one.exchanges))

    def compare(self, tool, request_id, arguments, expected):
        """Finds the record, which names the tool, and the client if the request does: in the newest revision."""
        sent = next(sent for sent in self.sent() if json.loads(sent)["method"] == "tools/call")
        own_key = arguments.get("idempotency_key")
        self.log.note(sent, own_key)
        info = json.loads(sent)["params"].get("_meta", {}).get(CLIENT_INFO)
        client = info and f"{info['name']} {info['version']}"
        assert bool(client) == (self.one.client.protocol_version == MODERN), sent
        if own_key:
            expected["idempotency_key_sha256"] = digits(own_key)
        self.log.shows_tool(self.key, request_id, tool=tool, client=client, **expected)


async def make_mistakes(log, key, one):
    """Creates a contact and a booking, and cancels the booking. In between: a repeat of the booking, a second booking
    of its time, a tool without its permission, and a cursor that no answer gave."""
    recorded, word = Recorded(log, key, one), log.word
    person = {"name": word(), "email": f"{word()}@example.com"}
    await recorded.shows("create_contact", person, 201, "POST", CONTACTS)
    lead = {"leadId": CONTACT, "calendarId": crm_world.CALENDAR}
    wanted = lead | (await free_times(one, lead, await next_week(one)))[0]
    repeated, taken = wanted | {"idempotency_key": word()}, wanted | {"idempotency_key": word()}
    made = await recorded.shows("create_booking", repeated, 201, "POST", BOOKINGS)
    await recorded.shows("create_booking", repeated, 201, "POST", BOOKINGS, replayed=True)
    await recorded.shows_refusal("create_booking", taken, 409, "slot_unavailable", "POST", BOOKINGS)
    sale = {"contactId": CONTACT, "idempotency_key": word()}
    await recorded.shows_refusal("create_opportunity", sale, 403, "permission_missing", "POST", OPPORTUNITIES)
    # The tool adds a limit.
    nowhere, query = {"cursor": word()}, {"parameters": ["cursor", "limit"]}
    await recorded.shows_refusal("find_contacts", nowhere, 400, "invalid_request", "GET", CONTACTS, **query)
    booking = {"id": made["booking"]["id"], "leadId": CONTACT}
    target = {"target": booking["id"], "parameters": ["leadId"]}
    await recorded.shows("cancel_booking", booking, 200, "DELETE", BOOKING, **target)


async def check(scene):
    """Checks the client of the newest revision and of the handshake's, and one whose key is revoked."""
    log = RequestLog(scene.base_url, scene.aws_url, scene.bearer)
    for mode in ("auto", "legacy"):
        key = log.key("crm")
        async with assistant(scene.url, key.secret, mode) as one:
            await make_mistakes(log, key, one)
    revoked = log.revoked_key()
    answer = await refusal(scene.url, revoked.secret, "auto")
    assert answer.status_code == 401, answer
    [record] = log.records(revoked)
    expected = {"method": "GET", "route": OWN_KEY, "status": 401, "code": answer.json()["code"]}
    log.shows_tool(revoked, record["id"], **expected)
    log.check("python client of assistants")
