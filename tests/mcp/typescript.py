"""Both generations of the TypeScript client: every tool that reads, with validated output, errors, ping and the end."""

import json
import pathlib
import subprocess
import uuid

import crm_world
import packages
from local_stack import call
from scene import CLIENT, CONTACT, CONTACT_EMAIL

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = crm_world.record_id("nobody", 0)


def partner(scene):
    client = {"client_id": CLIENT}
    reads = [
        ["find_clients", {"name": "love"}],
        ["get_client", client],
        ["get_client_compliance", client],
        ["list_client_check_ins", client],
        ["list_client_daily_logs", client],
        ["list_events", {"limit": 5}],
        ["whoami", {}],
    ]
    return {"key": scene.partner_key(), "reads": reads, "missing": ["get_client", {"client_id": "nobody"}]}


def crm(scene):
    """The reads of a crm key, with a contact whose address is not ASCII, an opportunity and a booking."""
    key = scene.crm_key()

    def post(path, record, **body):
        headers = {"x_api_key": key, "idempotency_key": str(uuid.uuid4())}
        return call(f"{scene.base_url}/v1/crm/{path}", body, **headers)[record]

    opportunity = post("opportunities", "opportunity", contactId=CONTACT)
    lead = {"leadId": CONTACT, "calendarId": crm_world.CALENDAR}
    # The last day of the horizon, since others book next week.
    [calendar] = call(f"{scene.base_url}/v1/crm/bookings/availability", lead, x_api_key=key)["calendars"]
    day = next(day for day in reversed(calendar["days"]) if day["slots"])
    booking = post("bookings", "booking", **lead, date=day["date"], time=day["slots"][0])
    reads = [
        ["find_contacts", {"email": CONTACT_EMAIL}],
        ["get_contact", {"id": CONTACT}],
        ["find_opportunities", {"limit": 50}],
        ["get_opportunity", {"id": opportunity["id"]}],
        ["list_calendars", {}],
        ["find_free_times", lead | {"days": 14}],
        ["find_bookings", {"leadId": CONTACT}],
        ["get_booking", {"id": booking["id"]}],
        ["list_workflows", {}],
        ["list_events", {"limit": 5}],
        ["whoami", {}],
    ]
    return {"key": key, "reads": reads, "missing": ["get_contact", {"id": NOBODY}]}


def check(scene, tools, script):
    asked = {"url": scene.url, "keys": [partner(scene), crm(scene)]}
    command = [packages.node(tools), HERE / script, tools]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, f"{script}:\n{done.stdout}{done.stderr}".rstrip()
    print(done.stdout, end="", flush=True)
