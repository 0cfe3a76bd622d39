"""An assistant's day, through the Python client: it finds a client by part of the name, reads the compliance, finds
free times next week, books, moves and cancels. With a key that may not write bookings, the day ends before the booking.
"""

import contextlib
import urllib.parse

from assistant import assistant
from local_stack import call
from scene import CLIENT_NAME
from times import free_times, next_week
from tools import BOOKING_WRITES


async def look_up(partner, crm):
    """Finds a client, and free times for a call. Returns its compliance, the times, and contact and calendar."""
    [client] = (await partner.call("find_clients", name="ada lov", active=True))["clients"]
    assert client["full_name"] == CLIENT_NAME, client
    compliance = await partner.call("get_client_compliance", client_id=client["client_id"])
    [contact] = (await crm.call("find_contacts", email=client["email"]))["data"]
    calendars = (await crm.call("list_calendars"))["data"]
    calendar = next(each for each in calendars if each["priceCents"] == 0)
    scene = {"leadId": contact["id"], "calendarId": calendar["id"]}
    return compliance["compliance_pct"], await free_times(crm, scene, await next_week(crm)), scene


class Bookings:
    """The contact's bookings by id, as the API lists them."""

    def __init__(self, base_url, key, contact):
        query = urllib.parse.urlencode({"leadId": contact})
        self.url, self.key = f"{base_url}/v1/crm/bookings?{query}", key

    def __call__(self):
        listed = call(self.url, x_api_key=self.key)["data"]
        return {one["id"]: {"date": one["date"], "time": one["time"]} for one in listed}


async def whole_day(partner, crm, base_url, key):
    compliance, times, scene = await look_up(partner, crm)
    bookings = Bookings(base_url, key, scene["leadId"])
    before = bookings()
    wanted = scene | times[0] | {"idempotency_key": "the assistant's call"}
    made = (await crm.call("create_booking", **wanted))["booking"]["id"]
    assert bookings() == before | {made: times[0]}, bookings()
    # The answer is lost, and the model asks again.
    assert (await crm.replay("create_booking", **wanted))["booking"]["id"] == made
    assert bookings() == before | {made: times[0]}, "booked once"
    booking = {"id": made, "leadId": scene["leadId"]}
    later = times[4]
    await crm.call("reschedule_booking", **booking, **later)
    assert bookings() == before | {made: later}, bookings()
    await crm.call("cancel_booking", **booking)
    assert bookings() == before, "a cancelled booking is not listed"
    found = f"compliance {compliance} %, {len(times)} free times next week"
    done = f"booked on {times[0]['date']} at {times[0]['time']}, moved to {later['time']}, cancelled"
    print(f"assistant's day: {found}; {done}", flush=True)


async def day_without_booking(partner, crm, other, base_url, key):
    """`other` may book, and books what `crm` may not touch."""
    listed = await crm.tools()
    assert not listed.keys() & set(BOOKING_WRITES), f"listed without the permission: {list(listed)}"
    _, times, scene = await look_up(partner, crm)
    made = await other.call("create_booking", **scene, **times[8], idempotency_key="another's call")
    booking = {"id": made["booking"]["id"], "leadId": scene["leadId"]}
    bookings = Bookings(base_url, key, scene["leadId"])
    before = bookings()
    writes = (scene | times[1] | {"idempotency_key": "k"}, booking | times[1], booking)
    for tool, arguments in zip(BOOKING_WRITES, writes, strict=True):
        text = await crm.fails(tool, "permission_missing", **arguments)
        assert "bookings.write" in text, f"{tool} does not name the permission: {text}"
    assert bookings() == before, "nothing was written"
    missing = f"{', '.join(BOOKING_WRITES)} are not listed, and permission_missing"
    print(f"assistant's day without bookings.write: it reads the same; {missing}", flush=True)


async def check(scene):
    keys = (scene.partner_key(), scene.crm_key(), scene.key_without_booking())
    async with contextlib.AsyncExitStack() as connections:
        partner, crm, reading = [await connections.enter_async_context(assistant(scene.url, key)) for key in keys]
        await whole_day(partner, crm, scene.base_url, keys[1])
        await day_without_booking(partner, reading, crm, scene.base_url, keys[1])
